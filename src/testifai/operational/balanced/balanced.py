"""Two rounds of labels: a few tell how failures depend on the risk, the rest go where they are worth most.

The first round spreads a fifth of the labels over all examples, thinner where the risk is low. From its outcomes
comes a curve of failure rates over the ranks of the risks, and from that the best chances for the second round: all
of the riskiest examples where that pays, few of the rest, as `balance` wants it. The estimate weights every label by
its chance of being drawn and is unbiased however wrong the curve is: the examples are dealt into five folds, and the
chances in one fold come from the first labels of the other four alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from testifai.operational.balanced.design import (
    CELLS,
    best_design,
    cells_of,
    curves,
    fill,
    scale,
    systematic,
)
from testifai.operational.balanced.interval import Labels, limits
from testifai.operational.base import CONFIDENCE, Flags, Floats, Frame, Indices, Plan, Sample, needed
from testifai.support.checks import number

FIRST_ROUND = 0.2  # of all labels
FOLDS = 5
# With fewer labels there is nothing to learn from a first round.
FEWEST = 40
# The least chance in the second round, as a share of the average one, so that the round can always be filled.
SPARE = 0.001


class BalancedSampling:
    """As many failures as possible at a wanted accuracy of the estimate.

    `balance` 0 asks for the best estimate, 0.5 for one as good as simple random sampling's and as many failures as
    that leaves room for, 1 for failures only. Facts per draw: `round` (0 or 1), the chance of the example in the
    first (`first`) and then in the second round (`second`), how far the latter was corrected because some examples
    had been drawn before (`correction`), and the number of `tests` in all.

    >>> from testifai.operational.base import conclude, draw
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.random(5000)
    >>> failed = rng.random(5000) < risk**8
    >>> technique, frame = BalancedSampling(), Frame(5000, risk)
    >>> answer = conclude(technique, frame, draw(technique, frame, 200, rng, failed.__getitem__))
    >>> bool(answer.low < 1 - failed.mean() < answer.high), bool(answer.failures > 2 * 200 * failed.mean())
    (True, True)
    """

    name = "balanced"
    needs = CONFIDENCE
    assumes = "that failures become rarer as the risk falls, unless the labels say otherwise"

    def __init__(self, *, balance: float = 0.3) -> None:
        self.balance = number("balance", balance, least=0, most=1)

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        """A first round for the curve, then the rest; one round where the labels are few."""
        order = _by_risk(needed(frame, self.name))
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

    def _second_chances(self, deal: Deal, opening: Indices, failed: Flags) -> Floats:
        """The chance of every rank in the second round, if the first round leaves it out."""
        closing = int(deal.closing.sum())
        if not closing:
            return np.zeros(deal.size)
        chances = np.empty(deal.size)
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
        """Failures (or passes, where the other folds found these rarer), each weighted by how rarely it is drawn.

        The weight is 1 / (chance of being drawn in either round), which averages an estimate from each round with
        weights that nothing in the example's own fold had a say in. The first part of a round is a random part of it.
        """
        deal = deal_out(frame.size, int(sample.facts["tests"][0]))
        ranks = np.empty(frame.size, np.int64)
        ranks[_by_risk(needed(frame, self.name))] = np.arange(frame.size)
        drawn = ranks[sample.selected]
        weights = _weights(sample, deal)
        failed, labelled = deal.count(drawn, sample.failed, np.ones(len(drawn), bool))
        rate = curves(trusting=False).given(failed[None], labelled[None])[0][0]
        failing = imbalance = 0.0
        for fold in range(deal.folds):
            here = drawn % deal.folds == fold
            usual = _mostly_failing(sample, ~here)
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
class Deal:
    """How examples and labels are divided. Examples go by rank (the riskiest is 0); a fold has every fifth.

    `cells` has the cell of each rank and `members` the number of ranks in each cell; `first` is the chance of each
    rank in the first round and `least` the same per cell; `opening` and `closing` count each fold's labels in the
    first and in the second round.
    """

    size: int
    tests: int
    folds: int
    cells: Indices
    members: Floats
    least: Floats
    first: Floats
    opening: Indices
    closing: Indices

    def count(self, drawn: Indices, failed: Flags, used: Flags) -> tuple[Floats, Floats]:
        """How many failed and how many were labelled in each cell, of those draws that are used."""
        cells = self.cells[drawn[used]]
        failures = np.bincount(cells[failed[used]], minlength=CELLS)
        return failures.astype(np.float64), np.bincount(cells, minlength=CELLS).astype(np.float64)

    def draw(self, chances: Floats, sizes: Indices, rng: np.random.Generator) -> Indices:
        """Ranks drawn in each fold, in random order."""
        folds = [
            systematic(chances[fold :: self.folds], int(size), rng) * self.folds + fold
            for fold, size in enumerate(sizes)
        ]
        return rng.permutation(np.concatenate(folds))


@lru_cache(maxsize=8)
def deal_out(size: int, tests: int) -> Deal:
    """Divide so many examples and labels."""
    folds = FOLDS if tests >= FEWEST else 1
    first_round = round(FIRST_ROUND * tests) if folds > 1 else tests
    opening = _shares(first_round, folds)
    cells = cells_of(size)
    members = np.bincount(cells, minlength=CELLS).astype(np.float64)
    # Twice as likely at a quarter of the rank.
    least = fill(1 / (np.arange(1, CELLS + 1)[None] - 0.5), np.zeros(CELLS), members, first_round)[0]
    first = least[cells]
    for fold, labels in enumerate(opening):
        first[fold::folds] = scale(first[fold::folds], int(labels))
    return Deal(size, tests, folds, cells, members, least, first, opening, _shares(tests, folds) - opening)


def _shares(whole: int, folds: int) -> Indices:
    """How many of a number of things each fold gets when they are dealt one by one."""
    return np.array([len(range(fold, whole, folds)) for fold in range(folds)], np.int64)


def _by_risk(risk: Floats) -> Indices:
    """The examples, the riskiest first."""
    return np.argsort(-risk, kind="stable")


def _weights(sample: Sample, deal: Deal) -> Floats:
    """What each label counts for; a round that is not finished had its chances cut to the part that is."""
    facts = sample.facts
    parts = np.bincount(facts["round"], minlength=2) / np.maximum([deal.opening.sum(), deal.closing.sum()], 1)
    first, second = facts["first"] * parts[0], facts["second"] * parts[1]
    return np.asarray(facts["correction"] / (first + (1 - first) * second), np.float64)


def _mostly_failing(sample: Sample, used: Flags) -> float:
    """1 if more than half of the examples seem to fail, by the first round's labels that are used; else 0."""
    early = used & (sample.facts["round"] == 0)
    weights = 1 / sample.facts["first"][early]
    return float(weights @ sample.failed[early] > weights.sum() / 2)
