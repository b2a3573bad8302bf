"""Identity of a run: library versions, fingerprints of user code, hashes of measured inputs and of files."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import numpy as np

from testifai.data import Data, LazyInputs
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle
from testifai.perturb import Perturbation
from testifai.runs import keys
from testifai.runs.outcomes import Places, visiting_order
from testifai.runs.store import Store, identity_changes
from testifai.space import Space
from testifai.support.fingerprints import WORDS, Contents, Hashes, Rows, fingerprint_code
from testifai.support.types import Record, RecordLike
from testifai.support.version import VERSION

LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnxruntime", "opencv-python-headless")


def environment() -> dict[str, str]:
    """Return the versions of Python, the platform and libraries."""
    versions = {"testifai": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[library] = metadata.version(library)
    return versions


def recorded(provenance: RecordLike) -> list[dict[str, str]]:
    """Return the environments of a run, in the order of their use."""
    first = provenance.get(keys.ENVIRONMENT)
    return provenance.get(keys.ENVIRONMENTS) or ([first] if first else [])


def differences(environments: Sequence[Mapping[str, str]]) -> str | None:
    """Return the libraries with several versions in words, or None.

    Platforms are not compared: their names change with every update of a kernel.

    >>> differences([{"numpy": "1.26.4", "python": "3.12.1"}, {"numpy": "2.1.0", "python": "3.12.1"}])
    'numpy 1.26.4 and 2.1.0'
    """
    names = [name for name in dict.fromkeys(name for one in environments for name in one) if name != "platform"]
    seen = {name: list(dict.fromkeys(one.get(name, "none") for one in environments)) for name in names}
    return "; ".join(f"{name} {' and '.join(found)}" for name, found in seen.items() if len(found) > 1) or None


CODE = "code"  # in an identity: fingerprints of user code, if there is any


class InputHashes:
    """Hashes of measured inputs by place; None if the fingerprint covers all inputs."""

    def __init__(self, data: Data, order: Rows) -> None:
        self._inputs, self._order = data.inputs, order
        self._contents = contents_of(data)
        self.hashes: Hashes | None = None if self._contents is None else np.zeros((len(order), WORDS), np.uint64)

    def take_up(self, store: Store) -> None:
        """Load the hashes of a run file, and raise InputError if its inputs have changed since."""
        stored = None if self._contents is None else store.load_by_place(keys.CONTENTS, len(self._order))
        if stored is None:
            return
        assert isinstance(self._inputs, LazyInputs)
        rows, known = _known(stored, self._order)
        changed = rows[(self._inputs.hashes(rows) != known).any(axis=1)]
        if len(changed):
            raise InputError(
                f"run file: {store.path} was measured on {len(rows):,} inputs, and {len(changed):,} of them have "
                f"changed since, such as {self._inputs.called(int(changed[0]))}; undo the change, or start a new run "
                "with another --out"
            )
        self.hashes = stored

    def note(self, places: Places) -> bool:
        """Record the hashes of the inputs at these places; return True if there were new ones."""
        if self.hashes is None or self._contents is None:
            return False
        assert isinstance(self._inputs, LazyInputs)
        new = places[~self.hashes[places].any(axis=1)]
        rows = self._order[new]
        found = self._contents.hashes[rows]
        remote = ~found.any(axis=1)  # read by another process
        if remote.any():
            found[remote] = self._inputs.hashes(rows[remote])
        self.hashes[new] = found
        return len(new) > 0


def contents_of(data: Data) -> Contents | None:
    """Return the hashes of a large data set's inputs that were read; None if its fingerprint covers all inputs."""
    return data.inputs.contents if isinstance(data.inputs, LazyInputs) else None


def _known(stored: Hashes, order: Rows) -> tuple[Rows, Hashes]:
    places = np.flatnonzero(stored.any(axis=1))
    return order[places], stored[places]


def own_code(perturbations: Mapping[str, Perturbation], oracle: Oracle) -> dict[str, str]:
    """Return the fingerprints of user-defined perturbations, by axis, and of a user-defined oracle."""
    sources: dict[str, object] = {
        f"space.{name}": one.function
        for name, one in perturbations.items()
        if not str(getattr(one.function, "__module__", type(one.function).__module__)).startswith("testifai.")
    }
    if oracle.source is not None:
        sources["oracle"] = oracle.source
    return {name: fingerprint_code(source).fingerprint for name, source in sources.items()}


def measured_on(model: Model, data: Data, space: Space, oracle: Oracle) -> Record:
    """Return the part of an identity that decides single outcomes."""
    code = own_code({axis.name: axis.perturbation for axis in space.axes}, oracle)
    return {
        **({CODE: code} if code else {}),
        "model": model.fingerprint,
        "preprocessing": model.preprocessing,
        "data": data.fingerprint,
        "space": space.describe(),
        "oracle": oracle.describe(),
    }


def resumes(store: Store, identity: Record) -> bool:
    """Return True if a file contains the run of this identity; clear it if nothing was measured, else raise."""
    stored = store.get(keys.IDENTITY)
    changes = [] if stored is None else identity_changes(stored, identity)
    if changes and not store.is_empty():
        raise InputError(
            f"run file: {store.path} belongs to another run: {'; '.join(changes)}; "
            "undo the change, or start a new run with another --out"
        )
    if changes:
        store.clear()
    return stored is not None and not changes


def recall_files(data: Data, run_file: str | os.PathLike[str]) -> None:
    """Load the hashes of the data's files from a run file, so that unchanged files are not read again."""
    if isinstance(data.inputs, LazyInputs) and Path(run_file).is_file():
        with suppress(InputError), Store.open(run_file) as store:
            recall_from(data, store)


def recall_from(data: Data, store: Store) -> None:
    """Do the same with an open run file: opening it twice in one process would release its locks."""
    inputs = data.inputs
    if not isinstance(inputs, LazyInputs):
        return
    with suppress(InputError):
        identity = store.get(keys.IDENTITY)
        if inputs.contents is not None and identity is not None:
            stored = store.load_by_place(keys.CONTENTS, len(data))
            if stored is not None:
                inputs.contents.note(*_known(stored, visiting_order(len(data), identity["seed"])))
        known = store.get_array(keys.FILES)
        if known is not None and known.ndim == 2 and known.dtype == np.uint64:
            inputs.recall(known)


def keep_files(data: Data, store: Store) -> None:
    """Store the hashes of the data's files in the run file."""
    table = data.inputs.file_table() if isinstance(data.inputs, LazyInputs) else None
    stored = store.get_array(keys.FILES)
    if table is not None and (stored is None or not np.array_equal(table, stored)):
        store.put_array(keys.FILES, table)
