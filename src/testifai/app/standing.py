"""How a run file stands: whether it grows, is finished, no longer grows or is lost, and as of when that is known."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from testifai.runs import keys
from testifai.runs.lock import is_held
from testifai.tomogram import Tomogram

GROWING, FINISHED, STILL, LOST = "growing", "finished", "still", "lost"


def clock() -> str:
    """What time it is."""
    return time.strftime("%H:%M:%S")


@dataclass(frozen=True)
class Standing:
    """How a run file stands, and of when that is known."""

    kind: str  # growing, finished, still or lost
    inferences: int
    at: str = field(default_factory=clock)
    problem: str = ""

    @classmethod
    def of(cls, path: Path, run: Tomogram) -> Self:
        """That of a run file of which this much was read."""
        if run.provenance.get(keys.FINISHED) == run.outcomes.total():
            return cls(FINISHED, run.inferences)
        return cls(GROWING if is_held(path) else STILL, run.inferences)

    @property
    def words(self) -> str:
        """For people.

        >>> Standing("growing", 12345, at="10:32:05").words
        '12,345 inferences so far, as of 10:32:05 · following'
        """
        if self.kind == FINISHED:
            return f"{self.inferences:,} inferences · finished"
        so_far, ends = (" so far", "following") if self.kind == GROWING else ("", self.problem or "it no longer grows")
        return f"{self.inferences:,} inferences{so_far}, as of {self.at} · {ends}"
