"""A strategy for gates: adaptive rounds for the tests of undecided gates.

Gates are evaluated each time the inferences have doubled, with bounds that allow for it (`Tomogram.bound`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.gates.verdicts import Verdict, judge
from testifai.runs.outcomes import Ids, Outcomes
from testifai.session.session import RunProgress
from testifai.spec.parsing import Gate
from testifai.strategies.adaptive import FIRST, TARGET, Adaptive, Round, first_round, first_tests, fitted, risk
from testifai.strategies.balanced import shares
from testifai.strategies.base import Progress
from testifai.strategies.draws import shared_out
from testifai.strategies.tracked_tests import TrackedTests
from testifai.support.types import Floats


@dataclass(frozen=True)
class GateStrategy(Adaptive):
    """Adaptive rounds for the tests of gates that are not settled yet, until all are.

    The first round has ten to twenty trials per test, and each round doubles the trials, up to the budget. A gate on a
    bound is settled when it holds or fails, one on an estimate also when its half-width is at most the target. A target
    of the spec is reached as well.
    """

    gates: tuple[Gate, ...] = ()
    sharing: int | None = None  # number of gates that share the 5 %, if not these

    def _plan(self, progress: Progress, known: Outcomes, number: int) -> Round | None:
        spent, rung = known.total(), self._rung(progress, number)
        if number == 0:
            return first_round(progress, rung, shares(progress, rung), self.weights)
        # The run ends at its last rung, or if no test needs more trials.
        watch = self._watched(progress, known, number)
        need = self._need(progress, known, watch, number) if rung > spent else np.zeros(0)
        if not need.any():
            return None
        return _further(progress, known, rung - spent, watch.ids, need, number)

    def _rung(self, progress: Progress, number: int) -> int:
        """Return the trials after this round: the budget, halved once for every later round."""
        most, least = self.expected(progress), FIRST * first_tests(progress.space)
        halvings = max(0, int(np.log2(max(most / least, 1.0))))
        return most >> max(0, halvings - number)

    def _need(self, progress: Progress, known: Outcomes, watch: TrackedTests, number: int) -> Floats:
        """Return the weight of each watched test for further trials; all 0 if none is needed.

        Tests of a gate have equal weights: with more trials for tests with failures, the mean would be biased upwards.
        """
        assert isinstance(progress, RunProgress)
        assert progress.tomogram is not None
        tomogram = progress.tomogram(known)
        need = np.zeros(len(watch.ids))
        for verdict in judge(self.gates, tomogram, self.sharing):
            if not settled(verdict, progress.target or TARGET):
                chosen = tomogram.query_engine.sample(verdict.gate.query).contains(watch.ids)
                need[chosen] += 1 / max(1, int(np.count_nonzero(chosen)))
        if progress.target is not None:
            lacking = self._lacking(progress, fitted(progress, known), known, watch, 1 - risk(number))
            need += lacking / max(lacking.sum(), 1)
        return need


def settled(verdict: Verdict, target: float) -> bool:
    """Return True if more inferences would not help to decide a gate."""
    if verdict.gate.basis == "bound" or verdict.status == "undecided":
        return verdict.status != "undecided"
    answer, needed = verdict.answer, verdict.gate.at_least
    return answer.low >= needed or answer.high < needed or (answer.high - answer.low) / 2 <= target


def _further(progress: Progress, known: Outcomes, size: int, tests: Ids, need: Floats, number: int) -> Round | None:
    """Distribute `size` trials over the tests that need them, on inputs they have not seen.

    Inputs of a growing pool come first: the same inputs show the differences of tests better. The clean test gets its
    share, or, if outputs are compared with clean ones, every input of another test.
    """
    trials = known.counts(tests)[1]
    share = shares(progress, known.total() + size)
    topped_up = 0 if progress.needs_clean else max(0, share.clean - int(trials[0]))
    room = np.where(need > 0, progress.inputs - trials, 0)
    room[0] = max(0, room[0] - topped_up)
    added = shared_out(size - topped_up, need, room)
    if not added.any():
        return None
    added[0] += topped_up
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, 3 + number]))
    rows = generator.permutation(np.flatnonzero(added))
    chosen, places = tests[rows], []
    for test, share_of in zip(chosen.tolist(), added[rows].tolist(), strict=True):
        unseen = np.flatnonzero(~known.attempted(test, np.arange(progress.inputs)))
        within = unseen < share.pool
        order = np.concatenate([generator.permutation(unseen[within]), unseen[~within]])
        places.append(order[:share_of])
    if progress.needs_clean:
        asked = np.unique(np.concatenate(places))
        clean = asked[~known.attempted(0, asked)]
        others = chosen != 0
        places = [clean, *(block for block, other in zip(places, others, strict=True) if other)]
        chosen = np.concatenate([[0], chosen[others]])
    return Round(chosen, places)
