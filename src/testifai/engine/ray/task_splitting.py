"""Work cut into tasks: blocks of inputs × tests that are neighbours in the prefix tree, of about a second each."""

from __future__ import annotations

import numpy as np

from testifai.engine.plan import Work
from testifai.engine.ray.jobs import TrialTask
from testifai.runs.outcomes import Outcomes, Places
from testifai.space import Space
from testifai.support.types import Bools

FEWEST_INPUTS = 128  # for each test of a task: arrays too small to be worth a call cost more than tests cut apart
MOST_CELLS = 32 << 20  # of the table of a block


class TaskSplitter:
    """What is missing of some work, task by task, each as large as is asked for when it is cut.

    Inputs are cut first, since all tests then share what is done to a block of them; where the tests of the smallest
    sensible block are still too many, they are cut in the order of the tree, so that only the steps that lead to the
    first test of a task are made again.
    """

    def __init__(self, space: Space, work: Work, outcomes: Outcomes, *, most_inputs: int) -> None:
        self._work, self._outcomes = _as_in_the_tree(space, work), outcomes
        self._inputs, tests = work.union(), len(work.configurations)
        asked = sum(map(len, work.places)) if isinstance(work.places, list) else tests * len(work.places)
        self._of_an_input = asked / max(1, len(self._inputs))
        self._most_inputs = max(1, min(most_inputs, MOST_CELLS // max(1, tests)))
        # Where each test has inputs of its own, it takes more of them to have enough for each.
        self._fewest_inputs = min(self._most_inputs, int(np.ceil(FEWEST_INPUTS * tests / max(1e-9, self._of_an_input))))
        self._cut = 0  # inputs
        self._block: Places = self._inputs[:0]
        self._table: Bools = np.zeros((tests, 0), bool)
        self._ends = np.zeros(tests, np.int64)  # trials of the block up to and with each test
        self._row = tests  # the first test of the block that is in no task yet

    def left(self) -> int:
        """How many trials are in no task yet, about: of inputs not looked at, all that is asked for counts."""
        of_block = self._ends[-1] - self._done() if self._row < len(self._ends) else 0
        return int(of_block + self._of_an_input * (len(self._inputs) - self._cut))

    def next(self, trials: int) -> TrialTask | None:
        """A task of about so many trials; None where nothing is left."""
        while self._row == len(self._ends) or self._ends[-1] == self._done():
            if self._cut == len(self._inputs):
                return None
            self._begin_block(trials)
        begin, done = self._row, self._done()
        # What would be left over for a small task of its own belongs to this one.
        everything = self._ends[-1] - done <= 1.5 * trials
        end = len(self._ends) if everything else int(np.searchsorted(self._ends, done + trials)) + 1
        self._row = end
        rows = begin + np.flatnonzero(self._table[begin:end].any(axis=1))
        return TrialTask.of(self._work.configurations[rows], self._block, self._table[rows])

    def _done(self) -> int:
        return int(self._ends[self._row - 1]) if self._row else 0

    def _begin_block(self, trials: int) -> None:
        size = int(trials / max(1e-9, self._of_an_input))
        size = min(max(size, self._fewest_inputs), self._most_inputs)
        rest = len(self._inputs) - self._cut
        size = rest if rest < 1.5 * size and rest <= self._most_inputs else size
        self._block = self._inputs[self._cut : self._cut + size]
        self._cut += len(self._block)
        self._table = self._work.missing(self._outcomes, self._block)
        self._ends = np.cumsum(self._table.sum(axis=1))
        self._row = 0


class TaskPace:
    """How many trials make a task that lasts about a second, from how long earlier ones took.

    Towards the end tasks become smaller, so that all actors end together.
    """

    SECONDS = 1.0
    SHORTEST = 0.1  # handing out a task costs a few milliseconds
    FIRST = 64
    GROWTH = 8  # at most, from one task to the next: the first batches of a model are not typical

    def __init__(self, first: int = FIRST, shortest: float = SHORTEST) -> None:
        self._rate: float | None = None  # trials a second of one actor
        self._first = self._largest = first
        self._shortest = shortest

    def note(self, trials: int, seconds: float) -> None:
        """How long an actor took for a task."""
        rate = trials / max(seconds, 1e-6)
        self._rate = rate if self._rate is None else (self._rate + rate) / 2
        self._largest = max(self._largest, trials)

    def trials(self, left: int, actors: int) -> int:
        """The size of the next task, where so many trials are left for so many actors."""
        if self._rate is None:
            return self._first
        fair = max(left / (2 * max(1, actors)), self._shortest * self._rate)
        return max(1, int(min(self.SECONDS * self._rate, fair, self.GROWTH * self._largest)))


def _as_in_the_tree(space: Space, work: Work) -> Work:
    """The work with its tests in the order in which a walk through the prefix tree meets them."""
    paths = space.paths(work.configurations)
    order = sorted(range(len(paths)), key=paths.__getitem__)
    places = [work.places[row] for row in order] if isinstance(work.places, list) else work.places
    return Work(work.configurations[order], places)
