"""From estimates of tests to the mean over a region, with its bounds: over all its tests, or over some drawn evenly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.predict import no_quality_in
from testifai.runs.outcomes import Ids
from testifai.space import Selection
from testifai.space import query as queries
from testifai.space.query import Query
from testifai.statistics.intervals import disagree, half_widths
from testifai.strategies.clean import region_of
from testifai.support.bits import Bits, count_set
from testifai.support.types import Array, Bools, Floats
from testifai.surrogates.base import drawn_from, sampling_variance
from testifai.tomogram import region_means
from testifai.tomogram.answers import Answer, RateTable
from testifai.tomogram.estimator import Estimates

DRAWN = 2_000  # tests that first stand for a region of more than are listed, and at most
MOST_DRAWN = 6_000
IN_A_TABLE = 6_000  # for all rows of a table together, and for each at most
DRAWN_EACH = 400
FEWEST_SHARED = 100  # tests of a sample of the whole space that are enough for a region of it


@dataclass(frozen=True)
class Chosen:
    """So many tests, and the ids of all of them or of a sample in which each is as likely as any other."""

    ids: Ids = field(repr=False)
    tests: int
    drawn_from: Selection | None = None  # where the ids are a sample
    seed: int = 0

    @classmethod
    def all_of(cls, ids: Ids) -> Chosen:
        """Tests that are listed."""
        return cls(ids, len(ids))

    @classmethod
    def some_of(cls, selection: Selection, most: int, seed: int) -> Chosen:
        """So many of what is selected, the same ones each time; all where there are no more."""
        ids = selection.sample(most, np.random.default_rng([seed, 2]))
        return cls(ids, selection.count, selection if len(ids) < selection.count else None, seed)

    def grown(self, most: int) -> Chosen:
        """A sample of another size."""
        assert self.drawn_from is not None
        return Chosen.some_of(self.drawn_from, most, self.seed)

    def contains(self, ids: Ids) -> Bools:
        """Which of these tests are among those chosen, drawn or not."""
        return np.isin(ids, self.ids) if self.drawn_from is None else self.drawn_from.contains(ids)


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
        free = region_means.region(self.outcomes, ids, among, confidence, finite=self.population == "data")
        clean = region_means.region(self.outcomes, self.measured_ids[:1], among).estimate
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
        self, rows: NDArray[np.int64], seen: RateTable, members: Sequence[Bools], tests: Sequence[int]
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
        free = region_means.region(self.outcomes, chosen.ids, among, confidence, finite=self.population == "data")
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


@dataclass(frozen=True, eq=False)
class Selecting(Answering):
    """Queries over a run's tests."""

    def select(self, expression: str) -> Bools:
        """Which tests an expression selects, flat by configuration id; selecting none is an error.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        if not self.space.listed:
            raise self.not_listed("select")
        compiled = self._compiled(expression)
        chosen = self._holds(compiled, None if self.quality is None else self.quality.estimate)
        if not chosen.any():
            raise self._selects_none(compiled)
        return chosen

    def selection(self, expression: str) -> Selection:
        """What an expression selects, however many tests that are; selecting none is an error.

        It knows the number of its tests, draws some of them, and tells whether a test is one of them.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        compiled = self._compiled(expression)
        found = Selection(self.space, compiled)
        if not found.count:
            raise self._selects_none(compiled)
        return found

    def chosen(self, expression: str) -> Chosen:
        """The tests that an expression selects, or a sample of them where they are more than are listed.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        if self.space.listed:
            return Chosen.all_of(np.flatnonzero(self.select(expression)))
        return Chosen.some_of(self.selection(expression), self._standing(DRAWN), self.seed)

    def _selects_none(self, compiled: Query) -> InputError:
        ranges = "; ".join(f"{a.name}: {', '.join(map(str, a.severities))}" for a in self.space.axes)
        if self.quality is not None and "quality" in compiled.names:
            ranges += f"; quality: {np.nanmin(self.quality.estimate):.3g} to {np.nanmax(self.quality.estimate):.3g}"
        asked, most = queries.printable(compiled.text, 200), self.space.max_order
        cap = f"of at most {most} at once, " if most < len(self.space.axes) else ""
        return InputError(f'query: "{asked}" selects no test ({cap}severities are {ranges})')

    def _compiled(self, expression: str) -> Query:
        compiled = queries.compile(
            expression, [*self.space.column_names, "quality"], self.space.levels, self.space.sequenced
        )
        if "quality" in compiled.names and not self.space.listed:
            raise no_quality_in(self.space, f"accepted in its queries: {', '.join(self.space.column_names)}")
        if "quality" in compiled.names and self.quality is None:
            asked = queries.printable(expression, 200)
            raise InputError(
                f'query: "{asked}" asks for quality, which this run did not measure; add quality = "kid" '
                '(texts: "edit_similarity") to the spec\'s [scan], and run it again'
            )
        return compiled

    def _holds(self, compiled: Query, quality: Floats | None) -> Bools:
        """Where a query holds, flat by configuration id, if the tests' quality were this."""
        asked: Query | None = compiled
        columns: Mapping[str, Array] = self.space.columns()
        if quality is not None and "quality" in compiled.names:
            columns = {**{name: columns[name] for name in compiled.names - {"quality"}}, "quality": quality}
            if np.isnan(quality).all():
                asked = compiled.without("quality")  # before a run has begun it excludes nothing
        holds = np.array(True) if asked is None else asked.evaluate(columns)
        return np.broadcast_to(holds, self.space.shape).reshape(-1)

    def _standing(self, most: int) -> int:
        """How many tests stand for a region of more than are listed; none where nothing is predicted."""
        return most if self.predicts() else 0
