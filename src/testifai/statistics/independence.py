"""Do perturbations act independently? A test for each pair of axes (TestifAI, Proposition 1), and what follows.

If they do, a combination passes at the product of its perturbations' rates, relative to the clean one:
r_ij = r_i r_j / r_0 (the paper's own example multiplies plain rates; `plain` keeps that). The published chi-square
takes the inputs of every test for fresh ones and the first-order rates for known. They are neither: it is far too
cautious where an input's outcomes hang together (it then all but never rejects independence that holds, nor weak
dependence) and far too bold where they do not. It is reported; a bootstrap over inputs decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.statistics.corrections import holm

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Fetch = Callable[[Rows], tuple[NDArray[np.bool_], NDArray[np.bool_]]]  # tests -> tried, passed: inputs by tests

DRAWS = 400
FEWEST_DRAWS = 99  # for a p-value of 0.01
MISLEADING = 0.02  # a departure from the product that matters, where it is also significant
FEWEST_TRIALS = 20  # a test with fewer says nothing about its rate that a bootstrap could use
FEWEST_SHARED = 100  # inputs tried by all tests of a pair; with fewer, each test counts the inputs that it tried
NUMBERS = (
    *("mean_effect", "largest_effect", "statistic", "p_bootstrap", "p_adjusted", "dependent"),
    *("chi2", "chi2_expected", "p_published", "p_published_holm"),
)
WEIGHTS_AT_ONCE = 16_000_000  # draws x inputs held at once: 64 MB


@dataclass(frozen=True)
class Pair:
    """What was found about two axes. Departures are r_ij - r_i r_j / r_0: negative where products are optimistic."""

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

    @property
    def misleading(self) -> bool:
        """Whether products of rates will mislead about this pair."""
        return self.dependent and abs(self.largest_effect) > MISLEADING


@dataclass(frozen=True)
class Independence:
    """The pairs of a space, tested; `groups` are the axes that hang together through dependent pairs."""

    axes: tuple[str, ...]
    pairs: tuple[Pair, ...]
    groups: tuple[tuple[str, ...], ...]
    draws: int
    alpha: float
    plain: bool

    def matrix(self, field: str = "mean_effect") -> Floats:
        """One number of every pair as a symmetric matrix over the axes; NaN on the diagonal."""
        if field not in NUMBERS:
            raise InputError(f"field: {field!r} is not a number of a pair; accepted: {', '.join(NUMBERS)}")
        table = np.full((len(self.axes),) * 2, np.nan)
        for (i, j), pair in zip(itertools.combinations(range(len(self.axes)), 2), self.pairs, strict=True):
            table[i, j] = table[j, i] = getattr(pair, field)
        return table

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        pairs = [{**asdict(pair), "misleading": pair.misleading} for pair in self.pairs]
        return {
            "axes": list(self.axes),
            "pairs": [{key: _plain(value) for key, value in pair.items()} for pair in pairs],
            "matrix": [[_plain(value) for value in row] for row in self.matrix().tolist()],
            "groups": [list(group) for group in self.groups],
            "warnings": warnings(self),
            "draws": self.draws,
            "alpha": self.alpha,
            "plain": self.plain,
        }


def warnings(result: Independence) -> list[str]:
    """One sentence for each pair about which products mislead, or one that says that there is none."""
    found = [_sentence(pair) for pair in result.pairs if pair.misleading]
    untested = [" × ".join(pair.axes) for pair in result.pairs if not pair.tests]
    if untested:
        found.append(f"Not tested, because their tests were not measured: {', '.join(untested)}.")
    elif not found:
        slight = any(pair.dependent for pair in result.pairs)
        what = f"by more than {MISLEADING:g}, though some do by less" if slight else "that the data could tell"
        found.append(f"No pair departs from the product {what}: products of first-order rates will do for pairs.")
    return found


# -- the tests ------------------------------------------------------------------------------------------------------


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

    def products(self, rates: Floats, plain: bool) -> Floats:
        """What independence expects of the joint tests."""
        product: Floats = rates[..., self.first] * rates[..., self.second]
        clean = rates[..., :1]
        return product if plain else np.divide(product, clean, out=np.zeros_like(product), where=clean > 0)

    def departures(self, rates: Floats, plain: bool) -> Floats:
        """Measured less product, of every joint test."""
        return np.asarray(rates[..., self.joint] - self.products(rates, plain))


def find_designs(features: NDArray[np.int64]) -> Iterator[Design]:
    """For every pair of axes, the joint tests whose first-order tests and the clean one are measured too."""
    active = features > 0
    orders = active.sum(axis=1)
    clean = np.flatnonzero(orders == 0)
    alone = {(int(j), int(features[row, j])): int(row) for row in np.flatnonzero(orders == 1)
             for j in np.flatnonzero(active[row])}  # fmt: skip
    for i, j in itertools.combinations(range(features.shape[1]), 2):
        joint = np.flatnonzero((orders == 2) & active[:, i] & active[:, j])
        parts = [(alone.get((i, int(a))), alone.get((j, int(b)))) for a, b in features[joint][:, [i, j]]]
        usable = [c for c, (a, b) in enumerate(parts) if a is not None and b is not None and len(clean)]
        concerned = sorted({int(row) for c in usable for row in parts[c] if row is not None})
        rows = np.array([*clean[:1], *concerned, *joint[usable]], np.intp)
        place = {int(row): at for at, row in enumerate(rows)}
        first, second = ([place[int(parts[c][side] or 0)] for c in usable] for side in (0, 1))
        yield Design(
            (i, j), rows, np.array(first, np.intp), np.array(second, np.intp),
            np.arange(len(rows) - len(usable), len(rows)), features[joint[usable]][:, [i, j]],
        )  # fmt: skip


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
) -> Independence:
    """Test pairs whose single outcomes are known: a bootstrap over the inputs, the same draws for every pair."""
    tables = [_Table(design, fetch) for design in designs]
    drawn = [[table.rates(weights) for table in tables] for weights in _resamples(inputs, draws, seed)]
    samples = [
        _Sample(
            table.rates(None)[0], np.concatenate([part[t] for part in drawn]), table.trials, table.inputs, table.shared
        )
        for t, table in enumerate(tables)
    ]
    return _conclude(designs, names, samples, alpha, plain)


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
) -> Independence:
    """Test pairs of which only counts are known, as if every test had inputs of its own: cautious where it had not."""
    won, tried = np.asarray(passes, np.float64), np.asarray(trials, np.int64)
    rate = won / np.maximum(tried, 1)
    drawn = np.random.default_rng([seed, len(rate)]).binomial(tried, rate, (draws, len(rate))) / np.maximum(tried, 1)
    samples = [_Sample(rate[d.rows], drawn[:, d.rows], tried[d.rows], int(tried[d.rows].sum()), False) for d in designs]
    return _conclude(designs, names, samples, alpha, plain)


def connected(count: int, links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The groups that links make of 0, 1, … count - 1.

    >>> connected(4, [(0, 2), (2, 3)])
    [[0, 2, 3], [1]]
    """
    group = list(range(count))
    for a, b in links:
        old, new = max(group[a], group[b]), min(group[a], group[b])
        group = [new if g == old else g for g in group]
    return [[member for member in range(count) if group[member] == g] for g in sorted(set(group))]


# -- inside ---------------------------------------------------------------------------------------------------------


class _Table:
    """The outcomes of one pair's tests on the inputs that count."""

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


@dataclass(frozen=True)
class _Sample:
    """Rates of one pair's tests, and bootstrap replicates of them (draws by tests)."""

    rates: Floats
    replicates: Floats
    trials: NDArray[np.int64]
    inputs: int
    shared: bool


def _resamples(inputs: int, draws: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """How often each input is drawn when `inputs` are drawn with replacement; some rows at a time."""
    rng = np.random.default_rng([seed, inputs])
    at_once = max(1, WEIGHTS_AT_ONCE // inputs)
    for start in range(0, draws, at_once):
        count = min(at_once, draws - start)
        drawn = [np.bincount(rng.integers(inputs, size=inputs), minlength=inputs) for _ in range(count)]
        yield np.array(drawn, np.float32)


def _conclude(
    designs: Sequence[Design], names: Sequence[str], samples: Sequence[_Sample], alpha: float, plain: bool
) -> Independence:
    figures = map(_published, designs, samples, itertools.repeat(plain))
    chi2, expected, valid, p_published = zip(*figures, strict=True)
    p_holm = holm(p_published)
    statistic, p, p_adjusted = _bootstrap(designs, samples, plain)
    pairs = []
    for t, (design, sample) in enumerate(zip(designs, samples, strict=True)):
        i, j = design.axes
        pair = Pair(
            axes=(names[i], names[j]), tests=design.tests, inputs=sample.inputs, shared=sample.shared,
            chi2=chi2[t], chi2_expected=expected[t], valid=valid[t],
            p_published=p_published[t], p_published_holm=float(p_holm[t]),
            statistic=float(statistic[t]), p_bootstrap=float(p[t]), p_adjusted=float(p_adjusted[t]),
            dependent=bool(p_adjusted[t] <= alpha), **_effects(design, sample, plain),
        )  # fmt: skip
        pairs.append(pair)
    links = [design.axes for design, pair in zip(designs, pairs, strict=True) if pair.dependent]
    groups = tuple(tuple(names[j] for j in group) for group in connected(len(names), links))
    return Independence(tuple(names), tuple(pairs), groups, len(samples[0].replicates), alpha, plain)


def _effects(design: Design, sample: _Sample, plain: bool) -> dict[str, Any]:
    """How far the measured rates are from their products."""
    if not design.tests:
        return {"at": (0, 0), **dict.fromkeys(("mean_effect", "largest_effect", "measured", "product"), math.nan)}
    departures = design.departures(sample.rates, plain)
    worst = int(np.argmax(np.abs(departures)))
    return {
        "mean_effect": float(np.abs(departures).mean()),
        "largest_effect": float(departures[worst]),
        "at": tuple(design.severities[worst].tolist()),
        "measured": float(sample.rates[design.joint[worst]]),
        "product": float(design.products(sample.rates, plain)[worst]),
    }


def _published(design: Design, sample: _Sample, plain: bool) -> tuple[float, float, int, float]:
    """The statistic of Proposition 1 over the tests that meet its condition on N, its mean, their number, its p-value.

    The mean under independence is that of the replicates, centred: the published distribution says the number of tests.
    """
    from scipy.special import chdtrc

    if not design.tests:
        return math.nan, math.nan, 0, math.nan
    r, n = design.products(sample.rates, plain), sample.trials[design.joint]
    inside = (r > 0) & (r < 1)
    r = np.where(inside, r, 0.5)
    valid = inside & (n > 9 * np.maximum((1 - r) / r, r / (1 - r)))
    if not valid.any():
        return math.nan, math.nan, 0, math.nan
    variance = (r * (1 - r) / n)[valid]
    departures = design.departures(sample.rates, plain)
    centred = design.departures(sample.replicates, plain) - departures
    chi2, count = float(np.sum(departures[valid] ** 2 / variance)), int(valid.sum())
    expected = float(np.mean(centred[:, valid] ** 2, axis=0) @ (1 / variance))
    return chi2, expected, count, float(chdtrc(count, chi2))


def _bootstrap(designs: Sequence[Design], samples: Sequence[_Sample], plain: bool) -> tuple[Floats, Floats, Floats]:
    """Each pair's sum of squared standardised departures, its p-value, and one that allows for looking at all pairs.

    The null is the same sum over the replicates' departures, centred.
    """
    results = np.full((3, len(designs)), np.nan)
    found, nulls = [], []
    tested = [t for t, design in enumerate(designs) if design.tests]
    for t in tested:
        departures = designs[t].departures(samples[t].rates, plain)
        replicates = designs[t].departures(samples[t].replicates, plain)
        # Where hardly any input counts, its standard deviation is no guide: one input is the least.
        scale = np.maximum(replicates.std(axis=0), 1 / np.maximum(samples[t].trials[designs[t].joint], 1))
        found.append(np.sum((departures / scale) ** 2))
        nulls.append(np.sum(((replicates - departures) / scale) ** 2, axis=1))
    if tested:
        results[:, tested] = found, *p_values(np.array(found), np.array(nulls))
    return results[0], results[1], results[2]


def p_values(statistics: Floats, nulls: Floats) -> tuple[Floats, Floats]:
    """From bootstrap nulls (statistics by draws), p-values for each statistic, and for each among all.

    The latter step down over the largest of the standardised statistics (Westfall and Young 1993, section 2.6):
    unlike Holm's correction they are not bounded by the number of draws when there are many pairs.

    >>> null = np.arange(99.0)
    >>> alone, among = p_values(np.array([97.0, 200.0]), np.array([null, null[::-1]]))
    >>> alone.tolist(), among.tolist()
    ([0.03, 0.01], [0.03, 0.01])
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


def _sentence(pair: Pair) -> str:
    way = "optimistic" if pair.largest_effect < 0 else "pessimistic"
    where = " with ".join(f"{name} {severity}" for name, severity in zip(pair.axes, pair.at, strict=True))
    return (
        f"Products will mislead about {' × '.join(pair.axes)}: off by {pair.mean_effect:.3f} on average, {way} by "
        f"{abs(pair.largest_effect):.3f} at {where} (measured {pair.measured:.3f}, product {pair.product:.3f})."
    )


def _shown(value: float, style: str) -> str:
    return "–" if math.isnan(value) else format(value, style)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return None if isinstance(value, float) and math.isnan(value) else value
