"""A part of the inputs: the surface of all others, plus a deviation from it whose size the part's own trials tell.

The deviation is a Gaussian process with covariance

    c + sum_j m_j K_j(s, t) + w e_2(K_1, ..., K_k)(s, t) + f k(s, t) + u [s = t],

with k the kernel of the others' surface but for its constant, and K_j its centred kernels of the axes: an offset,
effects of single axes, of pairs, a surface like that of the others, and single tests. These few sizes are learned.
What is not known about the others' surface, which other inputs have taught, adds to it: no trial counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from testifai.support.types import Floats
from testifai.surrogates.process.input_correlation import Ints
from testifai.surrogates.process.kernel import CONSTANT, Prior, symmetric
from testifai.surrogates.process.marginal_likelihood import FitCache
from testifai.surrogates.process.posterior import Scatter, SurfacePart

PARAMETER_TESTS = 400  # tests used for the sizes
STEPS = 40
# Prior medians of the sizes c, m, w, f and u, and the prior sd of their logarithms: weak, as parts may be anything.
OFFSET, MAIN, PAIRS, ALIKE, SINGLE = 0.01, 0.003, 0.0005, 0.1, 0.0001
SD = 2.0


class Deviation:
    """The covariance of a deviation from a surface, as a function of the logarithms of its sizes."""

    def __init__(self, prior: Prior, parameters: Floats) -> None:
        self._prior, self._parameters, self._axes = prior, parameters, prior.active
        self._tables = {j: prior.axis(parameters, j).matrix for j in prior.active}
        pairs = [PAIRS] if len(self._axes) > 1 else []
        self.mean = np.log([OFFSET, *[MAIN] * len(self._axes), *pairs, ALIKE, SINGLE])

    def shapes(self, rows: Ints, columns: Ints) -> Iterator[Floats]:
        """The covariances that are added up, one for each size."""
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
        total = np.zeros((len(rows), len(columns)))
        for size, shape in zip(np.exp(sizes), self.shapes(rows, columns), strict=True):
            total += size * shape
        return total

    def variance(self, sizes: Floats, rows: Ints) -> Floats:
        factors = [np.diag(self._tables[j])[rows[:, j]] for j in self._axes]
        pairs = [symmetric(factors, 2)[2]] if len(factors) > 1 else []
        alike, one = self._prior.variance(self._parameters, rows) - CONSTANT, np.ones(len(rows))
        return np.asarray(np.exp(sizes) @ np.array([one, *factors, *pairs, alike, one]))

    def typical_sizes(self, places: Ints, values: Floats, noise: Floats) -> Floats:
        """The logarithms of the sizes' posterior means, given values of tests with the covariance of their noise.

        The density is taken as normal about its highest point, with the expected information as precision. Means, not
        that point itself: where trials say little about a size, it may well be larger, and variances are linear in it.
        """
        from scipy.linalg import cho_factor, cho_solve

        shapes = list(self.shapes(places, places))
        best = self._best(shapes, values, noise)
        parts = [size * shape for size, shape in zip(np.exp(best), shapes, strict=True)]
        factor = cho_factor(noise + sum(parts), lower=True, check_finite=False)
        solved = [cho_solve(factor, part, check_finite=False) for part in parts]
        information = 0.5 * np.array([[np.vdot(one, other.T) for other in solved] for one in solved])
        typical: Floats = best + np.diag(np.linalg.inv(information + np.eye(len(best)) / SD**2)) / 2
        return typical

    def _best(self, shapes: Sequence[Floats], values: Floats, noise: Floats) -> Floats:
        """The logarithms of the sizes of highest posterior density (L-BFGS)."""
        from scipy.linalg import cho_solve, cholesky
        from scipy.linalg.lapack import dpotri
        from scipy.optimize import minimize

        def loss(sizes: Floats) -> tuple[float, Floats]:
            covariance = noise + sum(size * shape for size, shape in zip(np.exp(sizes), shapes, strict=True))
            factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
            solved = cho_solve((factor, True), values, check_finite=False)
            inverse = dpotri(factor, lower=1)[0]
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            by_covariance = 0.5 * (inverse - np.outer(solved, solved))
            slope = np.exp(sizes) * [np.vdot(by_covariance, shape) for shape in shapes]
            z = (sizes - self.mean) / SD
            value = float(np.log(np.diag(factor)).sum()) + 0.5 * float(values @ solved + z @ z)
            return value, slope + z / SD

        bounds = [(middle - 5 * SD, middle + 5 * SD) for middle in self.mean]
        options = {"maxiter": STEPS, "ftol": 1e-6, "gtol": 1e-2}
        best: Floats = minimize(loss, self.mean, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        return best


class DeviatingPart(SurfacePart):
    """The sum of surfaces that trials of other inputs on the tests `seen` have taught, plus a deviation."""

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
        used = np.sort(np.random.default_rng(seed).permutation(len(places))[:PARAMETER_TESTS])
        spread = np.diag(noise[used]) if noise.ndim == 1 else noise[used][:, used]
        places = places[used]
        unexplained = values[used] - self.centre(places)
        self.parameters = self._deviation.typical_sizes(places, unexplained, spread + self._unknown(places, places))

    def _unknown(self, rows: Ints, columns: Ints) -> Floats:
        """The posterior covariance of the others' surface."""
        prior = sum((one.kernel(rows, columns) for one in self._others), np.zeros((len(rows), len(columns))))
        return prior - self._explained(rows)[1] @ self._explained(columns)[1].T

    def _explained(self, places: Ints) -> tuple[Floats, Floats]:
        """As `_explain`; kept for the tests and for what was asked last, which is asked several times."""
        if places is self._own[0]:
            return self._own[1]
        if places is not self._last[0]:
            self._last = (places, self._explain(places))
        return self._last[1]

    def _explain(self, places: Ints) -> tuple[Floats, Floats]:
        """The posterior mean of the others' surface, and the root of what trials have taken off its covariance."""
        crossed = [one.kernel(places, self._seen) for one in self._others]
        mean = sum((one.centre(places) + k @ one.weights for one, k in zip(self._others, crossed, strict=True)), 0.0)
        roots = [k @ one.root for one, k in zip(self._others, crossed, strict=True)]
        return np.asarray(mean), np.concatenate(roots, axis=1)
