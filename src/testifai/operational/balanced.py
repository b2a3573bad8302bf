"""Two rounds of labels: a few measure how failures depend on the risk, the rest go where they are worth most.

The first round spreads a fifth of the labels over all examples, thinner where the risk is low. Its outcomes give a
curve of failure rates over the ranks of the risks, and the curve the best chances for the second round, given
`balance`. The estimate weights every label by its chance of being drawn and is unbiased however wrong the curve is: the
examples are dealt into five folds, and the chances in one fold come from the first labels of the other four.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from testifai.operational.base import CONFIDENCE, Flags, Frame, Indices, Plan, Sample, needed
from testifai.support.types import Floats
from testifai.support.validation import number

CELLS = 100
# How much a failure counts against a standard error: from none (Neyman's allocation) to 25 times.
PRICES = np.concatenate([[0.0, 0.4, 0.7, 0.9, 1.0], 1 / np.linspace(0.96, 0.04, 24)])


def cells_of(size: int) -> Indices:
    place = np.sqrt((np.arange(size) + 0.5) / size)
    return np.minimum((place * CELLS).astype(np.int64), CELLS - 1)


@dataclass(frozen=True, eq=False)
class Curves:
    """Candidates for the failure rates p of the cells, with the logarithms of their prior weights."""

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
        kept = (score > best - 20).any(axis=0)  # the rest weighs less than a millionth
        weight = np.exp(score[:, kept] - best)
        weight /= weight.sum(axis=1, keepdims=True)
        return weight @ self.rate[kept], weight @ self.spread[kept]


@lru_cache(maxsize=2)
def curves(*, trusting: bool) -> Curves:
    """The candidates: logit p = a - b x or a - 2.2 b x^2, with x the square root of the rank's share.

    On the published tables one of the two is within 4 % of the deviance of the best monotone curve. `trusting`, used to
    choose what to label, where an error costs labels and never the truth of the estimate, expects rates around 3 in 4
    at the riskiest end (± two units of logit) and a larger b by a factor of e per ten units, hardly ever below 0. For
    intervals all rates are equally likely, b is so on a logarithmic scale, and b below 0 is only a little less likely.
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
    """Inclusion probabilities c * wanted, kept between `least` and 1, that add up to `tests`; one row per design."""
    # As c grows the sum rises in straight pieces: a cell joins in at c * wanted = `least` and drops out at 1.
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
    Price 0 is Neyman's allocation with the least variance, V0. The wanted variance is V0 + odds * (V1 - V0), with V1
    that of simple random sampling and odds balance / (1 - balance).
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


QUANTILE = 2.0  # Student's for 60 degrees of freedom: the variance rests on few labels that weigh much
MOST_SKEW = 1.2  # beyond which the first-order correction for skewness is not trusted
SHIFTS = np.linspace(-8, 8, 161)


@dataclass(frozen=True, eq=False)
class Labels:
    cells: Indices
    weights: Floats
    failed: Flags
    imbalance: float  # sum over folds of (weighted sum of rates - their sum)²: variance by varying sums of weights


def limits(
    failing: float, known: tuple[float, float], rate: Floats, members: Floats, labels: Labels
) -> tuple[float, float]:
    """Limits of the number of failures among all examples, at least and at most the `known` ones.

    Failure rates of the curve's shape, shifted on the logit scale, give every total between none and all. A score
    interval has those totals for which the estimate lies between two quantiles; its variance is that of the total in
    question, and larger if the labels scatter more around the curve. The quantiles are corrected for skewness (Cornish
    and Fisher 1937, first order).
    """
    from scipy.special import expit, logit

    cells, weights = labels.cells, labels.weights
    rate = np.clip(rate, 1e-12, 1 - 1e-12)
    rates = expit(logit(rate) + SHIFTS[:, None])
    totals, spread = rates @ members, rates * (1 - rates)
    # Moments of the weighted sum of draws about the total, for independent draws.
    second = weights * np.maximum(weights - 1, 0)
    variance = spread @ np.bincount(cells, second, CELLS) + 1e-9
    third = (spread * (1 - 2 * rates)) @ np.bincount(cells, second * (weights - 2), CELLS)
    skew = np.clip(third / variance**1.5, -MOST_SKEW, MOST_SKEW)
    here = rate[cells]
    scatter = float(second @ (labels.failed - here) ** 2) / (float(second @ (here * (1 - here))) + 1e-9)
    deviation = np.sqrt(variance * max(scatter, 1.0) + labels.imbalance)

    def limit(quantile: float) -> float:
        quantiles = totals + deviation * (quantile + skew * (quantile**2 - 1) / 6)
        return float(np.interp(failing, np.maximum.accumulate(quantiles), totals))

    low, high = np.floor(min(limit(QUANTILE), failing)), np.ceil(max(limit(-QUANTILE), failing))
    return float(max(low, known[0])), float(min(high, known[1]))


FIRST_ROUND = 0.2  # of all labels
FOLDS = 5
FEWEST = 40  # with fewer labels there is nothing to learn from a first round
SPARE = 0.001  # least chance in the second round, of the average one, so that the round can always be filled


class BalancedSampling:
    """As many failures as possible at a wanted accuracy of the estimate.

    `balance` 0 asks for the best estimate, 0.5 for one as good as simple random sampling's and as many failures as
    that leaves room for, 1 for failures only. Facts per draw: `round` (0 or 1), the chance of the example in the
    first (`first`) and then in the second round (`second`), how far the latter was corrected because some examples
    had been drawn before (`correction`), and the number of `tests` in all.
    """

    name = "balanced"
    needs = CONFIDENCE
    assumes = "that failures become rarer as the risk falls, unless the labels say otherwise"

    def __init__(self, *, balance: float = 0.3) -> None:
        self.balance = number("balance", balance, least=0, most=1)

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        order = np.argsort(-needed(frame, self.name), kind="stable")
        deal = deal_out(frame.size, tests)
        opening = deal.draw(deal.first, deal.opening, rng)
        failed = yield order[opening]
        second = self._second_chances(deal, opening, failed)
        left = second.copy()
        left[opening] = 0.0
        for fold, size in enumerate(deal.closing):
            left[fold :: deal.folds] = scale(left[fold :: deal.folds], int(size))
        closing = deal.draw(left, deal.closing, rng)
        if len(closing):
            yield order[closing]
        drawn = np.concatenate([opening, closing])
        return {
            "round": np.repeat([0, 1], [len(opening), len(closing)]),
            "first": deal.first[drawn],
            "second": second[drawn],
            "correction": np.concatenate([np.ones(len(opening)), second[closing] / left[closing]]),
            "tests": np.full(len(drawn), tests),
        }

    def _second_chances(self, deal: LabelAllocation, opening: Indices, failed: Flags) -> Floats:
        """The chance of every rank in the second round, if it was not drawn in the first."""
        closing = int(deal.closing.sum())
        chances = np.zeros(deal.size)
        if not closing:
            return chances
        # What the folds' labels say: a row per fold, then for each fold the sum of the others.
        counts = np.array([deal.count(opening, failed, opening % deal.folds == fold) for fold in range(deal.folds)])
        others = counts.sum(axis=0) - counts
        rates, spreads = curves(trusting=True).given(others[:, 0], others[:, 1])
        for fold in range(deal.folds):
            wanted = best_design(rates[fold], spreads[fold], deal.least, deal.members, deal.tests, self.balance)
            before = deal.first[fold :: deal.folds]
            together = np.maximum(wanted[deal.cells[fold :: deal.folds]], before)
            chances[fold :: deal.folds] = (together - before) / np.maximum(1 - before, 1e-12)
        return np.clip(chances, SPARE * closing / deal.size, 1.0)

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        """Failures (or passes, if rarer in the other folds), each weighted by 1 / its chance in either round."""
        deal = deal_out(frame.size, int(sample.facts["tests"][0]))
        ranks = np.empty(frame.size, np.int64)
        ranks[np.argsort(-needed(frame, self.name), kind="stable")] = np.arange(frame.size)
        drawn = ranks[sample.selected]
        # The chances in a round that is not finished are those of the part that is.
        facts = sample.facts
        parts = np.bincount(facts["round"], minlength=2) / np.maximum([deal.opening.sum(), deal.closing.sum()], 1)
        first, second = facts["first"] * parts[0], facts["second"] * parts[1]
        weights = np.asarray(facts["correction"] / (first + (1 - first) * second), np.float64)
        failed, labelled = deal.count(drawn, sample.failed, np.ones(len(drawn), bool))
        rate = curves(trusting=False).given(failed[None], labelled[None])[0][0]
        failing = imbalance = 0.0
        for fold in range(deal.folds):
            here = drawn % deal.folds == fold
            # 1 if more than half of the examples seem to fail, by the first round's labels of the other folds
            early = ~here & (facts["round"] == 0)
            inverse = 1 / facts["first"][early]
            usual = float(inverse @ sample.failed[early] > inverse.sum() / 2)
            failing += usual * len(range(fold, deal.size, deal.folds))
            failing += float(weights[here] @ (sample.failed[here] - usual))
            unusual = rate[deal.cells] - usual
            imbalance += float(weights[here] @ unusual[drawn[here]] - unusual[fold :: deal.folds].sum()) ** 2
        known = float(np.count_nonzero(sample.failed)), float(frame.size - np.count_nonzero(~sample.failed))
        failing = min(max(failing, known[0]), known[1])
        labels = Labels(deal.cells[drawn], weights, sample.failed, imbalance)
        low, high = limits(failing, known, rate, deal.members, labels)
        return 1 - failing / frame.size, 1 - high / frame.size, 1 - low / frame.size


@dataclass(frozen=True, eq=False)
class LabelAllocation:
    """How examples and labels are divided. Examples go by rank (the riskiest is 0); a fold has every fifth."""

    size: int
    tests: int
    folds: int
    cells: Indices  # of each rank
    members: Floats  # number of ranks in each cell
    least: Floats  # chance in the first round, per cell
    first: Floats  # chance in the first round, per rank
    opening: Indices  # labels of each fold in the first round
    closing: Indices  # and in the second

    def count(self, drawn: Indices, failed: Flags, used: Flags) -> tuple[Floats, Floats]:
        cells = self.cells[drawn[used]]
        failures = np.bincount(cells[failed[used]], minlength=CELLS)
        return failures.astype(np.float64), np.bincount(cells, minlength=CELLS).astype(np.float64)

    def draw(self, chances: Floats, sizes: Indices, rng: np.random.Generator) -> Indices:
        folds = [
            systematic(chances[fold :: self.folds], int(size), rng) * self.folds + fold
            for fold, size in enumerate(sizes)
        ]
        return rng.permutation(np.concatenate(folds))


@lru_cache(maxsize=8)
def deal_out(size: int, tests: int) -> LabelAllocation:
    folds = FOLDS if tests >= FEWEST else 1
    first_round = round(FIRST_ROUND * tests) if folds > 1 else tests
    # How many labels each fold gets if they are dealt one by one
    opening, whole = (np.bincount(np.arange(labels) % folds, minlength=folds) for labels in (first_round, tests))
    cells = cells_of(size)
    members = np.bincount(cells, minlength=CELLS).astype(np.float64)
    # Twice as likely at a quarter of the rank.
    least = fill(1 / (np.arange(1, CELLS + 1)[None] - 0.5), np.zeros(CELLS), members, first_round)[0]
    first = least[cells]
    for fold, labels in enumerate(opening):
        first[fold::folds] = scale(first[fold::folds], int(labels))
    return LabelAllocation(size, tests, folds, cells, members, least, first, opening, whole - opening)
