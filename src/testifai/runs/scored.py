"""Outcomes in which a trial counts by its score, a value in 0..1, and not by whether it passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.runs.trials import Trials
from testifai.statistics.means import OF_MEANS, Limits, Moments
from testifai.support.bits import Bits

LEAST = 0.01  # dispersion of scores that are all but equal
VALUE = "value"  # the name under which a run keeps what the oracle measured of a trial: its score, or its margin


class ScoredOutcomes(Outcomes):
    """The same trials, whose scores add up where passes did.

    >>> outcomes = Outcomes(10)
    >>> outcomes.record(3, np.array([0, 4]), np.array([True, False]), {"value": np.array([0.75, 0.5], np.float32)})
    >>> ScoredOutcomes.of(outcomes).counts([3, 7])
    (array([1.25, 0.  ]), array([2, 0]))
    """

    @classmethod
    def of(cls, outcomes: Outcomes) -> ScoredOutcomes:
        """The scores of outcomes as they are now; refused where a trial has none."""
        if isinstance(outcomes, cls):
            return outcomes
        for configuration in outcomes:
            _refuse(outcomes.kept_span(configuration, VALUE, 0, outcomes.inputs), configuration)
        twin = cls(outcomes.inputs)
        twin._share(outcomes)
        return twin

    def snapshot(self) -> ScoredOutcomes:
        twin = ScoredOutcomes(self.inputs)
        twin._share(self)
        return twin

    def plain(self) -> Outcomes:
        """Whether trials passed."""
        twin = Outcomes(self.inputs)
        twin._share(self)
        return twin

    def counts(self, configurations: Ids | list[int], among: Bits | None = None) -> tuple[NDArray[Any], Ids]:
        """The sum of the scores and the trials of each configuration."""
        found = self.moments(configurations, among)
        return found.total, found.trials.astype(np.int64)

    def moments(self, configurations: Ids | list[int], among: Bits | None = None) -> Moments:
        """What intervals want to know of the scores of each configuration."""
        return Moments.joined([Moments.of(self.trials(int(one), among)[1]) for one in configurations])

    def worth(self, configurations: Ids) -> float:
        """How many passes and failures a trial of these is worth."""
        return 1 / max(self.moments(configurations).dispersion, LEAST)

    def limits(
        self,
        method: Callable[..., Limits],
        configurations: Ids,
        counts: tuple[NDArray[Any], Ids],
        population: int | None,
        confidence: float,
        among: Bits | None = None,
    ) -> Limits:
        """Those of the mean scores, by the method for means that does what this one does for pass rates."""
        return OF_MEANS[method](self.moments(configurations, among), population, confidence)

    def results(self, configuration: int, places: Places) -> NDArray[Any]:
        """The score of each of these inputs."""
        return self.kept_at(configuration, VALUE, places).astype(np.float64)

    def trials(self, configuration: int, among: Bits | None = None) -> tuple[Places, NDArray[Any]]:
        """The places tried under a configuration, ascending, and their scores."""
        places, _ = super().trials(configuration, among)
        return places, self.results(configuration, places)

    def single(self, configurations: Ids, among: Bits | None = None, name: str | None = None) -> Trials:
        """Every score of these configurations by itself; there are no values beside them."""
        return super().single(configurations, among, None)


def _refuse(values: NDArray[np.float32], configuration: int) -> None:
    """Refuse what is no score."""
    fits = (values >= 0) & (values <= 1)
    if not fits.all():
        wrong = values[~fits][0]
        what = "trials of which no score was kept" if np.isnan(wrong) else f"a score of {wrong:g}; accepted: 0 to 1"
        raise InputError(f"score: configuration {configuration} has {what}")
