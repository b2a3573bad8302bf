"""What a stored run was measured on, loaded again from the spec that its file holds or the user names.

A run file may come from someone else, and its spec may name any file and any code. It is followed only where the user
names the spec or made the run file here (`runs.own`); that is decided in this place and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testifai.data import Data
from testifai.errors import InputError
from testifai.runs import keys, own
from testifai.runs.store import Store, identity_changes
from testifai.scans import loading
from testifai.scans.session import Session
from testifai.scans.spec import Spec, parse, read
from testifai.space import Space
from testifai.tomogram import Tomogram

MEASURED_ON = ("model", "preprocessing", "data", "space", "oracle", "seed")


@dataclass(frozen=True)
class Source:
    """The spec behind a run file, where it may be followed, and what the file says that it was measured on."""

    run_file: Path
    spec: Spec
    folder: Path
    identity: dict[str, Any]

    def session(self) -> Session:
        """Model and data, loaded and known to be those that the run was made with."""
        made = loading.session(self.spec, self.folder)
        self._check({key: self.identity.get(key) for key in MEASURED_ON}, made.identity())
        return made

    def data(self) -> tuple[Data, Space]:
        """Data and axes alone."""
        space, data = loading.space(self.spec, self.folder), loading.data(self.spec.data, self.folder)
        before = {"data": self.identity["data"], "axes": self.identity["space"]["axes"]}
        self._check(before, {"data": data.fingerprint, "axes": space.describe()["axes"]})
        return data, space

    def _check(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        changes = identity_changes(before, {key: now.get(key) for key in before})
        if changes:
            raise InputError(f"run file: this is not what {self.run_file.name} was measured on: {changes[0]}")


def reopen(run: Path | Tomogram, spec: Path | None = None) -> Session:
    """A session for a stored run, its model and data loaded and known to be those it was made with."""
    return source(run, spec).session()


def source(run: Path | Tomogram, spec: Path | None = None) -> Source:
    """Where a stored run comes from; a run that is open already is given as its tomogram."""
    known = run.provenance if isinstance(run, Tomogram) else _provenance(run)
    run_file, identity = Path(known["path"]), known[keys.IDENTITY]
    if spec is not None:
        return Source(run_file, read(spec), spec.resolve().parent, identity)
    stored, folder = known[keys.SPEC], Path(known[keys.FOLDER] or ".")
    if stored is None:
        raise InputError(f"run file: {run_file.name} was not made from a spec; name one with --spec")
    if not own.made_here(known[keys.ID], stored, known[keys.FOLDER]):
        raise InputError(
            f"run file: {run_file.name} was not made on this machine under this account, so what its spec names is not "
            "opened; to allow that, name it with --spec SPEC.toml"
        )
    followed = parse(stored)
    return Source(run_file, followed, folder, identity)


def _provenance(run_file: Path) -> dict[str, Any]:
    with Store.open(run_file) as store:
        return {"path": run_file, **{key: store.get(key) for key in (keys.ID, keys.IDENTITY, keys.SPEC, keys.FOLDER)}}
