"""Do perturbations act independently? A test for each pair of axes (TestifAI, Proposition 1), and what follows.

If they do, a combination passes at the product of its perturbations' rates, relative to the clean one:
r_ij = r_i r_j / r_0 (the paper's own example multiplies plain rates; `plain` keeps that). The published chi-square
assumes fresh inputs in every test and known first-order rates. Neither is true: it is far too cautious if an input's
outcomes are correlated (it then almost never rejects independence that holds, nor weak dependence) and far too bold if
they are not. It is reported; a bootstrap over inputs decides, with an allowance for joint failures that are too rare to
have happened (`JointFailures`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.statistics.multiplicity import holm
from testifai.support.serialization import plain as plain_data
from testifai.support.types import Bools, Floats, Record


@dataclass(frozen=True, eq=False)
class JointFailures:
    """For each joint test: the losses by either perturbation alone, as shares of the clean rate, and its trials."""

    clean: float
    first: Floats
    second: Floats
    trials: NDArray[np.int64]

    @property
    def share(self) -> Floats:
        """Share of each test's inputs that pass clean and that either perturbation would make fail."""
        return self.clean * self.first * self.second

    @property
    def variance(self) -> Floats:
        """Least variance of departures from the product under the null hypothesis, without other noise of outcomes."""
        return self.share * (1 - self.first) * (1 - self.second) / np.maximum(self.trials, 1)

    def missing(self, variance: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Draws (by tests) of mean 0 that add what a variance found lacks of the least variance.

        The number of joint failures is Poisson; one input counts in all tests whose perturbations both reach it, and
        in tests that lack more if it counts in those that lack less.
        """
        each = np.maximum(self.trials, 1)
        share = np.maximum(self.share, np.finfo(np.float64).tiny)
        lacking = np.clip((self.variance - variance) * each / share, 0, 1)
        inputs = int(each.max())
        widths, reached = _cells(self.first, self.second, lacking)
        means = inputs * self.clean * widths
        counts = rng.poisson(means, (draws, len(means))) - means
        return np.asarray(counts @ reached / np.sqrt(inputs * each))


def _cells(*heights: Floats) -> tuple[Floats, Floats]:
    """The unit cube cut at the heights of each side: the volume of every cell and which tests contain it."""
    widths, reached = np.ones(1), np.ones((1, len(heights[0])))
    for height in heights:
        ends = np.unique(height[height > 0])
        steps, within = np.diff(ends, prepend=0.0), height >= ends[:, None]
        widths = np.outer(widths, steps).ravel()
        reached = (reached[:, None] * within[None]).reshape(len(widths), len(height))
    return widths, reached


Rows = NDArray[np.intp]
Fetch = Callable[[Rows], tuple[Bools, Bools]]  # tests -> tried, passed: inputs by tests

DRAWS = 400
FEWEST_DRAWS = 99  # for a p-value of 0.01
MISLEADING = 0.02  # a departure from the product that matters, where it is also significant
FEWEST_TRIALS = 20  # a test with fewer says nothing about its rate that a bootstrap could use
FEWEST_FAILURES = 5  # joint ones; the usual rule for counts (Cochran 1954)
FEWEST_SHARED = 100  # inputs tried by all tests of a pair; with fewer, each test counts the inputs that it tried
WEIGHTS_AT_ONCE = 16_000_000  # draws x inputs in memory together: 64 MB


@dataclass(frozen=True)
class Pair:
    """Result for two axes. Departures are r_ij - r_i r_j / r_0: negative if products are optimistic."""

    axes: tuple[str, str]
    tests: int  # second-order tests compared with their products; 0: nothing could be tested
    inputs: int  # behind the comparison: those tried by all of these tests, or in all where these are too few
    shared: bool  # whether every one of these inputs was tried by all tests
    chi2: float  # the published statistic over its valid tests
    chi2_expected: float  # its mean under independence by the bootstrap; `valid` if its distribution held
    valid: int  # tests with N > 9 max{(1 - r)/r, r/(1 - r)}, which are its degrees of freedom
    p_published: float
    p_published_holm: float
    statistic: float  # sum of squared departures, each over its bootstrap standard deviation
    p_bootstrap: float
    p_adjusted: float  # over all pairs (Westfall and Young 1993, step-down): decides
    dependent: bool
    mean_effect: float  # mean absolute departure
    largest_effect: float  # the largest departure by size, with its sign
    at: tuple[int, int]  # the severities where it is found
    measured: float
    product: float
    joint_failures: float  # inputs that independence expects to fail under either alone, in the test with most of them

    @property
    def few(self) -> bool:
        """Whether so few failures are expected that only a strong dependence can be detected."""
        return self.joint_failures < FEWEST_FAILURES

    @property
    def misleading(self) -> bool:
        return self.dependent and abs(self.largest_effect) > MISLEADING


UNTESTED: Record = {
    **dict.fromkeys(("chi2", "chi2_expected", "p_published", "statistic", "p_bootstrap", "p_adjusted"), math.nan),
    **dict.fromkeys(("mean_effect", "largest_effect", "measured", "product", "joint_failures"), math.nan),
    "valid": 0,
    "at": (0, 0),
}


@dataclass(frozen=True)
class PairTests:
    """The tested pairs of a space; `groups` are the axes connected by dependent pairs."""

    axes: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[tuple[str, ...], ...]
    draws: int
    alpha: float
    plain: bool

    def matrix(self, field: str = "mean_effect") -> Floats:
        """Return one number of every pair as a symmetric matrix over the axes; NaN on the diagonal."""
        table = np.full((len(self.axes),) * 2, np.nan)
        for (i, j), pair in zip(itertools.combinations(range(len(self.axes)), 2), self.pairs, strict=True):
            table[i, j] = table[j, i] = getattr(pair, field)
        return table

    def as_dict(self) -> Record:
        pairs = [{**asdict(pair), "few": pair.few, "misleading": pair.misleading} for pair in self.pairs]
        found: Record = {"axes": self.axes, "pairs": pairs, "matrix": self.matrix(), "groups": self.groups}
        found |= {"warnings": warnings(self), "draws": self.draws, "alpha": self.alpha, "plain": self.plain}
        return {name: plain_data(value) for name, value in found.items()}


def warnings(result: PairTests) -> list[str]:
    found = [_sentence(pair) for pair in result.pairs if pair.misleading]
    untested = [" × ".join(pair.axes) for pair in result.pairs if not pair.tests]
    few = [
        f"{' × '.join(pair.axes)} (at most {pair.joint_failures:.1f} inputs expected to fail under both)"
        for pair in result.pairs
        if pair.few and not pair.dependent
    ]
    if few:
        found.append(f"Too few failures to tell a dependence unless it is strong: {', '.join(few)}.")
    if untested:
        found.append(f"Not tested, because their tests were not measured: {', '.join(untested)}.")
    elif not found:
        slight = any(pair.dependent for pair in result.pairs)
        what = f"by more than {MISLEADING:g}, though some do by less" if slight else "that the data could tell"
        found.append(f"No pair departs from the product {what}: products of first-order rates will do for pairs.")
    return found


def _sentence(pair: Pair) -> str:
    way = "optimistic" if pair.largest_effect < 0 else "pessimistic"
    where = " with ".join(f"{name} {severity}" for name, severity in zip(pair.axes, pair.at, strict=True))
    return (
        f"Products will mislead about {' × '.join(pair.axes)}: off by {pair.mean_effect:.3f} on average, {way} by "
        f"{abs(pair.largest_effect):.3f} at {where} (measured {pair.measured:.3f}, product {pair.product:.3f})."
    )


@dataclass(frozen=True)
class Design:
    """The measured tests of two axes; `first`, `second` and `joint` are places in `rows`, one per joint test."""

    axes: tuple[int, int]
    rows: Rows  # the clean test, the first-order tests, the joint tests
    first: Rows
    second: Rows
    joint: Rows
    severities: NDArray[np.int64]  # joint tests by two

    @property
    def tests(self) -> int:
        return len(self.joint)


def find_designs(features: NDArray[np.int64]) -> Iterator[Design]:
    """Yield for each pair of axes the joint tests whose first-order tests and clean test are measured too."""
    active = features > 0
    orders = active.sum(axis=1)
    clean = np.flatnonzero(orders == 0)[:1].tolist()
    # Row of the test in which an axis alone is active, at a severity.
    tests, axes = np.nonzero(features * (orders == 1)[:, None])
    levels = features[tests, axes].tolist()
    alone = {(axis, level): test for test, axis, level in zip(tests.tolist(), axes.tolist(), levels, strict=True)}
    for i, j in itertools.combinations(range(features.shape[1]), 2):
        both = np.flatnonzero((orders == 2) & active[:, i] & active[:, j]).tolist()
        joint = [row for row in both if clean and all((axis, int(features[row, axis])) in alone for axis in (i, j))]
        severities = features[np.array(joint, np.intp)][:, [i, j]]
        first = [alone[i, severity] for severity in severities[:, 0].tolist()]
        second = [alone[j, severity] for severity in severities[:, 1].tolist()]
        rows = [*clean, *sorted({*first, *second}), *joint]
        place = {row: at for at, row in enumerate(rows)}
        yield Design(
            axes=(i, j),
            rows=np.array(rows, np.intp),
            first=np.array([place[row] for row in first], np.intp),
            second=np.array([place[row] for row in second], np.intp),
            joint=np.arange(len(rows) - len(joint), len(rows)),
            severities=severities,
        )


def examine(
    designs: Sequence[Design],
    names: Sequence[str],
    fetch: Fetch,
    inputs: int,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    alpha: float = 0.05,
    plain: bool = False,
) -> PairTests:
    """Test pairs whose single outcomes are known: a bootstrap over the inputs, the same draws for every pair."""
    tables = [_Table(design, fetch) for design in designs]
    replicates: list[list[Floats]] = [[] for _ in tables]
    for weights in _resamples(inputs, draws, seed):
        for table, own in zip(tables, replicates, strict=True):
            own.append(table.rates(weights))
    samples = [
        _Sample(design, table.rates(None)[0], np.concatenate(own), table.trials, table.inputs, table.shared, plain)
        for design, table, own in zip(designs, tables, replicates, strict=True)
    ]
    return _conclude(samples, names, seed, alpha)


def examine_counts(
    designs: Sequence[Design],
    names: Sequence[str],
    passes: ArrayLike,
    trials: ArrayLike,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    alpha: float = 0.05,
    plain: bool = False,
) -> PairTests:
    """Test pairs from counts alone, as if every test had separate inputs: cautious if they are shared."""
    won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.int64)
    rate = won / np.maximum(tried, 1)
    drawn = np.random.default_rng([seed, len(rate)]).binomial(tried, rate, (draws, len(rate))) / np.maximum(tried, 1)
    samples = [
        _Sample(one, rate[one.rows], drawn[:, one.rows], tried[one.rows], int(tried[one.rows].sum()), False, plain)
        for one in designs
    ]
    return _conclude(samples, names, seed, alpha)


def connected(count: int, links: Sequence[tuple[int, int]]) -> list[list[int]]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(links, np.intp).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count))
    groups, group = connected_components(graph, directed=False)
    return [np.flatnonzero(group == each).tolist() for each in range(groups)]


class _Table:
    def __init__(self, design: Design, fetch: Fetch) -> None:
        tried, passed = fetch(design.rows) if design.tests else (np.zeros((0, 1), bool), np.zeros((0, 1), bool))
        by_all, by_any = tried.all(axis=1), tried.any(axis=1)
        self.shared = bool(by_all.sum() >= FEWEST_SHARED or by_all.sum() == by_any.sum())
        used = by_all if self.shared else by_any
        self._all_inputs = len(tried) > 0 and bool(used.all())
        self._used = np.flatnonzero(used)
        self._passed, self._tried = passed[used], tried[used]
        self.inputs = len(self._used)
        self.trials = self._tried.sum(axis=0)

    def rates(self, weights: NDArray[np.float32] | None) -> Floats:
        """The rate of every test under each row of weights of the inputs; the outcomes as they are under None."""
        used = np.ones((1, self.inputs), np.float32) if weights is None else weights
        if weights is not None and not self._all_inputs:
            used = weights[:, self._used]
        # Sums of whole numbers below 2^24: exact in single precision, whatever the order of summation.
        won = (used @ self._passed.astype(np.float32)).astype(np.float64)
        n = used.sum(axis=1)[:, None] if self.shared else used @ self._tried.astype(np.float32)
        return np.divide(won, n, out=np.zeros_like(won), where=n > 0)


def _resamples(inputs: int, draws: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Number of times each input is drawn when `inputs` are drawn with replacement; some rows together."""
    rng = np.random.default_rng([seed, inputs])
    at_once = max(1, WEIGHTS_AT_ONCE // inputs)
    for start in range(0, draws, at_once):
        count = min(at_once, draws - start)
        drawn = [np.bincount(rng.integers(inputs, size=inputs), minlength=inputs) for _ in range(count)]
        yield np.array(drawn, np.float32)


@dataclass(frozen=True, eq=False)
class _Sample:
    design: Design
    rates: Floats
    replicates: Floats
    trials: NDArray[np.int64]
    inputs: int
    shared: bool
    plain: bool

    @cached_property
    def departures(self) -> Floats:
        return self.rates[self.design.joint] - self._products(self.rates)

    @cached_property
    def errors(self) -> Floats:
        """Departures of the replicates, centred: their distribution under independence."""
        return self.replicates[:, self.design.joint] - self._products(self.replicates) - self.departures

    @cached_property
    def products(self) -> Floats:
        return self._products(self.rates)

    @cached_property
    def joint_failures(self) -> JointFailures:
        clean = 1.0 if self.plain else float(self.rates[0])
        lost = 1 - self.rates / max(clean, 1e-300)
        first, second = (np.clip(lost[each], 0, 1) for each in (self.design.first, self.design.second))
        return JointFailures(clean, first, second, self.trials[self.design.joint])

    def _products(self, rates: Floats) -> Floats:
        product: Floats = rates[..., self.design.first] * rates[..., self.design.second]
        clean = rates[..., :1]
        return product if self.plain else np.divide(product, clean, out=np.zeros_like(product), where=clean > 0)

    def effects(self) -> Record:
        worst = int(np.argmax(np.abs(self.departures)))
        return {
            "mean_effect": float(np.abs(self.departures).mean()),
            "largest_effect": float(self.departures[worst]),
            "at": tuple(self.design.severities[worst].tolist()),
            "measured": float(self.rates[self.design.joint[worst]]),
            "product": float(self.products[worst]),
            "joint_failures": float((self.joint_failures.share * self.joint_failures.trials).max()),
        }

    def published(self) -> Record:
        """The statistic of Proposition 1 over the tests that meet its condition on N, with its p-value."""
        from scipy.special import chdtrc

        r, n = self.products, self.trials[self.design.joint]
        inside = (r > 0) & (r < 1)
        r = np.where(inside, r, 0.5)
        valid = inside & (n > 9 * np.maximum((1 - r) / r, r / (1 - r)))
        if not valid.any():
            return {}
        variance, count = (r * (1 - r) / n)[valid], int(valid.sum())
        chi2 = float(np.sum(self.departures[valid] ** 2 / variance))
        expected = float(np.mean(self.errors[:, valid] ** 2, axis=0) @ (1 / variance))
        return {"chi2": chi2, "chi2_expected": expected, "valid": count, "p_published": float(chdtrc(count, chi2))}


def _conclude(samples: Sequence[_Sample], names: Sequence[str], seed: int, alpha: float) -> PairTests:
    tested = [sample for sample in samples if sample.design.tests]
    decisions = iter(_decisions(tested, np.random.default_rng([seed, len(samples)])))
    rows: list[Record] = []
    for sample in samples:
        found = UNTESTED | {"tests": sample.design.tests, "inputs": sample.inputs, "shared": sample.shared}
        if sample.design.tests:
            found |= sample.effects() | sample.published() | next(decisions)
        rows.append(found)
    p_holm = holm([row["p_published"] for row in rows]).tolist()
    pairs, links = [], []
    for sample, row, p in zip(samples, rows, p_holm, strict=True):
        i, j = sample.design.axes
        dependent = row["p_adjusted"] <= alpha
        pairs.append(Pair(axes=(names[i], names[j]), dependent=dependent, p_published_holm=p, **row))
        if dependent:
            links.append((i, j))
    groups = tuple(tuple(names[j] for j in group) for group in connected(len(names), links))
    return PairTests(tuple(names), tuple(pairs), groups, len(samples[0].replicates), alpha, samples[0].plain)


def _decisions(tested: Sequence[_Sample], rng: np.random.Generator) -> list[Record]:
    """Each pair's sum of squared standardised departures, compared with the centred replicates."""
    statistics, nulls = [], []
    for sample in tested:
        rare = sample.joint_failures
        errors = sample.errors + rare.missing(sample.errors.var(axis=0), len(sample.errors), rng)
        # If hardly any input counts, its standard deviation is no guide: one input is the least.
        scale = np.maximum(errors.std(axis=0), 1 / np.maximum(rare.trials, 1))
        statistics.append(float(np.sum((sample.departures / scale) ** 2)))
        nulls.append(np.sum((errors / scale) ** 2, axis=1))
    if not tested:
        return []
    alone, among = p_values(np.array(statistics), np.array(nulls))
    columns = zip(statistics, alone.tolist(), among.tolist(), strict=True)
    return [dict(zip(("statistic", "p_bootstrap", "p_adjusted"), row, strict=True)) for row in columns]


def p_values(statistics: Floats, nulls: Floats) -> tuple[Floats, Floats]:
    """From bootstrap nulls (statistics by draws), p-values for each statistic, and for each among all.

    The latter step down over the largest of the standardised statistics (Westfall and Young 1993, section 2.6):
    unlike Holm's correction they are not bounded by the number of draws when there are many pairs.
    """
    draws = nulls.shape[1]
    alone = (1 + np.sum(nulls >= statistics[:, None], axis=1)) / (draws + 1)
    centre, spread = nulls.mean(axis=1), np.maximum(nulls.std(axis=1), 1e-12)
    observed, null = (statistics - centre) / spread, (nulls - centre[:, None]) / spread[:, None]
    descending = np.argsort(-observed, kind="stable")
    largest_left = np.maximum.accumulate(null[descending][::-1], axis=0)[::-1]
    steps = (1 + np.sum(largest_left >= observed[descending][:, None], axis=1)) / (draws + 1)
    among = np.empty_like(alone)
    among[descending] = np.maximum.accumulate(steps)
    return alone, np.maximum(among, alone)
