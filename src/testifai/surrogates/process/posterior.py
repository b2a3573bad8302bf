"""The surfaces that add up to eta, before and after the trials, and the surface of a part of the inputs.

`Deviation` is the difference of the surface of a part of the inputs from that of all others. It is a Gaussian process
with covariance

    c + sum_j m_j K_j(s, t) + w e_2(K_1, ..., K_k)(s, t) + f k(s, t) + u [s = t],

with k the kernel of the others' surface but for its constant, and K_j its centred kernels of the axes: an offset,
effects of single axes, of pairs, a surface like that of the others, and single tests. These few sizes are learned.
The posterior covariance of the others' surface, which was learned from other inputs, is added: no trial counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from testifai.support.types import Bools, Floats
from testifai.surrogates.process.grid import WholeGrid
from testifai.surrogates.process.input_correlation import TERMS, Independent, Information
from testifai.surrogates.process.kernel import CONSTANT, Prior, symmetric
from testifai.surrogates.process.linear_algebra import Ints, cholesky, inverse, solve
from testifai.surrogates.process.marginal_likelihood import FitCache, Widening, maximise, posed, unwidened

DEVIATION_TESTS = 400  # tests used for the sizes
DEVIATION_STEPS = 40
# Prior medians of the sizes c, m, w, f and u, and the prior sd of their logarithms: weak, as parts may be anything.
OFFSET, MAIN, PAIRS, ALIKE, SINGLE = 0.01, 0.003, 0.0005, 0.1, 0.0001
SD = 2.0
# The bias of a smoother grows with the second derivative (Fan and Gijbels, Local Polynomial Modelling, 1996, section
# 3.2), but the length of correlation is the same everywhere, so the variance is too small where the surface bends. On
# four recorded and six simulated surfaces, squared errors were about half of what the variance says at a tenth of the
# mean squared curvature, equal to it at the mean, and one and a half times to twice as large at four times the mean.
GROWTH = 0.35  # of the variance, for each mean squared curvature above the first
MOST_GROWTH = 2.0


@dataclass(frozen=True)
class Scatter:
    """The scatter of single trials about the value of their test: terms of the expansion of outcomes."""

    first: int = 0
    last: int = TERMS  # TERMS includes all higher ones
    scale: float = 1.0  # variance relative to that of the expansion

    def __call__(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the standard deviation for Hermite coefficients of configurations, and the terms' share of it."""
        rows = coefficients[self.first : self.last]
        whole = self.last == TERMS
        size = 1 - (coefficients[: self.first] ** 2).sum(axis=0) if whole else (rows**2).sum(axis=0)
        return np.sqrt(self.scale * size) / 2, rows / np.sqrt(size)


class SurfacePart:
    """One of the surfaces that add up to eta, and its posterior.

    Values of tests are `level` + surface + noise; noise is that of single trials, `sd` times that of `information`.
    """

    on_grid = True  # whether the kernel is that of the prior, whose sums over all configurations are cheap

    def __init__(self, prior: Prior, parameters: Floats, scatter: Scatter, *, near_clean: bool = False) -> None:
        self.prior, self.parameters, self.scatter, self._near_clean = prior, parameters, scatter, near_clean
        self.level = 0.0
        self.widening: Callable[[Ints, Bools], Floats] = unwidened

    def centre(self, places: Ints) -> Floats:
        return np.full(len(places), self.level)

    def kernel(self, rows: Ints, columns: Ints) -> Floats:
        kernel = self.prior.kernel(self.parameters, rows, columns)
        return kernel + self.prior.near_clean(rows) @ self.prior.near_clean(columns).T if self._near_clean else kernel

    def own_variance(self, places: Ints) -> Floats:
        variance = self.prior.variance(self.parameters, places)
        return variance + (self.prior.near_clean(places) ** 2).sum(axis=1) if self._near_clean else variance

    def times(self, weights: Floats) -> Floats:
        along = self.grid.times(self.parameters, weights)
        if self._near_clean:
            near = self.prior.near_clean(np.indices(self.prior.sizes).reshape(len(self.prior.sizes), -1).T)
            along += near @ (near.T @ weights)
        return along

    def tune(
        self, places: Ints, values: Floats, noise: Floats, steps: int, seed: int, cache: FitCache, name: str
    ) -> None:
        self.level = float(values.mean())
        problem, start = posed(self.prior, places, values - self.level, noise, seed), self.parameters
        self.parameters = cache(name, len(start), lambda: maximise(self.prior, problem, start, steps))
        self.widening = Widening(problem, self.parameters, seed, cache, name)

    @cached_property
    def grid(self) -> WholeGrid:
        return WholeGrid(self.prior)

    def see(self, information: Information | Independent, sd: Floats, test: Ints) -> None:
        self._information, self._sd, self._test = information, sd, test
        self._unit = information.covariance()

    @property
    def noise(self) -> Floats:
        return self._unit * np.multiply.outer(self._sd, self._sd)

    def values(self, reference: Floats, deviations: Floats) -> Floats:
        """Return efficient values of the tests, from the deviations of their trials from a reference."""
        score = self._information.score(deviations / self._sd[self._test])
        return np.asarray(reference + self._sd * (self._unit @ score))

    def data(self, reference: Floats, deviations: Floats) -> tuple[Floats, Floats]:
        """Return values to learn parameters from, and their noise's covariance, or variances if independent.

        If the correlation of trials is not well known, these are plain means: overestimated, it makes noise look like
        surface.
        """
        information = self._information
        if information.sure:
            return self.values(reference, deviations), self.noise
        means = np.bincount(self._test, information.weight * deviations, len(reference)) / information.trials
        return reference + means, self._sd**2 / information.trials

    def condition(self, kernel: Floats, shared: Floats | float, off: Floats | float = 0.0) -> None:
        """`shared` is the covariance of the means over all inputs, `off` the variance of tests off the surface."""
        self._off = off
        covariance = kernel + self.noise + np.diag(np.broadcast_to(off, len(kernel)))
        factor, failed = scipy.linalg.lapack.dpotrf(covariance, lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance of the tests' values is not positive definite")
        self.root: Floats = scipy.linalg.lapack.dtrtri(factor, lower=1)[0].T  # (K + noise)^-1 = V V'
        self.cross: Floats = kernel + shared

    def learn(self, values: Floats) -> None:
        self._values = values
        self.weights: Floats = self.root @ (self.root.T @ values)

    def left_out(self) -> tuple[Floats, Floats]:
        """Return the prediction of each test by all others, less its prior mean, and its variance."""
        precision = (self.root**2).sum(axis=1)
        unexplained = np.diag(self._unit) * self._sd**2 + self._off
        return self._values - self.weights / precision, np.maximum(1 / precision - unexplained, 0)

    def spent(self, cross: Floats) -> Floats:
        """Transform covariances with the tests' values so that squares sum over a row to the explained variance."""
        rows = np.atleast_2d(cross)
        # The root is triangular: half of the work of a matrix product.
        spent: Floats = scipy.linalg.blas.dtrmm(1.0, self.root.T, rows, side=1, lower=1, trans_a=1)
        return spent.reshape(cross.shape)

    def error_along(self, weights: Floats) -> Floats:
        along = self.cross @ weights
        return np.asarray(along - self.cross @ (self.root @ (self.root.T @ along)))

    def forget(self) -> None:
        del self._information, self._unit, self._values


class Deviation:
    """The covariance of a deviation from a surface, as a function of the logarithms of its sizes."""

    def __init__(self, prior: Prior, parameters: Floats) -> None:
        self._prior, self._parameters, self._axes = prior, parameters, prior.active
        self._tables = {j: one.matrix for j, one in zip(prior.active, prior.axes(parameters), strict=True)}
        pairs = [PAIRS] if len(self._axes) > 1 else []
        self.mean = np.log([OFFSET, *[MAIN] * len(self._axes), *pairs, ALIKE, SINGLE])

    def shapes(self, rows: Ints, columns: Ints) -> Iterator[Floats]:
        yield np.ones((len(rows), len(columns)))
        factors = [self._tables[j][rows[:, j]][:, columns[:, j]] for j in self._axes]
        yield from factors
        if len(factors) > 1:
            yield symmetric(factors, 2)[2]
        yield self._prior.kernel(self._parameters, rows, columns) - CONSTANT
        same = np.ones((len(rows), len(columns)), bool)
        for one, other in zip(rows.T, columns.T, strict=True):
            same &= one[:, None] == other
        yield same.astype(np.float64)

    def kernel(self, sizes: Floats, rows: Ints, columns: Ints) -> Floats:
        shapes = zip(np.exp(sizes), self.shapes(rows, columns), strict=True)
        return np.asarray(sum(size * shape for size, shape in shapes))

    def variance(self, sizes: Floats, rows: Ints) -> Floats:
        factors = [np.diag(self._tables[j])[rows[:, j]] for j in self._axes]
        pairs = [symmetric(factors, 2)[2]] if len(factors) > 1 else []
        alike, one = self._prior.variance(self._parameters, rows) - CONSTANT, np.ones(len(rows))
        return np.asarray(np.exp(sizes) @ np.array([one, *factors, *pairs, alike, one]))

    def typical_sizes(self, places: Ints, values: Floats, noise: Floats) -> Floats:
        """Return the logarithms of the sizes' posterior means, given values of tests and their noise's covariance.

        The density is taken as normal about its mode, with the expected information as precision. Means, not the mode:
        a size that trials hardly determine may well be larger, and variances are linear in it.
        """
        shapes = list(self.shapes(places, places))
        best = self._best(shapes, values, noise)
        parts = [size * shape for size, shape in zip(np.exp(best), shapes, strict=True)]
        factor = cholesky(noise + sum(parts))
        solved = [solve(factor, part) for part in parts]
        information = 0.5 * np.array([[np.vdot(one, other.T) for other in solved] for one in solved])
        return np.asarray(best + np.diag(np.linalg.inv(information + np.eye(len(best)) / SD**2)) / 2)

    def _best(self, shapes: Sequence[Floats], values: Floats, noise: Floats) -> Floats:

        def loss(sizes: Floats) -> tuple[float, Floats]:
            covariance = noise + sum(size * shape for size, shape in zip(np.exp(sizes), shapes, strict=True))
            factor = cholesky(covariance)
            solved = solve(factor, values)
            by_covariance = 0.5 * (inverse(factor) - np.outer(solved, solved))
            slope = np.exp(sizes) * [np.vdot(by_covariance, shape) for shape in shapes]
            z = (sizes - self.mean) / SD
            value = float(np.log(np.diag(factor)).sum()) + 0.5 * float(values @ solved + z @ z)
            return value, slope + z / SD

        bounds = [(middle - 5 * SD, middle + 5 * SD) for middle in self.mean]
        options = {"maxiter": DEVIATION_STEPS, "ftol": 1e-6, "gtol": 1e-2}
        found = scipy.optimize.minimize(loss, self.mean, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return np.asarray(found.x)


class DeviatingPart(SurfacePart):
    """The sum of surfaces learned from other inputs on the tests `seen`, plus a deviation."""

    on_grid = False

    def __init__(self, others: Sequence[SurfacePart], seen: Ints, scatter: Scatter, places: Ints) -> None:
        self._deviation = Deviation(others[0].prior, others[0].parameters)
        super().__init__(others[0].prior, self._deviation.mean, scatter)
        self._others, self._seen = others, seen
        self._own = self._last = (places, self._explain(places))

    def centre(self, places: Ints) -> Floats:
        return self._explained(places)[0]

    def kernel(self, rows: Ints, columns: Ints) -> Floats:
        return self._unknown(rows, columns) + self._deviation.kernel(self.parameters, rows, columns)

    def own_variance(self, places: Ints) -> Floats:
        prior = sum((one.own_variance(places) for one in self._others), np.zeros(len(places)))
        unknown: Floats = prior - (self._explained(places)[1] ** 2).sum(axis=1)
        return unknown + self._deviation.variance(self.parameters, places)

    def tune(
        self, places: Ints, values: Floats, noise: Floats, steps: int, seed: int, cache: FitCache, name: str
    ) -> None:
        used = np.sort(np.random.default_rng(seed).permutation(len(places))[:DEVIATION_TESTS])
        spread = np.diag(noise[used]) if noise.ndim == 1 else noise[used][:, used]
        places = places[used]
        unexplained = values[used] - self.centre(places)
        self.parameters = self._deviation.typical_sizes(places, unexplained, spread + self._unknown(places, places))

    def _unknown(self, rows: Ints, columns: Ints) -> Floats:
        prior = sum((one.kernel(rows, columns) for one in self._others), np.zeros((len(rows), len(columns))))
        return prior - self._explained(rows)[1] @ self._explained(columns)[1].T

    def _explained(self, places: Ints) -> tuple[Floats, Floats]:
        if places is self._own[0]:
            return self._own[1]
        if places is not self._last[0]:
            self._last = (places, self._explain(places))
        return self._last[1]

    def _explain(self, places: Ints) -> tuple[Floats, Floats]:
        """Return the posterior mean of the others' surface, and a root of its covariance that trials explain."""
        crossed = [one.kernel(places, self._seen) for one in self._others]
        mean = sum((one.centre(places) + k @ one.weights for one, k in zip(self._others, crossed, strict=True)), 0.0)
        roots = [k @ one.root for one, k in zip(self._others, crossed, strict=True)]
        return np.asarray(mean), np.concatenate(roots, axis=1)


class Growth:
    """Factors by which the variances of a surface grow with its curvature, relative to some tests; 1 off a grid."""

    def __init__(self, surface: Callable[[Ints], Floats], tests: Ints, sizes: Sequence[int]) -> None:
        self._surface, self._tests, self._sizes = surface, tests, sizes

    def __call__(self, places: Ints) -> Floats:
        if not self._mean > 0:
            return np.ones(len(places))
        return np.clip(1 + GROWTH * (self._curvature(places) / self._mean - 1), 1, MOST_GROWTH)

    @cached_property
    def _mean(self) -> float:
        return float(self._curvature(self._tests).mean())

    def _curvature(self, places: Ints) -> Floats:
        """Return squared second differences, summed over axes; at the ends of an axis, those next to the end."""
        total = np.zeros(len(places))
        for axis, size in enumerate(self._sizes):
            if size < 3:
                continue
            triple = [places.copy() for _ in range(3)]
            for step, rows in zip((-1, 0, 1), triple, strict=True):
                rows[:, axis] = np.clip(places[:, axis], 1, size - 2) + step
            below, middle, above = map(self._surface, triple)
            total += (below - 2 * middle + above) ** 2
        return total
