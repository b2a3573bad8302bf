"""How far to trust a tomogram: its predictions compared with measurements that were kept from its surrogate."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.outcomes import Bits, Ids, Outcomes
from testifai.surrogates import Surrogate, resolve
from testifai.tomogram import MOST_SINGLE, Tomogram

Floats = NDArray[np.float64]

FOLDS = 5
POOLED_FOLDS = 2  # of a pooling surrogate, whose fits take seconds
FEWEST = 10  # tests below which an average over them says nothing
LOW = 2  # the order up to which tests are low ones, as in the published strategy
TOLERANCE = 0.05  # on average, for predictions of high orders to be called right
TOO_NARROW = 1.25  # mean squared error, as a multiple of what the intervals say
EXACT = 200  # trials up to which a count's prediction interval is the beta-binomial one


@dataclass(frozen=True)
class LeftOut:
    """Tests predicted from the others: their rates against those measured.

    `raw` is the mean absolute difference, `noise` what it would be by the sampling noise of the measured rates alone,
    `error` what is left without it: too little where noise that tests share, being tried on the same inputs, cancels
    out. `coverage` is None where the surrogate has no intervals.
    """

    tests: int
    most_order: int
    error: float
    raw: float
    noise: float
    bias: float
    coverage: float | None

    def line(self) -> str:
        if self.noise == 0:
            off = f"off by {self.error:.3f} on average"
        elif self.error >= 0.0005:
            off = (
                f"off by {self.error:.3f} on average (seen {self.raw:.3f}; sampling noise alone makes {self.noise:.3f})"
            )
        else:
            off = f"off by no more than sampling noise (seen {self.raw:.3f}; noise alone makes {self.noise:.3f})"
        what = f"{self.tests:,} tests of order up to {self.most_order}, left out and predicted from the others"
        text = f"{what}: {off}, bias {self.bias:+.3f}"
        return text if self.coverage is None else f"{text}; 95 % intervals cover {self.coverage:.0%}"


@dataclass(frozen=True)
class HeldBack:
    """Trials on inputs that the surrogate did not see: passes against their prediction.

    `spread` is the mean square of the differences, each in standard deviations: 1 where the intervals are right.
    """

    tests: int
    trials: int
    inputs: int
    bias: float
    spread: float
    coverage: float

    @property
    def too_narrow(self) -> bool:
        """More than chance: the mean of n squared standard normal numbers has standard deviation sqrt(2 / n).

        Tests on the same inputs err together: at worst, as many as an input was used for count as one.
        """
        independent = max(1.0, self.tests * self.inputs / self.trials)
        return self.spread > max(TOO_NARROW, 1 + 3 * math.sqrt(2 / independent))

    def line(self) -> str:
        text = (
            f"{self.trials:,} trials of {self.tests:,} tests, on inputs held back: 95 % intervals cover "
            f"{self.coverage:.0%}, squared errors are {self.spread:.2f} times as large as they should be, "
            f"bias {self.bias:+.3f}"
        )
        return f"{text}; the intervals are too narrow here" if self.too_narrow else text


@dataclass(frozen=True)
class HighOrders:
    """Tests of high order predicted from those of order 0 to 2 alone.

    `bias` is the mean of predicted less measured rates, with a 95 % interval for all tests that could have been drawn;
    `error` the mean absolute difference, less sampling noise. `verdict` is "predicted", "not predicted" or "doubtful".
    """

    orders: tuple[int, ...]
    tests: int
    error: float
    bias: float
    low: float
    high: float
    verdict: str
    by_order: Mapping[int, float]  # the bias at each
    missing: int  # tests of high order that were not measured
    pairwise: float | None  # within what the surrogate of that name predicts them, where this one does not and it does

    @property
    def within(self) -> float:
        return max(self.error, abs(self.low), abs(self.high))

    def line(self) -> str:
        orders = f"order {self.orders[0]}" if len(self.orders) == 1 else f"orders {self.orders[0]} to {self.orders[-1]}"
        if self.verdict == "predicted":
            return f"low orders predict {orders} within {_up(self.within):.2f} on average ({self.tests:,} tests)"
        if self.pairwise is not None:
            return (
                f"low orders predict {orders} within {_up(self.pairwise):.2f} on average with surrogate = 'pairwise' "
                f"({self.tests:,} tests), but not with this one: it is off by {self.bias:+.2f}"
            )
        if self.verdict == "doubtful":
            return (
                f"it is doubtful whether low orders predict {orders}: they are off by {self.bias:+.2f} on average "
                f"({self.low:+.2f} … {self.high:+.2f}, {self.tests:,} tests){self._advice()}"
            )
        if self.low <= 0 <= self.high:
            how = f"they err by {self.error:.2f} on average, in both directions"
        else:
            how = f"they are {'optimistic' if self.bias > 0 else 'pessimistic'} by {abs(self.bias):.2f} on average"
        return f"low orders do not predict high ones here: {how} ({self.tests:,} tests){self._advice()}"

    def _advice(self) -> str:
        return f"; measure more with {_strategy(max(50, 2 * self.tests))} or use 'adaptive'" if self.missing else ""


@dataclass(frozen=True)
class Trust:
    """What `assess` found. A part is None where the run does not allow it."""

    left_out: LeftOut | None = None
    held_back: HeldBack | None = None
    high_orders: HighOrders | None = None
    unknown: str | None = None  # why nothing can be said of high orders, where there are any

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, None for what does not exist."""
        parts = {"left_out": self.left_out, "held_back": self.held_back, "high_orders": self.high_orders}
        facts = {name: None if part is None else _plain(vars(part)) for name, part in parts.items()}
        return {**facts, "lines": list(self.lines())}

    def lines(self) -> tuple[str, ...]:
        """The same in words; nothing where there is nothing to say."""
        found = [part.line() for part in (self.left_out, self.held_back, self.high_orders) if part is not None]
        return (*found, *([self.unknown] if self.unknown else ()))


def assess(tomogram: Tomogram, seed: int = 0) -> Trust:
    """Refit the tomogram's surrogate without some of what was measured, and predict that.

    >>> from testifai.outcomes import Outcomes
    >>> from testifai.perturb import Perturbation
    >>> from testifai.space import Space
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3, 4, 5))
    >>> space, outcomes = Space({"a": fade, "b": fade, "c": fade}), Outcomes(100)
    >>> for i, severities in zip(space.ids_up_to(2), space.matrix(space.ids_up_to(2))):
    ...     outcomes.record(int(i), np.arange(100), np.arange(100) < 100 - 5 * severities.sum())
    >>> trust = assess(Tomogram(space, outcomes, np.arange(100)))
    >>> trust.left_out.tests, trust.left_out.error < 0.05
    (90, True)
    >>> print(trust.lines()[-1])
    no test of order > 2 was measured, so nothing can be said about them; find out with strategy = { use = 'ordered', \
extra = 50 }
    """
    refit = _Refit(tomogram)
    if refit.surrogate is None or len(refit.ids) < FEWEST:
        return Trust()
    held_back = _hold_back(refit, seed) if refit.pools else None
    # Where every test has trials of its own, nothing hangs on the low orders.
    whole = refit.pools and len(refit.ids) == tomogram.space.size
    high_orders, unknown = (None, None) if whole else _high_orders(refit)
    return Trust(_leave_out(refit, seed), held_back, high_orders, unknown)


# -- fitting again ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Predicted:
    """Rates of tests that were kept from the surrogate: predicted, with variances if there are any, and measured.

    The trials are a random part of `population` inputs, over which the predicted rates are taken.
    """

    mean: Floats
    variance: Floats | None
    passes: Ids
    trials: Ids
    population: NDArray[Any]

    @property
    def difference(self) -> Floats:
        return np.asarray(self.mean - self.passes / self.trials)

    @property
    def noise(self) -> Floats:
        """The variance of each measured rate, without bias; from the prediction where there is a single trial."""
        rate, one = self.passes / self.trials, self.trials == 1
        variance = np.where(one, self.mean * (1 - self.mean), rate * (1 - rate) / np.where(one, 1, self.trials - 1))
        return np.asarray(variance * (1 - self.trials / self.population))

    @staticmethod
    def joined(parts: list[_Predicted]) -> _Predicted:
        def join(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            return None if columns[0] is None else np.concatenate(columns)

        return _Predicted(*(join(name) for name in ("mean", "variance", "passes", "trials", "population")))


@dataclass
class _Refit:
    """The tomogram's tests and its surrogate, to be fitted on parts of them."""

    tomogram: Tomogram
    ids: Ids = field(init=False)
    features: NDArray[np.int64] = field(init=False)
    orders: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        space = self.tomogram.space
        self.ids = self.tomogram.measured_ids
        self.features = space.matrix(self.ids)
        self.orders = np.count_nonzero(self.features[:, : len(space.axes)], axis=1)
        self.surrogate = self._fresh()
        self.pools = bool(getattr(self.surrogate, "pools", False))

    def _fresh(self) -> Surrogate | None:
        levels = [axis.severities for axis in self.tomogram.space.axes]
        # What it predicts is compared with outcomes on the inputs at hand, whatever the tomogram's bounds are for.
        finite = self.tomogram.population == "data"
        made = resolve(self.tomogram.surrogate, self.tomogram.seed, levels, finite=finite)
        # One that was given as an object is the tomogram's own: fitting it here would change the tomogram.
        return copy.deepcopy(made) if made is self.tomogram.surrogate else made

    def fit(self, rows: NDArray[np.intp], among: Bits | None = None) -> tuple[Surrogate, Ids, Ids]:
        """A surrogate of some of the tests, on all inputs or some, and the passes and trials it has seen."""
        surrogate, outcomes = self._fresh(), self.tomogram.outcomes
        assert surrogate is not None
        passes, trials = outcomes.counts(self.ids[rows], among)
        used = trials > 0
        if not used.any():
            raise InputError("trials: no test has any")
        single = {}
        if getattr(surrogate, "wants_trials", False) and self.tomogram.inferences <= MOST_SINGLE:
            name = "value" if "value" in outcomes.kept_names() else None
            # Whatever part of the inputs it sees, the rates it predicts are those on all of them.
            seen = outcomes.single(self.ids[rows[used]], among, name)
            single["single"] = replace(seen, inputs=outcomes.inputs)
        return surrogate.fit(self.features[rows[used]], passes[used], trials[used], **single), passes, trials

    def predict(self, train: NDArray[np.intp], rows: NDArray[np.intp]) -> _Predicted:
        """Some tests from others."""
        mean, variance = self.fit(train)[0].predict(self.features[rows])
        counts = self.tomogram.outcomes.counts(self.ids[rows])
        return _Predicted(mean, variance, *counts, np.full(len(rows), self.tomogram.outcomes.inputs))


def _leave_out(refit: _Refit, seed: int) -> LeftOut | None:
    """Fifths of the tests from the other four; the clean one, from which all start, stays in."""
    others = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(refit.orders))
    everything, parts = np.arange(len(refit.ids)), []
    for fold in range(POOLED_FOLDS if refit.pools else FOLDS):
        rows = np.sort(others[fold::FOLDS])
        try:
            parts.append(refit.predict(np.setdiff1d(everything, rows), rows))
        except InputError:  # what is left is too little for this surrogate
            continue
    if not parts:
        return None
    found = _Predicted.joined(parts)
    coverage = None if found.variance is None else float(_cover(found).mean())
    return LeftOut(
        tests=len(found.mean),
        most_order=int(refit.orders.max()),
        error=_without_noise(found),
        raw=float(np.abs(found.difference).mean()),
        noise=_noise_alone(found),
        bias=float(found.difference.mean()),
        coverage=coverage,
    )


def _hold_back(refit: _Refit, seed: int) -> HeldBack | None:
    """A fifth of the inputs from the others: no input is on both sides, so nothing leaks from test to test."""
    outcomes = refit.tomogram.outcomes
    held = np.random.default_rng([seed, 2]).permutation(outcomes.inputs) % FOLDS == 0
    try:
        surrogate, seen, tried = refit.fit(np.arange(len(refit.ids)), np.packbits(~held))
    except InputError:
        return None
    passes, trials = outcomes.counts(refit.ids, np.packbits(held))
    used = np.flatnonzero(trials)
    mean, variance = surrogate.predict(refit.features[used])
    if variance is None or len(used) < FEWEST:
        return None
    # The rate over all inputs is that of those seen, which is known, and that of the rest, which is what was predicted.
    rest = outcomes.inputs - tried[used]
    share = rest / outcomes.inputs
    mean = np.clip((outcomes.inputs * mean - seen[used]) / rest, 0, 1)
    found = _Predicted(mean, variance / share**2, passes[used], trials[used], rest)
    return HeldBack(
        tests=len(used),
        trials=int(trials.sum()),
        inputs=_different(outcomes, refit.ids, np.packbits(held)),
        bias=float(found.difference.mean()),
        spread=float((found.difference**2 / _total_variance(found)).mean()),
        coverage=float(_cover(found).mean()),
    )


def _different(outcomes: Outcomes, ids: Ids, among: Bits) -> int:
    """How many of these inputs were tried under any of the tests."""
    tried = np.zeros_like(among)
    for i in ids.tolist():
        tried |= outcomes.bits(i)[0]
    return int(np.bitwise_count(tried & among).sum())


def _high_orders(refit: _Refit) -> tuple[HighOrders | None, str | None]:
    """Do orders 0 to 2 predict the higher ones? (TestifAI leaves finding this out to future work.)"""
    space = refit.tomogram.space
    exist = sum(space.count(order) for order in range(LOW + 1, len(space.axes) + 1))
    high = np.flatnonzero(refit.orders > LOW)
    if not exist:
        return None, None
    if len(high) < 2:
        count = "no test" if len(high) == 0 else "only one test"
        return None, (
            f"{count} of order > {LOW} was measured, so nothing can be said about them; find out with {_strategy(50)}"
        )
    rows = np.flatnonzero(refit.orders <= LOW)
    if len(rows) < FEWEST:
        return None, None  # what fails to predict high orders would be the lack of low ones
    try:
        found = refit.predict(rows, high)
    except InputError as problem:
        return None, f"nothing can be said about orders > {LOW}: {problem}"
    orders = refit.orders[high]
    bias, low, high_bias = _mean_interval(found.difference)
    error = _without_noise(found)
    _, least, _ = _mean_interval(np.abs(found.difference))
    biased = (low > 0 or high_bias < 0) and abs(bias) > TOLERANCE
    if biased or least - _noise_alone(found) > TOLERANCE:
        verdict = "not predicted"
    else:
        verdict = "predicted" if max(error, -low, high_bias) <= TOLERANCE else "doubtful"
    by_order = {int(order): float(found.difference[orders == order].mean()) for order in np.unique(orders)}
    return HighOrders(
        orders=tuple(by_order),
        tests=len(high),
        error=error,
        bias=bias,
        low=low,
        high=high_bias,
        verdict=verdict,
        by_order=by_order,
        missing=exist - len(high),
        pairwise=None if verdict == "predicted" else _pairwise(refit),
    ), None


def _pairwise(refit: _Refit) -> float | None:
    """Is it the surrogate that fails, such as a forest, which cannot go below what it has seen, or the low orders?"""
    if getattr(refit.surrogate, "name", None) == "pairwise":
        return None
    found, _ = _high_orders(_Refit(replace(refit.tomogram, surrogate="pairwise")))
    return found.within if found is not None and found.verdict == "predicted" else None


# -- comparing --------------------------------------------------------------------------------------------------


def _noise_alone(found: _Predicted) -> float:
    """The mean absolute value of normal noise: sqrt(2 / pi) standard deviations."""
    return float(math.sqrt(2 / math.pi) * np.sqrt(found.noise).mean())


def _without_noise(found: _Predicted) -> float:
    """The mean absolute difference as it would be without noise, if it shrinks as the root of the mean square does."""
    square = float((found.difference**2).mean())
    kept = 0.0 if square == 0 else max(0.0, 1 - float(found.noise.mean()) / square)
    return float(np.abs(found.difference).mean()) * math.sqrt(kept)


def _mean_interval(values: Floats) -> tuple[float, float, float]:
    """A mean over tests with its 95 % t-interval: tests, not trials, are what was drawn."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def _moments(found: _Predicted) -> tuple[Floats, Floats]:
    """Mean and variance of each predicted rate, those of a beta distribution."""
    assert found.variance is not None
    mean = np.clip(found.mean, 1e-6, 1 - 1e-6)
    return mean, np.clip(found.variance, 1e-9, 0.99 * mean * (1 - mean))


def _total_variance(found: _Predicted) -> Floats:
    """Of a measured rate around its prediction: E[p(1 - p)] / n without replacement, and the variance of p itself."""
    mean, variance = _moments(found)
    binomial = np.maximum(mean * (1 - mean) - variance, 0) / found.trials * (1 - found.trials / found.population)
    return np.asarray(variance + binomial)


def _cover(found: _Predicted) -> Floats:
    """Whether each count lies in its central 95 % prediction interval; the part of it that does, for counts at an end.

    A count of few trials is so coarse that no set of counts has exactly 95 %. Spreading each count evenly over the
    probabilities it stands for (the randomised probability integral transform, in expectation) mends that.
    """
    mean, variance = _moments(found)
    # The beta-binomial distribution is that of draws with replacement: near enough for a tenth of the inputs.
    few = (found.trials <= EXACT) & (found.trials <= 0.1 * found.population)
    below, above = _beta_edges(found, mean, _total_variance(found))
    for i in np.flatnonzero(few):
        below[i], above[i] = _beta_binomial_edges(int(found.passes[i]), int(found.trials[i]), mean[i], variance[i])
    inside = np.clip(np.minimum(above, 0.975) - np.maximum(below, 0.025), 0, None)
    width = above - below
    at_a_point = (below >= 0.025) & (above <= 0.975)
    return np.where(width > 1e-12, inside / np.maximum(width, 1e-12), at_a_point.astype(np.float64))


def _beta_edges(found: _Predicted, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """The probabilities between which a count stands, its rate taken as beta-distributed."""
    from scipy.special import betainc

    size = mean * (1 - mean) / np.minimum(variance, 0.99 * mean * (1 - mean)) - 1
    half = 0.5 / found.trials
    rate = found.passes / found.trials
    edges = [np.clip(rate + sign * half, 0, 1) for sign in (-1, 1)]
    below, above = (np.asarray(betainc(mean * size, (1 - mean) * size, edge)) for edge in edges)
    return below, above


def _beta_binomial_edges(passes: int, trials: int, mean: float, variance: float) -> tuple[float, float]:
    """P(count < passes) and P(count <= passes) for a binomial count whose rate is beta-distributed."""
    from scipy.special import betaln

    size = mean * (1 - mean) / variance - 1
    a, b = mean * size, (1 - mean) * size
    counts = np.arange(trials + 1)
    choose = -np.log(trials + 1) - betaln(counts + 1, trials - counts + 1)
    chances = np.exp(choose + betaln(counts + a, trials - counts + b) - betaln(a, b))
    chances /= chances.sum()
    below = float(chances[:passes].sum())
    return below, below + float(chances[passes])


def _strategy(extra: int) -> str:
    return f"strategy = {{ use = 'ordered', extra = {extra} }}"


def _up(value: float) -> float:
    return math.ceil(value * 100) / 100


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A record's fields as JSON has them."""
    plain: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            plain[name] = {str(key): one for key, one in value.items()}
        else:
            plain[name] = list(value) if isinstance(value, tuple) else value
    return plain
