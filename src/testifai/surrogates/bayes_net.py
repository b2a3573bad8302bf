"""A Bayesian network over severities: a test passes if it survives every perturbation, and every pair, on its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Trials
from testifai.support.types import Bools, Floats
from testifai.surrogates.base import PlainSurrogate, in_chunks, selected
from testifai.surrogates.inference import Inference, NetworkNode
from testifai.surrogates.pairwise import severities

Ints = NDArray[np.int64]

MOST_CELLS = 4_000  # probabilities to learn; severities are binned until there are no more
MOST_BINS = 8  # of an axis, including "off"
ALONE = (0.5, 0.5)  # trials survived and not, of the Dirichlet prior of the clean test and of one perturbation
PAIR = (2.0, 0.1)  # of a pair, whose interaction is likely small
SETTLED = 1e-7  # largest step in a probability at which learning ends
STEPS = (60, 2_000)  # of learning, at least and at most
MOST_WORK = 200_000_000  # probabilities evaluated while learning, except in the least number of steps
FEWEST = 10  # tests needed to learn the misfit of the model
MOST_LEVERAGE = 0.9  # of a test on its own prediction, to be used for that
DOUBT = 0.5  # sd of a log probability without evidence
LEAST_DOUBT = 0.02
CHUNK = 2_000  # configurations in a chunk
YES_NO = ("no", "yes")


@dataclass(frozen=True)
class Group:
    """One or two axes and the position of their probabilities: one for every combination of bins but all off."""

    axes: tuple[int, ...]
    start: int
    bins: tuple[int, ...]  # of each axis, including "off"

    @property
    def count(self) -> int:
        return math.prod(self.bins) - 1

    @property
    def cells(self) -> Ints:
        return self.start - 1 + np.arange(1 + self.count).reshape(self.bins)


@dataclass(frozen=True)
class Structure:
    """The hidden variables: number 0 of the clean test, then those of groups; the last, `size`, is certain."""

    levels: tuple[Ints, ...]
    bins: tuple[Ints, ...]  # of each level of an axis, 0 for off
    groups: tuple[Group, ...]
    size: int

    @classmethod
    def over(cls, levels: Sequence[Sequence[int]]) -> Structure:
        """Return the structure of all axes and pairs of axes, with bins as fine as MOST_CELLS allows."""
        for most in range(MOST_BINS, 1, -1):
            bins = [_binned(len(axis), most) for axis in levels]
            counts = [1 + int(numbers.max()) for numbers in bins]
            groups, start = [], 1
            for axes in [*((j,) for j in range(len(levels))), *itertools.combinations(range(len(levels)), 2)]:
                groups.append(Group(axes, start, tuple(counts[j] for j in axes)))
                start += groups[-1].count
            if start <= MOST_CELLS:
                return cls(tuple(np.array(axis, np.int64) for axis in levels), tuple(bins), tuple(groups), start)
        raise InputError(
            f"surrogate: 'bayes_net' of {len(levels)} axes has more than {MOST_CELLS:,} probabilities; "
            "accepted: fewer axes, or another surrogate"
        )

    def cells(self, rows: Ints) -> Ints:
        """Return the numbers of each configuration's probabilities; `size` for variables that are not involved."""
        columns = []
        for j, (levels, values) in enumerate(zip(self.levels, rows.T, strict=True)):
            place = np.minimum(np.searchsorted(levels, values), len(levels) - 1)
            wrong = levels[place] != values
            if wrong.any():
                accepted = ", ".join(map(str, levels.tolist()))
                raise InputError(f"features: severity {values[wrong][0]} on axis {j}; accepted: {accepted}")
            columns.append(self.bins[j][place])
        found = [np.zeros(len(rows), np.int64)]
        for group in self.groups:
            at = tuple(columns[j] for j in group.axes)
            found.append(np.where(np.logical_or.reduce(at), group.cells[at], self.size))
        return np.stack(found, axis=1)

    def design(self, cells: Ints) -> Any:
        row, column = np.nonzero(cells < self.size)
        ones = np.ones(len(row))
        return scipy.sparse.csr_array((ones, (row, cells[row, column])), shape=(len(cells), self.size))

    def prior(self) -> tuple[Floats, Floats]:
        survived, failed = (np.full(self.size + 1, value) for value in ALONE)
        for group in self.groups:
            if len(group.axes) == 2:
                own = slice(group.start, group.start + group.count)
                survived[own], failed[own] = PAIR
        return survived, failed


def _binned(levels: int, most: int) -> Ints:
    if levels == 1:
        return np.zeros(1, np.int64)
    parts = np.array_split(np.arange(1, levels), min(levels - 1, most - 1))
    return np.concatenate([[0], *(np.full(len(part), number) for number, part in enumerate(parts, start=1))])


def learn(structure: Structure, cells: Ints, won: Floats, tried: Floats) -> Floats:
    """Return the most probable survival probabilities given the counts, by expectation maximisation; the last is 1.

    In a pass every variable survived; in a failure variable m survived with probability (p_m - r) / (1 - r). Steps are
    extrapolated in pairs if that makes the counts more probable (SQUAREM: Varadhan and Roland, Scandinavian Journal of
    Statistics 35 (2008) 335-353).
    """
    survived, failed = structure.prior()
    size, lost = structure.size, tried - won
    # Sparse: of many axes, few are on.
    row, column = np.nonzero(cells < size)
    flat = cells[row, column]
    total = np.bincount(flat, tried[row], size + 1) + survived + failed

    def rates(theta: Floats) -> Floats:
        return np.clip(np.exp(np.bincount(row, np.log(theta[flat]), len(cells))), 1e-300, 1 - 1e-12)

    def step(theta: Floats) -> Floats:
        rate = rates(theta)
        share = won[row] + (lost / (1 - rate))[row] * (theta[flat] - rate[row])
        new = (np.bincount(flat, share, size + 1) + survived) / total
        new[size] = 1
        return np.clip(new, 1e-12, 1)

    def score(theta: Floats) -> float:
        rate, inner = rates(theta), np.clip(theta[:size], 1e-12, 1 - 1e-12)
        prior = survived[:size] @ np.log(inner) + failed[:size] @ np.log1p(-inner)
        return float(won @ np.log(rate) + lost @ np.log1p(-rate) + prior)

    theta = (survived + 1.0) / (survived + failed + 1.0)
    theta[size] = 1
    for _ in range(int(np.clip(MOST_WORK // len(flat), *STEPS)) // 3):
        once = step(theta)
        twice = step(once)
        first, second = once - theta, twice - 2 * once + theta
        if np.abs(twice - once).max() < SETTLED:
            return twice
        length = math.sqrt(float(first @ first) / max(float(second @ second), 1e-300))
        drawn = np.clip(theta + 2 * length * first + length**2 * second, 1e-12, 1 - 1e-12)
        drawn[size] = 1
        drawn = step(drawn)
        theta = drawn if score(drawn) > score(twice) else twice
    return theta


class BayesNet(PlainSurrogate):
    """Noisy-AND: correct = survives_0 and survives_i for each axis i and survives_ij for each pair of axes.

    Each is a hidden variable given its one or two severities, so the pass rate is the product of their probabilities
    (causal independence: Heckerman and Breese, IEEE Trans. SMC-A 26 (1996) 826-831). They are learned from tests of all
    orders by expectation maximisation, under a Dirichlet prior. Severities of an axis with many are binned. Unseen
    severities are interpolated; unseen pairs have the mean interaction of their axes.

    Variances are those of the learned probabilities (with single outcomes they account for shared inputs) and of the
    model's misfit; for orders 3 and more, if none was measured, it is estimated from pairs.
    """

    name = "bayes_net"

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        rows = severities(self.name, self.levels, features)
        won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.float64)
        used = np.flatnonzero(tried > 0)
        if not len(used):
            raise InputError("trials: no test has any; accepted: at least one")
        levels = rows.T.tolist() if self.levels is None else self.levels
        self.structure_ = Structure.over([sorted({0, *map(int, axis)}) for axis in levels])
        cells = self.structure_.cells(rows[used])
        self.survival_ = learn(self.structure_, cells, won[used], tried[used])
        self._fill_unseen(cells)
        self._take_doubt(rows, cells, used, won, tried, single)
        return self

    def _fill_unseen(self, cells: Ints) -> None:
        seen = np.zeros(self.structure_.size + 1, bool)
        seen[cells] = True
        logs, doubt = np.log(self.survival_), np.full(self.structure_.size + 1, np.nan)
        for group in self.structure_.groups:
            lines = [group.cells] if len(group.axes) == 1 else [group.cells[:, 0], group.cells[0]]
            for line in lines:
                _interpolate(logs, doubt, seen, line)
            if len(group.axes) == 2:
                _add_usual(logs, doubt, seen, group)
        self.survival_, self._doubt = np.exp(logs), doubt[:-1]

    def _take_doubt(
        self, rows: Ints, cells: Ints, used: NDArray[np.intp], won: Floats, tried: Floats, single: Trials | None
    ) -> None:
        design = self.structure_.design(cells)
        rate = np.minimum(self._rates(cells), 1 - 1e-9)
        weight = tried[used] * rate / (1 - rate)  # a trial's information on the logarithm of its rate
        theta = np.minimum(self.survival_[:-1], 1 - 1e-9)
        failed = self.structure_.prior()[1][:-1]
        # The prior's information, and for unseen cells that of their doubt.
        own = np.where(np.isnan(self._doubt), failed * theta / (1 - theta) ** 2, self._doubt**-2.0)
        self._spread = np.linalg.inv((design.T @ (design.multiply(weight[:, None]))).toarray() + np.diag(own))
        self._clustered = None
        if single is not None:
            kept = selected(single, used, len(rows))
            pulls = (kept.passed - rate[kept.test]) / (1 - rate[kept.test])  # of outcomes on the logarithm of rates
            pull = scipy.sparse.csr_array((pulls, (kept.place, kept.test)), shape=(kept.inputs, len(used))) @ design
            self._clustered = self._spread @ ((pull.T @ pull).toarray() + np.diag(own)) @ self._spread
        self.scatter_, self.reach_ = self._learn_misfit(rows[used], cells, won[used], tried[used])

    def _learn_misfit(self, rows: Ints, cells: Ints, won: Floats, tried: Floats) -> tuple[float, float]:
        """Return the misfit of log rates: the variance of any test, and the reach of three-way terms.

        A residual e with leverage h would be e / (1 - h) without the test itself. The reach is relative to two-way
        terms, as these are to one-way terms, and needed if no predicted test has order 3 or more.
        """
        orders, rate = np.count_nonzero(rows, axis=1), np.minimum(self._rates(cells), 1 - 1e-9)
        known = _quadratic(self.structure_.design(cells), self._spread)
        noise = (1 - rate) / (rate * tried)
        kept = 1 - np.minimum(known / noise, 1)
        telling = kept > 1 - MOST_LEVERAGE
        scatter = 0.0
        if telling.sum() >= FEWEST:
            # Relative differences of rates are differences of their logarithms.
            off = ((won / tried / rate - 1) / np.maximum(kept, 1e-9))[telling]
            scatter = max(0.0, float((off**2 - (noise + known / np.maximum(kept, 1e-9))[telling]).mean()))
        if (telling & (orders > 2)).sum() >= FEWEST:
            return scatter, 0.0
        logs, joint = np.log(self.survival_), orders == 2
        first = float(((logs[0] - logs[cells].sum(axis=1))[joint] ** 2).sum())
        second = float((self._two_way(cells, logs)[joint] ** 2).sum())
        return scatter, float(np.sqrt(second / first)) if second < first else 1.0

    def _two_way(self, cells: Ints, logs: Floats) -> Floats:
        total = np.zeros(len(cells))
        for column, group in enumerate(self.structure_.groups, start=1):
            if len(group.axes) == 2:
                interaction = np.zeros(self.structure_.size + 1)
                interaction[group.cells[1:, 1:]] = np.abs(logs[group.cells[1:, 1:]] - _apart(logs, group))
                total += interaction[cells[:, column]]
        return total

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        rows = np.asarray(features, np.int64)
        axes = len(self.structure_.levels)
        if rows.ndim != 2 or rows.shape[1] != axes:
            raise InputError(f"features: shape {rows.shape}; accepted: rows of {axes} severities")
        return in_chunks(self._predict, rows, CHUNK)

    def _predict(self, rows: Ints) -> tuple[Floats, Floats]:
        cells = self.structure_.cells(rows)
        design = self.structure_.design(cells)
        rates = self._rates(cells)
        variance = _quadratic(design, self._spread)
        if self._clustered is not None:
            # Equal outcomes have a variance of 0, which is not informative.
            variance = np.maximum(variance, _quadratic(design, self._clustered))
        high = np.count_nonzero(rows, axis=1) > 2
        variance += self.scatter_
        variance += np.where(high, (self.reach_ * self._two_way(cells, np.log(self.survival_))) ** 2, 0)
        # A variance above that of an unknown rate is impossible.
        return rates, np.minimum(rates**2 * np.maximum(variance, 0), 0.25)

    def _rates(self, cells: Ints) -> Floats:
        return np.asarray(self.survival_[cells].prod(axis=1))

    def graph(self, names: Sequence[str] | None = None) -> Any:
        """Return a pyAgrum.BayesNet of severities by axis name, the hidden variables, and `correct`."""
        count = len(self.structure_.levels)
        axes = [f"axis_{j}" for j in range(count)] if names is None else list(names)
        own = any(name == "correct" or name.startswith(("survives", "passes_")) for name in axes)
        if len(axes) != count or len(set(axes)) < count or own:
            raise InputError(
                f"names: {', '.join(axes)}; accepted: {count} different ones, none of them correct, "
                "survives... or passes_..."
            )
        return Inference(_nodes(self.structure_, self.survival_, axes)).graph


def _quadratic(design: Any, matrix: Floats) -> Floats:
    """Return x' M x for every row x of the design."""
    return np.asarray(design.multiply(design @ matrix).sum(axis=1)).reshape(-1)


def _apart(logs: Floats, group: Group) -> Floats:
    return np.asarray(logs[group.cells[1:, :1]] + logs[group.cells[:1, 1:]])


def _interpolate(logs: Floats, doubt: Floats, seen: Bools, line: Ints) -> None:
    """Interpolate unseen bins of an axis, from 0 for off; the doubt is half the range of the seen ones."""
    at, known = np.arange(len(line)), seen[line]
    known[0] = False
    values = np.append(0.0, logs[line[known]])
    unseen = line[1:][~known[1:]]
    logs[unseen] = np.interp(at[1:][~known[1:]], np.append(0, at[known]), values)
    doubt[unseen] = max(LEAST_DOUBT, float(np.ptp(values)) / 2) if known.any() else DOUBT


def _add_usual(logs: Floats, doubt: Floats, seen: Bools, group: Group) -> None:
    apart, both = _apart(logs, group), group.cells[1:, 1:]
    known = seen[both]
    interactions = (logs[both] - apart)[known]
    unseen = both[~known]
    logs[unseen] = np.minimum(apart[~known] + (interactions.mean() if len(interactions) else 0.0), 0)
    doubt[unseen] = max(LEAST_DOUBT, float(interactions.std(ddof=1))) if len(interactions) > 1 else DOUBT


def _nodes(structure: Structure, survival: Floats, names: Sequence[str]) -> list[NetworkNode]:
    nodes = [
        NetworkNode(name, tuple(levels.tolist()), (), np.full(len(levels), 1 / len(levels)))
        for name, levels in zip(names, structure.levels, strict=True)
    ]
    nodes.append(NetworkNode("survives", YES_NO, (), np.array([1 - survival[0], survival[0]])))
    both = np.zeros((2, 2, 2))
    both[..., 0] = 1
    both[1, 1] = 0, 1
    for number, group in enumerate(structure.groups, start=1):
        before, axes = nodes[-1].name, tuple(names[j] for j in group.axes)
        own = "_".join(["survives", *axes])
        bins = np.ix_(*(structure.bins[j] for j in group.axes))
        survived = np.append(survival[: structure.size], 1.0)[group.cells[bins]]
        survived[(0,) * len(axes)] = 1  # certain if all are off
        nodes.append(NetworkNode(own, YES_NO, axes, np.stack([1 - survived, survived], axis=-1)))
        name = "correct" if number == len(structure.groups) else f"passes_{number}"
        nodes.append(NetworkNode(name, YES_NO, (before, own), both))
    return nodes
