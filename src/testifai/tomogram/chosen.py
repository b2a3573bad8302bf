"""The tests that an answer is about: all of them or, of more than are listed, some that stand for them.

How many stand for a region is a number, not what can be done in some seconds: a run answers the same on every machine.
What one of them costs is bounded, as a surrogate holds no more than some 2,000 tests or effects of any number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids
from testifai.space import Selection

DRAWN = 2_000  # tests that first stand for a region of more than are listed, and at most
MOST_DRAWN = 6_000
IN_A_TABLE = 6_000  # for all rows of a table together, and for each at most
DRAWN_EACH = 400
FEWEST_SHARED = 100  # tests of a sample of the whole space that are enough for a region of it


@dataclass(frozen=True)
class Chosen:
    """So many tests, and the ids of all of them or of a sample in which each is as likely as any other."""

    ids: Ids = field(repr=False)
    tests: int
    drawn_from: Selection | None = None  # where the ids are a sample
    seed: int = 0

    @classmethod
    def all_of(cls, ids: Ids) -> Chosen:
        """Tests that are listed."""
        return cls(ids, len(ids))

    @classmethod
    def some_of(cls, selection: Selection, most: int, seed: int) -> Chosen:
        """So many of what is selected, the same ones each time; all where there are no more."""
        ids = selection.sample(most, np.random.default_rng([seed, 2]))
        return cls(ids, selection.count, selection if len(ids) < selection.count else None, seed)

    def grown(self, most: int) -> Chosen:
        """A sample of another size."""
        assert self.drawn_from is not None
        return Chosen.some_of(self.drawn_from, most, self.seed)

    def contains(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these tests are among those chosen, drawn or not."""
        return np.isin(ids, self.ids) if self.drawn_from is None else self.drawn_from.contains(ids)
