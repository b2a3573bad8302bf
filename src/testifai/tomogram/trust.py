"""How far to trust a tomogram: its surrogate is refitted without some measurements, which it then predicts."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.outcomes import Ids
from testifai.runs.store import Store
from testifai.space import Space
from testifai.support.bits import Bits, count_set, pack
from testifai.support.progress import note
from testifai.support.serialization import plain
from testifai.support.types import Array, Floats, Record, RecordLike
from testifai.support.version import VERSION
from testifai.surrogates import PoolingSurrogate, Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence
from testifai.tomogram.tomogram import Tomogram

NAMED = 5  # tests named in a line
TOO_NARROW = 1.25  # mean squared error, as a multiple of what the intervals say


@dataclass(frozen=True)
class LeftOut:
    """Tests predicted from the others, compared with their measured rates.

    `raw` is the mean absolute difference, `noise` its value if there were only sampling noise, `error` the difference
    without noise. `coverage` is None if the surrogate has no intervals.
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
    """Trials on inputs that the surrogate did not see, compared with their prediction.

    `spread` is the mean square of the standardised differences: 1 if the intervals are right. `scatter` is the variance
    of such a square by chance: 2 for normal numbers, more for rare failures.
    """

    tests: int
    trials: int
    inputs: int
    bias: float
    spread: float
    coverage: float
    scatter: float = 2.0

    @property
    def too_narrow(self) -> bool:
        """Whether the spread is more than chance: the mean of n squares has standard deviation sqrt(scatter / n).

        Errors of tests on the same inputs are correlated: at worst, as many tests as use one input count as one.
        """
        independent = max(1.0, self.tests * self.inputs / self.trials)
        return self.spread > max(TOO_NARROW, 1 + 3 * math.sqrt(self.scatter / independent))

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

    `bias` is the mean of predicted minus measured rates, with a 95 % interval for all tests that could be sampled;
    `error` the mean absolute difference, without sampling noise.
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
    pairwise: float | None  # error of the surrogate of that name, if it predicts them and this one does not

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
        return f"; measure more with {strategy(max(50, 2 * self.tests))} or use 'adaptive'" if self.missing else ""


@dataclass(frozen=True)
class OffSurface:
    """A test whose own trials contradict its prediction from all others, so that only its own trials count."""

    test: str
    passes: int | float  # the latter for a sum of scores
    trials: int

    def words(self) -> str:
        if isinstance(self.passes, float):
            return f"{self.test} (mean {self.passes / self.trials:.3f} of {self.trials:,} trials)"
        return f"{self.test} ({self.passes:,} of {self.trials:,} passed)"


@dataclass(frozen=True)
class Trust:
    """Result of `assess`. A part is None if the run does not allow it."""

    left_out: LeftOut | None = None
    held_back: HeldBack | None = None
    high_orders: HighOrders | None = None
    unknown: str | None = None  # why high orders, if there are any, cannot be assessed
    off_surface: tuple[OffSurface, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(self.lines()) or "<Trust: nothing can be said>"

    def as_dict(self) -> Record:
        return {name: plain(value) for name, value in {**vars(self), "lines": self.lines()}.items()}

    @classmethod
    def from_dict(cls, facts: RecordLike) -> Self:
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(facts)

    def lines(self) -> tuple[str, ...]:
        found = [part.line() for part in (self.left_out, self.held_back, self.high_orders) if part is not None]
        if self.unknown:
            found.append(self.unknown)
        if off := self.off_surface:
            named = "; ".join(one.words() for one in off[:NAMED]) + ("; …" if off[NAMED:] else "")
            many = "1 test contradicts its" if len(off) == 1 else f"{len(off)} tests contradict their"
            found.append(f"{many} neighbours, so that only own trials count there: {named}")
        return tuple(found)


def strategy(extra: int) -> str:
    return f"strategy = {{ use = 'ordered', extra = {extra} }}"


def _up(value: float) -> float:
    return math.ceil(value * 100) / 100


EXACT = 200  # trials up to which a count's prediction interval is the beta-binomial one


@dataclass(frozen=True)
class Predicted:
    """Predicted rates of held-out tests on `population` inputs, and measured counts on a random part of these."""

    mean: Floats
    variance: Floats | None
    passes: Array  # or scores: then all three are in passes and failures with the same variance
    trials: Array
    population: Array

    @property
    def difference(self) -> Floats:
        return np.asarray(self.mean - self.passes / self.trials)

    @property
    def noise(self) -> Floats:
        """Unbiased variance of each measured rate; from the prediction if there is a single trial."""
        rate, one = self.passes / self.trials, self.trials == 1
        variance = np.where(one, self.mean * (1 - self.mean), rate * (1 - rate) / np.where(one, 1, self.trials - 1))
        return np.asarray(variance * (1 - self.trials / self.population))

    @staticmethod
    def joined(parts: list[Predicted]) -> Predicted:
        def join(name: str) -> Array:
            return np.concatenate([getattr(part, name) for part in parts])

        variance = None if parts[0].variance is None else join("variance")
        return Predicted(join("mean"), variance, join("passes"), join("trials"), join("population"))


def noise_alone(found: Predicted) -> float:
    """The mean absolute value of normal noise: sqrt(2 / pi) standard deviations."""
    return float(math.sqrt(2 / math.pi) * np.sqrt(found.noise).mean())


def without_noise(found: Predicted) -> float:
    """Mean absolute difference without noise, if it shrinks as the root of the mean square does."""
    square = float((found.difference**2).mean())
    kept = 0.0 if square == 0 else max(0.0, 1 - float(found.noise.mean()) / square)
    return float(np.abs(found.difference).mean()) * math.sqrt(kept)


def mean_interval(values: Floats) -> tuple[float, float, float]:
    """A mean over tests with its 95 % t-interval: the tests, not the trials, were sampled."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def _moments(found: Predicted) -> tuple[Floats, Floats]:
    """Mean and variance of each predicted rate, limited to values that a beta distribution can have."""
    assert found.variance is not None
    mean = np.clip(found.mean, 1e-6, 1 - 1e-6)
    return mean, np.clip(found.variance, 1e-9, 0.99 * mean * (1 - mean))


def total_variance(found: Predicted) -> Floats:
    """Variance of a measured rate around its prediction: E[p(1 - p)] / n without replacement, plus the variance of p.

    The latter is not limited, even if the mean is at an end and no beta distribution has it.
    """
    assert found.variance is not None
    return np.asarray(np.maximum(found.variance, 1e-9) + _binomial(found))


def square_variance(found: Predicted) -> Floats:
    """Variance of the squared standardised differences: 2 for normal numbers, more for few and rare failures."""
    mean, _ = _moments(found)
    binomial = _binomial(found)
    excess = np.maximum(1 / (mean * (1 - mean)) - 6, 0) / found.trials
    return np.asarray(2 + (binomial / total_variance(found)) ** 2 * excess)


def _binomial(found: Predicted) -> Floats:
    mean, variance = _moments(found)
    drawn = np.maximum(mean * (1 - mean) - variance, 0) / found.trials
    return np.asarray(drawn * (1 - found.trials / found.population))


def cover(found: Predicted) -> Floats:
    """Whether each count is in its central 95 % prediction interval; for counts at an end, the part of it that is.

    A count of few trials is coarse: the randomised probability integral transform, in expectation, corrects for that.
    """
    from scipy.special import betainc
    from scipy.stats import betabinom

    mean, variance = _moments(found)
    rate, half = found.passes / found.trials, 0.5 / found.trials
    size = mean * (1 - mean) / np.minimum(total_variance(found), 0.99 * mean * (1 - mean)) - 1
    edges = [np.clip(rate + sign * half, 0, 1) for sign in (-1, 1)]
    below, above = (np.asarray(betainc(mean * size, (1 - mean) * size, edge)) for edge in edges)
    # The beta-binomial distribution is for draws with replacement: near enough for a tenth of the inputs.
    few = (found.trials <= EXACT) & (found.trials <= 0.1 * found.population) & (found.passes.dtype.kind != "f")
    if few.any():
        a, b = (end[few] * (mean * (1 - mean) / variance - 1)[few] for end in (mean, 1 - mean))
        counts, trials = found.passes[few], found.trials[few]
        below[few], above[few] = (betabinom.cdf(count, trials, a, b) for count in (counts - 1, counts))
    inside = np.clip(np.minimum(above, 0.975) - np.maximum(below, 0.025), 0, None)
    width = above - below
    at_a_point = (below >= 0.025) & (above <= 0.975)
    return np.where(width > 1e-12, inside / np.maximum(width, 1e-12), at_a_point.astype(np.float64))


FOLDS = 5
POOLED_FOLDS = 2  # of a pooling surrogate, whose fits take seconds
MANY = 500  # tests above which one fold is enough
# Number of tests from which the shape of the surface is learned; all others only condition it. On two runs of 1,296
# tests the errors found differ by less than a third of their own noise, in 1.0 s instead of 2.3.
LEARNED = 250
LIKELY = 0.5
FEWEST = 10  # tests below which an average over them is not informative
LOW = 2  # the highest of the low orders, as in the published strategy
TOLERANCE = 0.05  # largest mean error of predictions of high orders that counts as correct


def assess(tomogram: Tomogram, seed: int = 0) -> Trust:
    """Refit the tomogram's surrogate without some measurements, and compare its predictions with them."""
    note("comparing predictions with outcomes kept from them")
    refit = _Refit(tomogram)
    if refit.surrogate is None or len(refit.ids) < FEWEST:
        return Trust()
    held_back = _hold_back(refit, seed) if refit.pools else None
    # If every test has its own trials, nothing depends on the low orders.
    whole = refit.pools and len(refit.ids) == tomogram.space.size
    high_orders, unknown = (None, None) if whole else _high_orders(refit)
    return Trust(_leave_out(refit, seed), held_back, high_orders, unknown, _off_surface(tomogram))


def _off_surface(tomogram: Tomogram) -> tuple[OffSurface, ...]:
    surrogate, ids = tomogram.estimator.pooling(), tomogram.estimator.measured_ids
    if not isinstance(surrogate, PoolingSurrogate):
        return ()
    chance = surrogate.off_surface(tomogram.space.matrix(ids))
    found = ids[np.argsort(-chance, kind="stable")][: np.count_nonzero(chance > LIKELY)]
    words = [tomogram.space.words(tomogram.space.configuration(test)) for test in found.tolist()]
    return tuple(map(OffSurface, words, *(counts.tolist() for counts in tomogram.outcomes.counts(found))))


def refits(surrogate: Surrogate, tests: int, space: Space) -> int:
    """Return the approximate number of fits in an assessment of that many measured tests."""
    high = tests < space.size or not surrogate.pools
    return _folds(tests, pools=surrogate.pools) + surrogate.pools + high


class _Refit:
    def __init__(self, tomogram: Tomogram) -> None:
        self.tomogram = tomogram
        self.ids = tomogram.estimator.measured_ids
        self.features = tomogram.space.matrix(self.ids)
        self.orders = np.count_nonzero(self.features[:, : len(tomogram.space.axes)], axis=1)
        self.surrogate = self._fresh()
        self.pools = self.surrogate is not None and self.surrogate.pools

    def _fresh(self) -> Surrogate | None:
        settings = self.tomogram.settings
        levels = [axis.severities for axis in self.tomogram.space.axes]
        # Predictions are compared with outcomes on the inputs at hand, whatever the tomogram's bounds are for.
        made = resolve(settings.surrogate, settings.seed, levels, finite=settings.finite)
        # An object is the tomogram's own surrogate: fitting it here would change the tomogram.
        return made if isinstance(settings.surrogate, str) else copy.deepcopy(made)

    def fit(self, rows: NDArray[np.intp], among: Bits | None = None) -> Surrogate:
        surrogate = self._fresh()
        assert surrogate is not None
        return self._seen(surrogate, rows, among).fit(surrogate)

    def predict(self, train: NDArray[np.intp], rows: NDArray[np.intp]) -> Predicted:
        large = len(train) > MANY and isinstance(self.surrogate, PoolingSurrogate)
        generator = np.random.default_rng(self.tomogram.settings.seed)
        fitted = self.fit(np.sort(generator.permutation(train)[:LEARNED]) if large else train)
        if large and isinstance(fitted, PoolingSurrogate):
            fitted = self._seen(fitted, train, None).update(fitted)
        mean, variance = fitted.predict(self.features[rows])
        passes, trials = self.tomogram.outcomes.counts(self.ids[rows])
        return self.held_against(mean, variance, passes, trials, np.full(len(rows), self.tomogram.outcomes.inputs))

    def held_against(
        self, mean: Floats, variance: Floats | None, passes: Array, trials: Ids, population: Array
    ) -> Predicted:
        worth = self.tomogram.outcomes.trial_weight(self.ids)
        if worth == 1:
            return Predicted(mean, variance, passes, trials, population)
        return Predicted(mean, variance, worth * passes, worth * trials, worth * population)

    def _seen(self, surrogate: Surrogate, rows: NDArray[np.intp], among: Bits | None) -> Evidence:
        outcomes = self.tomogram.outcomes
        return evidence(surrogate, outcomes, self.ids[rows], self.features[rows], among=among, inputs=outcomes.inputs)


def _leave_out(refit: _Refit, seed: int) -> LeftOut | None:
    others = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(refit.orders))
    everything, parts = np.arange(len(refit.ids)), []
    for fold in range(_folds(len(refit.ids), pools=refit.pools)):
        rows = np.sort(others[fold::FOLDS])
        try:
            parts.append(refit.predict(np.setdiff1d(everything, rows), rows))
        except InputError:  # too few tests are left for this surrogate
            continue
    if not parts:
        return None
    found = Predicted.joined(parts)
    coverage = None if found.variance is None else float(cover(found).mean())
    return LeftOut(
        tests=len(found.mean),
        most_order=int(refit.orders.max()),
        error=without_noise(found),
        raw=float(np.abs(found.difference).mean()),
        noise=noise_alone(found),
        bias=float(found.difference.mean()),
        coverage=coverage,
    )


def _folds(tests: int, *, pools: bool) -> int:
    if not pools:
        return FOLDS
    return 1 if tests > MANY else POOLED_FOLDS


def _hold_back(refit: _Refit, seed: int) -> HeldBack | None:
    """Outcomes on a fifth of the inputs, predicted from the other inputs: nothing leaks from test to test."""
    outcomes = refit.tomogram.outcomes
    held = np.random.default_rng([seed, 2]).permutation(outcomes.inputs) % FOLDS == 0
    try:
        surrogate = refit.fit(np.arange(len(refit.ids)), pack(~held))
    except InputError:
        return None
    seen, tried = outcomes.counts(refit.ids, pack(~held))
    passes, trials = outcomes.counts(refit.ids, pack(held))
    used = np.flatnonzero(trials)
    mean, variance = surrogate.predict(refit.features[used])
    if variance is None or len(used) < FEWEST:
        return None
    # The predicted rate over all inputs combines the known rate on those seen and the rate on the rest.
    rest = outcomes.inputs - tried[used]
    share = rest / outcomes.inputs
    mean = np.clip((outcomes.inputs * mean - seen[used]) / rest, 0, 1)
    found = refit.held_against(mean, variance / share**2, passes[used], trials[used], rest)
    tried_held = np.bitwise_or.reduce([outcomes.bits(test)[0] for test in refit.ids.tolist()]) & pack(held)
    return HeldBack(
        tests=len(used),
        trials=int(trials.sum()),
        inputs=int(count_set(tried_held)),
        bias=float(found.difference.mean()),
        spread=float((found.difference**2 / total_variance(found)).mean()),
        coverage=float(cover(found).mean()),
        scatter=float(square_variance(found).mean()),
    )


def _high_orders(refit: _Refit) -> tuple[HighOrders | None, str | None]:
    """Whether orders 0 to 2 predict the higher ones (future work in TestifAI)."""
    space = refit.tomogram.space
    exist = sum(space.count(order) for order in range(LOW + 1, len(space.axes) + 1))
    high = np.flatnonzero(refit.orders > LOW)
    if not exist:
        return None, None
    if len(high) < 2:
        count = "no test" if len(high) == 0 else "only one test"
        return None, (
            f"{count} of order > {LOW} was tried, so nothing can be said about them; find out with {strategy(50)}"
        )
    rows = np.flatnonzero(refit.orders <= LOW)
    if len(rows) < FEWEST:
        return None, None  # a failure would be due to the lack of low-order tests
    try:
        found = refit.predict(rows, high)
    except InputError as problem:
        return None, f"nothing can be said about orders > {LOW}: {problem}"
    orders = refit.orders[high]
    bias, low, high_bias = mean_interval(found.difference)
    error = without_noise(found)
    _, least, _ = mean_interval(np.abs(found.difference))
    biased = (low > 0 or high_bias < 0) and abs(bias) > TOLERANCE
    if biased or least - noise_alone(found) > TOLERANCE:
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
    if refit.surrogate is not None and refit.surrogate.name == "pairwise":
        return None
    found, _ = _high_orders(
        _Refit(replace(refit.tomogram, settings=replace(refit.tomogram.settings, surrogate="pairwise")))
    )
    return found.within if found is not None and found.verdict == "predicted" else None


METHOD = 2  # increase with every change in what `assess` finds or how it is written


def keep(run_file: str | os.PathLike[str], tomogram: Tomogram) -> Trust:
    """Assess the tomogram of a run file, unless that was done before, and store the result in the file.

    What its surrogate learned is stored too, so that the file opens without fitting it again.
    """
    if not tomogram.query("order >= 0").inferred:
        return Trust()
    with Store.create_or_open(run_file) as store:
        found = _kept(store.get(keys.TRUST), tomogram)
        if found is None:
            found = assess(tomogram)
            kept = {keys.TRUST: {"of": fingerprint(tomogram), **found.as_dict()}}
            store.put(**kept, **{keys.FIT: tomogram.estimator.learned()})
    return found


def recall(tomogram: Tomogram) -> Trust:
    """Return the assessment stored in the tomogram's run file; without one, assess the tomogram."""
    found = _kept(tomogram.provenance.get(keys.TRUST), tomogram)
    return assess(tomogram) if found is None else found


def fingerprint(tomogram: Tomogram) -> str:
    digest = hashlib.sha256()
    settings, surrogate = tomogram.settings, tomogram.settings.surrogate
    known = [
        VERSION, METHOD, tomogram.space.describe(), settings.population, settings.seed, tomogram.inferences,
        surrogate if isinstance(surrogate, str | None) else type(surrogate).__qualname__,
        tomogram.outcomes.kept_names(), tomogram.provenance.get(keys.IDENTITY) or {}, settings.score,
    ]  # fmt: skip
    digest.update(json.dumps(known, sort_keys=True, default=str).encode())
    for test in tomogram.estimator.measured_ids.tolist():
        for bits in tomogram.outcomes.bits(test):
            digest.update(bits.tobytes())
        digest.update(b"%d" % test)
    return digest.hexdigest()


def _kept(kept: Record | None, tomogram: Tomogram) -> Trust | None:
    if kept is None or kept.get("of") != fingerprint(tomogram):
        return None
    try:
        found = Trust.from_dict(kept)
        found.lines()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # not in the format that `keep` writes
    return found
