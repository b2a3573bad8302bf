"""From estimates of tests to the mean over a region, with its bounds: over all its tests, or over some drawn evenly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids
from testifai.space import Selection
from testifai.statistics.intervals import disagree
from testifai.statistics.normal import half_widths
from testifai.strategies.clean import region_of
from testifai.support.bits import Bits, count_set
from testifai.surrogates.base import drawn_from, sampling_variance
from testifai.tomogram import own_trials
from testifai.tomogram.answers import Answer
from testifai.tomogram.chosen import DRAWN, DRAWN_EACH, FEWEST_SHARED, MOST_DRAWN, Chosen
from testifai.tomogram.estimates import Estimates
from testifai.tomogram.rates import Floats, RateTable

WORST = 5
SMALL = 1 / 3  # what the draw may add to an interval, as a part of what is there without it
CANDIDATES = 200  # tests with the lowest rates of their own trials, looked at for the worst of a sampled region


@dataclass(frozen=True, eq=False)
class Answering(Estimates):
    """The mean over a region and its bounds."""

    def _answer(self, chosen: Chosen, among: Bits | None, confidence: float, *, anytime: bool = False) -> Answer:
        held = self._looked(confidence) if anytime else confidence
        if not self.space.listed and not (len(chosen.ids) and self.predicts(among)):
            return self._from_trials(chosen, among, held)
        view, clean = self._rates(chosen, among, confidence, anytime=anytime)
        low, high = self._bounds(chosen, view, clean, among, held)
        wanted = 0 if chosen.drawn_from is None else _wanted(chosen, view.estimate, low, high, held)
        if wanted > len(chosen.ids):
            return self._answer(chosen.grown(wanted), among, confidence, anytime=anytime)
        base = self.base if among is None else float(clean.estimate[0])
        if chosen.drawn_from is None:
            return self._found(chosen, view, (low, high), base, int(np.count_nonzero(view.alone)))
        tried, measured = self._tried(chosen, among)
        others = tried, self.view(tried, among, confidence, anytime=anytime)
        return self._found(chosen, view, (low, high), base, measured, others)

    def _answers_by_sample(self, parts: Sequence[Selection]) -> list[Answer]:
        """The means over regions of a space with more tests than are listed, from those that stand for all of it.

        What is known of these is found out once for all regions. A region with too few of them has a sample of its own.
        """
        ids, seen = self.sample
        rows = self.space.matrix(ids)
        members = {number: part.holds(rows) for number, part in enumerate(parts)}
        enough = [number for number, of in members.items() if np.count_nonzero(of) >= FEWEST_SHARED]
        shared = {n: Chosen(ids[members[n]], parts[n].count, parts[n], self.seed) for n in enough}
        bounds = self._sampled_bounds(rows, seen, [members[n] for n in enough], [parts[n].count for n in enough])
        tried = {n: self._tried(chosen, None) for n, chosen in shared.items()}
        lowest = np.unique(np.concatenate([np.zeros(0, np.int64), *(candidates for candidates, _ in tried.values())]))
        known = self.view(lowest)
        answers = {}
        for n, bound in zip(enough, bounds, strict=True):
            candidates, measured = tried[n]
            others = candidates, known.at(np.searchsorted(lowest, candidates))
            answers[n] = self._found(shared[n], seen.at(members[n]), bound, self.base, measured, others)
        for n in members.keys() - answers.keys():
            answers[n] = self._answer(Chosen.some_of(parts[n], DRAWN_EACH, self.seed), None, 0.95)
        return [answers[n] for n in members]

    def _found(
        self,
        chosen: Chosen,
        view: RateTable,
        bounds: tuple[float, float],
        base: float,
        measured: int,
        others: tuple[Ids, RateTable] | None = None,
    ) -> Answer:
        """The mean of the chosen tests' estimates as an answer; with others that may be among the worst."""
        robustness, ids = float(view.estimate.mean()), chosen.ids
        if others is not None:
            ids, view = np.concatenate([ids, others[0]]), view.and_(others[1])
        return Answer(
            robustness=robustness,
            low=bounds[0],
            high=bounds[1],
            drop=robustness - base,
            tests=chosen.tests,
            measured=measured,
            inferred=chosen.tests - measured,
            worst=self._worst(ids, view.estimate, view.low, view.high),
        )

    def _from_trials(self, chosen: Chosen, among: Bits | None, confidence: float) -> Answer:
        """The mean over those tests of a region that were tried, from their own trials; nothing is said of others."""
        ids = self.measured_ids[chosen.contains(self.measured_ids)]
        free = own_trials.region(self.outcomes, ids, among, confidence, finite=self.population == "data")
        clean = own_trials.region(self.outcomes, self.measured_ids[:1], among).estimate
        view = self.view(ids, among, confidence)
        worst = self._worst(ids, view.estimate, view.low, view.high)
        return Answer(free.estimate, free.low, free.high, free.estimate - clean, chosen.tests, free.tests, 0, worst)

    def _tried(self, chosen: Chosen, among: Bits | None) -> tuple[Ids, int]:
        """Of a sampled region, tests that may be the worst by their own trials; and how many rest on these alone."""
        ids = self.measured_ids[chosen.contains(self.measured_ids)]
        passes, trials = self.outcomes.counts(ids, among)
        inputs = self.outcomes.inputs if among is None else int(count_set(among))
        rates = np.divide(passes, trials, out=np.ones(len(ids)), where=trials > 0)
        lowest = ids[np.argsort(rates, kind="stable")[:CANDIDATES]]
        return np.setdiff1d(lowest, chosen.ids), int(np.count_nonzero(self.alone(ids, trials, inputs)))

    def _rates(
        self, chosen: Chosen, among: Bits | None, confidence: float, *, anytime: bool
    ) -> tuple[RateTable, RateTable]:
        """Estimates of the chosen tests, and of the clean one: the drop is from there."""
        if not self.space.listed:
            found = self.view(np.concatenate([[0], chosen.ids]), among, confidence, anytime=anytime)
            return found.at(slice(1, None)), found.at(slice(1))
        usual = among is None and confidence == 0.95 and not anytime
        # A pooling surrogate keeps what it predicts: of a large space only what is asked for need be.
        if usual and (self.pooling(among) is None or self.estimated):
            whole = self._whole
        else:
            wanted = np.zeros(self.space.size, bool)
            wanted[0] = wanted[chosen.ids] = True
            whole = self.view(None, among, confidence, anytime=anytime, chosen=wanted)
        return whole.at(chosen.ids), whole.at(slice(1))

    def _bounds(
        self, chosen: Chosen, view: RateTable, clean: RateTable, among: Bits | None, confidence: float
    ) -> tuple[float, float]:
        """Of the mean over some tests: from the covariance of their errors where that is known, else mean bounds."""
        known = (float(clean.low[0]), float(clean.high[0])) if clean.alone[0] else None
        surrogate = None if known is not None and not chosen.ids.any() else self.pooling(among)
        if surrogate is not None:
            return region_of(surrogate, self.space, chosen.ids, known, confidence, chosen.tests)
        return _mean_bounds(view, chosen.tests, confidence)

    def _sampled_bounds(
        self, rows: NDArray[np.int64], seen: RateTable, members: Sequence[NDArray[np.bool_]], tests: Sequence[int]
    ) -> list[tuple[float, float]]:
        """Of the means over sets of sampled tests, each standing for so many."""
        surrogate = self.pooling()
        if surrogate is None:
            return [_mean_bounds(seen.at(of), size, 0.95) for of, size in zip(members, tests, strict=True)]
        return [found[1:] for found in surrogate.regions(rows, np.array(members), tests)]

    def _checked(self, answer: Answer, chosen: Chosen, among: Bits | None, confidence: float) -> Answer:
        """The answer with what the tests' own trials say, where it came from a surrogate and all of them have some.

        Where the two cannot both be right, that of the trials is the answer: it assumes nothing about the surface.
        """
        if chosen.drawn_from is not None or answer.inferred == 0 or self.pooling(among) is None:
            return answer
        if not np.isin(chosen.ids, self.measured_ids).all():
            return answer
        free = own_trials.region(self.outcomes, chosen.ids, among, confidence, finite=self.population == "data")
        if free.left_out:
            return answer
        found, modelled = (free.estimate, free.low, free.high), (answer.robustness, answer.low, answer.high)
        if not disagree(modelled, found):
            return replace(answer, model_free=found)
        return replace(
            answer,
            robustness=free.estimate,
            low=free.low,
            high=free.high,
            drop=answer.drop + free.estimate - answer.robustness,
            model_free=found,
            disagrees=True,
            modelled=modelled,
        )

    def _worst(self, ids: Ids, estimate: Floats, low: Floats, high: Floats) -> tuple[Any, ...]:
        if len(estimate) > WORST:
            limit = np.partition(estimate, WORST - 1)[WORST - 1]
            candidates = np.flatnonzero(estimate <= limit) if not np.isnan(limit) else np.arange(len(estimate))
        else:
            candidates = np.arange(len(estimate))
        lowest = candidates[np.argsort(estimate[candidates], kind="stable")][:WORST]
        return tuple(
            (self.space.configuration(int(ids[i])), float(estimate[i]), float(low[i]), float(high[i])) for i in lowest
        )


def _mean_bounds(view: RateTable, tests: int, confidence: float) -> tuple[float, float]:
    """Of the mean over tests, or over as many as they are a sample of, however their errors hang together."""
    mean, low, high = (float(one.mean()) for one in (view.estimate, view.low, view.high))
    return drawn_from(view.estimate, (mean, low, high), tests, confidence)[1:]


def _wanted(chosen: Chosen, rates: Floats, low: float, high: float, confidence: float) -> int:
    """The size of a larger sample, where the draw adds too much to the interval and there may be more; else 0."""
    if not DRAWN <= len(rates) < MOST_DRAWN or math.isnan(low):
        return 0
    drawn = float(half_widths(confidence)) * math.sqrt(sampling_variance(rates, chosen.tests))
    rest = math.sqrt(max(((high - low) / 2) ** 2 - drawn**2, 0.0))
    if drawn <= SMALL * rest:
        return 0
    return MOST_DRAWN if not rest else min(MOST_DRAWN, math.ceil(len(rates) * (drawn / (SMALL * rest)) ** 2))
