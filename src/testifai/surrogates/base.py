"""The base classes of surrogates, which predict pass rates of configurations from measured ones."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.runs.outcomes import Trials
from testifai.statistics.intervals import half_widths
from testifai.support.types import Bools, Floats, Record, RecordLike


def sampling_variance(rates: Floats, of: int | None) -> float:
    """Return the variance of a sample's mean about that of all `of` tests it was drawn from; 0 if None."""
    drawn = len(rates)
    if of is None or drawn >= of:
        return 0.0
    return float(np.var(rates, ddof=1 if drawn > 1 else 0)) / drawn * (1 - drawn / of)


def drawn_from(
    rates: Floats, found: tuple[float, float, float], of: int | None, confidence: float
) -> tuple[float, float, float]:
    """Return the mean rate over all `of` tests from that over a sample, with its bounds: the errors are independent."""
    spread = sampling_variance(rates, of)
    if not spread:
        return found
    estimate, low, high = found
    drawn = half_widths(confidence) * spread**0.5
    below, above = math.hypot(estimate - low, drawn), math.hypot(high - estimate, drawn)
    return estimate, max(estimate - below, 0), min(estimate + above, 1)


def are_numbered(rows: NDArray[np.int64]) -> bool:
    """Return True if the right half of each row numbers the active axes by the order in which they are applied."""
    k, odd = divmod(rows.shape[1], 2)
    if odd:
        return False
    active, places = rows[:, :k] > 0, rows[:, k:]
    expected = np.maximum(np.arange(1, k + 1) - np.count_nonzero(~active, axis=1)[:, None], 0)
    return bool(((places > 0) == active).all() and (np.sort(places, axis=1) == expected).all())


def selected(single: Trials, tests: NDArray[np.intp], count: int) -> Trials:
    number = np.full(count, -1, np.intp)
    number[tests] = np.arange(len(tests))
    test = number[single.test]
    kept = trials_at(single, np.flatnonzero(test >= 0))
    return replace(kept, test=number[kept.test])


def trials_at(single: Trials, rows: NDArray[np.intp]) -> Trials:
    value = None if single.value is None else single.value[rows]
    return replace(single, test=single.test[rows], place=single.place[rows], passed=single.passed[rows], value=value)


def in_chunks(
    predict: Callable[[NDArray[np.int64]], tuple[Floats, Floats]], rows: NDArray[np.int64], size: int
) -> tuple[Floats, Floats]:
    parts = [predict(rows[start : start + size]) for start in range(0, max(len(rows), 1), size)]
    return np.concatenate([mean for mean, _ in parts]), np.concatenate([variance for _, variance in parts])


class Surrogate(ABC):
    """Predict pass rates from counts per configuration (rows of `space.matrix`), in the style of scikit-learn.

    A new surrogate needs `fit` and `predict`. If its `fit` has a parameter `single`, it also gets the single outcomes
    (`Trials`, or None), which show that tests share inputs; scores of inputs only if it is a `PoolingSurrogate`.
    """

    name: str
    pools = False  # estimates tests that have trials from the trials of all tests, not from their own alone
    plain_only = False  # does not support spaces in which the order of application counts

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    @abstractmethod
    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike) -> Self:
        """Learn from the passes (or sums of scores in 0..1) and trials of some configurations."""

    @abstractmethod
    def predict(self, features: ArrayLike) -> tuple[Floats, Floats | None]:
        """Return the rate of each configuration and the variance of its error (None: not known)."""

    def bounds(self, features: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper bound of each rate, for normal errors; NaN if there is no variance."""
        mean, variance = self.predict(features)
        half = half_widths(confidence) * (np.full(len(mean), np.nan) if variance is None else np.sqrt(variance))
        return np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)

    def region(
        self, features: ArrayLike, confidence: float = 0.95, of: int | None = None
    ) -> tuple[float, float, float]:
        """Return the mean rate over configurations and its bounds.

        The mean of their bounds is right whatever the correlation of their errors. With `of`, the configurations are a
        uniform sample of that many, and the bounds include the sampling error.
        """
        low, high = self.bounds(features, confidence)
        rates = self.predict(features)[0]
        return drawn_from(rates, (float(rates.mean()), float(low.mean()), float(high.mean())), of, confidence)

    def regions(
        self, features: ArrayLike, members: Bools, of: Sequence[int | None], confidence: float = 0.95
    ) -> list[tuple[float, float, float]]:
        """Return the mean rates over several sets of configurations, a row of `members` for each; see `region`."""
        rows = np.asarray(features)
        return [self.region(rows[chosen], confidence, size) for chosen, size in zip(members, of, strict=True)]

    def covariance(self, features: ArrayLike) -> Floats | None:
        """Return the covariance of the errors of these rates; None if it is not known."""
        return None


class PlainSurrogate(Surrogate):
    """A surrogate of spaces in which the order of application does not count, with the severities of their axes."""

    plain_only = True

    def __init__(self, levels: Sequence[Sequence[int]] | None = None, seed: int = 0) -> None:
        self.levels, self.seed = levels, seed


class PoolingSurrogate(Surrogate):
    """A surrogate that estimates every test from all trials, uses scores, and whose fit can be reused."""

    pools = True

    @abstractmethod
    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        """Learn from counts and, where given, from single outcomes or scores."""

    @abstractmethod
    def update(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take other counts of the space last fitted, and keep what takes long to learn."""

    @abstractmethod
    def deviate(
        self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None
    ) -> Self:
        """Take the counts of other inputs than those last fitted, whose rates may differ."""

    @abstractmethod
    def learned(self) -> Record:
        """Return the parameters that the last fit took long to find, as plain data."""

    @abstractmethod
    def recall(self, learned: RecordLike) -> None:
        """Use these parameters in the next fit, which must have the same evidence."""

    @abstractmethod
    def off_surface(self, features: ArrayLike) -> Floats:
        """Return how likely each configuration's own trials contradict those of all others."""


def takes_single(surrogate: Surrogate) -> bool:
    """Return True if a surrogate's `fit`, or that of the object it adapts, has a parameter `single`."""
    return "single" in inspect.signature(getattr(surrogate, "given", surrogate).fit).parameters
