"""Strategies for gates: trials in their regions first, and adaptive rounds for the tests of undecided gates.

Gates are evaluated each time the inferences have doubled, with bounds that allow for it (`Tomogram.bound`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testifai.gates.verdicts import Verdict, judge, unfit
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.session.session import RunProgress
from testifai.spec.options import strategy_of
from testifai.spec.parsing import Gate, Spec
from testifai.strategies.adaptive import FIRST, TARGET, Adaptive, Round, first_round, first_tests, fitted, risk
from testifai.strategies.balanced import shares
from testifai.strategies.base import Progress
from testifai.strategies.draws import TrackedTests, shared_out
from testifai.support.bits import unpack
from testifai.support.types import Floats
from testifai.tomogram.region_estimator import MOST_TESTS, NEEDED

OWN_SHARE = 0.1  # of a first round: trials in the region of each gate, between NEEDED and MOST_TESTS
OWN_MOST = 0.75  # of all: trials in the regions of all gates


@dataclass(frozen=True)
class GatesFirst(Adaptive):
    """Adaptive rounds; the first one starts with trials on a random draw of the tests of each gate.

    A gate is decided by trials in its own region only (`gates.verdicts`).
    """

    gates: tuple[Gate, ...] = ()

    def _plan(self, progress: Progress, known: Outcomes, number: int) -> Round | None:
        if number > 0:
            return super()._plan(progress, known, number)
        own, reduced = self._own(progress, self.expected(progress)), progress
        if progress.budget is not None:
            reduced = replace(progress, budget=self.expected(progress) - _size(own))
        planned = super()._plan(reduced, known, number)
        return None if planned is None else _ahead(planned, own, progress, self.expected(reduced))

    def _own(self, progress: Progress, first: int) -> dict[int, Places]:
        """Return the tests drawn of the gates' regions, and inputs of each; all inputs of a gate are different."""
        assert isinstance(progress, RunProgress)
        assert progress.tomogram is not None
        engine = progress.tomogram(Outcomes(progress.inputs)).query_engine
        regions = dict.fromkeys((gate.query, gate.inputs) for gate in self.gates)
        each = int(np.clip(OWN_SHARE * first, NEEDED, MOST_TESTS))
        left, found = int(OWN_MOST * self.expected(progress)), dict[int, set[int]]()
        for query, inputs in regions:
            among = engine.input_bits(inputs)
            places = np.arange(progress.inputs)
            places = places if among is None else np.flatnonzero(unpack(among, progress.inputs))
            if len(places) < NEEDED or left < NEEDED:
                continue
            chosen = places[: min(each, left)]  # places are in the run's random order
            left -= len(chosen)
            tests = np.resize(engine.sample(query).drawn(progress.seed), len(chosen))
            for test, place in zip(tests.tolist(), chosen.tolist(), strict=True):
                found.setdefault(test, set()).add(place)
        return {test: np.array(sorted(of)) for test, of in found.items()}


@dataclass(frozen=True)
class GateStrategy(GatesFirst):
    """Adaptive rounds for the tests of gates that are not settled yet, until all are.

    The first round has ten to twenty trials per test, besides those in the gates' regions, and each round doubles the
    trials, up to the budget. A gate on a bound is settled when it holds or fails, one on an estimate also when its
    half-width is at most the target. A target of the spec is reached as well.
    """

    sharing: int | None = None  # number of gates that share the 5 %, if not these

    def _plan(self, progress: Progress, known: Outcomes, number: int) -> Round | None:
        spent, rung = known.total(), self._rung(progress, number)
        if number == 0:
            own = self._own(progress, rung)
            others = min(rung, self.expected(progress) - _size(own))
            return _ahead(first_round(progress, others, shares(progress, others), self.weights), own, progress, others)
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
        gates = [gate for gate in self.gates if unfit(gate, tomogram) is None]
        for verdict in judge(gates, tomogram, self.sharing or len(self.gates)):
            if not settled(verdict, progress.target or TARGET):
                chosen = tomogram.query_engine.sample(verdict.gate.query).contains(watch.ids)
                need[chosen] += 1 / max(1, int(np.count_nonzero(chosen)))
        if progress.target is not None:
            lacking = self._lacking(progress, fitted(progress, known), known, watch, 1 - risk(number))
            need += lacking / max(lacking.sum(), 1)
        return need


def with_gates_first(spec: Spec) -> Spec:
    """Return the spec of a run that serves the regions of its gates first, if it is adaptive and has gates."""
    strategy = strategy_of(spec.scan)
    if type(strategy) is not Adaptive or not spec.gate:
        return spec
    return with_strategy(spec, GatesFirst(strategy.for_queries, strategy.weights, strategy.focus, tuple(spec.gate)))


def with_strategy(spec: Spec, strategy: Adaptive) -> Spec:
    """Return the spec with another strategy."""
    return spec.model_copy(update={"scan": spec.scan.model_copy(update={"strategy": strategy})})


def settled(verdict: Verdict, target: float) -> bool:
    """Return True if more inferences would not help to decide a gate."""
    if verdict.gate.basis == "bound" or verdict.status == "undecided":
        return verdict.status != "undecided"
    answer, needed = verdict.answer, verdict.gate.at_least
    return answer.low >= needed or answer.high < needed or (answer.high - answer.low) / 2 <= target


def _size(own: dict[int, Places]) -> int:
    return sum(map(len, own.values()))


def _ahead(planned: Round, own: dict[int, Places], progress: Progress, budget: int) -> Round:
    """Return a round with these trials first, after the clean ones that they are compared with.

    Trials that were planned already are replaced by others of the same test.
    """
    pool = shares(progress, budget).pool if progress.needs_clean else progress.inputs
    blocks = dict(zip(planned.tests.tolist(), planned.places, strict=True))
    if progress.needs_clean:
        own = {test: block[block < pool] for test, block in own.items() if test}
    for test, block in own.items():
        there = blocks.get(test, block[:0])
        both = np.union1d(block, there)
        others = np.setdiff1d(np.arange(pool), both)[: len(block) + len(there) - len(both)]
        blocks[test] = np.concatenate([both, others])
    tests = list(dict.fromkeys([*planned.tests[:1].tolist(), *own, *blocks]))
    return Round(np.array(tests, np.int64), [blocks[test] for test in tests])


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
