"""A tomogram's surrogate, fitted again without some of what was measured, and asked to predict that."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Space
from testifai.support.bits import Bits, count_set, pack
from testifai.support.progress import note
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence
from testifai.tomogram.tomogram import Tomogram
from testifai.tomogram.trust.compare import (
    Floats,
    Predicted,
    cover,
    mean_interval,
    noise_alone,
    square_variance,
    total_variance,
    without_noise,
)
from testifai.tomogram.trust.statements import HeldBack, HighOrders, LeftOut, OffSurface, Trust, strategy

FOLDS = 5
POOLED_FOLDS = 2  # of a pooling surrogate, whose fits take seconds
MANY = 500  # tests from which on one fold of them is enough, and takes long enough
# Of so many tests the shape of the surface is learned in a quick fit; all others then only say where it lies. On two
# runs of 1,296 tests the errors found differ by less than a third of their own noise, in 1.0 s instead of 2.3.
LEARNED = 250
LIKELY = 0.5
FEWEST = 10  # tests below which an average over them says nothing
LOW = 2  # the order up to which tests are low ones, as in the published strategy
TOLERANCE = 0.05  # on average, for predictions of high orders to be called right


def assess(tomogram: Tomogram, seed: int = 0) -> Trust:
    """Refit the tomogram's surrogate without some of what was measured, and predict that.

    >>> from testifai.runs.outcomes import Outcomes
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
    no test of order > 2 was tried, so nothing can be said about them; find out with strategy = { use = 'ordered', \
extra = 50 }
    """
    note("comparing predictions with outcomes kept from them")
    refit = _Refit(tomogram)
    if refit.surrogate is None or len(refit.ids) < FEWEST:
        return Trust()
    held_back = _hold_back(refit, seed) if refit.pools else None
    # Where every test has trials of its own, nothing hangs on the low orders.
    whole = refit.pools and len(refit.ids) == tomogram.space.size
    high_orders, unknown = (None, None) if whole else _high_orders(refit)
    return Trust(_leave_out(refit, seed), held_back, high_orders, unknown, _off_surface(tomogram))


def _off_surface(tomogram: Tomogram) -> tuple[OffSurface, ...]:
    """Tests that are more likely off the surface of the others than on it, the surest first."""
    surrogate, ids = tomogram.pooling(), tomogram.measured_ids
    if surrogate is None:
        return ()
    chance = surrogate.off_surface(tomogram.space.matrix(ids))
    found = ids[np.argsort(-chance, kind="stable")][: np.count_nonzero(chance > LIKELY)]
    words = [tomogram.space.words(tomogram.space.configuration(test)) for test in found.tolist()]
    return tuple(map(OffSurface, words, *(counts.tolist() for counts in tomogram.outcomes.counts(found))))


def refits(surrogate: Surrogate, tests: int, space: Space) -> int:
    """About how many fits an assessment of so many measured tests takes."""
    high = tests < space.size or not surrogate.pools
    return _folds(tests, pools=surrogate.pools) + surrogate.pools + high


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
        self.pools = self.surrogate is not None and self.surrogate.pools

    def _fresh(self) -> Surrogate | None:
        levels = [axis.severities for axis in self.tomogram.space.axes]
        # What it predicts is compared with outcomes on the inputs at hand, whatever the tomogram's bounds are for.
        finite = self.tomogram.population == "data"
        made = resolve(self.tomogram.surrogate, self.tomogram.seed, levels, finite=finite)
        # One that was given as an object is the tomogram's own: fitting it here would change the tomogram.
        return made if isinstance(self.tomogram.surrogate, str) else copy.deepcopy(made)

    def fit(self, rows: NDArray[np.intp], among: Bits | None = None) -> Surrogate:
        """A surrogate of some of the tests, on all inputs or some."""
        surrogate = self._fresh()
        assert surrogate is not None
        return self._seen(surrogate, rows, among).fit(surrogate)

    def predict(self, train: NDArray[np.intp], rows: NDArray[np.intp]) -> Predicted:
        """Some tests from others."""
        if len(train) > MANY and self.surrogate is not None and not self.surrogate.relearns:
            some = np.sort(np.random.default_rng(self.tomogram.seed).permutation(train)[:LEARNED])
            learned = self.fit(some)
            fitted = self._seen(learned, train, None).update(learned)
        else:
            fitted = self.fit(train)
        mean, variance = fitted.predict(self.features[rows])
        passes, trials = self.tomogram.outcomes.counts(self.ids[rows])
        return self.held_against(mean, variance, passes, trials, np.full(len(rows), self.tomogram.outcomes.inputs))

    def held_against(
        self, mean: Floats, variance: Floats | None, passes: NDArray[Any], trials: Ids, population: NDArray[Any]
    ) -> Predicted:
        """Predictions and what was measured, in passes and failures."""
        worth = self.tomogram.outcomes.worth(self.ids)
        if worth == 1:
            return Predicted(mean, variance, passes, trials, population)
        return Predicted(mean, variance, worth * passes, worth * trials, worth * population)

    def _seen(self, surrogate: Surrogate, rows: NDArray[np.intp], among: Bits | None) -> Evidence:
        """What a surrogate is fitted on. Whatever part of the inputs it sees, the rates are those on all of them."""
        outcomes = self.tomogram.outcomes
        return evidence(surrogate, outcomes, self.ids[rows], self.features[rows], among=among, inputs=outcomes.inputs)


def _leave_out(refit: _Refit, seed: int) -> LeftOut | None:
    """Fifths of the tests from the other four; the clean one, from which all start, stays in."""
    others = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(refit.orders))
    everything, parts = np.arange(len(refit.ids)), []
    for fold in range(_folds(len(refit.ids), pools=refit.pools)):
        rows = np.sort(others[fold::FOLDS])
        try:
            parts.append(refit.predict(np.setdiff1d(everything, rows), rows))
        except InputError:  # what is left is too little for this surrogate
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
    """A fifth of the inputs from the others: no input is on both sides, so nothing leaks from test to test."""
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
    # The rate over all inputs is that of those seen, which is known, and that of the rest, which is what was predicted.
    rest = outcomes.inputs - tried[used]
    share = rest / outcomes.inputs
    mean = np.clip((outcomes.inputs * mean - seen[used]) / rest, 0, 1)
    found = refit.held_against(mean, variance / share**2, passes[used], trials[used], rest)
    return HeldBack(
        tests=len(used),
        trials=int(trials.sum()),
        inputs=_different(outcomes, refit.ids, pack(held)),
        bias=float(found.difference.mean()),
        spread=float((found.difference**2 / total_variance(found)).mean()),
        coverage=float(cover(found).mean()),
        scatter=float(square_variance(found).mean()),
    )


def _different(outcomes: Outcomes, ids: Ids, among: Bits) -> int:
    """How many of these inputs were tried under any of the tests."""
    tried = np.zeros_like(among)
    for i in ids.tolist():
        tried |= outcomes.bits(i)[0]
    return int(count_set(tried & among))


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
            f"{count} of order > {LOW} was tried, so nothing can be said about them; find out with {strategy(50)}"
        )
    rows = np.flatnonzero(refit.orders <= LOW)
    if len(rows) < FEWEST:
        return None, None  # what fails to predict high orders would be the lack of low ones
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
    """Is it the surrogate that fails, such as a forest, which cannot go below what it has seen, or the low orders?"""
    if refit.surrogate is not None and refit.surrogate.name == "pairwise":
        return None
    found, _ = _high_orders(_Refit(replace(refit.tomogram, surrogate="pairwise")))
    return found.within if found is not None and found.verdict == "predicted" else None
