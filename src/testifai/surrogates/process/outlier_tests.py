"""Tests whose own trials contradict the surface of their neighbours: one bad test on an otherwise smooth surface.

A test's value is predicted from all others (leaving it out of a Gaussian process has a closed form: Rasmussen and
Williams 2006, section 5.4.2). The alternative explanation is that the test deviates from the surface (normal with sd
OFF). Its probability follows from Bayes' rule; the estimate is the mixture of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from testifai.support.types import Floats
from testifai.surrogates.process.kernel import Prior, inside, moments
from testifai.surrogates.process.linear_algebra import Ints
from testifai.surrogates.process.marginal_likelihood import CompleteGrid, maximise, posed

STEPS = (15, 25)  # of the optimiser: a rough surface does not need exact parameters
OFF = 0.3  # sd of deviations from the surface, on a scale that ends at pi/2
EXPECTED = 1.0  # prior number of tests off the surface
MOST = 500.0  # of an exponent
TINY = 1e-12
HALVINGS = 40


def counted(places: Ints, trials: Floats) -> Floats:
    """Return the trials that the surface is learned from: for the clean test at most as many as others have.

    The clean test may have more than all others together. With all its trials, rates above .9 came out lower by .011
    on one recorded grid at 0.1 % of the inferences, and were covered in .83 instead of .97: surfaces are flat at clean,
    and a smooth one that is tied down there is too low next to it (`benchmarks/near_clean.py`).
    """
    learned, others = trials.copy(), places.any(axis=1)
    if others.any():
        learned[~others] = np.minimum(learned[~others], learned[others].max())
    return learned


def overall(passes: Floats, trials: Floats) -> float:
    return float(np.arcsin(np.sqrt((passes.sum() + 0.5) / (trials.sum() + 1))))


def values_at(eta: Floats, passes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Return one pseudo-value of eta per test, linearised at the values given, and its variance."""
    at = inside(eta)
    return at + (passes / trials - np.sin(at) ** 2) / np.sin(2 * at), 0.25 / trials


def sketch(
    levels: Sequence[Sequence[int]], features: NDArray[np.int64], passes: Ints, trials: Ints
) -> tuple[Floats, Floats] | None:
    """Return the rate and error variance of each test if all tests of a grid have similar trials; else None.

    No matrix of tests is made: a hundredth of the time of a fit. The sketch ignores that tests share inputs, that the
    prior's parameters are uncertain and that single tests may be off the surface.
    """
    prior = Prior([sorted(axis) for axis in levels])
    places = prior.places(features)
    tried = counted(places, trials.astype(np.float64))
    won = passes * tried / trials
    level = overall(won, tried)
    number = np.argsort(np.lexsort(places.T[::-1]))  # of each test on the grid
    parameters, eta, variance = prior.mean, np.full(len(places), level), np.zeros(len(places))
    for steps in STEPS:
        values, noise = values_at(eta, won, tried)
        problem = posed(prior, places, values - level, noise, seed=0)
        if not isinstance(problem, CompleteGrid):
            return None
        parameters = maximise(prior, problem, parameters, steps)
        mean, variance = (one[number] for one in problem.posterior(parameters))
        eta = level + mean
    return moments(eta, np.maximum(variance, 0))


@dataclass(frozen=True)
class OutlierTests:
    """For each test the probability that it is off its surface, and its value and variance if it is."""

    chance: Floats
    eta: Floats
    variance: Floats

    @property
    def any_likely(self) -> bool:
        return bool((self.chance > 0.5).any())

    @property
    def off(self) -> Floats:
        return self.chance * OFF**2

    def moments(self, tests: Ints, eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
        chance, other, spread = self.chance[tests], self.eta[tests], self.variance[tests]
        mean = eta + chance * (other - eta)
        between = chance * (1 - chance) * (other - eta) ** 2
        return mean, (1 - chance) * variance + chance * spread + between

    def quantile(self, tests: Ints, eta: Floats, variance: Floats, level: float) -> Floats:
        ndtr, ndtri = scipy.special.ndtr, scipy.special.ndtri
        chance, other = self.chance[tests], self.eta[tests]
        sd, other_sd = (np.sqrt(np.maximum(one, TINY)) for one in (variance, self.variance[tests]))
        ends = eta + ndtri(level) * sd, other + ndtri(level) * other_sd  # between which it must lie
        low, high = np.minimum(*ends), np.maximum(*ends)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = (1 - chance) * ndtr((middle - eta) / sd) + chance * ndtr((middle - other) / other_sd) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)


def find_outliers(
    predicted: Floats, spread: Floats, passes: Floats, trials: Floats, inputs: Floats | float
) -> OutlierTests:
    """Compare each test's trials with the prediction by all others, which has variance `spread`."""
    noise = 0.25 / trials
    surprise = np.arcsin(np.sqrt((passes + 0.375) / (trials + 0.75))) - predicted  # Anscombe 1948
    narrow, wide = spread + noise, spread + noise + OFF**2
    odds = np.sqrt(narrow / wide) * np.exp(np.minimum(surprise**2 / 2 * (1 / narrow - 1 / wide), MOST))
    before = min(0.5, EXPECTED / len(trials))
    chance = before * odds / (1 - before + before * odds)
    gain = (spread + OFF**2) / wide
    return OutlierTests(chance, predicted + gain * surprise, gain * noise * (1 - trials / inputs))
