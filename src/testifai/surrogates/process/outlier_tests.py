"""Tests whose own trials contradict the surface of their neighbours: one bad test on an otherwise smooth surface.

A test's value is foretold from all others (leaving it out of a Gaussian process has a closed form: Rasmussen and
Williams 2006, section 5.4.2). Beside the surface there is a second explanation, that the test is off it by anything
(normal with sd OFF). How likely that is follows from Bayes' rule; the estimate is the mixture of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Floats
from testifai.surrogates.process.kernel import Ints, Prior, inside, moments
from testifai.surrogates.process.marginal_likelihood import CompleteGrid, maximise, posed

STEPS = (15, 25)  # of the optimiser: parameters need not be exact for a surface that is not


def counted(places: Ints, trials: Floats) -> Floats:
    """The trials of the tests that the surface is learned from: of the clean one no more than others have.

    It may have more than all together, and speaks for itself then. With all of them, rates above .9 came out lower
    by .011 on one recorded grid at 0.1 % of the inferences, and were covered in .83 instead of .97: surfaces are
    flat at clean, and a smooth one that is held down there is too low beside it (`benchmarks/near_clean.py`).
    """
    learned, others = trials.copy(), places.any(axis=1)
    if others.any():
        learned[~others] = np.minimum(learned[~others], learned[others].max())
    return learned


def overall(passes: Floats, trials: Floats) -> float:
    """The value of eta that all tests have together."""
    return float(np.arcsin(np.sqrt((passes.sum() + 0.5) / (trials.sum() + 1))))


def values_at(eta: Floats, passes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """One pseudo-value of eta per test, linearised at the values given, and its variance."""
    at = inside(eta)
    return at + (passes / trials - np.sin(at) ** 2) / np.sin(2 * at), 0.25 / trials


def sketch(
    levels: Sequence[Sequence[int]], features: NDArray[np.int64], passes: Ints, trials: Ints
) -> tuple[Floats, Floats] | None:
    """The rate of each test and the variance of its error, where all of a grid have about as many trials; else None.

    There the prior's eigenvectors are those of the whole problem, and no matrix of tests is made: a hundredth of the
    time that a fit of the process takes. Good for saying where more trials are needed; that tests share inputs, that
    the prior's parameters are not known and what single tests are off the surface, it leaves out.

    >>> rates, variances = sketch([range(4)], np.arange(4)[:, None], np.array([96, 90, 79, 61]), np.full(4, 100))
    >>> rates.round(1).tolist(), bool((variances < 0.05**2).all())
    ([1.0, 0.9, 0.8, 0.6], True)
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


OFF = 0.3  # sd of what a test may be off its surface, on a scale that ends at pi/2
EXPECTED = 1.0  # tests off their surface that a space has, before any trial
MOST = 500.0  # of an exponent
TINY = 1e-12
HALVINGS = 40


@dataclass(frozen=True)
class OutlierTests:
    """For each test how likely it is off its surface, and its value and variance if it is."""

    chance: Floats
    eta: Floats
    variance: Floats

    @property
    def any_likely(self) -> bool:
        """Whether one is more likely off its surface than on it."""
        return bool((self.chance > 0.5).any())

    @property
    def off(self) -> Floats:
        """The variance of what tests have beside the surface."""
        return self.chance * OFF**2

    def moments(self, tests: Ints, eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of some tests by both explanations, given those by the surface."""
        chance, other, spread = self.chance[tests], self.eta[tests], self.variance[tests]
        mean = eta + chance * (other - eta)
        between = chance * (1 - chance) * (other - eta) ** 2
        return mean, (1 - chance) * variance + chance * spread + between

    def quantile(self, tests: Ints, eta: Floats, variance: Floats, level: float) -> Floats:
        """The value of some tests that is not exceeded with this probability, by both explanations."""
        from scipy.special import ndtr, ndtri

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
    foretold: Floats, spread: Floats, passes: Floats, trials: Floats, inputs: Floats | float
) -> OutlierTests:
    """From what all others foretell of each test, with its variance, and the test's own trials.

    Its variance is for the rate on this many inputs: none where all of them were tried.
    """
    noise = 0.25 / trials
    surprise = np.arcsin(np.sqrt((passes + 0.375) / (trials + 0.75))) - foretold  # Anscombe 1948
    narrow, wide = spread + noise, spread + noise + OFF**2
    odds = np.sqrt(narrow / wide) * np.exp(np.minimum(surprise**2 / 2 * (1 / narrow - 1 / wide), MOST))
    before = min(0.5, EXPECTED / len(trials))
    chance = before * odds / (1 - before + before * odds)
    gain = (spread + OFF**2) / wide
    return OutlierTests(chance, foretold + gain * surprise, gain * noise * (1 - trials / inputs))
