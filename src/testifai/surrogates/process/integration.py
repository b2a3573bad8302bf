"""The prior's parameters are not known: how much wider errors are for it than with the best ones.

Parameters are drawn from their posterior by elliptical slice sampling (Murray, Adams and MacKay 2010) about the normal
distribution that has its curvature at the mode (as in Nishihara, Murray and Adams 2014). The variance of a rate is
then the mean of its variances under the draws, plus the variance of its means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testifai.support.threads import one_blas_thread
from testifai.surrogates.process.evidence import CompleteGrid, SomeTests
from testifai.surrogates.process.kernel import Floats, Ints, Prior
from testifai.surrogates.process.notes import Notes

DRAWS = 30  # the variance of means is a tenth of the whole: a quarter more or less of it does no harm
STEP = 0.05  # of differences of the gradient, in units of the parameters' own sd

Bools = NDArray[np.bool_]


def unwidened(places: Ints, tried: Bools) -> Floats:
    """Where parameters are known."""
    return np.ones(len(places))


class Widening:
    """By what the variance of configurations is to be multiplied, given their places and which of them have trials.

    Parameters are drawn when it is first asked for.
    """

    def __init__(
        self, problem: CompleteGrid | SomeTests, mode: Floats, seed: int, notes: Notes | None = None, name: str = ""
    ) -> None:
        self._problem, self._mode, self._seed = problem, mode, seed
        self._notes, self._name = notes or Notes(), name

    def __call__(self, places: Ints, tried: Bools) -> Floats:
        if not self._problem.prior.active:
            return unwidened(places, tried)
        if isinstance(self._problem, CompleteGrid):
            return np.asarray(self._by_test[tuple(places.T)])
        of_others, of_tests = self._by_order
        order = _orders(self._problem.prior, places)
        return np.where(tried, of_tests[order], of_others[order])

    @cached_property
    def _by_test(self) -> Floats:
        sizes = self._problem.prior.sizes
        found = self._notes(
            f"{self._name}, wider", math.prod(sizes), lambda: _ratios(self._problem, self._mode, self._seed)
        )
        return found.reshape(sizes)

    @cached_property
    def _by_order(self) -> tuple[Floats, Floats]:
        """For configurations without trials, and for tests: the mean over some of each order."""
        size = len(self._problem.prior.active) + 1
        found = self._notes(f"{self._name}, wider", 2 * size, lambda: np.concatenate(self._mean_ratios()))
        return found[:size], found[size:]

    def _mean_ratios(self) -> tuple[Floats, Floats]:
        assert isinstance(self._problem, SomeTests)
        problem = self._problem.fewer()
        tests, others = problem.places, problem.elsewhere
        ratios = _ratios(problem, self._mode, self._seed)
        of_tests = _means(_orders(problem.prior, tests), ratios[: len(tests)], len(problem.prior.active))
        if not len(others):
            return of_tests, of_tests
        return _means(_orders(problem.prior, others), ratios[len(tests) :], len(problem.prior.active)), of_tests


def draws(problem: CompleteGrid | SomeTests, mode: Floats, seed: int) -> list[Floats]:
    """Parameters from their posterior."""
    prior = problem.prior
    turn = prior.sd[:, None] * _spread(problem, mode)
    random = np.random.default_rng(seed)

    def density(z: Floats) -> float:
        """Of the posterior, relative to the normal one."""
        parameters = mode + turn @ z
        return problem.value(parameters) + prior.density(parameters)[0] + 0.5 * float(z @ z)

    at = np.zeros(len(mode))
    height = density(at)
    found = []
    for _ in range(DRAWS):
        at, height = _step(density, at, height, random)
        found.append(mode + turn @ at)
    return found


def _step(
    density: Callable[[Floats], float], at: Floats, height: float, random: np.random.Generator
) -> tuple[Floats, float]:
    """One step of elliptical slice sampling."""
    other, least = random.normal(size=len(at)), height + math.log(random.random())
    angle = random.uniform(0, 2 * math.pi)
    low, high = angle - 2 * math.pi, angle
    while True:
        new = at * math.cos(angle) + other * math.sin(angle)
        if (found := density(new)) > least or high - low < 1e-9:
            return new, found
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = random.uniform(low, high)


def _spread(problem: CompleteGrid | SomeTests, mode: Floats) -> Floats:
    """A root of the posterior's covariance at the mode, in units of the parameters' own sd."""
    sd, count = problem.prior.sd, len(mode)
    curvature = np.zeros((count, count))
    for row, step in enumerate(np.diag(STEP * sd)):
        curvature[row] = sd * (problem.slope(mode - step)[1] - problem.slope(mode + step)[1]) / (2 * STEP)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2 + np.eye(count))
    # Trials take nothing away from what the parameters' own density says.
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1.0)))


def _ratios(problem: CompleteGrid | SomeTests, mode: Floats, seed: int) -> Floats:
    """The variance over the draws against that at the mode."""
    # Thousands of small products: on a busy machine, threads that wait for each other made them 30 times as long.
    with one_blas_thread():
        _, plain = problem.posterior(mode)
        means, variances = map(np.array, zip(*map(problem.posterior, draws(problem, mode, seed)), strict=True))
    ratios: Floats = (variances.mean(axis=0) + means.var(axis=0)) / plain
    return ratios


def _orders(prior: Prior, places: Ints) -> Ints:
    return np.asarray(np.count_nonzero(places[:, prior.active], axis=1), np.intp)


def _means(order: Ints, ratios: Floats, most: int) -> Floats:
    """The mean ratio of each order; where there are none, of all."""
    count, total = np.bincount(order, minlength=most + 1), np.bincount(order, ratios, most + 1)
    return np.where(count > 0, total / np.maximum(count, 1), ratios.mean())
