"""The sign-off of a report: what was run, by whom, the requirements with their reasons, and their status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from testifai.gates.verdicts import Verdict
from testifai.identity.run_identity import recorded
from testifai.report.contents import Contents
from testifai.runs import keys
from testifai.support.serialization import to_toml
from testifai.support.types import Record

NOT_RECORDED = "not recorded"
SHA256, DATA, PARTLY, MODEL = "SHA-256", "fingerprint", "fingerprint in part", "fingerprint of the model"
MEANS = {
    SHA256: "of the whole file, as sha256sum prints it",
    DATA: "BLAKE2b over all inputs and labels in their order, with their types and shapes",
    PARTLY: "BLAKE2b over the names and sizes of the files and over some contents; what each measured input held is "
    "told by a hash of its own in the run file",
    MODEL: "what the run tells its model by; the SHA-256 of its files is not recorded",
}


@dataclass(frozen=True)
class Named:
    """A file or a data set of a run: its role, its name, its hash and the kind of hash."""

    part: str
    name: str
    kind: str
    hash: str


NO_ROBUSTNESS = "no robustness requirement was set"


def outcome(
    verdicts: Sequence[Verdict], unfinished: str | None = None, *, requires_robustness: bool = True
) -> tuple[str, str]:
    """The combined status of all gates, and a sentence; a run that is not finished never passes."""
    if unfinished is not None:
        holding = f"; {sum(one.holds for one in verdicts)} of {len(verdicts)} gates hold so far" if verdicts else ""
        return "undecided", f"{unfinished}{holding}. A run that is not finished cannot be signed off."
    if not verdicts:
        return "undecided", f"No gate was set: nothing was required, so nothing passed or failed ({NO_ROBUSTNESS})."
    counts = Counter(one.status for one in verdicts)
    status = next(status for status in ("fails", "undecided", "holds") if counts[status])
    of = f"{counts[status]} of {len(verdicts)}"
    about = "" if requires_robustness else f"; {NO_ROBUSTNESS}, as every gate is about clean inputs"
    return status, {
        "fails": f"Failed: {of} gates failed{about}.",
        "undecided": f"Undecided: {of} gates could not be decided, and none failed{about}.",
        "holds": f"Passed: every gate holds ({of}){about}.",
    }[status]


def named(contents: Contents) -> list[Named]:
    """Model and data, as they were when they were run."""
    provenance = contents.tomogram.provenance
    hashes = provenance.get(keys.HASHES) or {}
    found = []
    for part, made in contents.made_of.items():
        files = [Named(part, one["name"], SHA256, one["sha256"]) for one in hashes.get(part) or ()]
        found += files
        if part == "data" or not files:
            kind = MODEL if part == "model" else PARTLY if provenance.get(keys.PARTLY) else DATA
            found.append(Named(part, ", ".join(made.names) or made.unnamed, kind, made.fingerprint))
    return found


def meanings(listed: Sequence[Named]) -> list[str]:
    return [f"{kind}: {MEANS[kind]}." for kind in dict.fromkeys(one.kind for one in listed)]


def ran(contents: Contents) -> list[Record]:
    """The recorded names and times of who ran it."""
    return contents.tomogram.provenance.get(keys.RAN) or []


def made_with(contents: Contents) -> list[tuple[str, str]]:
    """Seed, inferences and the versions of all software that contributed."""
    tomogram = contents.tomogram
    environments = recorded(tomogram.provenance)
    names = list(dict.fromkeys(name for one in environments for name in one))
    versions = [(name, " and ".join(dict.fromkeys(one.get(name, "none") for one in environments))) for name in names]
    facts = [
        ("seed", str(tomogram.settings.seed)),
        ("inferences", f"{tomogram.inferences:,}"),
        ("inputs", f"{tomogram.outcomes.inputs:,}"),
        ("tests", f"{len(tomogram.outcomes):,} tried of {tomogram.space.size:,}"),
    ]
    return [*facts, *(versions or [("software", NOT_RECORDED)])]


def spec(contents: Contents) -> str:
    """The whole spec as it was run, defaults included."""
    stored = contents.tomogram.provenance.get(keys.SPEC)
    return f"{NOT_RECORDED}: the run was not made from a spec" if stored is None else to_toml(stored)
