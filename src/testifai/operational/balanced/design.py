"""How likely each example is to be drawn by `balanced`: a curve of failure rates over the ranks, and the best design.

Only the order of the risks is used, so any increasing function of a risk gives the same draws. Examples are grouped
in cells of nearly equal risk, the riskiest first; cell k of K holds the ranks between (k/K)^2 N and ((k+1)/K)^2 N,
fine where failures are and coarse where they are rare.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from testifai.operational.base import Floats, Indices

CELLS = 100
# How much a failure counts against a standard error: from none (Neyman's allocation) to 25 times.
PRICES = np.concatenate([[0.0, 0.4, 0.7, 0.9, 1.0], 1 / np.linspace(0.96, 0.04, 24)])


def cells_of(size: int) -> Indices:
    """The cell of every rank."""
    place = np.sqrt((np.arange(size) + 0.5) / size)
    return np.minimum((place * CELLS).astype(np.int64), CELLS - 1)


@dataclass(frozen=True, eq=False)
class Curves:
    """Candidates for the failure rates p of the cells, with the logarithms of their prior weights.

    Tables of candidates by cells for p and p (1 - p), of cells by candidates for log p and log (1 - p).
    """

    rate: Floats
    spread: Floats
    log_rate: Floats
    log_rest: Floats
    log_prior: Floats

    def given(self, failed: Floats, labelled: Floats) -> tuple[Floats, Floats]:
        """Posterior mean of p and of p (1 - p) per cell, from the labels per cell; one row per set of labels."""
        used = labelled.any(axis=0)
        passed = (labelled - failed)[:, used]
        score = self.log_prior + failed[:, used] @ self.log_rate[used] + passed @ self.log_rest[used]
        best = score.max(axis=1, keepdims=True)
        # The rest weighs less than a millionth.
        kept = (score > best - 20).any(axis=0)
        weight = np.exp(score[:, kept] - best)
        weight /= weight.sum(axis=1, keepdims=True)
        return weight @ self.rate[kept], weight @ self.spread[kept]


@lru_cache(maxsize=2)
def curves(*, trusting: bool) -> Curves:
    """The candidates: logit p = a - b x or a - 2.2 b x^2, with x the square root of the rank's share.

    On the published tables one of the two is within 4 % of the deviance of the best monotone curve, for confidence
    and for surprise alike. They go from failures everywhere to none and from a useless risk (b = 0), even a misleading
    one (b < 0), to a sharp one. One who trusts the risk expects rates around 3 in 4 at the riskiest end (give or
    take two units of logit) and finds b the likelier the larger, by a factor of e per ten units, and hardly ever below
    0. That is for choosing what to label, where being wrong costs labels and never the truth of the estimate. For
    intervals all rates are equally likely, b from 0 is so on a logarithmic scale, 1 / (1 + b), for a risk may be
    worth anything from nothing to everything, and b below 0 is only a little less likely than 0.

    With a probability of 4 % (for intervals 8 %) some examples, 0.3 to 10 %, fail for reasons unknown to the risk.
    """
    from scipy.special import expit

    grids = np.meshgrid(np.linspace(-8, 8, 17), np.linspace(-6, 27, 23), [1, 2], [0.0, 0.003, 0.01, 0.03, 0.1])
    a, b, power, floor = (grid.reshape(-1, 1) for grid in grids)
    x = (np.arange(CELLS) + 0.5) / CELLS
    rate = floor + (1 - floor) * expit(a - b * np.where(power == 1, x, 2.2 * x**2))
    rate = np.clip(rate, 1e-12, 1 - 1e-12)
    if trusting:
        log_prior = -0.5 * ((a - 1) / 2) ** 2 + np.where(b < 0, 0.5, 0.1) * b + np.log(np.where(floor > 0, 0.01, 0.96))
    else:
        slopes = 0.2 * np.minimum(b, 0) - np.log1p(np.maximum(b, 0))
        log_prior = slopes + np.log(np.where(floor > 0, 0.02, 0.92))
    return Curves(rate, rate * (1 - rate), np.log(rate.T), np.log1p(-rate.T), log_prior.ravel())


def fill(wanted: Floats, least: Floats, members: Floats, tests: float) -> Floats:
    """Inclusion probabilities c * wanted, kept between `least` and 1, that add up to `tests`; one row per design.

    As c grows the sum rises in straight pieces: a cell joins in when c * wanted reaches `least` and drops out at 1.
    """
    bends = np.concatenate([least / wanted, 1 / wanted], axis=1)
    order = np.argsort(bends, axis=1)
    bends = np.take_along_axis(bends, order, axis=1)
    slopes = np.take_along_axis(np.concatenate([members * wanted, -members * wanted], axis=1), order, axis=1)
    rises = np.cumsum(slopes, axis=1)[:, :-1] * np.diff(bends, axis=1)
    sums = np.concatenate([np.zeros((len(bends), 1)), np.cumsum(rises, axis=1)], axis=1) + least @ members
    factors = [np.interp(tests, total, bend) for total, bend in zip(sums, bends, strict=True)]
    return np.asarray(np.clip(np.array(factors)[:, None] * wanted, least, 1))


def best_design(rate: Floats, variance: Floats, least: Floats, members: Floats, tests: int, balance: float) -> Floats:
    """Inclusion probability per cell: as many failures as the wanted accuracy allows.

    A design that minimises sum v / pi - price * sum p pi at a given sum of pi has pi = sqrt(v / (mu - price * p)).
    Price 0 is Neyman's allocation with the least variance, V0. The wanted variance is V0 + odds * (V1 - V0), where
    V1 is that of simple random sampling and the odds are balance / (1 - balance): 0 asks for the best estimate, 0.5
    for one as good as simple random sampling's, 1 for failures only.
    """
    designs = fill(np.sqrt(variance / np.maximum(1 - PRICES[:, None] * rate, 1e-6)), least, members, tests)
    spread = (1 / designs - 1) @ (variance * members)
    found = designs @ (rate * members)
    size = members.sum()
    share = float(rate @ members) / size
    simple = size * (size - tests) * share * (1 - share) / tests
    odds = balance / (1 - balance) if balance < 1 else np.inf
    wanted = np.inf if balance == 1 else spread[0] + odds * max(simple - spread[0], 0.0)
    best = int(np.argmax(np.where(spread <= max(wanted, spread[0]), found, -1.0)))
    following = best + 1
    if following == len(designs) or found[following] <= found[best]:
        return np.asarray(designs[best])
    # Variance is convex in pi: a mixture of two neighbours has at most the mixed variance.
    part = min(max((wanted - spread[best]) / (spread[following] - spread[best]), 0.0), 1.0)
    return np.asarray((1 - part) * designs[best] + part * designs[following])


def scale(probabilities: Floats, tests: int) -> Floats:
    """Probabilities in these proportions that add up to `tests`; none above 1."""
    total = probabilities.sum()
    if total >= tests:
        return probabilities * (tests / total) if total > 0 else probabilities
    for _ in range(len(probabilities)):
        sure = probabilities >= 1
        if sure.all():
            break
        probabilities = np.where(sure, 1.0, probabilities * ((tests - sure.sum()) / probabilities[~sure].sum()))
        if probabilities.max() <= 1:
            break
    return np.minimum(probabilities, 1.0)


def systematic(probabilities: Floats, tests: int, rng: np.random.Generator) -> Indices:
    """Every unit step along the sum of the probabilities, from a random start: spread evenly over the order given."""
    reached = np.cumsum(probabilities)
    if tests == 0:
        return np.zeros(0, np.int64)
    steps = (np.arange(tests) + rng.random()) * (reached[-1] / tests)
    return np.asarray(np.searchsorted(reached, steps, side="right"), np.int64)
