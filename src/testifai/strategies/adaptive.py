"""A few inputs for every test, then more for those with the largest estimated error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.space import Space
from testifai.space.selection import Selection
from testifai.statistics.intervals import exact
from testifai.strategies.balanced import Shares, shares, spread
from testifai.strategies.base import ExpectedCost, Progress, Strategy, region_of
from testifai.strategies.draws import (
    FEWEST,
    MOST,
    WEIGHTS,
    TrackedTests,
    low_first,
    representative_tests,
    selections,
    shared_out,
    watched,
)
from testifai.support.types import Floats, Record
from testifai.support.validation import choice
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import SCORE, evidence
from testifai.surrogates.process import sketch

# Without a budget and a target:
TARGET = 0.02  # half-width to reach
WHOLE = 20_000  # inferences up to which a run is complete
UNLISTED = 100_000  # inferences if the space is too large to list
# With a target: trials per test in the first round, and least and greatest growth of the trials in another round.
# Half-widths shrink about with the cubic root of the trials (measured on the MNIST grid).
FIRST = FEWEST
ADDS = 0.25, 9.0
SHRINK = 3
# With a budget, this share of it is spread evenly; the rest is spent in ROUNDS according to need. One round, planned
# from a sketch, has errors 1 % larger than two planned from fits, and takes a tenth of their time. With few trials per
# test everything is spread evenly, as needs are unknown, and with many, as the process then does better (measured on
# five grids).
EVEN_SHARE = 0.5
THIN = 5  # inputs per test below which low orders are preferred
ROUNDS = 1
FEW, MANY = 25, 100


@dataclass(frozen=True)
class Round:
    tests: Ids
    places: list[Places]


@dataclass(frozen=True)
class Adaptive(Strategy):
    """Spend a budget, or continue until every test, or the given queries, reach the target half-width.

    Rounds are synchronous: each is planned only from the outcomes of those before it, so a run can be resumed anywhere
    and does not depend on the number of workers. Half-widths are checked after every round, a few times at most, at a
    confidence that allows for it.
    """

    for_queries: Sequence[str] = ()
    weights: str | None = None  # of tests sampled at random
    focus: str = "mild"  # or "even", or a query whose tests get half of the trials
    name = "adaptive"
    surrogate = "process"
    uses_target = True
    splits = False

    def __post_init__(self) -> None:
        listed = isinstance(self.for_queries, list | tuple)
        if not listed or not all(isinstance(one, str) for one in self.for_queries):
            raise InputError(f"strategy: for_queries must be a list of queries, got {self.for_queries!r}")
        object.__setattr__(self, "for_queries", tuple(self.for_queries))
        if self.weights is not None:
            choice("strategy: weights", self.weights, WEIGHTS)
        if not isinstance(self.focus, str):
            raise InputError(f'strategy: focus: expected "mild", "even" or a query, got {self.focus!r}')

    def propose(self, progress: Progress) -> Work | None:
        self._chosen(progress)  # raises InputError if a query selects no test
        self._emphasis(progress)
        if progress.outcomes.total() >= self.expected(progress):
            return None
        # The outcomes of complete rounds do not change: start after the last of them.
        done = self.name, "done", progress.budget, progress.target
        number, known = progress.decided.get(done, (0, Outcomes(progress.inputs)))
        while True:
            key = (self.name, number, progress.budget, progress.target)
            if key not in progress.decided:
                progress.decided[key] = self._plan(progress, known, number)
            planned: Round | None = progress.decided[key]
            if planned is None:
                return None
            missing = _missing(planned, progress.outcomes, known)
            if any(map(len, missing)):
                # Outcomes of another budget count, even if this plan does not include them.
                return _affordable(planned.tests, missing, self.expected(progress) - progress.outcomes.total())
            known = _with(planned, progress.outcomes, known)
            number += 1
            progress.decided[done] = number, known

    def expected(self, progress: Progress) -> int:
        everything, budget = progress.space.size * progress.inputs, progress.budget
        if budget is None and progress.target is None and not progress.space.listed:
            budget = UNLISTED
        return everything if budget is None else min(everything, budget)

    def expected_cost(self, progress: Progress, known: Outcomes, surrogate: Surrogate) -> ExpectedCost:
        most, spent, target = self.expected(progress), known.total(), self._target(progress)
        if spent >= most or target is None:
            return ExpectedCost(most, 0 if spent >= most else ROUNDS)
        process = surrogate if surrogate.name == self.surrogate else fitted(progress, known)
        watch = self._watched(progress, known, 1)
        lacking = float(self._lacking(progress, process, known, watch, 1 - risk(1)).sum())
        # A round multiplies the trials of all but the clean test at most by 1 + ADDS[1]; the last adds none.
        others = spent - int(known.counts([0])[1][0])
        rounds = math.ceil(math.log1p(lacking / max(others, 1)) / math.log1p(ADDS[1]))
        return ExpectedCost(min(most, round(spent + lacking)), 1 + rounds)

    def describe(self) -> Record:
        options = {"for_queries": list(self.for_queries), "weights": self.weights, "focus": self.focus}
        return {"use": self.name, **options}

    def _chosen(self, progress: Progress) -> list[Selection]:
        if "selections" not in progress.decided:
            progress.decided["selections"] = selections(progress.space, self.for_queries)
        chosen: list[Selection] = progress.decided["selections"]
        return chosen

    def _emphasis(self, progress: Progress) -> Floats | None:
        space = progress.space
        if self.focus == "even" or not space.listed:
            return None
        if "emphasis" not in progress.decided:
            mild = self.focus == "mild"
            progress.decided["emphasis"] = mild_first(space) if mild else queried_first(space, self.focus)
        found: Floats = progress.decided["emphasis"]
        return found

    def _watched(self, progress: Progress, known: Outcomes, number: int) -> TrackedTests:
        return watched(progress, known, number, self._chosen(progress), self.weights)

    def _plan(self, progress: Progress, known: Outcomes, number: int) -> Round | None:
        most, spent = self.expected(progress), known.total()
        if spent >= most:
            return None
        target = self._target(progress)
        share = shares(progress, most)
        if number == 0:
            tests = first_tests(progress.space)
            begin = round(EVEN_SHARE * (most - share.clean)) if target is None else FIRST * tests
            at_once = target is None and not FEW * tests <= begin <= MANY * tests
            unasked = progress.target is None and progress.budget is None and most <= WHOLE
            first = most if at_once or unasked else min(most, share.clean + begin)
            return first_round(progress, first, share, self.weights, None if target else self._emphasis(progress))
        if target is None and number > ROUNDS:
            return None
        watch = self._watched(progress, known, number)
        if target is None:
            size = (most - spent) // (ROUNDS + 1 - number)
            need = watch.weights * np.sqrt(_variances(progress, known, watch))
            emphasis = None if self.for_queries else self._emphasis(progress)
            need = need if emphasis is None else need * emphasis[watch.ids]
        else:
            process = fitted(progress, known)
            lacking = self._lacking(progress, process, known, watch, 1 - risk(number))
            if not lacking.any():
                return None
            need = watch.weights * np.sqrt(_predicted(process, progress, watch)) if self.for_queries else lacking
            others = spent - int(known.counts([0])[1][0])
            size = min(most - spent, round(others * float(np.clip(lacking.sum() / others, *ADDS))))
        return _where_needed(progress, known, size, share.pool, watch.ids, need, number)

    def _target(self, progress: Progress) -> float | None:
        if progress.target is not None and not progress.space.listed and not self.for_queries:
            raise InputError(
                f"target: it is for every test, and a space of {progress.space.size:,} tests has too many to look at "
                "each; give a budget instead, or say what it is for with for_queries"
            )
        unasked = progress.target is None and progress.budget is None and progress.space.listed
        return TARGET if unasked else progress.target

    def _lacking(
        self, progress: Progress, process: Surrogate, known: Outcomes, watch: TrackedTests, confidence: float
    ) -> Floats:
        """Return how many trials each tracked test lacks until half-widths reach the target; all 0: reached."""
        space, target = progress.space, self._target(progress)
        assert target is not None
        _, trials = known.counts(watch.ids)
        # If outputs are compared with clean ones, the clean test always passes.
        own = None
        if not progress.needs_clean:
            counted, inputs = progress.counted(known), known.inputs if progress.finite else None
            limits = counted.limits(exact, watch.ids[:1], counted.counts(watch.ids[:1]), inputs, confidence)
            own = float(limits[0][0]), float(limits[1][0])
        if not self.for_queries:
            low, high = process.bounds(space.matrix(watch.ids), confidence)
            if own is not None:
                low[0], high[0] = own
            needed: Floats = np.maximum(((high - low) / 2 / target) ** SHRINK - 1, 0) * trials
            return needed
        lacking = np.zeros(len(trials))
        for selection in self._chosen(progress):
            tests, chosen = representative_tests(selection, progress.seed), selection.contains(watch.ids)
            least, most = region_of(process, space, tests, own, confidence, of=selection.count)
            more = max(((most - least) / 2 / target) ** SHRINK - 1, 0)
            lacking[chosen] = np.maximum(lacking[chosen], more * np.maximum(trials[chosen], FIRST))
        return lacking


def _variances(progress: Progress, known: Outcomes, watch: TrackedTests) -> Floats:
    space = progress.space
    passes, trials = known.counts(watch.ids)
    found = None
    if space.listed and not space.order_sensitive and trials.all():
        found = sketch([axis.severities for axis in space.axes], space.matrix(watch.ids), passes, trials)
    return _predicted(fitted(progress, known), progress, watch) if found is None else found[1]


def _predicted(process: Surrogate, progress: Progress, watch: TrackedTests) -> Floats:
    _, variance = process.predict(progress.space.matrix(watch.ids))
    assert variance is not None
    return variance


def first_tests(space: Space) -> int:
    return space.size if space.listed else MOST


def risk(look: int) -> float:
    """Return the error probability of the look of this number, so that that of all looks is 5 %.

    Looks at accumulating trials are dependent (Pocock, Biometrika 64, 1977): ten of them, each with up to twice the
    trials of the one before, err in 5 % of runs at .0065 each. There are rarely more.
    """
    return 0.0065 / 2.0 ** max(0, look - 10)


def _missing(planned: Round, outcomes: Outcomes, known: Outcomes) -> list[Places]:
    if outcomes.total() == known.total():
        return planned.places  # it has not started
    return [
        block[~outcomes.attempted(test, block)]
        for test, block in zip(planned.tests.tolist(), planned.places, strict=True)
    ]


def _with(planned: Round, outcomes: Outcomes, known: Outcomes) -> Outcomes:
    if outcomes.total() == known.total() + sum(map(len, planned.places)):
        return outcomes.snapshot()  # there are no others
    scored = SCORE in outcomes.kept_names()
    for test, block in zip(planned.tests.tolist(), planned.places, strict=True):
        kept = {SCORE: outcomes.kept_at(test, SCORE, block)} if scored else {}
        known.record(test, block, outcomes.passed(test, block), kept)
    return known


def _affordable(tests: Ids, places: list[Places], left: int) -> Work | None:
    before = np.cumsum([0, *map(len, places)])
    cut = [np.sort(asked[: max(0, left - start)]) for asked, start in zip(places, before.tolist(), strict=False)]
    wanted = [row for row, asked in enumerate(cut) if len(asked)]
    return Work(tests[wanted], [cut[row] for row in wanted]) if wanted else None


def fitted(progress: Progress, known: Outcomes) -> Surrogate:
    space = progress.space
    process = resolve("process", progress.seed, [axis.severities for axis in space.axes], finite=progress.finite)
    assert process is not None
    tests = np.array(sorted(known), np.int64)
    # The plan must depend on all outcomes, however many there are.
    return evidence(process, progress.counted(known), tests, space.matrix(tests), most_single=None).fit(process)


def first_round(
    progress: Progress, budget: int, share: Shares, weights: str | None, emphasis: Floats | None = None
) -> Round:
    """Distribute a budget over all tests after the clean test's share; low orders first if it is a few inputs each."""
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, 3]))
    tests = progress.space.size
    if budget - share.clean < min(THIN, share.pool) * (tests - 1):
        return Round(*low_first(progress.space, budget, share.pool, generator, clean=share.clean, weights=weights))
    return Round(*spread(tests, budget, share, generator, emphasis))


def mild_first(space: Space) -> Floats:
    """Return weights that favour mild tests: one over the root of the number of tests at the same sum of severities.

    Requirements are made about mild conditions, of which there are few.
    """
    steps = space.matrix(np.arange(space.size))[:, : len(space.axes)].sum(axis=1)
    return np.asarray(1 / np.sqrt(np.bincount(steps)[steps]))


def queried_first(space: Space, query: str) -> Floats:
    (selection,) = selections(space, [query], "focus")
    chosen = selection.contains(np.arange(space.size)).astype(np.float64)
    return np.asarray(1 / space.size + chosen / chosen.sum())


def _where_needed(
    progress: Progress, known: Outcomes, size: int, pool: int, tests: Ids, need: Floats, number: int
) -> Round | None:
    """Distribute `size` further trials over tests in proportion to need, on unseen inputs, those of the pool first."""
    _, trials = known.counts(tests)
    reach = int(trials[0]) if progress.needs_clean else progress.inputs
    pool = min(pool, reach)
    added = shared_out(size, need, reach - trials)
    if not added.any():
        return None
    generator = np.random.Generator(np.random.Philox(key=[progress.seed, 3 + number]))
    chosen = generator.permutation(np.flatnonzero(added))
    places = []
    for test, share in zip(tests[chosen].tolist(), added[chosen].tolist(), strict=True):
        tried, _ = known.trials(test)
        # Enough of so many at random are unseen, unless the pool has no others.
        drawn = generator.choice(pool, min(pool, share + len(tried)), replace=False)
        fresh = drawn[~known.attempted(test, drawn)][:share]
        beyond = np.arange(pool, min(reach, pool + len(tried) + share))
        places.append(np.concatenate([fresh, beyond[~known.attempted(test, beyond)][: share - len(fresh)]]))
    return Round(tests[chosen], places)
