"""Tests whose own trials contradict the surface of their neighbours: one bad test on an otherwise smooth surface.

A test's value is foretold from all others (leaving it out of a Gaussian process has a closed form: Rasmussen and
Williams 2006, section 5.4.2). Beside the surface there is a second explanation, that the test is off it by anything
(normal with sd OFF). How likely that is follows from Bayes' rule; the estimate is the mixture of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testifai.surrogates.process.kernel import Floats, Ints

OFF = 0.3  # sd of what a test may be off its surface, on a scale that ends at pi/2
EXPECTED = 1.0  # tests off their surface that a space has, before any trial
MOST = 500.0  # of an exponent
TINY = 1e-12
HALVINGS = 40


@dataclass(frozen=True)
class OddTests:
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


def odd_tests(foretold: Floats, spread: Floats, passes: Floats, trials: Floats, inputs: Floats | float) -> OddTests:
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
    return OddTests(chance, foretold + gain * surprise, gain * noise * (1 - trials / inputs))
