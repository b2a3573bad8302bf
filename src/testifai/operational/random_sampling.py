"""Simple random sampling, stratified sampling by confidence, and the exact intervals that techniques share.

Simple random sampling with and without replacement: DeepEST, Eqs. 1-3. Strata: Li et al., "Boosting operational DNN
testing efficiency through conditioning" (ESEC/FSE 2019), with the authors' figures: the most confident 80 %, the next
10 % and the last 10 % get 20, 40 and 40 % of the labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from testifai.errors import InputError
from testifai.operational.base import CONFIDENCE, NOTHING, Frame, Indices, Plan, Sample, needed
from testifai.statistics import intervals as statistics
from testifai.statistics.intervals import half_widths
from testifai.support import validation
from testifai.support.types import Floats

Part = tuple[float, float, float]  # estimate, low, high of the failures in a part of the population
LEVEL = 0.95


# Repeated experiments need the same few limits again and again.
@lru_cache(maxsize=4096)
def hypergeometric(failures: int, tests: int, population: int) -> tuple[float, float]:
    """Exact limits for the failures in a population of which some were drawn at random without replacement.

    Each side has half the error rate; if none (or all) failed, one side has the whole: the "rule of three", 3 / tests
    (Hanley and Lippman-Hand, JAMA 249, 1983).
    """
    if tests == 0:
        return 0.0, float(population)
    errors = _errors(failures == 0, failures == tests, LEVEL)
    low, high = statistics.hypergeometric(failures, tests, population, errors)
    return float(low), float(high)


@lru_cache(maxsize=4096)
def _exact_share(passes: int, draws: int, population: int | None) -> tuple[float, float]:
    """Exact limits for the share that passes: Clopper and Pearson (Biometrika 26, 1934), or hypergeometric."""
    low, high = statistics.exact(passes, draws, population, LEVEL)
    return float(low), float(high)


def _errors(none: bool, all_failed: bool, confidence: float) -> tuple[float, float]:
    error = 1 - confidence
    return (error if all_failed else error / 2), (error if none else error / 2)


def beta(rate: float, effective: float, confidence: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's limits for a rate as uncertain as that of `effective` draws (Korn and Graubard 1998)."""
    return statistics.clopper_pearson(rate * effective, effective, _errors(rate == 0, rate == 1, confidence))


def total(parts: Iterable[Part]) -> Part:
    """Estimate and limits of a sum of independent parts: distances add up in squares (Zou and Donner 2008)."""
    table = np.array(list(parts), float)
    centre = table[:, 0].sum()
    below = np.sqrt(((table[:, 0] - table[:, 1]) ** 2).sum())
    above = np.sqrt(((table[:, 2] - table[:, 0]) ** 2).sum())
    return float(centre), float(centre - below), float(centre + above)


class SimpleRandom:
    """Every example is as likely as any other; any first part of the draws is such a sample too."""

    name = "srs"
    needs = NOTHING
    assumes = "nothing but the labels: it is exact, whatever the model and the data"

    def __init__(self, *, replacement: bool = False) -> None:
        self.replacement = replacement

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        if self.replacement:
            yield rng.integers(frame.size, size=tests)
        else:
            yield rng.permutation(frame.size)[:tests]
        return {}

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        return share(sample, None if self.replacement else frame.size)


def share(sample: Sample, population: int | None) -> tuple[float, float, float]:
    draws = len(sample.failed)
    passes = draws - int(sample.failed.sum())
    return passes / draws, *_exact_share(passes, draws, population)


SHARES = (0.8, 0.1, 0.1)  # of the examples, from least to most risky
LABELS = (0.2, 0.4, 0.4)


class Stratified:
    """Examples in order of risk are cut into strata, and each is sampled at random without replacement.

    Fact per draw: `stratum`. Draws take turns between strata, so that any first part of them is a stratified sample
    too. With `trusting`, the interval is narrower and depends on the risks, not on labels alone.
    """

    name = "css"
    needs = CONFIDENCE

    def __init__(
        self, *, shares: Sequence[float] = SHARES, labels: Sequence[float] = LABELS, trusting: bool = False
    ) -> None:
        for field, given in (("shares", shares), ("labels", labels)):
            if len(given) != len(shares) or min(given) <= 0 or abs(sum(given) - 1) > 1e-9:
                raise InputError(f"{field}: {list(given)}; expected a positive share per stratum, 1 in all")
        self.shares = np.asarray(shares, float)
        self.labels = np.asarray(labels, float)
        self.trusting = validation.flag("trusting", trusting)

    @property
    def assumes(self) -> str:
        if self.trusting:
            return "that strata without a failure are as safe as their risks say"
        return "nothing about the risks: the exact intervals of the strata, added up as independent ones"

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        strata = self.strata(needed(frame, self.name))
        turns = _turns(self.labels, np.array([len(each) for each in strata]), tests)
        selected = np.empty(tests, np.int64)
        for number, each in enumerate(strata):
            here = turns == number
            selected[here] = rng.permutation(each)[: np.count_nonzero(here)]
        yield selected
        return {"stratum": turns}

    def strata(self, risk: Floats) -> list[Indices]:
        order = np.argsort(risk, kind="stable")
        cuts = np.round(np.cumsum(self.shares)[:-1] * len(risk)).astype(int)
        return np.split(order, cuts)

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        """Rates of the strata, weighted by their sizes; their exact intervals are added as independent ones."""
        risk = needed(frame, self.name)
        strata = self.strata(risk)
        stratum = sample.facts["stratum"].astype(int)
        draws = np.bincount(stratum, minlength=len(strata)).astype(float)
        failures = np.bincount(stratum[sample.failed], minlength=len(strata)).astype(float)
        level = risk - min(risk.min(), 0.0)
        expected = _expected(np.array([level[each].mean() if len(each) else 0.0 for each in strata]), draws, failures)
        riskiest = max(number for number, members in enumerate(strata) if len(members))
        parts: list[Part] = []
        for number, members in enumerate(strata):
            size, failed, drawn = len(members), int(failures[number]), int(draws[number])
            if not drawn:  # not reached yet, or empty
                parts.append((size * float(sample.failed.mean()), 0.0, float(size)))
                continue
            low, high = hypergeometric(failed, drawn, size)
            if self.trusting and number != riskiest and not failed:
                high = min(high, half_widths() * np.sqrt(expected[number] / drawn) * size)
            parts.append((size * failed / drawn, low, high))
        failing, fewest, most = total(parts)
        return 1 - failing / frame.size, max(0.0, 1 - most / frame.size), min(1.0, 1 - fewest / frame.size)


def _turns(labels: Floats, capacity: Indices, tests: int) -> Indices:
    """Which stratum each draw is from: turns at even distances, the closer the larger a stratum's share."""
    due = [(np.arange(min(room, tests)) + 0.5) / share for share, room in zip(labels, capacity, strict=True)]
    strata = np.repeat(np.arange(len(due)), [len(each) for each in due])
    return strata[np.argsort(np.concatenate(due), kind="stable")][:tests]


def _expected(means: Floats, draws: Floats, failures: Floats) -> Floats:
    """The failure rate of each stratum if rates grow as a power of the mean risk.

    Factor and power are those under which the failures seen are most likely (as Poisson counts), with a normal prior
    on the power of mean 1/2 and deviation 1/4: networks are sure of themselves more often than they are right, and
    their failures thin out more slowly than their risks. Where none failed, as if one had.
    """
    level = np.log(np.maximum(means, 1e-12 * means.max())) if means.max() > 0 else np.zeros(len(means))
    seen = failures if failures.any() else draws / draws.sum()
    powers = np.linspace(0, 2, 81)
    foreseen = np.exp(powers[:, None] * level) @ draws
    evidence = powers * (seen @ level) - seen.sum() * np.log(foreseen) - 8 * (powers - 0.5) ** 2
    best = int(np.argmax(evidence))
    return np.asarray(np.minimum(np.exp(powers[best] * level) * seen.sum() / foreseen[best], 1.0))
