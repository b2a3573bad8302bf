"""Estimates with intervals for every test of a space, from the outcomes of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import LISTED, Selection, Space
from testifai.statistics.intervals import confidence_sequence, exact, fixed_width, wilson
from testifai.strategies.base import clean_trials
from testifai.support.bits import Bits, count_set, pack
from testifai.support.progress import note
from testifai.support.types import Array, Bools, Floats, Record, RecordLike
from testifai.support.version import VERSION
from testifai.surrogates import PoolingSurrogate, Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence
from testifai.tomogram.answers import CleanAccuracy, RateTable, RunCounts

METHOD = 1  # increase with every change in what a fit learns or how it is written
DEVIATION_TESTS = 4_000  # largest space in which a part of the inputs is fitted as a deviation from the other inputs
LOOKS = 10  # looks at a growing run that share the risk of error equally
SAMPLED = 4_000  # tests that represent a space with more tests than are listed


@dataclass(frozen=True)
class EstimatorSettings:
    """How the outcomes of a run become estimates.

    Tests ended by a stopping rule have bounds that stay valid under it; if it considers widths alone, narrower ones.
    """

    surrogate: str | Surrogate | None = "forest"  # a name, an object, or None for raw rates
    seed: int = 0
    population: str = "data"  # "data": exactly these inputs; "future": new inputs like them
    stopped_early: bool = False  # whether a stopping rule ended tests
    ended_by_width: bool = False  # whether that rule considers nothing but the width of bounds
    score: str | None = None  # name of the score whose means are estimated; None: pass rates

    @property
    def finite(self) -> bool:
        return self.population == "data"

    @property
    def quantity(self) -> str:
        return "robustness" if self.score is None else f"mean {self.score}"

    @property
    def clean_quantity(self) -> str:
        return "clean accuracy" if self.score is None else f"clean {self.score}"


@dataclass(frozen=True, eq=False)
class Estimator:
    """Estimates and bounds of tests, each from its own trials or predicted by a surrogate.

    In its methods, `among` are the inputs to use, as bits in visiting order; None: all.
    """

    space: Space
    outcomes: Outcomes
    settings: EstimatorSettings = field(default_factory=EstimatorSettings)
    fit: RecordLike | None = None  # an earlier fit from a run file, used if it was fitted on the same outcomes
    # Fitted surrogates by the inputs that they saw.
    _fitted: dict[bytes | None, Surrogate | None] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def measured_ids(self) -> Ids:
        return np.array(sorted(self.outcomes), np.int64)

    @cached_property
    def counts(self) -> tuple[Array, Ids]:
        if not self.space.listed:
            raise self.not_listed("estimate")
        return self._counted(np.arange(self.space.size))

    @cached_property
    def clean(self) -> CleanAccuracy:
        found = self.rates(np.zeros(1, np.int64))
        trials = int(found.trials[0])
        estimate, low, high = (float(one[0]) for one in (found.estimate, found.low, found.high))
        if not trials and not self.pooled:
            estimate = low = high = np.nan
        return CleanAccuracy(estimate, low, high, trials, self.outcomes.inputs, bool(found.alone[0]))

    @cached_property
    def rests_on_own_trials(self) -> Bools:
        """Whether the estimate of each test is based on its own trials alone, flat by configuration id."""
        _, trials = self.counts
        return self.alone(np.arange(self.space.size), trials, self.outcomes.inputs)

    @cached_property
    def measured(self) -> int:
        _, trials = self.outcomes.counts(self.measured_ids)
        return int(np.count_nonzero(self.alone(self.measured_ids, trials, self.outcomes.inputs)))

    @cached_property
    def whole(self) -> RateTable:
        if not self.space.listed:
            raise self.not_listed("estimate")
        return self.rates(np.arange(self.space.size))

    @property
    def estimated(self) -> bool:
        """Whether the estimates of all tests, or of the sample that represents them, are computed already."""
        return ("whole" if self.space.listed else "sample") in vars(self)

    def table(self, ids: Ids) -> RateTable:
        """Return the estimates of some tests; in a listed space they are computed with those of all tests."""
        return self.whole.at(ids) if self.space.listed else self.rates(ids)

    @cached_property
    def sample(self) -> tuple[Ids, RateTable]:
        """Tests that represent the whole space: all, a random sample, or those tried if nothing is predicted."""
        if self.space.listed:
            return np.arange(self.space.size), self.whole
        note("estimating a sample of the tests")
        if not self.predicts():
            return self.measured_ids, self.rates(self.measured_ids)
        ids = Selection(self.space).sample(SAMPLED, np.random.default_rng([self.settings.seed, 1]))
        return ids, self.rates(ids)

    def rates(
        self, ids: Ids, among: Bits | None = None, confidence: float = 0.95, *, anytime: bool = False
    ) -> RateTable:
        """Return the estimates of some tests; with `anytime` bounds stay valid however often one looks."""
        passes, trials = self._counted(ids, among)
        inputs = self.outcomes.inputs if among is None else int(count_set(among))
        population = inputs if self.settings.finite else None
        alone = self.alone(ids, trials, inputs)
        done = np.flatnonzero(alone)
        if anytime or (self.settings.stopped_early and not self.settings.ended_by_width):
            interval = confidence_sequence
        else:
            interval = fixed_width if self.settings.stopped_early else wilson

        def limits(at: Ids, method: Callable[..., tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
            counts = passes[at], trials[at]
            return self.outcomes.limits(method, ids[at], counts, population, confidence, among)

        estimate, low, high = (np.full(len(ids), np.nan) for _ in range(3))
        estimate[done] = passes[done] / trials[done]
        low[done], high[done] = limits(done, interval)
        if interval is wilson:
            # Clean rates are near 1, where Wilson's interval covers too seldom.
            clean = np.flatnonzero(alone & (ids == 0))
            low[clean], high[clean] = limits(clean, exact)
        missing = np.flatnonzero(~alone)
        surrogate = self.fitted(among) if len(missing) else None
        if surrogate is not None:
            features = self.space.matrix(ids[missing])
            looked = self.anytime_confidence(confidence) if anytime and self.pooled else confidence
            estimate[missing] = surrogate.predict(features)[0]
            low[missing], high[missing] = surrogate.bounds(features, looked)
        return RateTable(estimate, low, high, passes, trials, alone)

    def alone(self, ids: Ids, trials: Ids, inputs: int) -> Bools:
        """Return which tests have their own estimate: if pooled, those tried on all inputs, and the clean test."""
        if not self.pooled:
            return np.asarray(trials > 0)
        return np.asarray((trials == inputs) | ((ids == 0) & (trials > 0) & self._clean_alone))

    def run_counts(self, tried: Ids, tests: int, among: Bits | None = None) -> RunCounts:
        """Return how many of so many tests, of which these have outcomes, were run on all inputs, on some, or not."""
        _, trials = self.outcomes.counts(tried, among)
        inputs = self.outcomes.inputs if among is None else int(count_set(among))
        complete, any_ = (int(np.count_nonzero(run)) for run in (trials == inputs, trials > 0))
        return RunCounts(complete, any_ - complete, tests - any_)

    def anytime_confidence(self, confidence: float) -> float:
        """Return the confidence that each of many looks needs for all of them to be valid together.

        A look happens each time the number of trials has doubled. The first ten may err with an eleventh of the risk
        each; they go up to a thousand trials per test. Each later look may err with half the risk of the one before.
        """
        doublings = int(np.log2(max(1.0, self.outcomes.total() / max(1, len(self.measured_ids)))))
        share = 2.0 ** -max(0, doublings + 1 - LOOKS) / (LOOKS + 1)
        return 1 - (1 - confidence) * share

    def not_listed(self, what: str) -> InputError:
        return InputError(
            f"{what}: an array over {self.space.size:,} tests would be too large (at most {LISTED:,}); "
            "predict(configurations) gives the estimates of chosen tests, query(expression) the mean over a region"
        )

    def fitted(self, among: Bits | None = None) -> Surrogate | None:
        if not len(self.measured_ids):
            return None
        key = None if among is None else among.tobytes()
        if key not in self._fitted:
            levels, settings = [axis.severities for axis in self.space.axes], self.settings
            unfitted = resolve(settings.surrogate, settings.seed, levels, finite=settings.finite)
            self._fitted[key] = None if unfitted is None else self._fit(unfitted, among)
        return self._fitted[key]

    def predicts(self, among: Bits | None = None) -> bool:
        return self.fitted(among) is not None

    def learned(self) -> Record | None:
        """Return the slow results of the fit on all inputs, with a digest of its data; None if there are none."""
        surrogate = self.fitted()
        if not isinstance(surrogate, PoolingSurrogate) or not isinstance(self.settings.surrogate, str):
            return None
        return {"of": self._digest(self._evidence(surrogate, None)), "learned": surrogate.learned()}

    def pooling(self, among: Bits | None = None) -> Surrogate | None:
        """Return the fitted surrogate if it estimates every test from all trials and is needed."""
        return self.fitted(among) if self.pooled else None

    @cached_property
    def pooled(self) -> bool:
        resolved = resolve(self.settings.surrogate)
        if resolved is None or not resolved.pools or not len(self.measured_ids):
            return False
        _, trials = self.outcomes.counts(self.measured_ids)
        complete = len(trials) == self.space.size and bool((trials == self.outcomes.inputs).all())
        return not (complete and self.settings.finite)

    def _fit(self, surrogate: Surrogate, among: Bits | None) -> Surrogate | None:
        seen = self._evidence(surrogate, among)
        if not len(seen):
            return None
        if not isinstance(surrogate, PoolingSurrogate):
            return seen.fit(surrogate)
        if among is None and self.fit is not None and self.fit["of"] == self._digest(seen):
            surrogate.recall(self.fit["learned"])
        whole = None if among is None else self.fitted()
        if among is None or not isinstance(whole, PoolingSurrogate):
            return seen.fit(surrogate)
        # A part of the inputs is assumed to be like the others unless its own trials differ.
        others = self._evidence(surrogate, ~among & pack(np.ones(self.outcomes.inputs, bool)))
        deviates = len(others) and self.space.size <= DEVIATION_TESTS
        return seen.deviate(others.update(copy(whole))) if deviates else seen.update(copy(whole))

    def _evidence(self, surrogate: Surrogate, among: Bits | None) -> Evidence:
        features = self.space.matrix(self.measured_ids)
        return evidence(surrogate, self.outcomes, self.measured_ids, features, among=among)

    def _digest(self, seen: Evidence) -> str:
        levels = [list(map(int, axis.severities)) for axis in self.space.axes]
        settings = self.settings
        known = json.dumps([VERSION, METHOD, settings.surrogate, settings.seed, settings.finite, levels])
        return hashlib.sha256(f"{known} {seen.digest()}".encode()).hexdigest()

    def _counted(self, ids: Ids, among: Bits | None = None) -> tuple[Array, Ids]:
        known = np.isin(ids, self.measured_ids)
        won, tried = self.outcomes.counts(ids[known], among)
        passes, trials = np.zeros(len(ids), won.dtype), np.zeros(len(ids), np.int64)
        passes[known], trials[known] = won, tried
        return passes, trials

    @cached_property
    def _clean_alone(self) -> bool:
        """Whether the clean test has the trials that strategies give it, so that its own trials suffice."""
        total, inputs = self.outcomes.total(), self.outcomes.inputs
        return total > 0 and int(self.outcomes.counts([0])[1][0]) >= clean_trials(total, inputs, self.space.size)


@runtime_checkable
class Estimated(Protocol):
    @property
    def estimator(self) -> Estimator: ...
