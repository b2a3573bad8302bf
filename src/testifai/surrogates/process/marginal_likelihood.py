"""How well parameters of the prior explain noisy values: the marginal likelihood, its gradient, its maximum."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from testifai.support.threads import one_blas_thread
from testifai.support.types import Bools, Floats, Record, RecordLike
from testifai.surrogates.process.grid import Spectrum, WholeGrid, contracted, contrasts, outer
from testifai.surrogates.process.kernel import CONSTANT, Ints, Prior, symmetric, unrelated
from testifai.surrogates.process.sequences import Between

PARAMETER_TESTS = 400  # tests used for the parameters where the grid has holes
UNEVEN = 8  # largest ratio of variances for which the coefficients of a grid are taken as independent
SINGLED_OUT = 0.01  # share of the tests that may be known better than that, such as the clean one
FEWER = 150  # of those used where parameters are drawn hundreds of times
HOPELESS = 1e10  # loss where there is no likelihood
ELSEWHERE = 200  # configurations without trials that stand for all of them


class FitCache:
    """Vectors by name that a fit takes long to find, so that another fit of the same need not look for them.

    >>> cache = FitCache({"mode": [1.0, 2.0]})
    >>> cache("mode", 2, lambda: np.zeros(2)).tolist(), cache("other", 2, lambda: np.zeros(2)).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    >>> cache.as_dict()
    {'mode': [1.0, 2.0], 'other': [0.0, 0.0]}
    """

    def __init__(self, known: RecordLike | None = None) -> None:
        self._known: Record = dict(known or {})
        self._vectors: dict[str, Floats] = {}

    def __call__(self, name: str, size: int, find: Callable[[], Floats]) -> Floats:
        """The vector of this name and size; it is looked for where it is not known, or cannot be what is meant."""
        if name not in self._vectors:
            known = _vector(self._known.get(name))
            self._vectors[name] = find() if known is None or len(known) != size else known
        return self._vectors[name]

    def as_dict(self) -> dict[str, list[float]]:
        """All that was asked for, as plain data that is read back to the last bit."""
        return {name: vector.tolist() for name, vector in self._vectors.items()}


def _vector(known: Any) -> Floats | None:
    """Finite numbers in a row; None where it is anything else."""
    try:
        vector = np.asarray(known, np.float64)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 and np.isfinite(vector).all() else None


class Problem(Protocol):
    """Noisy values of tests, and what parameters of the prior make of them."""

    def value(self, parameters: Floats) -> float:
        """The logarithm of the marginal likelihood, up to a constant."""
        ...

    def slope(self, parameters: Floats) -> tuple[float, Floats]:
        """The same with its gradient."""
        ...

    def posterior(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the surface at the problem's configurations."""
        ...


def posed(prior: Prior, places: Ints, values: Floats, noise: Floats, seed: int) -> CompleteGrid | SomeTests:
    """The problem of finding the parameters that explain values of tests, with the noise's variances or covariance."""
    variances = noise if noise.ndim == 1 else np.diag(noise)
    least = variances.max() / UNEVEN
    precise = variances < least
    complete = prior.active and not prior.ordered and len(places) == np.prod(prior.sizes)
    if complete and precise.sum() <= max(1, SINGLED_OUT * len(places)):
        # Known less well than they are, the few tests that stand out say no more than their neighbours.
        lacking = np.where(precise, least - variances, 0.0)
        noise = noise + (lacking if noise.ndim == 1 else np.diag(lacking))
        used = np.lexsort(places.T[::-1])
        return CompleteGrid(prior, values[used], noise[used] if noise.ndim == 1 else noise[used][:, used])
    used = np.random.default_rng(seed).permutation(len(places))[:PARAMETER_TESTS]
    return SomeTests(prior, places[used], values[used], noise[used] if noise.ndim == 1 else noise[used][:, used])


def maximise(prior: Prior, problem: Problem, start: Floats, steps: int) -> Floats:
    """The parameters of highest evidence times their own density (L-BFGS)."""
    from scipy.optimize import minimize

    if not prior.active:
        return start

    def loss(parameters: Floats) -> tuple[float, Floats]:
        try:
            value, slope = problem.slope(parameters)
        except np.linalg.LinAlgError:  # values so smooth that their covariance is singular
            return HOPELESS, np.zeros_like(parameters)
        own, own_slope = prior.density(parameters)
        return -value - own, -slope - own_slope

    bounds = list(zip(prior.mean - 5 * prior.sd, prior.mean + 5 * prior.sd, strict=True))
    options = {"maxiter": steps, "ftol": 1e-7, "gtol": 1e-3}
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


class CompleteGrid:
    """Values on the complete grid, in the order of the configurations: O(number of tests) each time.

    All terms of the prior have the Kronecker product of the axes' eigenvectors as eigenvectors, so that the values'
    coefficients in that basis are independent. Noise makes them dependent unless it is the same and independent; it
    counts with its mean variance within each set of axes: a composite likelihood, right on average.
    """

    def __init__(self, prior: Prior, values: Floats, noise: Floats) -> None:
        self.prior, self._grid = prior, WholeGrid(prior)
        self._sizes = sizes = self._grid.sizes
        self._tensor = values.reshape(sizes)
        self._noise = _by_effect(noise, sizes)

    def value(self, parameters: Floats) -> float:
        return self._value(self._grid.spectrum(parameters))[0]

    def slope(self, parameters: Floats) -> tuple[float, Floats]:
        prior, order, sizes = self.prior, self._grid.used, self._sizes
        spectrum = self._grid.spectrum(parameters)
        value, variance, solved = self._value(spectrum)
        by_variance = 0.5 * (solved**2 - 1 / variance)
        gradient = np.zeros_like(parameters)
        by_order = np.bincount(order.ravel(), (by_variance * spectrum.smooth).ravel(), prior.orders + 1)
        gradient[prior.smooth] = by_order[1:]
        by_order = np.bincount(order.ravel(), (by_variance * spectrum.rough).ravel(), prior.orders + 1)
        gradient[prior.rough] = by_order[prior.first_rough :][: len(gradient[prior.rough])]
        for at, j in enumerate(prior.active):
            kernel, scale, vectors = spectrum.kernels[at], spectrum.scales[at], spectrum.vectors[at]
            others = outer([f if i != at else np.ones(1) for i, f in enumerate(spectrum.factors)])
            w_others = np.moveaxis(spectrum.weights, at, 0)[1].ravel() * np.moveaxis(others, at, 0)[0].ravel()
            rows = np.moveaxis(solved, at, 0)[1:].reshape(sizes[at] - 1, -1)
            spread = np.moveaxis(1 / variance, at, 0)[1:].reshape(sizes[at] - 1, -1)
            inner = 0.5 * ((rows * w_others) @ rows.T - np.diag(spread @ w_others))
            by_kernel = scale * vectors[:, 1:] @ inner @ vectors[:, 1:].T
            part = prior.slices[j]
            gradient[part.start : part.stop - 1] = prior.axis_gradient(kernel, by_kernel)
            gradient[part.stop - 1] = float((by_kernel * kernel.matrix).sum())
        return value, gradient

    def posterior(self, parameters: Floats) -> tuple[Floats, Floats]:
        spectrum = self._grid.spectrum(parameters)
        own = spectrum.smooth + spectrum.rough
        share = own / (own + self._noise)
        mean = contracted(share * contracted(self._tensor, spectrum.vectors), [v.T for v in spectrum.vectors])
        variance = contracted(share * self._noise, [v.T**2 for v in spectrum.vectors])
        return mean.ravel(), variance.ravel()

    def _value(self, spectrum: Spectrum) -> tuple[float, Floats, Floats]:
        """The evidence, the variances of the coefficients, and the coefficients over those."""
        variance = spectrum.smooth + spectrum.rough + self._noise
        coefficients = contracted(self._tensor, spectrum.vectors)
        solved = coefficients / variance
        return -0.5 * float(np.log(variance).sum() + (coefficients * solved).sum()), variance, solved


class SomeTests:
    """Values of any configurations, with the noise's variances or covariance: O(n^3) each time."""

    def __init__(self, prior: Prior, places: Ints, values: Floats, noise: Floats) -> None:
        self.prior, self.places, self._values = prior, places, values
        self._noise = np.diag(noise) if noise.ndim == 1 else noise
        self._choices = [np.eye(prior.sizes[j])[places[:, j]] for j in prior.active]
        free = [unrelated(prior.sizes[j])[places[:, j]][:, places[:, j]] for j in prior.active]
        self._rough_terms = symmetric(free, prior.orders)[prior.first_rough :]
        self._ordered = None if prior.sequences is None else Between(prior.sequences, places, places)

    def value(self, parameters: Floats) -> float:
        factor, solved = self._solved(self.prior.kernel(parameters, self.places, self.places))
        return self._evidence(factor, solved)

    def slope(self, parameters: Floats) -> tuple[float, Floats]:
        from scipy.linalg.lapack import dpotri

        prior, places = self.prior, self.places
        smooth, rough = prior.weights(parameters)
        kernels = [prior.axis(parameters, j) for j in prior.active]
        scales = [prior.scale(parameters, j) for j in prior.active]
        factors = [
            scale * kernel.matrix[places[:, j]][:, places[:, j]]
            for scale, kernel, j in zip(scales, kernels, prior.active, strict=True)
        ]
        terms = symmetric(factors, prior.orders)
        covariance = np.full_like(self._noise, CONSTANT)
        for o in range(1, prior.orders + 1):
            covariance += smooth[o] * terms[o]
        for weight, term in zip(rough[prior.first_rough :], self._rough_terms, strict=True):
            covariance += weight * term
        if self._ordered is not None:
            covariance += self._ordered.kernel(parameters[prior.order])
        factor, solved = self._solved(covariance)

        inverse = dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        by_covariance = 0.5 * (np.outer(solved, solved) - inverse)
        gradient = np.zeros_like(parameters)
        gradient[prior.smooth] = [smooth[o] * np.vdot(by_covariance, terms[o]) for o in range(1, prior.orders + 1)]
        gradient[prior.rough] = [
            weight * np.vdot(by_covariance, term)
            for weight, term in zip(rough[prior.first_rough :], self._rough_terms, strict=True)
        ]
        for at, j in enumerate(prior.active):
            without = np.ones_like(covariance)  # e_(o-1) of the other axes, from e_o = e_o' + x e_(o-1)'
            slope = smooth[1] * without
            for o in range(2, prior.orders + 1):
                without = terms[o - 1] - factors[at] * without
                slope += smooth[o] * without
            by_kernel = scales[at] * self._choices[at].T @ (by_covariance * slope) @ self._choices[at]
            part = prior.slices[j]
            gradient[part.start : part.stop - 1] = prior.axis_gradient(kernels[at], by_kernel)
            gradient[part.stop - 1] = float((by_kernel * kernels[at].matrix).sum())
        if self._ordered is not None:
            gradient[prior.order] = self._ordered.gradient(parameters[prior.order], by_covariance)
        return self._evidence(factor, solved), gradient

    def posterior(self, parameters: Floats) -> tuple[Floats, Floats]:
        """At the tests and, after them, at the configurations that stand for all others."""
        from scipy.linalg import solve_triangular

        rows = np.concatenate([self.places, self.elsewhere])
        cross = self.prior.kernel(parameters, rows, self.places)
        factor, solved = self._solved(cross[: len(self.places)])
        spent = solve_triangular(factor, cross.T, lower=True, check_finite=False)
        return cross @ solved, self.prior.variance(parameters, rows) - (spent**2).sum(axis=0)

    def fewer(self) -> SomeTests:
        """The same for some of the tests, to draw parameters with."""
        return SomeTests(self.prior, self.places[:FEWER], self._values[:FEWER], self._noise[:FEWER, :FEWER])

    @functools.cached_property
    def elsewhere(self) -> Ints:
        """Configurations drawn at random, without those of the tests."""
        drawn = self.prior.drawn(ELSEWHERE, np.random.default_rng(0))
        tests = set(map(tuple, self.places.tolist()))
        return drawn[[tuple(row) not in tests for row in drawn.tolist()]]

    def _solved(self, covariance: Floats) -> tuple[Floats, Floats]:
        """The factor of the values' covariance, and its inverse times the values."""
        from scipy.linalg import cho_solve, cholesky

        factor: Floats = cholesky(covariance + self._noise, lower=True, overwrite_a=True, check_finite=False)
        return factor, cho_solve((factor, True), self._values, check_finite=False)

    def _evidence(self, factor: Floats, solved: Floats) -> float:
        return -float(np.log(np.diag(factor)).sum()) - 0.5 * float(self._values @ solved)


def _by_effect(noise: Floats, sizes: list[int]) -> Floats:
    """The variance of noise in the coefficients of each set of axes, on average over those of the set."""
    if noise.ndim == 1:
        return np.full(sizes, noise.mean())
    turns = [np.column_stack([np.full(n, n**-0.5), contrasts(n)]) for n in sizes]
    turned = contracted(noise.reshape([*sizes, *sizes]), turns * 2)
    variances = np.diag(turned.reshape(noise.shape)).reshape(sizes)
    for at, n in enumerate(sizes):
        first, rest = np.split(variances, [1], axis=at)
        variances = np.concatenate([first, np.repeat(rest.mean(axis=at, keepdims=True), n - 1, axis=at)], axis=at)
    return variances


DRAWS = 30  # the variance of means is a tenth of the whole: a quarter more or less of it does no harm
STEP = 0.05  # of differences of the gradient, in units of the parameters' own sd


def unwidened(places: Ints, tried: Bools) -> Floats:
    """Where parameters are known."""
    return np.ones(len(places))


class Widening:
    """By what the variance of configurations is to be multiplied, given their places and which of them have trials.

    Parameters are drawn when it is first asked for.
    """

    def __init__(
        self, problem: CompleteGrid | SomeTests, mode: Floats, seed: int, cache: FitCache | None = None, name: str = ""
    ) -> None:
        self._problem, self._mode, self._seed = problem, mode, seed
        self._cache, self._name = cache or FitCache(), name

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
        found = self._cache(
            f"{self._name}, wider", math.prod(sizes), lambda: _ratios(self._problem, self._mode, self._seed)
        )
        return found.reshape(sizes)

    @cached_property
    def _by_order(self) -> tuple[Floats, Floats]:
        """For configurations without trials, and for tests: the mean over some of each order."""
        size = len(self._problem.prior.active) + 1
        found = self._cache(f"{self._name}, wider", 2 * size, lambda: np.concatenate(self._mean_ratios()))
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
