"""DeepEST: adaptive sampling towards suspicious examples with an unbiased estimate.

Guerriero, Pietrantuono and Russo, "Operation is the hardest teacher: estimating DNN accuracy looking for
mispredictions" (ICSE 2021). Equation numbers are the paper's. As in its reference implementation, which made the
published tables, a link into an example weighs the example's risk if that exceeds a threshold, else nothing. (In the
paper's text the example where the link begins must exceed it.) All examples drawn have the same link into a given one,
so the weighted draw is proportional to risk among the suspicious examples not yet drawn.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.operational import auxiliary, base
from testifai.operational.auxiliary import Threshold
from testifai.operational.balanced import CELLS, cells_of, curves
from testifai.operational.base import Flags, Frame, Indices, Plan, Sample, needed
from testifai.operational.random_sampling import LEVEL, Part, beta, hypergeometric, total
from testifai.support.types import Floats
from testifai.support.validation import number

Share = float | str

WEIGHTED = 0.8  # as published
AUTO = "auto"
OPENING = 0.5  # the share while nothing is known
FIRST_ROUND = 0.2  # of all labels
FEWEST = 40  # with fewer labels there is nothing to learn from the first
CANDIDATES = np.round(np.arange(0, 0.951, 0.05), 2)


def checked(share: Any) -> Share:
    if isinstance(share, str):
        if share != AUTO:
            raise InputError(f"share: {share!r} is not accepted; a number from 0 to below 1 is, or {AUTO!r}")
        return share
    return number("share", share, least=0, below=1)


def rounds(share: Share, tests: int) -> tuple[float, int]:
    """The share to start with, and the number of draws after which it is chosen anew."""
    if isinstance(share, str):
        return (OPENING, round(FIRST_ROUND * tests)) if tests >= FEWEST else (WEIGHTED, tests)
    return share, tests


def chosen(risk: Floats, weights: Floats, drawn: Indices, failed: Flags, tests: int) -> float:
    """The share for the remaining draws, from the labels of the draws so far."""
    cells = np.empty(len(risk), np.int64)
    cells[np.argsort(-risk, kind="stable")] = cells_of(len(risk))
    of = cells[drawn]
    failures = np.bincount(of[failed], minlength=CELLS).astype(float)
    labelled = np.bincount(of, minlength=CELLS).astype(float)
    # The failure rate of every example: a curve over the ranks of the risks, from the labels so far
    rates = curves(trusting=False).given(failures[None], labelled[None])[0][0][cells]
    made, left = len(drawn), tests - len(drawn)
    simple = tests * rates.mean() * (1 - rates.mean())
    whole = np.array([left * _spread(rates, weights, share) for share in CANDIDATES.tolist()])
    whole += made * _spread(rates, weights, OPENING)
    good = np.flatnonzero(whole <= simple)
    return float(CANDIDATES[good[-1] if len(good) else int(np.argmin(whole))])


def _spread(rates: Floats, weights: Floats, share: float) -> float:
    """The variance of the estimate from one draw made with a share."""
    size, total = len(rates), weights.sum()
    chance = share * weights / total + (1 - share) / size if total > 0 else np.full(size, 1 / size)
    return float((rates / chance).sum() / size**2 - rates.mean() ** 2)


class DeepEST(ABC):
    """The sampling scheme and estimator that the four variants share; they differ in risk and threshold.

    Facts per draw: `chance`, the probability q of Eq. 5; `suspects`, the number of suspicious examples left before it;
    `level`, 0 for an unsuspected example, 1 for the milder half of the suspects, 2 for the other half; `share`, r when
    it was made. `share` is r of Eq. 5: that share of the draws goes to suspects, in proportion to their risk, the rest
    is uniform; "auto" chooses it from the first fifth of the labels. `threshold` replaces the published rule by a
    number or by a quantile of the risks, such as "q0.9".
    """

    name: str
    needs = base.CONFIDENCE
    assumes = "that unsuspected examples fail no more often than the milder half of the suspects"

    def __init__(self, *, threshold: Threshold | None = None, share: Share = WEIGHTED) -> None:
        self.threshold = None if threshold is None else auxiliary.checked(threshold)
        self.share = checked(share)

    @abstractmethod
    def rule(self, risk: Floats) -> float:
        """The published threshold for these risks."""

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        risk = needed(frame, self.name)
        weights = self.weights(risk)
        share, opening = rounds(self.share, tests)
        draws = _Draws(weights, rng)
        selected = draws.take(opening, share)
        made = np.full(tests, share)
        failed = yield selected
        if opening < tests:
            made[opening:] = chosen(risk, weights, selected, failed, tests)
            rest = draws.take(tests - opening, float(made[-1]))
            yield rest
            selected = np.concatenate([selected, rest])
        suspect = weights > 0
        middle = np.median(weights[suspect]) if suspect.any() else 0.0
        level = suspect.astype(np.int64) + (weights > middle)
        drawn = suspect[selected]
        suspects = np.asarray(np.count_nonzero(suspect) - (np.cumsum(drawn) - drawn))
        chance = _chances(weights, made, selected)
        return {"chance": chance, "level": level[selected], "suspects": suspects, "share": made}

    def limit(self, risk: Floats) -> float:
        return self.rule(risk) if self.threshold is None else auxiliary.limit(self.threshold, risk)

    def doubts(self, frame: Frame) -> str | None:
        risk = needed(frame, self.name)
        return auxiliary.few_suspects(self.name, risk, self.limit(risk))

    def weights(self, risk: Floats) -> Floats:
        """The weight of a link into each example: its risk if suspicious, else nothing."""
        suspect = risk > self.limit(risk)
        # Where a suspicious risk is not positive (LSA is a logarithm) all are counted from the lowest instead.
        weight = risk if not suspect.any() or risk[suspect].min() > 0 else risk - risk.min()
        return np.where(suspect, weight, 0.0)

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        """The published estimate (Eq. 7), unbiased and therefore not always within 0 and 1 for few labels.

        The paper gives no interval, and the spread of its z_k says little: a rare failure among the unsuspected weighs
        several hundred times an ordinary one and is mostly not in the sample. But the unsuspected examples drawn are a
        simple random sample, for which an exact interval exists, and among the suspects the chances are known: the two
        intervals are added, and extended to the published estimate if it is outside.
        """
        failed = sample.failed.astype(float)
        before = np.cumsum(failed) - failed
        # z_k of Eq. 6, the failure rate as estimated at each draw
        accuracy = 1 - ((before + failed / sample.facts["chance"]) / frame.size).mean()
        everything = int(sample.facts["suspects"][0])
        parts = [_suspects(frame.size, sample)] if everything else []
        if everything < frame.size:
            parts.append(_unsuspected(frame.size - everything, sample))
        _, fewest, most = total(parts)
        inside = min(max(accuracy, 0.0), 1.0)
        seen = int(sample.failed.sum())
        low = 1 - min(most, frame.size - (len(sample.failed) - seen)) / frame.size
        high = 1 - max(fewest, seen) / frame.size
        return float(accuracy), min(low, inside), max(high, inside)


class Confidence(DeepEST):
    """DeepEST_CS: risk is 1 - confidence, suspicious above 0.3."""

    name = "confidence"

    def rule(self, risk: Floats) -> float:
        return 0.3


class Combined(Confidence):
    """DeepEST_C: risk is 1 - confidence (1 - DSA / max DSA) (Eq. 4), suspicious above 0.3."""

    name = "combined"
    needs = base.COMBINED


class DistanceSurprise(DeepEST):
    """DeepEST_DSA: risk is the distance-based surprise, suspicious above mean + 2 standard deviations."""

    name = "dsa"
    needs = base.DISTANCE

    def rule(self, risk: Floats) -> float:
        return float(risk.mean() + 2 * risk.std())


class LikelihoodSurprise(DeepEST):
    """DeepEST_LSA: risk is the likelihood-based surprise, suspicious above mean + variance."""

    name = "lsa"
    needs = base.LIKELIHOOD

    def rule(self, risk: Floats) -> float:
        return float(risk.mean() + risk.var())  # where surprises are spread wide, nothing exceeds it


class _Draws:
    """Examples in drawing order (Algorithm 1), any number at a time.

    Successive weighted draws without replacement come in the order of exponential arrival times with these rates, and
    successive uniform draws in the order of a shuffle. Either order remains valid for the examples that are left when
    the other takes some: two orders are drawn beforehand, and each draw takes the next example of one of them.
    """

    def __init__(self, weights: Floats, rng: np.random.Generator) -> None:
        suspects = np.flatnonzero(weights)
        arrivals = rng.exponential(size=len(suspects)) / weights[suspects]
        self._hunted: Iterator[int] = iter(suspects[np.argsort(arrivals)].tolist())
        self._shuffled: Iterator[int] = iter(rng.permutation(len(weights)).tolist())
        self._rng = rng
        self._taken: set[int] = set()

    def take(self, tests: int, share: float) -> Indices:
        """The next ones, of which that share are weighted draws; the very first of all is uniform."""
        weighted = self._rng.random(tests) < share
        drawn: list[int] = []
        for turn in weighted.tolist():
            order = self._hunted if turn and self._taken else self._shuffled
            # Uniform draws continue once no suspect is left.
            drawn.append(next(each for each in itertools.chain(order, self._shuffled) if each not in self._taken))
            self._taken.add(drawn[-1])
        return np.array(drawn, np.int64)


def _chances(weights: Floats, share: Floats | float, selected: Indices) -> Floats:
    """The probability with which each draw was made, given those before it (Eq. 5), the share of each with it."""
    drawn = weights[selected]
    untouched = np.delete(weights, selected).sum()
    # Summed from the end: what is left of a total after subtractions would drown in rounding.
    left = untouched + np.cumsum(drawn[::-1])[::-1]
    uniform = 1 / (len(weights) - np.arange(len(selected)))
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(left > 0, share * drawn / left + (1 - share) * uniform, uniform)
    chance[0] = uniform[0]
    return chance


def _unsuspected(population: int, sample: Sample) -> Part:
    """Failures among the unsuspected, a simple random sample; milder suspects, who fail more, help bound the rate."""
    level = sample.facts["level"]
    failed = sample.failed[level == 0]
    failures, draws = int(failed.sum()), len(failed)
    low, high = hypergeometric(failures, draws, population)
    centre = population * failures / draws if draws else (low + high) / 2
    both = sample.failed[level <= 1]
    if not len(both):
        return centre, low, high
    one_sided = failures == 0 and both.any()
    confidence = 2 * LEVEL - 1 if one_sided else LEVEL
    _, rate = beta(float(both.mean()), len(both), confidence)
    return centre, low, max(min(high, rate * population), centre)


def _suspects(size: int, sample: Sample) -> Part:
    """Failures among suspects: before a draw + outcome / chance is unbiased, and such terms are uncorrelated.

    The weights of their mean favour draws with few suspects left.
    """
    suspect = sample.facts["level"] > 0
    everything = float(sample.facts["suspects"][0])
    draws = int(suspect.sum())
    if not draws:
        return everything / 2, 0.0, everything
    failed = sample.failed[suspect].astype(float)
    left = sample.facts["suspects"][suspect].astype(float)
    remaining, share = sample.facts["suspects"].astype(float), sample.facts["share"][1:]
    any_suspect = remaining / (size - np.arange(len(remaining)))  # the probability that each draw is of a suspect
    any_suspect[1:] = np.where(remaining[1:] > 0, share + (1 - share) * any_suspect[1:], 0.0)
    chance = sample.facts["chance"][suspect] / any_suspect[suspect]
    each = np.cumsum(failed) - failed + failed / chance
    trust = 1 / left**2
    # As many simple random draws with replacement would be as precise if all chances were equal.
    equal = everything**2 * trust.sum()
    trust /= trust.sum()
    seen, unseen = failed.sum(), everything - draws
    centre = float(np.clip(trust @ each, seen, seen + unseen))
    rate = centre / everything
    variance = float((trust**2) @ (each - centre) ** 2) * draws / max(draws - 1, 1)
    spread = rate * (1 - rate) * everything**2
    effective = spread / max(variance, spread / equal) if spread > 0 else equal
    low, high = beta(rate, effective)
    return centre, max(low * everything, seen), min(high * everything, seen + unseen)
