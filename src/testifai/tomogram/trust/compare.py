"""Predicted rates against measured ones: how far off, by how much more than noise, and how often covered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT = 200  # trials up to which a count's prediction interval is the beta-binomial one


@dataclass(frozen=True)
class Predicted:
    """Rates of tests that were kept from the surrogate: predicted, with variances if there are any, and measured.

    The trials are a random part of `population` inputs, over which the predicted rates are taken.
    """

    mean: Floats
    variance: Floats | None
    passes: NDArray[Any]  # or scores: then all three are in passes and failures that would scatter as much
    trials: NDArray[Any]
    population: NDArray[Any]

    @property
    def difference(self) -> Floats:
        return np.asarray(self.mean - self.passes / self.trials)

    @property
    def noise(self) -> Floats:
        """The variance of each measured rate, without bias; from the prediction where there is a single trial."""
        rate, one = self.passes / self.trials, self.trials == 1
        variance = np.where(one, self.mean * (1 - self.mean), rate * (1 - rate) / np.where(one, 1, self.trials - 1))
        return np.asarray(variance * (1 - self.trials / self.population))

    @staticmethod
    def joined(parts: list[Predicted]) -> Predicted:
        def join(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            return None if columns[0] is None else np.concatenate(columns)

        return Predicted(*(join(name) for name in ("mean", "variance", "passes", "trials", "population")))


def noise_alone(found: Predicted) -> float:
    """The mean absolute value of normal noise: sqrt(2 / pi) standard deviations."""
    return float(math.sqrt(2 / math.pi) * np.sqrt(found.noise).mean())


def without_noise(found: Predicted) -> float:
    """The mean absolute difference as it would be without noise, if it shrinks as the root of the mean square does."""
    square = float((found.difference**2).mean())
    kept = 0.0 if square == 0 else max(0.0, 1 - float(found.noise.mean()) / square)
    return float(np.abs(found.difference).mean()) * math.sqrt(kept)


def mean_interval(values: Floats) -> tuple[float, float, float]:
    """A mean over tests with its 95 % t-interval: tests, not trials, are what was drawn."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def _moments(found: Predicted) -> tuple[Floats, Floats]:
    """Mean and variance of each predicted rate, those of a beta distribution."""
    assert found.variance is not None
    mean = np.clip(found.mean, 1e-6, 1 - 1e-6)
    return mean, np.clip(found.variance, 1e-9, 0.99 * mean * (1 - mean))


def total_variance(found: Predicted) -> Floats:
    """Of a measured rate around its prediction: E[p(1 - p)] / n without replacement, and the variance of p itself.

    That variance counts whole also where the mean is at an end, and no beta distribution would have it.
    """
    assert found.variance is not None
    return np.asarray(np.maximum(found.variance, 1e-9) + _binomial(found))


def square_variance(found: Predicted) -> Floats:
    """Of the squared differences in standard deviations: 2 for normal numbers, more for few and rare failures."""
    mean, _ = _moments(found)
    binomial = _binomial(found)
    excess = np.maximum(1 / (mean * (1 - mean)) - 6, 0) / found.trials
    return np.asarray(2 + (binomial / total_variance(found)) ** 2 * excess)


def _binomial(found: Predicted) -> Floats:
    """The part of a measured rate's variance that comes from drawing trials."""
    mean, variance = _moments(found)
    drawn = np.maximum(mean * (1 - mean) - variance, 0) / found.trials
    return np.asarray(drawn * (1 - found.trials / found.population))


def cover(found: Predicted) -> Floats:
    """Whether each count lies in its central 95 % prediction interval; the part of it that does, for counts at an end.

    A count of few trials is so coarse that no set of counts has exactly 95 %. Spreading each count evenly over the
    probabilities it stands for (the randomised probability integral transform, in expectation) mends that.
    """
    mean, variance = _moments(found)
    # The beta-binomial distribution is that of draws with replacement: near enough for a tenth of the inputs.
    few = (found.trials <= EXACT) & (found.trials <= 0.1 * found.population) & (found.passes.dtype.kind != "f")
    below, above = _beta_edges(found, mean, total_variance(found))
    for i in np.flatnonzero(few):
        below[i], above[i] = beta_binomial_edges(int(found.passes[i]), int(found.trials[i]), mean[i], variance[i])
    inside = np.clip(np.minimum(above, 0.975) - np.maximum(below, 0.025), 0, None)
    width = above - below
    at_a_point = (below >= 0.025) & (above <= 0.975)
    return np.where(width > 1e-12, inside / np.maximum(width, 1e-12), at_a_point.astype(np.float64))


def _beta_edges(found: Predicted, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The probabilities between which a count stands, its rate taken as beta-distributed."""
    from scipy.special import betainc

    size = mean * (1 - mean) / np.minimum(variance, 0.99 * mean * (1 - mean)) - 1
    half = 0.5 / found.trials
    rate = found.passes / found.trials
    edges = [np.clip(rate + sign * half, 0, 1) for sign in (-1, 1)]
    below, above = (np.asarray(betainc(mean * size, (1 - mean) * size, edge)) for edge in edges)
    return below, above


def beta_binomial_edges(passes: int, trials: int, mean: float, variance: float) -> tuple[float, float]:
    """P(count < passes) and P(count <= passes) for a binomial count whose rate is beta-distributed."""
    from scipy.special import betaln

    size = mean * (1 - mean) / variance - 1
    a, b = mean * size, (1 - mean) * size
    counts = np.arange(trials + 1)
    choose = -np.log(trials + 1) - betaln(counts + 1, trials - counts + 1)
    chances = np.exp(choose + betaln(counts + a, trials - counts + b) - betaln(a, b))
    chances /= chances.sum()
    below = float(chances[:passes].sum())
    return below, below + float(chances[passes])
