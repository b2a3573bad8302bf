"""All that a report takes from a run file, read in one go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from testifai.runs import keys
from testifai.runs.store import Store
from testifai.scans.stored import read_run
from testifai.sweeps.storage import StoredSweep, sweeps_in
from testifai.tomogram import Tomogram


@dataclass(frozen=True)
class Stored:
    """A run file's scan, if it holds one, and its sweeps."""

    path: Path
    tomogram: Tomogram | None
    sweeps: dict[str, StoredSweep]


def read_stored(run_file: Path) -> Stored:
    """Open the file once, and check it once."""
    with Store.open(run_file) as store:
        scanned = store.get(keys.IDENTITY) is not None
        return Stored(run_file, read_run(store) if scanned else None, sweeps_in(store))
