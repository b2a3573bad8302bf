"""The prior of the `process` surrogate: a surface over the grid, decomposed by order of interaction.

With K_j the centred kernel of axis j and e_o the elementary symmetric polynomial of order o,

    k(s, t) = 4 + sum_o w_o e_o(v_1 K_1, ..., v_k K_k)(s, t) + sum_o u_o e_o(H_1, ..., H_k)(s, t).

The first sum contains the smooth effects of single axes, of pairs, and so on; the second contains rough effects of
pairs and more (H_j is K_j for unrelated levels). Centred kernels make every effect sum to zero over the levels of each
of its axes (Durrande et al. 2013, "ANOVA kernels and RKHS of zero mean functions"), so that on a complete grid all
terms have the same eigenvectors.

If the order of application counts, `Sequences` adds a term. With p_ab(s) = 1 if a is applied before b, -1 if after it,
and 0 if one of them is off, it is

    k(s, t) = (1 + m C(s, t)) sum_(a < b) q_a q_b p_ab(s) p_ab(t) E_a(s, t) E_b(s, t)
              + r [same sequence of three or more] prod_j E_j(s, t).

E_j is a Matern-3/2 kernel over the levels of an axis given that nothing is there at level 0: what an order changes
grows with both severities. The sum is the effect of applying one perturbation before another: a part of it is constant,
and a part changes with all severities (C, a product of Matern-3/2 correlations). The second term is the effect of a
whole sequence beyond that. The scales q_j, m and r are learned; if they are small, the order has little effect.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.support.types import Floats
from testifai.surrogates.process.linear_algebra import Ints

EDGE = 0.06  # trials are linearised, and slopes taken, at values of eta this far from 0 and pi/2


def inside(eta: Floats) -> Floats:
    return np.clip(eta, EDGE, np.pi / 2 - EDGE)


def rate(eta: Floats) -> Floats:
    return np.asarray(np.sin(np.clip(eta, 0, np.pi / 2)) ** 2)


def moments(eta: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the rate for a normal eta; unlike a slope, they do not vanish at rates 0 and 1."""
    once = np.exp(-2 * variance)
    mean = (1 - np.cos(2 * eta) * once) / 2
    spread = (1 + np.cos(4 * eta) * once**4) / 8 - (np.cos(2 * eta) * once) ** 2 / 4
    return mean, np.where(variance > 0, np.maximum(spread, 0), 0)


CONSTANT = 4.0  # prior variance of the mean level, on a scale that ends at pi/2: uninformative
ORDERS = 4  # effects of more than four axes are left to the rough terms of order four
MANY_AXES = 7  # with at least so many, rows of a sample have hardly half of their axes in common
CACHED = 50_000  # pairs of configurations in a chunk
FILLED = 4  # largest ratio of products of halves to configurations
# Effects of single axes near clean that the smooth surface does not predict: models are trained on clean inputs, so the
# first step from them is often unlike all later ones. Their sd on the scale of eta at one step, and the number of steps
# over which it shrinks by e.
NEAR_CLEAN, REACH = 0.08, 2.0
WIDTHS = {"length": 0.8, "step": 0.6, "scale": 0.9}  # prior sd of the logarithms
LENGTH = 1.2
ORDER_LENGTH = 1.2  # correlation length of E_j; an axis is 1 long
NEAR = 0.6  # that of C
SHARED = 3  # least number of perturbations for which a sequence has an effect of its own


@dataclass(frozen=True)
class Medians:
    """Prior medians of w_o and u_o (of order 1 only where there is one axis), and the prior sd of their logarithms."""

    smooth: tuple[float, ...]
    rough: tuple[float, ...]
    smooth_sd: float
    rough_sd: float
    ordered: tuple[float, float, float]  # of q_a q_b, m and r, see `Sequences`
    ordered_sd: tuple[float, float, float] = (1.5, 1.5, 2.0)  # of the logarithms of q_a, m and r
    length: float = LENGTH  # of correlation; an axis is 1 long


# Medians and spreads are those of five complete grids of 1,296 tests on 10,000 inputs, with rough parts close to 0; the
# rough prior is larger because intervals must be valid on a sixth grid too.
SURFACE = Medians((0.01, 0.0015, 0.0006, 0.0004), (3e-5, 3e-5, 3e-5, 3e-5), 1.2, 2.0, (3e-4, 1.0, 1e-4))
# The part of the surface that margins do not explain; spreads are wider because margins may be of any kind.
REMAINDER = Medians((3e-5, 1e-5, 6e-6, 6e-6), (1e-7, 1e-7, 1e-7, 1e-7), 2.0, 2.0, (1e-6, 1.0, 3e-7))


@dataclass(frozen=True)
class AxisKernel:
    """The centred Matern-3/2 kernel of one axis at learned positions, its trace the number of levels."""

    matrix: Floats
    scale: float  # v_j
    raw: Floats  # centred, not yet scaled
    distances: Floats  # in units of the length, times sqrt(3)
    steps: Floats
    length: float

    @classmethod
    def of(cls, parameters: Floats) -> AxisKernel:
        """Return the kernel for the logarithms of the length, the steps between levels and the scale."""
        length = math.exp(parameters[0])
        steps = np.exp(parameters[1:-1] - parameters[1:-1].max())
        steps /= steps.sum()
        positions = np.concatenate([[0.0], np.cumsum(steps)])
        distances = math.sqrt(3) / length * np.abs(positions[:, None] - positions)
        raw = _centre((1 + distances) * np.exp(-distances))
        return cls(raw * (len(raw) / np.trace(raw)), math.exp(parameters[-1]), raw, distances, steps, length)

    @property
    def table(self) -> Floats:
        return self.scale * self.matrix

    def gradient(self, outer: Floats) -> Floats:
        n, trace = len(self.raw), float(np.trace(self.raw))
        by_raw = n / trace * outer - n / trace**2 * float((outer * self.raw).sum()) * np.eye(n)
        by_value = _centre(by_raw)
        slope = by_value * self.distances * np.exp(-self.distances)  # minus the derivative by `distances`
        by_length = float((slope * self.distances).sum())
        by_distance = -slope * math.sqrt(3) / self.length
        # A step lies between a and b for a <= step < b; both triangles count.
        by_step = np.array([2 * by_distance[: s + 1, s + 1 :].sum() for s in range(n - 1)])
        by_logit = self.steps * (by_step - float(self.steps @ by_step))
        return np.concatenate([[by_length], by_logit, [float((outer * self.matrix).sum())]])


class Prior:
    """The prior as a function of one vector of unbounded parameters, each normal around `mean` with `sd`.

    The vector contains, per axis, the logarithms of its length, of its steps between levels and of its scale v_j; then
    those of w_1..w_O and of the rough variances; then, if the order of application counts, those of `Sequences`.
    A configuration is a row of places on the axes, followed by the positions at which the axes are applied, if any.
    """

    def __init__(self, levels: Sequence[ArrayLike], medians: Medians = SURFACE, *, ordered: bool = False) -> None:
        self.levels = [np.asarray(axis) for axis in levels]
        self.sizes = tuple(map(len, self.levels))
        self.ordered = ordered
        self.active = [j for j, size in enumerate(self.sizes) if size > 1]
        k = len(self.active)
        self.orders = min(k, ORDERS)
        self.first_rough = min(2, k)
        mean: list[float] = []
        sd: list[float] = []
        self.slices: dict[int, slice] = {}
        for j in self.active:
            self.slices[j] = slice(len(mean), len(mean) + self.sizes[j] + 1)
            gaps = np.diff(self.levels[j].astype(float))
            mean += [math.log(medians.length), *np.log(gaps / gaps.mean()), 0.0]
            sd += [WIDTHS["length"], *[WIDTHS["step"]] * len(gaps), WIDTHS["scale"]]
        # More axes make more effects of each order: keep their sum that of four axes.
        share = [math.comb(4, o) / math.comb(max(k, 4), o) for o in range(1, self.orders + 1)]
        self.smooth = slice(len(mean), len(mean) + self.orders)
        mean += [math.log(value * part) for value, part in zip(medians.smooth, share, strict=False)]
        sd += [medians.smooth_sd] * self.orders
        rough = range(self.first_rough, self.orders + 1) if k else range(0)
        self.rough = slice(len(mean), len(mean) + len(rough))
        mean += [math.log(medians.rough[o - 1] * share[o - 1]) for o in rough]
        sd += [medians.rough_sd] * len(rough)
        self.sequences = Sequences(self.levels, self.active) if ordered and k > 1 else None
        self.order = slice(len(mean), len(mean))
        if self.sequences is not None:
            self.order = slice(len(mean), len(mean) + self.sequences.count)
            pairs, *others = medians.ordered
            mean += [math.log(pairs * share[1]) / 2] * k + [math.log(value) for value in others]
            sd += [medians.ordered_sd[0]] * k + list(medians.ordered_sd[1:])
        self.mean, self.sd = np.array(mean), np.array(sd)

    @property
    def width(self) -> int:
        return len(self.sizes) * (2 if self.ordered else 1)

    def drawn(self, count: int, random: np.random.Generator) -> Ints:
        drawn = np.column_stack([random.integers(size, size=count) for size in self.sizes]).astype(np.intp)
        return drawn if self.sequences is None else self.sequences.drawn(drawn, random)

    def density(self, parameters: Floats) -> tuple[float, Floats]:
        z = (parameters - self.mean) / self.sd
        return -0.5 * float(z @ z), -z / self.sd

    def weights(self, parameters: Floats) -> tuple[Floats, Floats]:
        smooth, rough = np.zeros(self.orders + 1), np.zeros(self.orders + 1)
        smooth[0] = CONSTANT
        smooth[1:] = np.exp(parameters[self.smooth])
        rough[self.first_rough :][: len(parameters[self.rough])] = np.exp(parameters[self.rough])
        return smooth, rough

    def axes(self, parameters: Floats) -> list[AxisKernel]:
        return [AxisKernel.of(parameters[self.slices[j]]) for j in self.active]

    def places(self, features: NDArray[np.int_]) -> Ints:
        """Return severities as positions among the levels of their axis, -1 if they are not a level."""
        columns = []
        for axis, column in zip(self.levels, features.T, strict=False):
            at = np.clip(np.searchsorted(axis, column), 0, len(axis) - 1)
            columns.append(np.where(axis[at] == column, at, -1))
        columns += list(features.T[len(self.levels) :])
        return np.array(columns, np.intp).reshape(self.width, -1).T

    def kernel(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        surface = self._surface(parameters, rows, columns)
        if self.sequences is not None:
            surface += self.sequences.kernel(parameters[self.order], rows, columns)
        return surface

    def _surface(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        """Return the covariance due to severities.

        Axes are split into two halves, e_o = sum_i e_i(first half) e_(o-i)(second half), which have few different
        configurations: only a few large arrays are made. With many axes, pairs of configurations are faster.
        """
        if len(self.active) >= MANY_AXES:
            return self._by_pairs(parameters, rows, columns)
        middle = len(self.active) // 2
        first = _Half(self, self.active[:middle], rows, columns)
        second = _Half(self, self.active[middle:], rows, columns)
        terms: list[tuple[Floats, Floats]] = []
        for weights, tables in zip(self.weights(parameters), self._tables(parameters), strict=True):
            left, right = first.symmetric(tables), second.symmetric(tables)
            for i, term in enumerate(left):
                orders = range(max(i, 1), min(self.orders, i + len(right) - 1) + 1)
                if orders:
                    terms.append((term, sum((weights[o] * right[o - i] for o in orders), np.zeros(()))))
        if terms and len(first.rows) * len(second.rows) <= FILLED * len(rows):
            return _all_products(first, second, terms)
        total = np.full((len(rows), len(columns)), CONSTANT)
        for one, other in terms:
            total += first.expand(one) * second.expand(other)
        return total

    def _by_pairs(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        smooth, rough = self.weights(parameters)
        axes = zip(self.active, self.axes(parameters), strict=True)
        tables = [kernel.scale * kernel.matrix[:, columns[:, j]] for j, kernel in axes]
        unrelated_part = _Matches(self, rough)
        total = np.empty((len(rows), len(columns)))
        for start in range(0, len(rows), step := max(1, CACHED // max(len(columns), 1))):
            some = slice(start, start + step)
            out = total[some]
            unrelated_part.fill(out, rows[some], columns)
            sums: list[Floats | float] = [1.0, *(np.zeros_like(out) for _ in range(self.orders))]
            product = np.empty_like(out)
            for j, table in zip(self.active, tables, strict=True):
                factor = table[rows[some, j]]
                for o in range(self.orders, 0, -1):
                    sums[o] += np.multiply(factor, sums[o - 1], out=product)
            for o in range(1, self.orders + 1):
                out += np.multiply(sums[o], smooth[o], out=product)
        return total

    def _tables(self, parameters: Floats) -> tuple[dict[int, Floats], dict[int, Floats]]:
        smooth = {j: kernel.table for j, kernel in zip(self.active, self.axes(parameters), strict=True)}
        return smooth, {j: unrelated(self.sizes[j]) for j in self.active}

    def near_clean(self, places: Ints) -> Floats:
        """Return the sd of each axis's effect near clean at configurations: a row for each of these."""
        steps = places[:, : len(self.sizes)]
        size = NEAR_CLEAN * np.exp((1 - steps.sum(axis=1)) / REACH)
        return np.asarray(size[:, None] * (steps[:, self.active] > 0))

    def variance(self, parameters: Floats, rows: Ints) -> Floats:
        total = np.full(len(rows), CONSTANT)
        for weights, tables in zip(self.weights(parameters), self._tables(parameters), strict=True):
            factors = [np.diag(table)[rows[:, j]] for j, table in tables.items()]
            for weight, term in zip(weights[1:], symmetric(factors, self.orders)[1:], strict=True):
                total += weight * term
        if self.sequences is not None:
            total += self.sequences.variance(parameters[self.order], rows)
        return total


class _Matches:
    """The constant and the rough terms, which depend only on how many axes of each size agree."""

    def __init__(self, prior: Prior, weights: Floats) -> None:
        self._axes = prior.active
        sizes, group = np.unique([prior.sizes[j] for j in prior.active], return_inverse=True)
        counts = np.bincount(group)
        strides = np.r_[1, np.cumprod(counts + 1)[:-1]]
        self._strides = strides[group]
        self._table = np.full(np.prod(counts + 1), CONSTANT)
        for cell in range(len(self._table)):
            agreeing = cell // strides % (counts + 1)
            polynomial = np.ones(1)
            for size, same, all_ in zip(sizes.tolist(), agreeing.tolist(), counts.tolist(), strict=True):
                for factor in [1.0] * same + [-1 / (size - 1)] * (all_ - same):
                    polynomial = np.convolve(polynomial, [1.0, factor])
            self._table[cell] += weights[1:] @ polynomial[1 : len(weights)]

    def fill(self, out: Floats, rows: Ints, columns: Ints) -> None:
        cell = np.zeros(out.shape, np.int32)
        for j, stride in zip(self._axes, self._strides.tolist(), strict=True):
            cell += np.int32(stride) * (rows[:, j][:, None] == columns[:, j])
        np.take(self._table, cell, out=out)


class _Half:
    """The different configurations of some axes among rows and columns, and where they occur."""

    def __init__(self, prior: Prior, axes: Sequence[int], rows: Ints, columns: Ints) -> None:
        self.axes, self.orders = axes, min(len(axes), prior.orders)
        self.rows, self.row_at = np.unique(rows[:, axes], axis=0, return_inverse=True)
        self.columns, self.column_at = np.unique(columns[:, axes], axis=0, return_inverse=True)

    def symmetric(self, tables: dict[int, Floats]) -> list[Floats]:
        factors = [tables[j][self.rows[:, i]][:, self.columns[:, i]] for i, j in enumerate(self.axes)]
        shape = len(self.rows), len(self.columns)
        return [np.broadcast_to(term, shape) for term in symmetric(factors, self.orders)]

    def expand(self, table: Floats) -> Floats:
        return table[self.row_at.ravel()][:, self.column_at.ravel()]


def _all_products(first: _Half, second: _Half, terms: Sequence[tuple[Floats, Floats]]) -> Floats:
    left, right = (
        np.array([tables[side][:, half.column_at.ravel()] for tables in terms]).transpose(2, 1, 0)
        for side, half in enumerate((first, second))
    )  # columns x rows of the half x terms
    table: Floats = (left @ right.swapaxes(1, 2)).reshape(len(left), -1).T
    table += CONSTANT
    rows = first.row_at.ravel() * len(second.rows) + second.row_at.ravel()
    return table if np.array_equal(rows, np.arange(len(table))) else table[rows]


def unrelated(levels: int) -> Floats:
    """Return H: the centred kernel of independent levels."""
    return (np.eye(levels) - 1 / levels) * (levels / (levels - 1))


def symmetric(factors: Sequence[Floats], orders: int) -> list[Floats]:
    """Return the elementary symmetric polynomials e_0..e_orders of arrays, entry by entry."""
    shape = factors[0].shape if factors else ()
    sums = [np.ones(shape), *(np.zeros(shape) for _ in range(orders))]
    for factor in factors:
        for o in range(orders, 0, -1):
            sums[o] += factor * sums[o - 1]
    return sums


def _centre(matrix: Floats) -> Floats:
    return np.asarray(matrix - matrix.mean(axis=0) - matrix.mean(axis=1, keepdims=True) + matrix.mean())


class Sequences:
    """The covariance due to the order of application, given the logarithms of the q_j, of m and of r."""

    def __init__(self, levels: Sequence[ArrayLike], active: Sequence[int]) -> None:
        self._axes, self._active = len(levels), list(active)
        self._roots = {j: _root(_matern(levels[j], ORDER_LENGTH)) for j in active}
        self._tables = {j: _matern(levels[j], NEAR) for j in active}
        self._pairs = list(itertools.combinations(range(len(self._active)), 2))
        widths = [self._roots[j].shape[1] for j in self._active]
        sizes = [widths[a] * widths[b] for a, b in self._pairs]
        # Which two scales each feature has.
        self._scales = np.repeat(np.array(self._pairs, np.intp).reshape(-1, 2), sizes, axis=0)

    @property
    def count(self) -> int:
        return len(self._active) + 2

    def variances(self, parameters: Floats) -> Floats:
        return np.asarray(np.exp(parameters[self._scales].sum(axis=1)))

    def typical(self, parameters: Floats) -> Floats:
        means = [(self._roots[j][1:] ** 2).mean(axis=0) for j in self._active]
        products = [np.multiply.outer(means[a], means[b]).ravel() for a, b in self._pairs]
        return np.asarray(self.variances(parameters) * np.concatenate([np.empty(0), *products]))

    def features(self, rows: Ints) -> Floats:
        parts = [np.empty((len(rows), 0))]
        for at, other in self._pairs:
            a, b = self._active[at], self._active[other]
            one, two = self._roots[a][rows[:, a]], self._roots[b][rows[:, b]]
            product = (one[:, :, None] * two[:, None, :]).reshape(len(rows), -1)
            before = np.sign(rows[:, self._axes + b] - rows[:, self._axes + a])
            parts.append(before[:, None] * product)
        return np.concatenate(parts, axis=1)

    def kernel(self, parameters: Floats, rows: Ints, columns: Ints) -> Floats:
        return Between(self, rows, columns).kernel(parameters)

    def variance(self, parameters: Floats, rows: Ints) -> Floats:
        changing, shared = np.exp(parameters[-2:])
        diagonals = {j: (root**2).sum(axis=1) for j, root in self._roots.items()}
        own = [np.where(rows[:, j] > 0, diagonals[j][rows[:, j]], 1.0) for j in self._active]
        whole = shared * (self._order(rows) >= SHARED) * np.prod(own, axis=0)
        return np.asarray((1 + changing) * (self.features(rows) ** 2 @ self.variances(parameters)) + whole)

    def slope(self, by_feature: Floats) -> Floats:
        """Return the derivatives by the q_j's, given those by the logarithm of each feature's variance."""
        by_side = [np.bincount(side, by_feature, len(self._active)) for side in self._scales.T]
        return np.asarray(np.sum(by_side, axis=0))

    def near(self, rows: Ints, columns: Ints) -> Floats:
        """Return C: the similarity of configurations in all severities."""
        near = np.ones((len(rows), len(columns)))
        for j in self._active:
            near *= self._tables[j][rows[:, j]][:, columns[:, j]]
        return near

    def same(self, rows: Ints, columns: Ints) -> Floats:
        """Return the product of the E_j for configurations with the same sequence of three or more perturbations."""
        _, number = np.unique(np.concatenate([rows, columns])[:, self._axes :], axis=0, return_inverse=True)
        left, right = np.split(number.ravel(), [len(rows)])
        long = self._order(rows) >= SHARED
        total = np.zeros((len(rows), len(columns)))
        for sequence in np.intersect1d(left[long], right):
            some, others = np.flatnonzero(left == sequence), np.flatnonzero(right == sequence)
            block = np.ones((len(some), len(others)))
            for j in self._active:
                if rows[some[0], j]:
                    block *= self._roots[j][rows[some, j]] @ self._roots[j][columns[others, j]].T
            total[np.ix_(some, others)] = block
        return total

    def drawn(self, places: Ints, random: np.random.Generator) -> Ints:
        off = places == 0
        # Perturbations that are off come last, and have no position.
        place = np.argsort(np.argsort(random.random(places.shape) + off, axis=1), axis=1) + 1
        return np.concatenate([places, np.where(off, 0, place)], axis=1).astype(np.intp)

    def _order(self, rows: Ints) -> Ints:
        return np.asarray(np.count_nonzero(rows[:, self._active], axis=1))


class Between:
    """The covariance between configurations; what does not depend on parameters is cached."""

    def __init__(self, sequences: Sequences, rows: Ints, columns: Ints) -> None:
        self._sequences = sequences
        self._left = sequences.features(rows)
        self._right = self._left if columns is rows else sequences.features(columns)
        self._near, self._same = sequences.near(rows, columns), sequences.same(rows, columns)

    def kernel(self, parameters: Floats) -> Floats:
        changing, shared = np.exp(parameters[-2:])
        total: Floats = (self._left * self._sequences.variances(parameters)) @ self._right.T
        total *= 1 + changing * self._near
        total += shared * self._same
        return total

    def gradient(self, parameters: Floats, by_covariance: Floats) -> Floats:
        changing, shared = np.exp(parameters[-2:])
        weighted = self._left * self._sequences.variances(parameters)
        by_near = by_covariance * self._near
        alike, near = (((by @ self._right) * weighted).sum(axis=0) for by in (by_covariance, changing * by_near))
        by_shared = shared * np.vdot(by_covariance, self._same)
        return np.concatenate([self._sequences.slope(alike + near), [near.sum(), by_shared]])


def _matern(levels: ArrayLike, length: float) -> Floats:
    at = np.asarray(levels, np.float64)
    distance = math.sqrt(3) / length * np.abs(at[:, None] - at) / (at[-1] - at[0])
    return np.asarray((1 + distance) * np.exp(-distance))


def _root(kernel: Floats) -> Floats:
    """Return a root of E_j: 0 at the first level, of mean variance 1 over all others."""
    levels = len(kernel)
    kernel = kernel - np.outer(kernel[0], kernel[0])
    kernel *= (levels - 1) / np.trace(kernel)
    values, vectors = np.linalg.eigh(kernel[1:, 1:])
    root = np.zeros((levels, levels - 1))
    root[1:] = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))
    return root
