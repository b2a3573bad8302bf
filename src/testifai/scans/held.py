"""What the inputs of a run held when they were measured, where data are too large to be told by all contents."""

from __future__ import annotations

import numpy as np

from testifai.data import Data, LazyInputs
from testifai.data.contents import WORDS, Contents, Hashes, Rows
from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.outcomes import Places, visiting_order
from testifai.runs.store import Store


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
