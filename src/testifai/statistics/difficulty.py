"""Difficulty of single inputs, from a few trials of each.

logit P(failure) = severity of the test + difficulty of the input: G. Rasch's model of persons and items (1960), with
normally distributed difficulties. The severity of a test follows from its failure rate, which is known more precisely
than the difficulty of an input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit

from testifai.support.types import Bools, Floats

Numbers = NDArray[np.intp]

SPREADS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)  # of difficulties; the most likely one is used
# Grid of difficulties, in standard deviations, and their prior probabilities.
NODES = np.linspace(-3.5, 3.5, 29)
PRIOR = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# A logistic curve convolved with a normal distribution is nearly one that is flatter by √(1 + (spread / 1.7)²).
FLATTER = (16 * np.sqrt(3) / (15 * np.pi)) ** 2
LEAST_RATE = 1e-4


@dataclass(frozen=True)
class Tried:
    test: Numbers
    input: Numbers
    failed: Bools


@dataclass(frozen=True, eq=False)
class Difficulties:
    """Posterior distribution of each input's difficulty, as weights of the grid."""

    severities: Floats  # (tests,)
    spread: float
    weights: Floats  # (inputs, nodes)

    def failing(self, tests: Numbers) -> Floats:
        found: Floats = expit(self.severities[tests, None] + self.spread * NODES) @ self.weights.T
        return found


def spread_of(rates: Floats, tried: Tried, inputs: int) -> float:
    """The most likely standard deviation of difficulties; trials must not be chosen by what was expected of inputs."""
    return max(SPREADS, key=lambda spread: _weighed(_severities(rates, spread), spread, tried, inputs)[0])


def difficulties(rates: Floats, spread: float, tried: Tried, inputs: int) -> Difficulties:
    severities = _severities(rates, spread)
    return Difficulties(severities, spread, _weighed(severities, spread, tried, inputs)[1])


def _severities(rates: Floats, spread: float) -> Floats:
    kept = np.clip(rates, LEAST_RATE, 1 - LEAST_RATE)
    return np.asarray(logit(kept) * np.sqrt(1 + FLATTER * spread**2))


def _weighed(severities: Floats, spread: float, tried: Tried, inputs: int) -> tuple[float, Floats]:
    """The log-likelihood of all trials, and the posterior weights of each input's difficulties."""
    values = severities[:, None] + spread * NODES
    either = np.stack([log_expit(-values), log_expit(values)])  # passed, failed
    likelihood = np.zeros((inputs, len(NODES)))
    np.add.at(likelihood, tried.input, either[tried.failed.astype(np.intp), tried.test])
    most = likelihood.max(axis=1, keepdims=True)
    weights = np.exp(likelihood - most) * PRIOR
    total = weights.sum(axis=1, keepdims=True)
    return float((most + np.log(total)).sum()), weights / total
