"""Sweeps in a run file: every batch as it was measured, and what was found, beside the outcomes of a scan.

A batch is a block of the array `sweep/NAME/LEVEL`, numbered by the place of its first input; the level is written so
that it reads back as the same number, `clean` is what an oracle remembers of the clean inputs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.store import Store, identity_changes
from testifai.support.types import Record
from testifai.sweeps.probe import SweepBatch
from testifai.sweeps.result import Sweep

CLEAN = "clean"
SAVE_EVERY = 1.0  # seconds


class SweepRecord:
    def __init__(self, store: Store, name: str, identity: Record) -> None:
        self._store, self._name = store, name
        self._waiting: list[SweepBatch] = []
        self._saved = time.monotonic()
        stored = store.get(self._key("identity"))
        changes = [] if stored is None else identity_changes(stored, identity)
        if changes:
            raise InputError(
                f"run file: {store.path} holds a sweep of {name} from something else: {'; '.join(changes)}; "
                "undo the change, or choose another file with --out"
            )
        if stored is None:
            store.put(**{self._key("identity"): identity})

    def batches(self) -> Iterator[SweepBatch]:
        """Everything measured so far, for `recorded` of the sweep that goes on with it."""
        start = self._key("")
        for name, block, array in self._store.get_blocks(start):
            level = name.removeprefix(start)
            if level == CLEAN:
                yield SweepBatch(None, block, np.zeros(0, bool), array)
            else:
                yield SweepBatch(float(level), block, array.astype(bool))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Within, `add` may be called; at the end, however it comes about, all of it is in the file."""
        try:
            yield
        finally:
            self._save()

    def add(self, measured: SweepBatch) -> None:
        """Keep a batch; written at once or a moment later, together with others."""
        self._waiting.append(measured)
        if time.monotonic() - self._saved > SAVE_EVERY:
            self._save()

    def finish(self, found: list[Sweep]) -> None:
        self._store.put(**{self._key("found"): [sweep.as_dict() for sweep in found]})

    def _save(self) -> None:
        waiting, self._waiting = self._waiting, []
        blocks = []
        for one in waiting:
            rows = one.reference if one.level is None else one.passed.astype(np.uint8)
            assert rows is not None
            blocks.append((self._key(CLEAN if one.level is None else repr(one.level)), one.start, rows))
        self._store.put_blocks(blocks)
        self._saved = time.monotonic()

    def _key(self, what: str) -> str:
        return keys.sweep(self._name, what)


@dataclass(frozen=True)
class StoredSweep:
    identity: Record  # what it was made from
    found: list[Record]  # a `Sweep.as_dict` for each threshold; empty until the sweep is finished


def finished(sweeps: Mapping[str, StoredSweep]) -> dict[str, list[Record]]:
    return {name: sweep.found for name, sweep in sweeps.items() if sweep.found}


def sweeps_in(store: Store) -> dict[str, StoredSweep]:
    names = sorted({name.removeprefix(keys.SWEEPS).partition("/")[0] for name in store.array_names(keys.SWEEPS)})
    return {
        name: StoredSweep(store.get(keys.sweep(name, "identity")) or {}, store.get(keys.sweep(name, "found")) or [])
        for name in names
    }
