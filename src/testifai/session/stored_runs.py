"""Stored runs: reading them as tomograms, their sources, and loading their models and data again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testifai.data import Data
from testifai.engine.stopping import by_width_alone
from testifai.errors import InputError
from testifai.identity.run_identity import CODE, contents_of, recall_files
from testifai.quality.assessment import stored_scores
from testifai.runs import keys, trusted_runs
from testifai.runs.outcomes import visiting_order
from testifai.runs.reader import Loaded, damaged
from testifai.runs.store import Store, identity_changes
from testifai.session import assembly
from testifai.session.session import Session
from testifai.space import Space
from testifai.spec.parsing import Spec, parse, read
from testifai.support.files import sha256
from testifai.support.options_base import Part
from testifai.support.remote import RemoteFolder
from testifai.support.types import Record, RecordLike
from testifai.tomogram import EstimatorSettings, Tomogram

# Entries of a run file that become the provenance of its tomogram.
PROVENANCE = (
    keys.ID, keys.IDENTITY, keys.ENVIRONMENT, keys.ENVIRONMENTS, keys.ASKED_TWICE, keys.CLEAN_WARNING, keys.SPEC,
    keys.FOLDER, keys.GATES, keys.TRUST, keys.FIT, keys.LOCALITY, keys.FINISHED, keys.PLANNED, keys.ENDED, keys.HASHES,
    keys.RAN, keys.PARTLY,
)  # fmt: skip


def open_run(path: str | os.PathLike[str], before: Loaded | None = None) -> Tomogram:
    """Reopen a stored run as a tomogram.

    Args:
        path: a run file
        before: outcomes that were loaded earlier, which are not read again
    """
    with Store.open(path) as store:
        return read_run(store, before)


def read_run(store: Store, before: Loaded | None = None) -> Tomogram:
    """Return the tomogram of an open run file."""
    identity = store.get(keys.IDENTITY)
    if identity is None:
        raise InputError(f"run file: {store.path} holds no run yet; start it with: testifai run SPEC.toml")
    inputs, classes, labels = store.get(keys.INPUTS), store.get(keys.CLASSES), store.get_array(keys.LABELS)
    if inputs is None or (labels is not None and len(labels) != inputs):
        raise damaged(store.path, "the number of its inputs is missing, or not that of its labels")
    with reading(store.path, "space"):
        space = Space.from_description(identity["space"])
    with reading(store.path, "quality"):
        quality = stored_scores(store, space, identity["seed"])
    with reading(store.path, "stopping"):
        ended_by_width = by_width_alone(identity.get("stopping"))
    provenance = {"path": str(store.path), **{key: store.get(key) for key in PROVENANCE}}
    if provenance[keys.GATES]:
        # Only gates need pydantic, which is slow to import.
        from testifai.spec.parsing import Gate

        with reading(store.path, "gates"):
            for gate in provenance[keys.GATES]:
                Gate(**gate)
    return Tomogram(
        space,
        store.load(inputs, space.size, before),
        visiting_order(inputs, identity["seed"]),
        labels=labels,
        classes=None if classes is None else tuple(classes),
        settings=EstimatorSettings(
            population=identity["population"],
            stopped_early=bool(store.get(keys.STOPPED_EARLY)),
            surrogate=identity.get("surrogate"),
            seed=identity["seed"],
            ended_by_width=ended_by_width,
        ),
        provenance=provenance,
        quality=quality,
    )


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn errors caused by invalid contents into the error for a damaged file."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith("run file:") else damaged(path, f"{what}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged(path, f"{what}: {type(error).__name__}: {error}") from None


def open_measured(path: str | os.PathLike[str], before: Loaded | None = None) -> Tomogram:
    """Reopen a stored run; raise InputError if it has no outcomes."""
    return measured(open_run(path, before))


def measured(tomogram: Tomogram) -> Tomogram:
    """Return the tomogram; raise InputError if it has no outcomes."""
    if not len(tomogram.outcomes):
        path = tomogram.provenance["path"]
        raise InputError(f"run file: {path} holds no outcome yet; continue it with: testifai run SPEC.toml")
    return tomogram


MEASURED_ON = ("model", "preprocessing", "data", "space", "oracle", "seed", CODE)


@dataclass(frozen=True)
class Source:
    """The spec of a run file, and the identity of its run."""

    run_file: Path
    spec: Spec
    folder: Path
    identity: Record

    def session(self) -> Session:
        """Load model and data; raise InputError if they have changed since the run."""
        made = assembly.session(self.spec, self.folder)
        recall_files(made.data, self.run_file)
        before = {key: self.identity.get(key) for key in MEASURED_ON if key != CODE or key in self.identity}
        self._check(before, made.identity())
        return made

    def data(self) -> tuple[Data, Space]:
        """Load only data and axes."""
        space, data = assembly.space(self.spec, self.folder), assembly.load_data(self.spec, self.folder)
        recall_files(data, self.run_file)
        before = {"data": self.identity["data"], "axes": self.identity["space"]["axes"]}
        self._check(before, {"data": data.fingerprint, "axes": space.describe()["axes"]})
        return data, space

    def _check(self, before: Record, now: Record) -> None:
        changes = identity_changes(before, {key: now.get(key) for key in before})
        if changes:
            raise InputError(f"run file: this is not what {self.run_file.name} was measured on: {changes[0]}")


def reopen(run: Path | Tomogram, spec: Path | None = None) -> Session:
    """Return a session for a stored run, with the same model and data."""
    return source(run, spec).session()


def source(run: Path | Tomogram, spec: Path | None = None) -> Source:
    """Return the source of a run file, or of a run that is already open as a tomogram."""
    if isinstance(run, Tomogram):
        known = run.provenance
    else:
        with Store.open(run) as store:
            wanted = (keys.ID, keys.IDENTITY, keys.SPEC, keys.FOLDER)
            known = {"path": run, **{key: store.get(key) for key in wanted}}
    run_file, identity = Path(known["path"]), known[keys.IDENTITY]
    if spec is not None:
        return Source(run_file, read(spec), spec.resolve().parent, identity)
    stored, folder = known[keys.SPEC], Path(known[keys.FOLDER] or ".")
    if stored is None:
        raise InputError(f"run file: {run_file.name} was not made from a spec; name one with --spec")
    if not trusted_runs.made_here(known[keys.ID], stored, known[keys.FOLDER]):
        raise InputError(
            f"run file: {run_file.name} was not made on this machine under this account, so what its spec names is not "
            "opened; to allow that, name it with --spec SPEC.toml"
        )
    return Source(run_file, parse(stored), folder, identity)


MOST_NAMES, MOST_CHARACTERS = 3, 40
HASH = re.compile("[0-9a-f]{12}[0-9a-f-]*")


@dataclass(frozen=True)
class SourceRecord:
    """The files and code of a model or a data set, and its fingerprint."""

    names: tuple[str, ...]
    fingerprint: str
    unnamed: str = "handed over in Python"  # shown if there are no names

    def __str__(self) -> str:
        """Return at most three names and a part of the fingerprint.

        >>> str(SourceRecord(("net.onnx",), "04e19832a97320c5b194")), str(SourceRecord((), "my model"))
        ('net.onnx (04e19832a973)', 'handed over in Python (my model)')
        """
        rest = len(self.names) - MOST_NAMES
        words = ", ".join(self.names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        known = self.fingerprint[: 12 if HASH.fullmatch(self.fingerprint) else MOST_CHARACTERS]
        return f"{words or self.unnamed} ({known})"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"named": list(self.names), "fingerprint": self.fingerprint}


def sources(provenance: RecordLike) -> dict[str, SourceRecord]:
    """Return the sources of a run's `model` and `data`, as far as its file contains them; nothing is loaded."""
    identity, stored = provenance.get(keys.IDENTITY) or {}, provenance.get(keys.SPEC)
    names: dict[str, list[str]] = {"model": [], "data": []}
    unnamed = "handed over in Python"
    if stored is not None:
        try:
            spec = parse(stored)
            names = {"model": spec.model.named(), "data": spec.data.named()}
        except InputError:
            unnamed = "of a spec that cannot be read here"
    return {part: SourceRecord(tuple(names[part]), str(identity[part]), unnamed) for part in names if part in identity}


MOST = 1000  # files of a model's folder

Hashes = dict[str, list[Record]]


def about(spec: Spec, folder: Path, data: Data) -> Record:
    """Return the entries of a run file about its spec and the files of the spec."""
    return {**spec.about(folder), keys.HASHES: hashes(spec, folder, data)}


def hashes(spec: Spec, folder: Path, data: Data) -> Hashes:
    """Return name, size and SHA-256 of the files of the model and of the data, except for folders and large data."""
    files = {"model": list(_files(spec.model, folder, folders=True)), "data": []}
    if contents_of(data) is None:
        files["data"] = list(_files(spec.data, folder, folders=False))
    return {
        part: [{"name": name, "bytes": file.stat().st_size, "sha256": sha256(file)} for name, file in named]
        for part, named in files.items()
    }


def changed(tomogram: Tomogram, spec: Path | None = None) -> list[str]:
    """Return a line for each file that has changed since the run."""
    recorded: RecordLike = tomogram.provenance.get(keys.HASHES) or {}
    lines = []
    with suppress(InputError):
        for part in (part for part in ("model", "data") if recorded.get(part)):
            found = source(tomogram, spec)
            there: dict[str, list[Path]] = {}
            for name, file in _files(getattr(found.spec, part), found.folder, folders=part == "model"):
                there.setdefault(name, []).append(file)
            for known in recorded[part]:
                now = [sha256(file) for file in there.get(known["name"], [])]
                if now and known["sha256"] not in now:
                    lines.append(
                        f"{known['name']} is not the file that was run: its SHA-256 was {known['sha256'][:12]}…, "
                        f"and is {now[0][:12]}… now"
                    )
    return lines


def _files(part: Part, folder: Path, *, folders: bool) -> Iterator[tuple[str, Path]]:
    """Return names and paths of existing files, on request also those in folders."""
    for named in part.files(folder):
        if isinstance(named, RemoteFolder):
            continue
        if named.is_file():
            yield named.name, named
        elif folders and named.is_dir():
            within = ((file, file.relative_to(named)) for file in sorted(named.rglob("*")) if file.is_file())
            shown = [(file, path) for file, path in within if not any(part.startswith(".") for part in path.parts)]
            yield from ((f"{named.name}/{path.as_posix()}", file) for file, path in shown[:MOST])


LONGEST = 200  # characters of a name
WHEN = "%Y-%m-%d %H:%M:%S UTC"


@contextmanager
def noted(by: str | None, session: Session, path: Path) -> Iterator[None]:
    """Record in the run file who ran the session in this block, when, and how far; nothing without a name."""
    if by is None:
        yield
        return
    name, started, inferences = by.strip(), time.strftime(WHEN, time.gmtime()), None
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InputError(f"--run-by: expected one line of up to {LONGEST} characters, got {by!r}")
    try:
        yield
        inferences = session.outcomes.total()
    except KeyboardInterrupt:
        inferences = session.outcomes.total()
        raise
    finally:
        if inferences is not None:
            entry = {
                "by": name,
                "started": started,
                "ended": time.strftime(WHEN, time.gmtime()),
                "inferences": inferences,
            }
            with Store.create_or_open(path) as store:
                store.put(**{keys.RAN: [*(store.get(keys.RAN) or []), entry]})
