"""Everything that was measured in a space, and an estimate with an interval for every test of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.quality.scores import Scores
from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Space
from testifai.statistics.intervals import confidence_sequence, wilson
from testifai.support.bits import Bits, count_set
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import evidence

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RateTable:
    """Estimates over the whole space, flat by configuration id, for all inputs or a part of them."""

    estimate: Floats
    low: Floats
    high: Floats
    passes: Ids
    trials: Ids


@dataclass(frozen=True, eq=False)
class Estimates:
    """What a run knows of each test; a record of its own, which no later outcome changes.

    Bounds of a test stand at 95 % and are for the rate on the inputs at hand (`population="data"`: they close once all
    inputs were tried) or on new inputs like them (`"future"`). Tests ended by a stopping rule have bounds that stay
    valid under it.
    """

    space: Space
    outcomes: Outcomes
    order: NDArray[np.intp]
    labels: NDArray[Any] | None = None
    classes: tuple[str, ...] | None = None
    population: str = "data"
    stopped_early: bool = False
    surrogate: str | Surrogate | None = "forest"
    seed: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    quality: Scores | None = None
    # Fitted surrogates, by the inputs that they were fitted on.
    _fits: dict[bytes | None, Surrogate | None] = field(default_factory=dict, init=False, repr=False)

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

    @cached_property
    def base(self) -> float:
        """Clean accuracy."""
        if self.pooling() is not None:
            return float(self.view(np.zeros(1, np.int64)).estimate[0])
        passes, trials = self.outcomes.counts([0])
        return float(passes[0] / trials[0]) if trials[0] else float("nan")

    @property
    def passes(self) -> Ids:
        """Passed trials of every test."""
        return self._counts[0].reshape(self.space.shape)

    @property
    def trials(self) -> Ids:
        """Trials of every test."""
        return self._counts[1].reshape(self.space.shape)

    @cached_property
    def rests_on_own_trials(self) -> NDArray[np.bool_]:
        """Which tests' estimates rest on their own trials alone, flat by configuration id."""
        trials = self._counts[1]
        return np.asarray(trials == self.outcomes.inputs if self._pools else trials > 0)

    # -- estimates ----------------------------------------------------------------------------------------------

    @property
    def estimate(self) -> Floats:
        """The pass rate of every test: measured where there are trials, predicted elsewhere."""
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
        """Estimate and bounds of some configurations; for spaces too large to enumerate."""
        ids = np.array([self.space.id(tuple(sigma)) for sigma in configurations], np.int64)
        view = self.view(ids)
        return view.estimate, view.low, view.high

    @property
    def estimated(self) -> bool:
        """Whether the estimates of all tests are made already, which may have taken seconds."""
        return "_whole" in vars(self)

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
        chosen: NDArray[np.bool_] | None = None,
    ) -> RateTable:
        """Estimates of some configurations, or of all, on all inputs or on a part of them.

        With `chosen`, only these of the tests without trials are predicted.
        """
        if ids is None:
            size = self.space.size
            passes, trials = self._counts if among is None else self._counted(among)
        else:
            size = len(ids)
            passes, trials = self.outcomes.counts(ids, among)
        inputs = self.outcomes.inputs if among is None else int(count_set(among))
        population = inputs if self.population == "data" else None
        interval = confidence_sequence if self.stopped_early or anytime else wilson
        # A pooling surrogate leaves alone only what there is nothing more to know about.
        pooling = self.pooling(among)
        done = np.flatnonzero(trials if pooling is None else trials == inputs)
        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        estimate[done] = passes[done] / trials[done]
        low[done], high[done] = interval(passes[done], trials[done], population, confidence)
        unknown = np.isnan(estimate)
        missing = np.flatnonzero(unknown if chosen is None else unknown & chosen)
        if len(missing) and len(self.measured_ids):
            surrogate = self._fitted(among)
            if surrogate is not None:
                features = self.space.matrix(missing if ids is None else ids[missing])
                looked = self._looked(confidence) if anytime and pooling is not None else confidence
                estimate[missing] = surrogate.predict(features)[0]
                low[missing], high[missing] = surrogate.bounds(features, looked)
        return RateTable(estimate, low, high, passes, trials)

    @cached_property
    def _counts(self) -> tuple[Ids, Ids]:
        return self._counted(None)

    def _counted(self, among: Bits | None) -> tuple[Ids, Ids]:
        """Passes and trials of every test of the space."""
        self.space.columns()  # refuses what cannot be enumerated
        known, size = self.measured_ids, self.space.size
        passes, trials = np.zeros(size, np.int64), np.zeros(size, np.int64)
        passes[known], trials[known] = self.outcomes.counts(known, among)
        return passes, trials

    def fitted(self) -> Surrogate | None:
        """The surrogate on all inputs; None where there is none."""
        return self._fitted(None) if len(self.measured_ids) else None

    def pooling(self, among: Bits | None = None) -> Surrogate | None:
        """The fitted surrogate, where it is one that estimates every test from all trials and there is need of it."""
        known = self.population == "data" and self._complete
        return self._fitted(among) if self._pools and len(self.measured_ids) and not known else None

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

        Looks are counted each time the number of trials has doubled; the k-th may err with a share 1 / k(k + 1).
        """
        looks = 1 + int(np.log2(max(1.0, self.outcomes.total() / max(1, len(self.measured_ids)))))
        return 1 - (1 - confidence) / (looks * (looks + 1))

    def _fitted(self, among: Bits | None) -> Surrogate | None:
        """The surrogate on all inputs or a part of them; None where there is none, or nothing to fit it on."""
        key = None if among is None else among.tobytes()
        if key not in self._fits:
            levels = [axis.severities for axis in self.space.axes]
            made = resolve(self.surrogate, self.seed, levels, finite=self.population == "data")
            self._fits[key] = None if made is None else self._fit(made, among)
        return self._fits[key]

    def _fit(self, surrogate: Surrogate, among: Bits | None) -> Surrogate | None:
        whole = None if among is None else self._fitted(None)
        seen = evidence(surrogate, self.outcomes, self.measured_ids, self.space.matrix(self.measured_ids), among=among)
        if not len(seen):
            return None
        # A part of the inputs has the same surface but for its values: its shape is known already.
        known = whole is not None and not whole.relearns
        return seen.update(copy(whole)) if whole is not None and known else seen.fit(surrogate)
