"""The contract of surrogates."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from testifai.runs.outcomes import Trials
from testifai.support.types import Floats
from testifai.surrogates.adapter import adapt
from testifai.surrogates.base import PoolingSurrogate, Surrogate, takes_single
from testifai.surrogates.fitting import Evidence
from testifai.testing.assertions import maker_of, require, require_flags, require_name, same, unchanged

SEVERITIES, AXES, INPUTS = 4, 3, 60
# What another order of the same rows, or learning the same twice, may change: optimisers stop where it is flat.
SLACK = 0.02
ROUNDING = 1e-9


def check_surrogate(surrogate: Any) -> None:
    """Raise AssertionError if a surrogate breaks its contract.

    Fitting must return the surrogate, change no argument and be reproducible in any order of the tests. Rates must be
    in 0..1 and follow the outcomes. Variances must not be negative. Bounds must contain the estimate and widen with the
    confidence, and those of a region must be within those of its tests. `update` with the fitted evidence must change
    little.

    Args:
        surrogate: one that is not fitted, or a function that makes one

    >>> from testifai.surrogates import Forest
    >>> check_surrogate(Forest(trees=5))
    """
    make = maker_of(surrogate, "fit")
    first = adapt(make())
    who = require_name(first.name, "surrogate")
    require_flags(first, who, "pools", "plain_only")
    seen, everything = example_evidence(takes_single(first)), _grid()
    with unchanged(who, "fit", seen):
        require(seen.fit(first) is first, who, "fit does not return the surrogate")
    _check_rates(first, everything, who)
    _check_bounds(first, everything, who)
    _check_region(first, everything, who)
    before = first.predict(everything)
    again = seen.fit(adapt(make())).predict(everything)
    require(same(tuple(before), tuple(again)), who, "two fits on the same evidence predict differently")
    turned = _shuffled(seen).fit(adapt(make())).predict(everything)[0]
    require(_near(before[0], turned), who, "its estimates depend on the order of the tests it is fitted on")
    if isinstance(first, PoolingSurrogate):
        _check_reuse(first, make, seen, everything, who)
    _check_learning(make, seen, everything, who)


def example_evidence(single: bool = True) -> Evidence:
    """Return the tests of up to two perturbations of a small space, each with trials of the same inputs."""
    features = _grid()
    features = features[np.count_nonzero(features, axis=1) <= 2]
    hardness = np.random.default_rng(0).uniform(0, 12, INPUTS)
    passed = features.sum(axis=1)[:, None] * 1.5 < hardness
    test, place = (part.reshape(-1) for part in np.indices(passed.shape))
    trials = Trials(test, place, passed.reshape(-1), INPUTS) if single else None
    return Evidence(features, passed.sum(axis=1), np.full(len(features), INPUTS), trials)


def _grid() -> Any:
    return np.array(list(itertools.product(range(SEVERITIES), repeat=AXES)), np.int64)


def _check_rates(surrogate: Surrogate, rows: Any, who: str) -> None:
    with unchanged(who, "predict", rows):
        mean, variance = surrogate.predict(rows)
    require(np.shape(mean) == (len(rows),), who, f"predicts shape {np.shape(mean)} for {len(rows)} configurations")
    require(np.isfinite(mean).all(), who, "predicts rates that are no numbers")
    require(((mean >= 0) & (mean <= 1)).all(), who, "predicts rates outside 0..1")
    if variance is not None:
        require(np.shape(variance) == (len(rows),), who, f"has {np.shape(variance)} variances for {len(rows)} rates")
        require((np.isfinite(variance) & (variance >= 0)).all(), who, "has variances that are negative or no numbers")
    backwards = surrogate.predict(rows[::-1])[0][::-1]
    require(np.allclose(mean, backwards, atol=ROUNDING, rtol=0), who, "a prediction depends on those asked for with it")


def _check_bounds(surrogate: Surrogate, rows: Any, who: str) -> None:
    mean, variance = surrogate.predict(rows)
    wide, narrow = (surrogate.bounds(rows, confidence) for confidence in (0.99, 0.8))
    for low, high in (wide, narrow):
        require(np.shape(low) == np.shape(high) == (len(rows),), who, "has not one lower and upper bound for each rate")
        if variance is None and not surrogate.pools:
            continue
        held = (low <= mean + ROUNDING) & (mean <= high + ROUNDING)
        require(held.all(), who, "its bounds do not hold the estimate")
        require((low >= -ROUNDING).all() and (high <= 1 + ROUNDING).all(), who, "its bounds lie outside 0..1")
    known = ~np.isnan(wide[0])
    further = (wide[0] <= narrow[0] + ROUNDING) & (wide[1] >= narrow[1] - ROUNDING)
    require(further[known].all(), who, "its bounds do not widen with confidence")
    if variance is not None and known.any() and variance[known].max() > ROUNDING:
        require((wide[1] - wide[0])[known].sum() > (narrow[1] - narrow[0])[known].sum(), who, "its bounds never widen")


def _check_region(surrogate: Surrogate, rows: Any, who: str) -> None:
    estimate, low, high = surrogate.region(rows, 0.95)
    mean = float(surrogate.predict(rows)[0].mean())
    require(abs(estimate - mean) < 1e-6, who, "the estimate of a region is not the mean of its tests")
    lows, highs = surrogate.bounds(rows, 0.95)
    if not np.isnan(lows).any():
        require(low <= estimate <= high, who, "the bounds of a region do not hold its estimate")
        inside = low >= lows.min() - ROUNDING and high <= highs.max() + ROUNDING
        require(inside, who, "the bounds of a region lie outside those of its tests")
    found = surrogate.covariance(rows)
    if found is not None:
        require(np.shape(found) == (len(rows), len(rows)), who, f"its covariance has shape {np.shape(found)}")
        require(np.allclose(found, np.transpose(found), atol=1e-8), who, "its covariance is not symmetric")
        require((np.diag(found) >= -ROUNDING).all(), who, "its covariance has negative variances")


def _check_reuse(surrogate: PoolingSurrogate, make: Any, seen: Evidence, rows: Any, who: str) -> None:
    before = surrogate.predict(rows)
    other = adapt(make())
    assert isinstance(other, PoolingSurrogate)
    other.recall(surrogate.learned())
    require(same(tuple(before), tuple(seen.fit(other).predict(rows))), who, "recalled parameters predict differently")
    require(seen.update(surrogate) is surrogate, who, "update does not return the surrogate")
    after = surrogate.predict(rows)[0]
    require(_near(before[0], after), who, "update on what it was fitted on changes its estimates")
    chance = surrogate.off_surface(rows)
    require(((chance >= 0) & (chance <= 1)).all(), who, "off_surface is no probability")


def _check_learning(make: Any, seen: Evidence, rows: Any, who: str) -> None:
    means = []
    for passed in (True, False):
        single = seen.single
        if single is not None:
            single = Trials(single.test, single.place, np.full(len(single.test), passed), single.inputs)
        world = Evidence(seen.features, seen.trials * passed, seen.trials, single)
        means.append(world.fit(adapt(make())).predict(rows)[0].mean())
    require(means[0] > means[1] + 0.5, who, "predicts much the same whether every trial passes or none does")


def _shuffled(seen: Evidence) -> Evidence:
    order = np.random.default_rng(1).permutation(len(seen))
    single = seen.single
    if single is not None:
        place_of = np.argsort(order)
        trials = np.argsort(place_of[single.test], kind="stable")
        single = Trials(place_of[single.test][trials], single.place[trials], single.passed[trials], single.inputs)
    return Evidence(seen.features[order], seen.passes[order], seen.trials[order], single)


def _near(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max() <= SLACK)
