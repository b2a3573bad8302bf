"""What a stored run was measured on, loaded again from the spec that its file holds or the user names.

A run file may come from someone else. Whether the spec in it may be followed where that runs code is decided here and
nowhere else.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testifai.data import Data
from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.store import Store, identity_changes
from testifai.scans import loading
from testifai.scans.identity import CODE, recall_files
from testifai.scans.session import Session
from testifai.scans.spec import Spec, parse, read
from testifai.space import Space
from testifai.tomogram import Tomogram

MEASURED_ON = ("model", "preprocessing", "data", "space", "oracle", "seed", CODE)


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
        recall_files(made.data, self.run_file)
        self._check(
            {key: self.identity.get(key) for key in MEASURED_ON if key != CODE or key in self.identity}, made.identity()
        )
        return made

    def data(self) -> tuple[Data, Space]:
        """Data and axes alone."""
        space, data = loading.space(self.spec, self.folder), loading.data(self.spec.data, self.folder)
        recall_files(data, self.run_file)
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
    followed = parse(stored)
    if followed.runs_code() and not _still_there(stored, folder):
        raise InputError(
            f"run file: the spec in {run_file.name} runs your own code ({', '.join(followed.runs_code())}); "
            "to allow that, name it with --spec"
        )
    return Source(run_file, followed, folder, identity)


def _provenance(run_file: Path) -> dict[str, Any]:
    with Store.open(run_file) as store:
        return {"path": run_file, **{key: store.get(key) for key in (keys.IDENTITY, keys.SPEC, keys.FOLDER)}}


def _still_there(stored: dict[str, Any], folder: Path) -> bool:
    """Whether the folder has a spec file that says the same as the one in the run."""
    for path in sorted(folder.glob("*.toml")):
        with suppress(InputError):
            if read(path).model_dump(mode="json", exclude_none=True) == stored:
                return True
    return False
