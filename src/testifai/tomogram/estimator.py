"""Everything that was measured in a space, and an estimate with an interval for every test of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.predict import Scores
from testifai.runs import keys
from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import LISTED, Selection, Space
from testifai.statistics.intervals import confidence_sequence, exact, fixed_width, wilson
from testifai.strategies.clean import clean_trials
from testifai.support.bits import Bits, count_set, pack
from testifai.support.progress import note
from testifai.support.types import Array, Bools, Floats, Record, RecordLike
from testifai.support.version import VERSION
from testifai.surrogates import PoolingSurrogate, Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence
from testifai.tomogram.answers import CleanAccuracy, RateTable

METHOD = 1  # to be raised with every change in what a fit learns or how it is written
BESIDE = 4_000  # tests of a space up to which a part of the inputs is fitted beside the others; beyond, by itself


@dataclass(frozen=True, eq=False)
class Fits:
    """The surrogates of one run; None where there is none, or nothing to fit it on."""

    space: Space
    outcomes: Outcomes
    tests: Ids  # that have trials
    surrogate: str | Surrogate | None
    seed: int
    finite: bool  # whether rates are those on the inputs at hand
    kept: RecordLike | None = None  # what `learned` gave for a run that may be this one
    _made: dict[bytes | None, Surrogate | None] = field(default_factory=dict, init=False, repr=False)

    def on(self, among: Bits | None = None) -> Surrogate | None:
        """That on all inputs, or on those whose bits are set."""
        key = None if among is None else among.tobytes()
        if key not in self._made:
            levels = [axis.severities for axis in self.space.axes]
            made = resolve(self.surrogate, self.seed, levels, finite=self.finite)
            self._made[key] = None if made is None else self._fit(made, among)
        return self._made[key]

    def learned(self) -> Record | None:
        """What the fit on all inputs took long to find, and of what it is: nothing else may be told by it.

        None where that is nothing, or the surrogate is one that only its maker knows.
        """
        surrogate = self.on()
        if not isinstance(surrogate, PoolingSurrogate) or not isinstance(self.surrogate, str):
            return None
        return {"of": self._digest(self._evidence(surrogate, None)), "learned": surrogate.learned()}

    def _digest(self, seen: Evidence) -> str:
        """Of all that a fit depends on."""
        levels = [list(map(int, axis.severities)) for axis in self.space.axes]
        settings = json.dumps([VERSION, METHOD, self.surrogate, self.seed, self.finite, levels])
        return hashlib.sha256(f"{settings} {seen.digest()}".encode()).hexdigest()

    def _fit(self, surrogate: Surrogate, among: Bits | None) -> Surrogate | None:
        seen = self._evidence(surrogate, among)
        if not len(seen):
            return None
        if not isinstance(surrogate, PoolingSurrogate):
            return seen.fit(surrogate)
        if among is None and self.kept is not None and self.kept["of"] == self._digest(seen):
            surrogate.recall(self.kept["learned"])
        whole = None if among is None else self.on(None)
        if among is None or not isinstance(whole, PoolingSurrogate):
            return seen.fit(surrogate)
        # A part of the inputs is like the others, as far as its own trials do not tell otherwise.
        others = self._evidence(surrogate, ~among & pack(np.ones(self.outcomes.inputs, bool)))
        beside = len(others) and self.space.size <= BESIDE
        return seen.deviate(others.update(copy(whole))) if beside else seen.update(copy(whole))

    def _evidence(self, surrogate: Surrogate, among: Bits | None) -> Evidence:
        features = self.space.matrix(self.tests)
        return evidence(surrogate, self.outcomes, self.tests, features, among=among)


LOOKS = 10  # at a run that is decided upon as it grows, each with an equal part of the risk
SAMPLED = 4_000  # tests that stand for a space with more than are listed; see `tomogram.query_engine`


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a run knows of each test; a record of its own, which no later outcome changes.

    Bounds of a test stand at 95 % and are for the rate on the inputs at hand (`population="data"`: they close once all
    inputs were tried) or on new inputs like them (`"future"`). Tests ended by a stopping rule have bounds that stay
    valid under it: under any rule, or, where it looked at their width alone, narrower ones that allow for that.
    """

    space: Space
    outcomes: Outcomes
    order: NDArray[np.intp]
    labels: Array | None = None
    classes: tuple[str, ...] | None = None
    population: str = "data"
    stopped_early: bool = False
    surrogate: str | Surrogate | None = "forest"
    seed: int = 0
    provenance: RecordLike = field(default_factory=dict)
    quality: Scores | None = None
    ended_by_width: bool = False  # if a rule ended tests early, it looked at nothing but the width of their bounds
    score: str | None = None  # the score whose means these are; None: pass rates

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", self.outcomes.snapshot())

    # -- what was measured --------------------------------------------------------------------------------------

    @cached_property
    def measured_ids(self) -> Ids:
        """The configurations with at least one outcome, ascending."""
        return np.array(sorted(self.outcomes), np.int64)

    @cached_property
    def inferences(self) -> int:
        """Inputs handed to the model in all, for outcomes and for quality."""
        return self.outcomes.total() + (0 if self.quality is None else self.quality.inferences)

    @property
    def quantity(self) -> str:
        """What the estimates are of, in words."""
        return "robustness" if self.score is None else f"mean {self.score}"

    @property
    def clean_quantity(self) -> str:
        """The same of the clean test."""
        return "clean accuracy" if self.score is None else f"clean {self.score}"

    @property
    def base(self) -> float:
        """Clean accuracy."""
        return self.clean.estimate

    @cached_property
    def clean(self) -> CleanAccuracy:
        """Clean accuracy, with its bounds and what it rests on."""
        found = self.view(np.zeros(1, np.int64))
        trials = int(found.trials[0])
        known = trials > 0 or self.pooled
        estimate, low, high = (
            float(one[0]) if known else float("nan") for one in (found.estimate, found.low, found.high)
        )
        return CleanAccuracy(estimate, low, high, trials, self.outcomes.inputs, bool(found.alone[0]))

    @property
    def passes(self) -> Array:
        """Passed trials of every test; of a score, the sum of its values."""
        return self._counts[0].reshape(self.space.shape)

    @property
    def trials(self) -> Ids:
        """Trials of every test."""
        return self._counts[1].reshape(self.space.shape)

    @cached_property
    def rests_on_own_trials(self) -> Bools:
        """Which tests' estimates rest on their own trials alone, flat by configuration id."""
        _, trials = self._counts
        return self.alone(np.arange(self.space.size), trials, self.outcomes.inputs)

    @cached_property
    def measured(self) -> int:
        """How many tests' estimates rest on their own trials alone."""
        _, trials = self.outcomes.counts(self.measured_ids)
        return int(np.count_nonzero(self.alone(self.measured_ids, trials, self.outcomes.inputs)))

    # -- estimates ----------------------------------------------------------------------------------------------

    @property
    def estimate(self) -> Floats:
        """The pass rate of every test, from its own trials alone where it is measured, else predicted.

        Of a space with more tests than are listed there is no such array: `predict` gives those of chosen ones, `query`
        the mean over a region.
        """
        return self._whole.estimate.reshape(self.space.shape)

    @property
    def low(self) -> Floats:
        """Lower 95 % bound of every test; NaN where a method has none."""
        return self._whole.low.reshape(self.space.shape)

    @property
    def high(self) -> Floats:
        """Upper 95 % bound of every test; NaN where a method has none."""
        return self._whole.high.reshape(self.space.shape)

    def predict(self, configurations: Iterable[Sequence[int]]) -> tuple[Floats, Floats, Floats]:
        """Estimate and bounds of some configurations; for spaces too large to enumerate.

        Args:
            configurations: severities in axis order, for each
        """
        ids = np.array([self.space.id(tuple(sigma)) for sigma in configurations], np.int64)
        view = self.view(ids)
        return view.estimate, view.low, view.high

    @property
    def estimated(self) -> bool:
        """Whether the estimates of all tests, or of those that stand for them, are made already."""
        return ("_whole" if self.space.listed else "sample") in vars(self)

    def table(self, ids: Ids) -> RateTable:
        """What is known of some tests; where all are listed, their estimates are made with those of the others.

        Args:
            ids: numbers of tests
        """
        return self._whole.at(ids) if self.space.listed else self.view(ids)

    @cached_property
    def sample(self) -> tuple[Ids, RateTable]:
        """Tests that stand for the whole space, and what is known of them: all or, of more than are listed, some.

        Those are drawn evenly or, where nothing is predicted, are those that were tried.
        """
        if self.space.listed:
            return np.arange(self.space.size), self._whole
        note("estimating a sample of the tests")
        if not self.predicts():
            return self.measured_ids, self.view(self.measured_ids)
        ids = Selection(self.space).sample(SAMPLED, np.random.default_rng([self.seed, 1]))
        return ids, self.view(ids)

    def predicts(self, among: Bits | None = None) -> bool:
        """Whether tests without trials have an estimate.

        Args:
            among: the inputs to look at, as bits in visiting order; None: all
        """
        return len(self.measured_ids) > 0 and self._fitted(among) is not None

    # -- inside -------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> RateTable:
        return self.view(None)

    def view(
        self,
        ids: Ids | None,
        among: Bits | None = None,
        confidence: float = 0.95,
        *,
        anytime: bool = False,
        chosen: Bools | None = None,
    ) -> RateTable:
        """Estimates of some configurations, or of all, on all inputs or on a part of them.

        Args:
            ids: numbers of tests; None: all
            among: the inputs to look at, as bits in visiting order; None: all
            confidence: of the interval, above 0 and below 1
            anytime: whether bounds hold however often one looks
            chosen: of the tests without trials, those to predict; None: all
        """
        if ids is None:
            passes, trials = self._counts if among is None else self._counted(among)
            size = self.space.size
        else:
            size = len(ids)
            passes, trials = self.outcomes.counts(ids, among)
        inputs = self.outcomes.inputs if among is None else int(count_set(among))
        population = inputs if self.population == "data" else None
        numbers = np.arange(size) if ids is None else ids
        alone = self.alone(numbers, trials, inputs)
        done = np.flatnonzero(alone)
        if anytime or (self.stopped_early and not self.ended_by_width):
            interval = confidence_sequence
        else:
            interval = fixed_width if self.stopped_early else wilson

        def limits(at: Ids, method: Callable[..., tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
            counts = passes[at], trials[at]
            return self.outcomes.limits(method, numbers[at], counts, population, confidence, among)

        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        estimate[done] = passes[done] / trials[done]
        low[done], high[done] = limits(done, interval)
        if interval is wilson:
            # Clean rates are near 1, where Wilson's interval covers too seldom.
            clean = np.flatnonzero(alone & (numbers == 0))
            low[clean], high[clean] = limits(clean, exact)
        unknown = np.isnan(estimate)
        missing = np.flatnonzero(unknown if chosen is None else unknown & chosen)
        if len(missing) and len(self.measured_ids):
            surrogate = self._fitted(among)
            if surrogate is not None:
                features = self.space.matrix(missing if ids is None else ids[missing])
                looked = self._looked(confidence) if anytime and self.pooled else confidence
                estimate[missing] = surrogate.predict(features)[0]
                low[missing], high[missing] = surrogate.bounds(features, looked)
        return RateTable(estimate, low, high, passes, trials, alone)

    def alone(self, ids: Ids, trials: Ids, inputs: int) -> Bools:
        """Which of these tests' estimates rest on their own trials alone, if so many were made, on so many inputs.

        A pooling surrogate leaves alone what there is nothing more to know about, and the clean test.

        Args:
            ids: numbers of tests
            trials: how many each has
            inputs: how many inputs there are
        """
        if not self.pooled:
            return np.asarray(trials > 0)
        return np.asarray((trials == inputs) | ((ids == 0) & (trials > 0) & self._clean_alone))

    @cached_property
    def _counts(self) -> tuple[Array, Ids]:
        return self._counted(None)

    def _counted(self, among: Bits | None) -> tuple[Array, Ids]:
        """Passes and trials of every test of the space."""
        known, size = self.measured_ids, self.space.size
        if not self.space.listed:
            raise self.not_listed("estimate")
        won, tried = self.outcomes.counts(known, among)
        passes, trials = np.zeros(size, won.dtype), np.zeros(size, np.int64)
        passes[known], trials[known] = won, tried
        return passes, trials

    def not_listed(self, what: str) -> InputError:
        """Why there is no array over all tests, and what there is instead.

        Args:
            what: the array that was asked for
        """
        return InputError(
            f"{what}: an array over {self.space.size:,} tests would be too large (at most {LISTED:,}); "
            "predict(configurations) gives the estimates of chosen tests, query(expression) the mean over a region"
        )

    def fitted(self) -> Surrogate | None:
        """The surrogate on all inputs; None where there is none."""
        return self._fitted(None) if len(self.measured_ids) else None

    def learned(self) -> Record | None:
        """What a run file keeps of the fit, so that whoever opens it need not wait for it; None where nothing helps."""
        return self._fits.learned() if len(self.measured_ids) else None

    def pooling(self, among: Bits | None = None) -> Surrogate | None:
        """The fitted surrogate, where it is one that estimates every test from all trials and there is need of it.

        Args:
            among: the inputs to look at, as bits in visiting order; None: all
        """
        return self._fitted(among) if self.pooled else None

    @cached_property
    def pooled(self) -> bool:
        """Whether estimates are made from the trials of all tests."""
        known = self.population == "data" and self._complete
        return self._pools and len(self.measured_ids) > 0 and not known

    @cached_property
    def _clean_alone(self) -> bool:
        """Whether the clean test has what the strategies give it, of all that was spent: then it speaks for itself."""
        total, inputs = self.outcomes.total(), self.outcomes.inputs
        return total > 0 and int(self.outcomes.counts([0])[1][0]) >= clean_trials(total, inputs, self.space.size)

    @cached_property
    def _complete(self) -> bool:
        """Whether every test of the space was tried on every input."""
        _, trials = self.outcomes.counts(self.measured_ids)
        return len(trials) == self.space.size and bool((trials == self.outcomes.inputs).all())

    @cached_property
    def _pools(self) -> bool:
        resolved = resolve(self.surrogate)
        return resolved is not None and resolved.pools

    def _looked(self, confidence: float) -> float:
        """The confidence at which each of many looks holds together: their errors add up to no more than asked for.

        Looks are counted each time the number of trials has doubled. The first ten may err with an eleventh of the
        risk each; they go up to a thousand trials per test. Each of those after may err with half as much as the last.
        """
        doublings = int(np.log2(max(1.0, self.outcomes.total() / max(1, len(self.measured_ids)))))
        share = 2.0 ** -max(0, doublings + 1 - LOOKS) / (LOOKS + 1)
        return 1 - (1 - confidence) * share

    def _fitted(self, among: Bits | None) -> Surrogate | None:
        """The surrogate on all inputs or a part of them; None where there is none, or nothing to fit it on."""
        return self._fits.on(among)

    @cached_property
    def _fits(self) -> Fits:
        finite = self.population == "data"
        kept = self.provenance.get(keys.FIT)
        return Fits(self.space, self.outcomes, self.measured_ids, self.surrogate, self.seed, finite, kept)
