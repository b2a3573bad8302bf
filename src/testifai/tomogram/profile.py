"""The expected robustness in operation: a tomogram's tests weighted by the probability of their conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import Ids
from testifai.space import Space
from testifai.statistics.intervals import half_widths
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Array, Floats, Record, RecordLike
from testifai.tomogram.answers import Sigma
from testifai.tomogram.estimator import Estimated, Estimator
from testifai.tomogram.profile_parser import MOST_CELLS, TOLERANCE, Profile

MOST_JOINT = 4_000  # tests up to which the covariance of all errors is used: 128 MB


def weighted_sum(
    estimator: Estimator, ids: Ids, weights: Floats, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return the sum of some tests' rates times weights of any sign, with bounds.

    Without a covariance the bounds are the weighted sums of the tests' bounds, which is valid however their errors are
    correlated. Of very many tests the covariance of those with the largest weights is used and the half-widths of the
    others are added, as is the half-width of a clean test that is based on its own trials.
    """
    found = estimator.table(ids)
    estimate, low, high = found.estimate, found.low, found.high
    wider = half_widths(confidence) / half_widths()
    below, above = (estimate - low) * wider, (high - estimate) * wider
    # A test with a weight below zero pulls the sum down where its rate is higher.
    down, up = np.where(weights < 0, above, below), np.where(weights < 0, below, above)
    size, centre = np.abs(weights), float(weights @ estimate)
    apart = (ids == 0) & estimator.clean.alone
    by_weight = np.argsort(np.where(apart, 1.0, -size), kind="stable")
    most = min(MOST_JOINT, int(np.count_nonzero(~apart)))
    joint, rest = by_weight[:most], by_weight[most:]
    surrogate = estimator.pooling()
    covariance = None
    if surrogate is not None and len(joint):
        covariance = surrogate.covariance(estimator.space.matrix(ids[joint]))
    if covariance is None:
        return centre, centre - float(size @ down), centre + float(size @ up)
    half = half_widths(confidence) * math.sqrt(max(float(weights[joint] @ covariance @ weights[joint]), 0.0))
    return centre, centre - half - float(size[rest] @ down[rest]), centre + half + float(size[rest] @ up[rest])


WORST = 5
DRAWN = 4_000  # configurations that are sampled if too many have a probability to list them


@dataclass(frozen=True)
class Expected:
    """The expected pass rate under a profile, with a 95 % interval; a bound is NaN if a test's estimate has none.

    The interval is for the rate under exactly the stated probabilities. `costliest` are up to five tests with the
    largest probability times failure rate: (configuration, probability, estimate, share of all failures).
    """

    robustness: float
    low: float
    high: float
    drop: float  # robustness - clean accuracy
    tests: int  # tests with a probability; of very many, some are sampled
    measured: int
    inferred: int
    costliest: tuple[tuple[Sigma, float, float, float], ...]
    ids: Ids = field(repr=False)  # the tests, and how probable each is
    weights: Floats = field(repr=False)

    def __repr__(self) -> str:
        found = estimate_text(self.robustness, self.low, self.high)
        return f"<Expected {found}, drop {self.drop:+.3f}, over {self.tests:,} tests: {self.measured:,} measured>"

    def as_dict(self) -> Record:
        names = ("robustness", "low", "high", "drop", "tests", "measured", "inferred")
        keys = ("configuration", "probability", "estimate", "share")
        costliest = [dict(zip(keys, one, strict=True)) for one in self.costliest]
        found = {**{name: getattr(self, name) for name in names}, "costliest": costliest}
        return {name: plain(value) for name, value in found.items()}


def expected(
    tomogram: Estimated, profile: Profile | RecordLike | Sequence[RecordLike] | Array, given: RecordLike | None = None
) -> Expected:
    """Return the mean pass rate of a tomogram's tests, each weighted by its probability under an operational profile.

    Of very many tests with a probability some are sampled, and the interval allows for that. If the order of
    application counts, axes are applied in their order in the space.

    Args:
        tomogram: the run
        profile: how probable severities are: a `Profile`, its statements, or an array of the space's shape
        given: known states of context or severities, such as {"weather": "rain"}; None: none
    """
    estimator = tomogram.estimator
    space = estimator.space
    if isinstance(profile, np.ndarray):
        ids, weights = _array(space, profile, given)
        tests = len(ids)
    else:
        ids, weights, tests = _stated(space, profile, given, estimator.settings.seed)
    estimate = estimator.table(ids).estimate
    robustness, *bounds = weighted_sum(estimator, ids, weights)
    if tests > len(ids):  # bounds allow for the sampling of configurations, whose rates have this variance
        drawn = half_widths() * math.sqrt(float(weights @ (estimate - robustness) ** 2) / DRAWN)
        below, above = (math.hypot(bound - robustness, drawn) for bound in bounds)
        bounds = [robustness - below, robustness + above]
    low, high = (min(max(bound, 0.0), 1.0) if bound == bound else bound for bound in bounds)
    own = estimator.alone(ids, estimator.outcomes.counts(ids)[1], estimator.outcomes.inputs)
    lost = weights * (1 - estimate)
    # A stable sort of what is not NaN: equal losses are listed in the order of the tests.
    first = np.argsort(-np.nan_to_num(lost), kind="stable")[:WORST]
    total = float(lost.sum())
    return Expected(
        robustness=robustness,
        low=low,
        high=high,
        drop=robustness - estimator.clean.estimate,
        tests=tests,
        measured=int(own.sum()),
        inferred=tests - int(own.sum()),
        costliest=tuple(
            (space.configuration(int(ids[i])), float(weights[i]), float(estimate[i]), float(lost[i] / total))
            for i in first
            if lost[i] > 0
        ),
        ids=ids,
        weights=weights,
    )


def _array(space: Space, weights: Array, given: RecordLike | None) -> tuple[Ids, Floats]:
    if given:
        raise InputError("given: a profile that is an array has no variables; accepted: with statements only")
    if weights.shape != space.shape or weights.dtype.kind not in "fiu":
        raise InputError(f"profile: {weights.dtype} of shape {weights.shape}; accepted: numbers of shape {space.shape}")
    flat = weights.reshape(-1).astype(np.float64)
    if not (flat >= 0).all() or abs(flat.sum() - 1) > TOLERANCE:  # NaN fails here too
        raise InputError(f"profile: an array that adds up to {flat.sum():g}; accepted: from 0 up, adding up to 1")
    ids = np.flatnonzero(flat).astype(np.int64)
    return ids, flat[ids] / flat.sum()


def _stated(
    space: Space, profile: Profile | RecordLike | Sequence[RecordLike], given: RecordLike | None, seed: int
) -> tuple[Ids, Floats, int]:
    stated = profile if isinstance(profile, Profile) else Profile(profile)
    if any(name == "class" for name, _ in stated.statements):
        raise InputError("profile: 'class' is stated, which only a network can use; accepted here: axes and context")
    known = stated.over({axis.name: axis.severities for axis in space.axes}, space.levels)
    support = {name: known.support(name) for name in space.names}
    count = math.prod(len(states) for states in support.values())
    if count > MOST_CELLS:
        rows = known.draw(space.names, DRAWN, np.random.default_rng(seed), given)
        ids, times = np.unique(_ids(space, rows), return_counts=True)
        return ids, times / DRAWN, count
    joint = known.joint(space.names, given, support)
    total = float(joint.sum())
    if total <= 0:
        raise InputError(f"given: {dict(given or {})} has probability 0 under the profile")
    places = zip(space.names, np.argwhere(joint > 0).T, strict=True)
    ids = _ids(space, np.stack([support[name][place] for name, place in places], axis=1))
    order = np.argsort(ids)
    return ids[order], joint[joint > 0][order] / total, len(ids)


def _ids(space: Space, positions: NDArray[np.intp]) -> Ids:
    columns = zip(space.axes, positions.T, strict=True)
    return space.ids(np.stack([np.array(axis.severities)[column] for axis, column in columns], axis=1))
