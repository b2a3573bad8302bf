"""How well parameters of the prior explain noisy values: the marginal likelihood, its gradient, its maximum.

`Widening` accounts for the parameters' uncertainty; `ValueSurface` is the posterior given values with known errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import scipy

from testifai.support.threads import one_blas_thread
from testifai.support.types import Bools, Floats, Record, RecordLike
from testifai.surrogates.process.grid import Spectrum, WholeGrid, contrasts, outer
from testifai.surrogates.process.kernel import CONSTANT, Between, Prior, symmetric, unrelated
from testifai.surrogates.process.linear_algebra import (
    Ints,
    cholesky,
    chunks,
    contracted,
    explained_root,
    inverse,
    solve,
)

PARAMETER_TESTS = 400  # tests used for the parameters if the grid is incomplete
UNEVEN = 8  # largest ratio of variances for which the coefficients of a grid are taken as independent
SINGLED_OUT = 0.01  # share of the tests that may be known better than that, such as the clean one
FEWER = 150  # tests used to sample parameters
HOPELESS = 1e10  # loss if there is no likelihood
ELSEWHERE = 200  # configurations without trials that represent all of them
DRAWS = 30  # the variance of means is a tenth of the whole: a quarter more or less of it does no harm
STEP = 0.05  # of differences of the gradient, in units of the parameters' own sd
LEARNED = 400  # values that a `ValueSurface` learns its parameters from
JITTER = 1e-6


class FitCache:
    """Vectors by name that take a fit long to find, kept so that the same fit can be repeated quickly."""

    def __init__(self, known: RecordLike | None = None) -> None:
        self._known: Record = dict(known or {})
        self._vectors: dict[str, Floats] = {}

    def __call__(self, name: str, size: int, find: Callable[[], Floats]) -> Floats:
        if name not in self._vectors:
            try:
                known = np.asarray(self._known.get(name), np.float64)
            except (TypeError, ValueError):
                known = np.empty(0)
            valid = known.shape == (size,) and np.isfinite(known).all()
            self._vectors[name] = known if valid else find()
        return self._vectors[name]

    def as_dict(self) -> dict[str, list[float]]:
        return {name: vector.tolist() for name, vector in self._vectors.items()}


def posed(prior: Prior, places: Ints, values: Floats, noise: Floats, seed: int) -> Problem:
    """Return the problem of explaining values of tests, given the variances or the covariance of their noise."""
    variances = noise if noise.ndim == 1 else np.diag(noise)
    least = variances.max() / UNEVEN
    precise = variances < least
    complete = prior.active and not prior.ordered and len(places) == np.prod(prior.sizes)
    if complete and precise.sum() <= max(1, SINGLED_OUT * len(places)):
        # With more noise than they have, the few tests that stand out count as much as their neighbours.
        lacking = np.where(precise, least - variances, 0.0)
        noise = noise + (lacking if noise.ndim == 1 else np.diag(lacking))
        used = np.lexsort(places.T[::-1])
        return CompleteGrid(prior, values[used], noise[used] if noise.ndim == 1 else noise[used][:, used])
    used = np.random.default_rng(seed).permutation(len(places))[:PARAMETER_TESTS]
    return SomeTests(prior, places[used], values[used], noise[used] if noise.ndim == 1 else noise[used][:, used])


def maximise(prior: Prior, problem: Problem, start: Floats, steps: int) -> Floats:
    """Return the parameters of highest evidence times prior density (L-BFGS)."""
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
    found: Floats = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found


class CompleteGrid:
    """Values on the complete grid, in the order of the configurations: O(number of tests) per evaluation.

    The values' coefficients in the prior's eigenvectors are independent. Noise makes them dependent unless it is
    homoscedastic and independent; it counts with its mean variance within each set of axes: a composite likelihood,
    right on average.
    """

    def __init__(self, prior: Prior, values: Floats, noise: Floats) -> None:
        self.prior, self._grid = prior, WholeGrid(prior)
        self._sizes = sizes = self._grid.sizes
        self._tensor = values.reshape(sizes)
        self._noise = _by_effect(noise, sizes)

    def value(self, parameters: Floats) -> float:
        """Return the logarithm of the marginal likelihood, up to a constant."""
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
            kernel, vectors = spectrum.kernels[at], spectrum.vectors[at]
            others = outer([f if i != at else np.ones(1) for i, f in enumerate(spectrum.factors)])
            w_others = np.moveaxis(spectrum.weights, at, 0)[1].ravel() * np.moveaxis(others, at, 0)[0].ravel()
            rows = np.moveaxis(solved, at, 0)[1:].reshape(sizes[at] - 1, -1)
            spread = np.moveaxis(1 / variance, at, 0)[1:].reshape(sizes[at] - 1, -1)
            inner = 0.5 * ((rows * w_others) @ rows.T - np.diag(spread @ w_others))
            gradient[prior.slices[j]] = kernel.gradient(kernel.scale * vectors[:, 1:] @ inner @ vectors[:, 1:].T)
        return value, gradient

    def posterior(self, parameters: Floats) -> tuple[Floats, Floats]:
        spectrum = self._grid.spectrum(parameters)
        own = spectrum.smooth + spectrum.rough
        share = own / (own + self._noise)
        mean = contracted(share * contracted(self._tensor, spectrum.vectors), [v.T for v in spectrum.vectors])
        variance = contracted(share * self._noise, [v.T**2 for v in spectrum.vectors])
        return mean.ravel(), variance.ravel()

    def _value(self, spectrum: Spectrum) -> tuple[float, Floats, Floats]:
        """Return the evidence, the variances of the coefficients, and the coefficients over those."""
        variance = spectrum.smooth + spectrum.rough + self._noise
        coefficients = contracted(self._tensor, spectrum.vectors)
        solved = coefficients / variance
        return -0.5 * float(np.log(variance).sum() + (coefficients * solved).sum()), variance, solved


class SomeTests:
    """Values of any configurations, with the noise's variances or covariance: O(n^3) per evaluation."""

    def __init__(self, prior: Prior, places: Ints, values: Floats, noise: Floats) -> None:
        self.prior, self.places, self._values = prior, places, values
        self._noise = np.diag(noise) if noise.ndim == 1 else noise

    def value(self, parameters: Floats) -> float:
        return self._evidence(*self.solved(self.prior.kernel(parameters, self.places, self.places)))

    def slope(self, parameters: Floats) -> tuple[float, Floats]:
        prior, places = self.prior, self.places
        smooth, rough = prior.weights(parameters)
        kernels = prior.axes(parameters)
        axes = list(zip(prior.active, kernels, strict=True))
        factors = [kernel.scale * kernel.matrix[places[:, j]][:, places[:, j]] for j, kernel in axes]
        terms = symmetric(factors, prior.orders)
        covariance = np.full_like(self._noise, CONSTANT)
        for o in range(1, prior.orders + 1):
            covariance += smooth[o] * terms[o]
        for weight, term in zip(rough[prior.first_rough :], self._rough_terms, strict=True):
            covariance += weight * term
        if self._ordered is not None:
            covariance += self._ordered.kernel(parameters[prior.order])
        factor, solved = self.solved(covariance)

        by_covariance = 0.5 * (np.outer(solved, solved) - inverse(factor))
        gradient = np.zeros_like(parameters)
        gradient[prior.smooth] = [smooth[o] * np.vdot(by_covariance, terms[o]) for o in range(1, prior.orders + 1)]
        gradient[prior.rough] = [
            weight * np.vdot(by_covariance, term)
            for weight, term in zip(rough[prior.first_rough :], self._rough_terms, strict=True)
        ]
        for own, (j, kernel) in zip(factors, axes, strict=True):
            without = np.ones_like(covariance)  # e_(o-1) of the other axes, from e_o = e_o' + x e_(o-1)'
            slope = smooth[1] * without
            for o in range(2, prior.orders + 1):
                without = terms[o - 1] - own * without
                slope += smooth[o] * without
            choice = np.eye(prior.sizes[j])[places[:, j]]
            gradient[prior.slices[j]] = kernel.gradient(kernel.scale * choice.T @ (by_covariance * slope) @ choice)
        if self._ordered is not None:
            gradient[prior.order] = self._ordered.gradient(parameters[prior.order], by_covariance)
        return self._evidence(factor, solved), gradient

    def posterior(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the surface at the tests and, after them, `elsewhere`."""
        rows = np.concatenate([self.places, self.elsewhere])
        cross = self.prior.kernel(parameters, rows, self.places)
        factor, solved = self.solved(cross[: len(self.places)])
        explained = (explained_root(factor, cross) ** 2).sum(axis=0)
        return cross @ solved, self.prior.variance(parameters, rows) - explained

    def fewer(self) -> SomeTests:
        return SomeTests(self.prior, self.places[:FEWER], self._values[:FEWER], self._noise[:FEWER, :FEWER])

    @cached_property
    def elsewhere(self) -> Ints:
        drawn = self.prior.drawn(ELSEWHERE, np.random.default_rng(0))
        tests = set(map(tuple, self.places.tolist()))
        return drawn[[tuple(row) not in tests for row in drawn.tolist()]]

    def solved(self, covariance: Floats) -> tuple[Floats, Floats]:
        """Return the factor of the values' covariance, given the surface's, and its inverse times the values."""
        factor = cholesky(covariance + self._noise)
        return factor, solve(factor, self._values)

    @cached_property
    def _rough_terms(self) -> list[Floats]:
        prior, places = self.prior, self.places
        free = [unrelated(prior.sizes[j])[places[:, j]][:, places[:, j]] for j in prior.active]
        return symmetric(free, prior.orders)[prior.first_rough :]

    @cached_property
    def _ordered(self) -> Between | None:
        return None if self.prior.sequences is None else Between(self.prior.sequences, self.places, self.places)

    def _evidence(self, factor: Floats, solved: Floats) -> float:
        return -float(np.log(np.diag(factor)).sum()) - 0.5 * float(self._values @ solved)


Problem = CompleteGrid | SomeTests


def _by_effect(noise: Floats, sizes: list[int]) -> Floats:
    if noise.ndim == 1:
        return np.full(sizes, noise.mean())
    turns = [np.column_stack([np.full(n, n**-0.5), contrasts(n)]) for n in sizes]
    turned = contracted(noise.reshape([*sizes, *sizes]), turns * 2)
    variances = np.diag(turned.reshape(noise.shape)).reshape(sizes)
    for at, n in enumerate(sizes):
        first, rest = np.split(variances, [1], axis=at)
        variances = np.concatenate([first, np.repeat(rest.mean(axis=at, keepdims=True), n - 1, axis=at)], axis=at)
    return variances


def unwidened(places: Ints, tried: Bools) -> Floats:
    return np.ones(len(places))


class Widening:
    """The factor on the variance of configurations, tried or not, because parameters are uncertain."""

    def __init__(
        self, problem: Problem, mode: Floats, seed: int, cache: FitCache | None = None, name: str = ""
    ) -> None:
        self._problem, self._mode, self._seed = problem, mode, seed
        self._cache, self._name = cache or FitCache(), name

    def __call__(self, places: Ints, tried: Bools) -> Floats:
        prior = self._problem.prior
        if not prior.active:
            return unwidened(places, tried)
        if isinstance(self._problem, CompleteGrid):
            return np.asarray(self._factors[tuple(places.T)])
        return np.asarray(self._factors[tried.astype(np.intp), _orders(prior, places)])

    @cached_property
    def _factors(self) -> Floats:
        """Return a factor for each configuration of a complete grid; else by order, without trials and with."""
        problem, prior = self._problem, self._problem.prior
        shape = prior.sizes if isinstance(problem, CompleteGrid) else (2, len(prior.active) + 1)
        return self._cache(f"{self._name}, wider", math.prod(shape), self._find).reshape(shape)

    def _find(self) -> Floats:
        if isinstance(self._problem, CompleteGrid):
            return _ratios(self._problem, self._mode, self._seed)
        problem = self._problem.fewer()
        prior, tests, others = problem.prior, problem.places, problem.elsewhere
        ratios = _ratios(problem, self._mode, self._seed)
        of_tests = _means(prior, tests, ratios[: len(tests)])
        of_others = _means(prior, others, ratios[len(tests) :]) if len(others) else of_tests
        return np.concatenate([of_others, of_tests])


def draws(problem: Problem, mode: Floats, seed: int) -> list[Floats]:
    prior = problem.prior
    turn = prior.sd[:, None] * _spread(problem, mode)
    random = np.random.default_rng(seed)

    def density(z: Floats) -> float:
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
    """Make one step of elliptical slice sampling."""
    other, least = random.normal(size=len(at)), height + math.log(random.random())
    angle = random.uniform(0, 2 * math.pi)
    low, high = angle - 2 * math.pi, angle
    while True:
        new = at * math.cos(angle) + other * math.sin(angle)
        if (found := density(new)) > least or high - low < 1e-9:
            return new, found
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = random.uniform(low, high)


def _spread(problem: Problem, mode: Floats) -> Floats:
    sd, count = problem.prior.sd, len(mode)
    curvature = np.zeros((count, count))
    for row, step in enumerate(np.diag(STEP * sd)):
        curvature[row] = sd * (problem.slope(mode - step)[1] - problem.slope(mode + step)[1]) / (2 * STEP)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2 + np.eye(count))
    # The posterior is at least as narrow as the prior.
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1.0)))


def _ratios(problem: Problem, mode: Floats, seed: int) -> Floats:
    # Thousands of small products: on a busy machine, several threads take 30 times as long.
    with one_blas_thread():
        _, plain = problem.posterior(mode)
        means, variances = map(np.array, zip(*map(problem.posterior, draws(problem, mode, seed)), strict=True))
    return np.asarray((variances.mean(axis=0) + means.var(axis=0)) / plain)


def _orders(prior: Prior, places: Ints) -> Ints:
    return np.asarray(np.count_nonzero(places[:, prior.active], axis=1), np.intp)


def _means(prior: Prior, places: Ints, ratios: Floats) -> Floats:
    order, most = _orders(prior, places), len(prior.active)
    count, total = np.bincount(order, minlength=most + 1), np.bincount(order, ratios, most + 1)
    return np.where(count > 0, total / np.maximum(count, 1), ratios.mean())


class ValueSurface:
    """The posterior of a surface given values whose errors are independent, normal and of known variance."""

    def __init__(
        self,
        prior: Prior,
        places: Ints,
        values: Floats,
        variances: Floats,
        start: Floats,
        *,
        steps: int = 60,
        seed: int = 0,
    ) -> None:
        self.prior, self.places, self._values = prior, places, values
        self._noise = variances + JITTER
        some = slice(None, LEARNED)
        self._problem = posed(prior, places[some], values[some], self._noise[some], seed)
        self.parameters = maximise(prior, self._problem, start, steps) if steps else start

    @property
    def evidence(self) -> float:
        """The logarithm of the parameters' posterior density, up to a constant, from the first LEARNED values."""
        return self._problem.value(self.parameters) + self.prior.density(self.parameters)[0]

    def mean(self, places: Ints) -> Floats:
        cross = (self.prior.kernel(self.parameters, places[some], self.places) for some in chunks(len(places)))
        return np.concatenate([np.empty(0), *(one @ self._solved[1] for one in cross)])

    def predict(self, places: Ints) -> tuple[Floats, Floats]:
        factor, weights = self._solved
        mean, variance = np.empty(len(places)), np.empty(len(places))
        for some in chunks(len(places)):
            cross = self.prior.kernel(self.parameters, places[some], self.places)
            mean[some] = cross @ weights
            explained = (explained_root(factor, cross) ** 2).sum(axis=0)
            variance[some] = self.prior.variance(self.parameters, places[some]) - explained
        return mean, np.maximum(variance, 0)

    def surprise(self, groups: Sequence[Ints]) -> float:
        """Return the root mean square of standardised residuals of groups of values, each predicted from the others.

        Residuals are M w with M the inverse of a group's block of the inverse covariance, and M is their covariance
        (Rasmussen and Williams 2006, section 5.4.2, for blocks).
        """
        factor, weights = self._solved
        precision = solve(factor, np.eye(len(factor)))
        squares = [np.empty(0)]
        for group in groups:
            covariance = np.linalg.inv(precision[np.ix_(group, group)])
            squares.append((covariance @ weights[group]) ** 2 / np.diag(covariance))
        together = np.concatenate(squares)
        return float(np.sqrt(together.mean())) if len(together) else 1.0

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        problem = SomeTests(self.prior, self.places, self._values, self._noise)
        return problem.solved(self.prior.kernel(self.parameters, self.places, self.places))
