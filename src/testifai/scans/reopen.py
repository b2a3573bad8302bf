"""A stored run's model and data, loaded again from the spec that its file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from testifai import data as datasets
from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.store import Store, identity_changes
from testifai.scans import loading
from testifai.scans.session import Session
from testifai.scans.spec import Spec, parse, read
from testifai.space import Space
from testifai.tomogram import Tomogram


def reopen(run: Path | Tomogram, spec: Path | None = None) -> Session:
    """A session for a stored run, its model and data loaded and known to be those it was made with.

    A run that is open already is given as its tomogram.
    """
    known = provenance(run)
    loaded, folder = trusted_spec(known, spec)
    session = loading.session(loaded, folder)
    kept = ("model", "preprocessing", "data", "space", "oracle", "seed")
    check_same(known, session.identity(), kept)
    return session


def reopen_data(run: Path | Tomogram, spec: Path | None = None) -> tuple[datasets.Data, Space]:
    """The data and axes of a stored run, loaded again and known to be those it was measured on; no model."""
    known = provenance(run)
    loaded, folder = trusted_spec(known, spec, without="model")
    space, data = loading.space(loaded, folder), loading.data(loaded.data, folder)
    # Whether the order of application counts is no matter of the axes, and single perturbations are run without it.
    known = {**known, keys.IDENTITY: {**known[keys.IDENTITY], "axes": known[keys.IDENTITY]["space"]["axes"]}}
    check_same(known, {"data": data.fingerprint, "axes": space.describe()["axes"]}, ("data", "axes"))
    return data, space


def provenance(run: Path | Tomogram) -> Mapping[str, Any]:
    """What a run file says of its run, read from the file where no tomogram of it is at hand."""
    if isinstance(run, Tomogram):
        return run.provenance
    with Store.open(run) as store:
        return {"path": str(run), **{key: store.get(key) for key in (keys.SPEC, keys.FOLDER, keys.IDENTITY)}}


def trusted_spec(known: Mapping[str, Any], spec: Path | None, *, without: str | None = None) -> tuple[Spec, Path]:
    """The spec of a stored run and its folder: the one that is named, else the one in its file.

    A spec that runs code is followed only where it is still in its folder or the user names it: a run file may come
    from someone else. `without` names a part of the spec that nobody will load.
    """
    if spec is not None:
        return read(spec), spec.resolve().parent
    stored, folder, name = known[keys.SPEC], Path(known[keys.FOLDER] or "."), Path(known["path"]).name
    if stored is None:
        raise InputError(f"run file: {name} was not made from a spec; name one with --spec")
    loaded = parse(stored)
    code = [entry for entry in loaded.runs_code() if entry.partition(".")[0] != without]
    if code and not _still_there(stored, folder):
        raise InputError(
            f"run file: the spec in {name} runs your own code ({', '.join(code)}); to allow that, name it with --spec"
        )
    return loaded, folder


def check_same(known: Mapping[str, Any], now: Mapping[str, Any], parts: Sequence[str]) -> None:
    """Refuse what differs in one of these parts of the identity from what the run was measured on."""
    identity = known[keys.IDENTITY]
    changes = identity_changes(*({part: whole.get(part) for part in parts} for whole in (identity, now)))
    if changes:
        raise InputError(f"run file: this is not what {Path(known['path']).name} was measured on: {changes[0]}")


def _still_there(stored: dict[str, Any], folder: Path) -> bool:
    """Whether the folder has a spec file that says the same as the one in the run."""
    for path in sorted(folder.glob("*.toml")):
        with suppress(InputError):
            if read(path).model_dump(mode="json", exclude_none=True) == stored:
                return True
    return False
