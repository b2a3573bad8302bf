"""What tells one run from another: code of the user's, what earlier versions told them by, files already looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from testifai.data import Data, LazyInputs
from testifai.data.lazy import WORDS, Contents, Hashes, Rows
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle
from testifai.perturb import Perturbation
from testifai.runs import keys
from testifai.runs.outcomes import Places, visiting_order
from testifai.runs.store import Store, identity_changes
from testifai.support.fingerprints import tell
from testifai.support.types import Record


class Held:
    """Hashes of measured inputs by place, as a run file keeps them; None where all contents tell the data."""

    def __init__(self, data: Data, order: Rows) -> None:
        self._inputs, self._order = data.inputs, order
        self._contents = contents_of(data)
        self.hashes: Hashes | None = None if self._contents is None else np.zeros((len(order), WORDS), np.uint64)

    def take_up(self, store: Store) -> None:
        """What a run file says, refused where its inputs now hold something else."""
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
        """Take in what the inputs at these places held when they were read; whether there was anything new."""
        if self.hashes is None or self._contents is None:
            return False
        assert isinstance(self._inputs, LazyInputs)
        new = places[~self.hashes[places].any(axis=1)]
        rows = self._order[new]
        found = self._contents.of(rows)
        elsewhere = ~found.any(axis=1)  # read by another process
        if elsewhere.any():
            found[elsewhere] = self._inputs.hashes(rows[elsewhere])
        self.hashes[new] = found
        return len(new) > 0


def recall_contents(data: Data, store: Store) -> None:
    """Have data know what their inputs held when the run was made, so that others are refused when they are read."""
    contents, identity = contents_of(data), store.get(keys.IDENTITY)
    if contents is None or identity is None:
        return
    if not store.get(keys.PARTLY):  # made by a version that looked at all contents, so this has to as well
        assert isinstance(data.inputs, LazyInputs)
        data.inputs.contents = None
        return
    stored = store.load_by_place(keys.CONTENTS, len(data))
    if stored is not None:
        contents.note(*_known(stored, visiting_order(len(data), identity["seed"])))


def contents_of(data: Data) -> Contents | None:
    """Where it is known what the inputs of data held when they were read; None where all contents tell the data."""
    return data.inputs.contents if isinstance(data.inputs, LazyInputs) else None


def _known(stored: Hashes, order: Rows) -> tuple[Rows, Hashes]:
    """The measured inputs, and what they held."""
    places = np.flatnonzero(stored.any(axis=1))
    return order[places], stored[places]


CODE = "code"  # of an identity: absent where nothing but parts of this package decides the outcomes


def own_code(perturbations: Mapping[str, Perturbation], oracle: Oracle) -> dict[str, str]:
    """What the user's own perturbations, by axis, and their own oracle are told by; those of this package by name."""
    sources: Record = {
        f"space.{name}": one.function
        for name, one in perturbations.items()
        if not str(getattr(one.function, "__module__", type(one.function).__module__)).startswith("testifai.")
    }
    if oracle.source is not None:
        sources["oracle"] = oracle.source
    return {name: tell(source).fingerprint for name, source in sources.items()}


def changes(stored: Record, now: Record) -> list[str]:
    """What differs, in words. A run that was made before code was part of an identity is taken at its word."""
    return identity_changes(stored, {**now, CODE: None} if CODE not in stored else now)


def another_run(path: Path, stored: Record, now: Record, model: Model, data: Data) -> str:
    """Why a run cannot be continued, in one line."""
    found = changes(stored, now)
    former = {"model": model.former_fingerprint, "data": data.former_fingerprint}
    less = [key for key, told in former.items() if told is not None and stored.get(key) == told != now[key]]
    if len(less) == len(found):
        return (
            f"run file: {path} was made by a version that looked at less of the {' and the '.join(less)} (not at all "
            "weights of a model, nor into the images of a folder), so whether they are the same cannot be told; "
            "start a new run with another --out"
        )
    return (
        f"run file: {path} belongs to another run: {'; '.join(found)}; "
        "undo the change, or start a new run with another --out"
    )


def recall_files(data: Data, run_file: str | os.PathLike[str]) -> None:
    """Take from a run file what it knows of the data's files, so that unchanged ones are not read again.

    What is not there, or damaged, is simply not known.
    """
    if isinstance(data.inputs, LazyInputs) and Path(run_file).is_file():
        with suppress(InputError), Store.open(run_file) as store:
            recall_from(data, store)


def recall_from(data: Data, store: Store) -> None:
    """The same from a run file that is open: to open it once more in this process would free the locks on it.

    A reader would then take itself for the last one, and delete the log that outcomes are written to.
    """
    if not isinstance(data.inputs, LazyInputs):
        return
    with suppress(InputError):
        recall_contents(data, store)
        known = store.get_array(keys.FILES)
        if known is not None and known.ndim == 2 and known.dtype == np.uint64:
            data.inputs.recall(known)


def keep_files(data: Data, store: Store) -> None:
    """Have the run file know of the data's files what was found out about them."""
    digests = data.inputs.digests() if isinstance(data.inputs, LazyInputs) else None
    if digests is not None and not np.array_equal(digests, _none(store.get_array(keys.FILES))):
        store.put_array(keys.FILES, digests)


def _none(array: Any) -> Any:
    return np.zeros((0, 0), np.uint64) if array is None else array
