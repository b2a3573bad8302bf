"""Answers to queries: which tests and inputs an expression selects, and the mean over them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.predict import Scores, no_quality_in
from testifai.runs.outcomes import Ids
from testifai.space import Selection
from testifai.space import query as queries
from testifai.space.query import Query
from testifai.space.selection import values_of
from testifai.statistics.multiplicity import confidence_each
from testifai.support.bits import Bits, count_set, pack
from testifai.support.progress import note
from testifai.support.types import Array, Bools, Floats
from testifai.tomogram.answers import Answer, Answers, AnswersByAxis, Excluded, QueryInfo, RunCounts
from testifai.tomogram.estimator import Estimator
from testifai.tomogram.region_estimator import DRAWN, DRAWN_EACH, IN_A_TABLE, RegionEstimator, TestSample


@dataclass(frozen=True, eq=False)
class QueryEngine:
    """Answers to queries over the tests of a space.

    An `expression` is a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1";
    `inputs` is a query over `label`, such as "label in {3, 5}"; None: all inputs.
    """

    estimator: Estimator
    order: NDArray[np.intp]  # in which the inputs were visited
    labels: Array | None = None  # of the inputs
    classes: tuple[str, ...] | None = None  # names of the labels
    quality: Scores | None = None  # how plausible the inputs of each test are
    # Tables of answers that were requested before, by column and query.
    _tables: dict[tuple[str, str | None], Answers[int]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _regions(self) -> RegionEstimator:
        return RegionEstimator(self.estimator)

    def answer(self, expression: str, inputs: str | None = None, confidence: float = 0.95) -> Answer:
        sample, part = self.sample(expression), self.input_bits(inputs)
        answer = self._regions.checked(sample, part, confidence)
        answer = replace(answer, excluded=self._excluded(expression, part, confidence))
        return self._described(answer, expression, inputs, confidence, self._runs(sample, part))

    def bound(self, expression: str, inputs: str | None = None, *, looks: int = 1) -> Answer:
        """Return an answer with bounds for decisions: valid however often one looks, shared among `looks` questions.

        If the tests' own trials contradict the surrogate, the bounds are the outer ones of both.
        """
        confidence, sample, part = confidence_each(looks), self.sample(expression), self.input_bits(inputs)
        answer = self._regions.checked(sample, part, confidence, anytime=True)
        answer = self._described(answer, expression, inputs, confidence, self._runs(sample, part))
        if answer.modelled is None:
            return answer
        _, low, high = answer.modelled
        return replace(answer, low=min(low, answer.low), high=max(high, answer.high))

    def own_inputs(self, expression: str, inputs: str | None = None) -> int:
        return self._regions.own_inputs(self.sample(expression), self.input_bits(inputs))

    def by_class(self) -> Answers[str]:
        answers: dict[str, Answer] = {}
        if self.labels is not None and self.labels.ndim == 1 and self.labels.dtype.kind != "f":
            regions, pooled = self._regions, self.estimator.pooled
            measured = self.estimator.measured_ids
            for label in np.unique(self.labels):
                name = self.classes[int(label)] if self.classes else str(label)
                part = pack((self.labels == label)[self.order])
                # Fitting a surrogate for each class would take long.
                if pooled:
                    answers[name] = regions.raw_answer(measured, part)
                else:
                    answers[name] = regions.answer(TestSample.all_of(measured), part)
        return Answers(answers, "class", self.estimator.settings.quantity)

    def by(self, column: str, within: str | None = None) -> Answers[int]:
        if (column, within) not in self._tables:
            self._keep(column, within, self._means(column, within))
        return copy.copy(self._tables[column, within])

    def by_severity(self, within: str | None = None) -> AnswersByAxis:
        space = self.estimator.space
        if not space.listed and self.estimator.predicts():
            wanted = [name for name in space.names if (name, within) not in self._tables]
            parts = {name: self._parts(name, within) for name in wanted}
            if wanted:
                note("estimating the means for each severity")
            answers = iter(self._regions.answers_by_sample([part for one in parts.values() for part in one.values()]))
            for name, one in parts.items():
                self._keep(name, within, {value: next(answers) for value in one})
        return AnswersByAxis({name: self.by(name, within) for name in space.names})

    def select(self, expression: str) -> Bools:
        """Return which tests an expression selects, flat by configuration id; selecting none is an error."""
        if not self.estimator.space.listed:
            raise self.estimator.not_listed("select")
        compiled = self._compiled(expression)
        selected = self._matches(compiled, None if self.quality is None else self.quality.estimate)
        if not selected.any():
            raise self._selects_none(compiled)
        return selected

    def selection(self, expression: str) -> Selection:
        compiled = self._compiled(expression)
        found = Selection(self.estimator.space, compiled)
        if not found.count:
            raise self._selects_none(compiled)
        return found

    def sample(self, expression: str) -> TestSample:
        if self.estimator.space.listed:
            return TestSample.all_of(np.flatnonzero(self.select(expression)))
        return self._some_of(self.selection(expression), DRAWN)

    def input_bits(self, inputs: str | None) -> Bits | None:
        """Return the inputs that an expression selects, as bits in visiting order; selecting none is an error."""
        if inputs is None:
            return None
        if self.labels is None or self.labels.ndim != 1:
            raise InputError("inputs: this run has no labels to choose inputs by")
        levels = {"label": {name: number for number, name in enumerate(self.classes or ())}}
        try:
            compiled = queries.compile(inputs, ["label"], levels)
        except InputError as error:
            raise InputError(f"inputs: {error}") from error
        selected = np.broadcast_to(compiled.evaluate({"label": self.labels}), self.labels.shape)
        if not selected.any():
            text, known = queries.printable(inputs, 200), listing(np.unique(self.labels))
            raise InputError(f'inputs: "{text}" selects no input (labels are {known})')
        # A class without inputs and without a name is a typo.
        classes = np.union1d(self.labels, np.arange(len(self.classes or ())))
        if len(unknown := np.setdiff1d(compiled.equated("label"), classes)):
            raise InputError(f"inputs: there is no label {listing(unknown)} (labels are {listing(classes)})")
        return pack(selected[self.order])

    def _some_of(self, selection: Selection, most: int) -> TestSample:
        return TestSample.some_of(selection, most if self.estimator.predicts() else 0, self.estimator.settings.seed)

    def _excluded(self, expression: str, among: Bits | None, confidence: float) -> Excluded | None:
        compiled = self._compiled(expression)
        if self.quality is None or "quality" not in compiled.names:
            return None
        selected = self.select(expression)
        rest = compiled.without("quality")
        region = np.ones(len(selected), bool) if rest is None else self._matches(rest, None)
        ends = [self._matches(compiled, bound) for bound in (self.quality.low, self.quality.high)]
        known = ~np.isnan(self.quality.low.reshape(-1))
        doubtful = int(np.count_nonzero(known & ((ends[0] != selected) | (ends[1] != selected))))
        outside = region & ~selected
        if not outside.any():
            return Excluded(0, doubtful, np.nan, np.nan, np.nan)
        answer = self._regions.answer(TestSample.all_of(np.flatnonzero(outside)), among, confidence)
        return Excluded(answer.tests, doubtful, answer.robustness, answer.low, answer.high)

    def _means(self, column: str, within: str | None) -> dict[int, Answer]:
        space = self.estimator.space
        if not space.listed:
            note(f"estimating the means for each value of {column}")
            parts = self._parts(column, within)
            most = min(DRAWN_EACH, IN_A_TABLE // max(1, len(parts)))
            samples = {value: self._some_of(part, most) for value, part in parts.items()}
        else:
            values = space.severities(column)
            selected = np.arange(len(values)) if within is None else np.flatnonzero(self.select(within))
            samples = {
                int(value): TestSample.all_of(selected[values[selected] == value])
                for value in np.unique(values[selected])
            }
        return {value: self._regions.answer(sample) for value, sample in samples.items()}

    def _keep(self, column: str, within: str | None, found: Mapping[int, Answer]) -> None:
        narrowed = "" if within is None else f"({within}) and "
        space, tried = self.estimator.space, self._measured(within)
        values = space.columns_of(space.matrix(tried))[column]
        described = {
            value: self._described(
                one,
                f"{narrowed}{column} == {value}",
                runs=self.estimator.run_counts(tried[values == value], one.tests),
            )
            for value, one in found.items()
        }
        self._tables[column, within] = Answers(described, column, self.estimator.settings.quantity)

    def _parts(self, column: str, within: str | None) -> dict[int, Selection]:
        space = self.estimator.space
        whole = Selection(space) if within is None else self.selection(within)
        parts = {value: whole.narrowed(f"{column} == {value}") for value in values_of(space, column)}
        return {value: part for value, part in parts.items() if part.count}

    def _measured(self, within: str | None) -> Ids:
        """Return the tests with outcomes that a query selects."""
        measured = self.estimator.measured_ids
        if within is None:
            return measured
        listed = self.estimator.space.listed
        chosen = TestSample.all_of(np.flatnonzero(self.select(within))) if listed else self.selection(within)
        return measured[chosen.contains(measured)]

    def _runs(self, sample: TestSample, among: Bits | None) -> RunCounts:
        measured = self.estimator.measured_ids
        return self.estimator.run_counts(measured[sample.contains(measured)], sample.tests, among)

    def _described(
        self,
        answer: Answer,
        query: str,
        inputs: str | None = None,
        confidence: float = 0.95,
        runs: RunCounts | None = None,
    ) -> Answer:
        worst = tuple(self.estimator.space.words(sigma) for sigma, *_ in answer.worst)
        among, settings = self.input_bits(inputs), self.estimator.settings
        count = self.estimator.outcomes.inputs if among is None else int(count_set(among))
        only = count if settings.finite else None
        return replace(answer, info=QueryInfo(query, worst, settings.quantity, inputs, confidence, runs, only))

    def _selects_none(self, compiled: Query) -> InputError:
        space = self.estimator.space
        ranges = "; ".join(f"{a.name}: {', '.join(map(str, a.severities))}" for a in space.axes)
        if self.quality is not None and "quality" in compiled.names:
            ranges += f"; quality: {np.nanmin(self.quality.estimate):.3g} to {np.nanmax(self.quality.estimate):.3g}"
        text, most = queries.printable(compiled.text, 200), space.max_order
        cap = f"of at most {most} at once, " if most < len(space.axes) else ""
        return InputError(f'query: "{text}" selects no test ({cap}severities are {ranges})')

    def _compiled(self, expression: str) -> Query:
        space = self.estimator.space
        compiled = queries.compile(expression, [*space.column_names, "quality"], space.levels, space.sequenced)
        if "quality" in compiled.names and not space.listed:
            raise no_quality_in(space, f"accepted in its queries: {', '.join(space.column_names)}")
        if "quality" in compiled.names and self.quality is None:
            text = queries.printable(expression, 200)
            raise InputError(
                f'query: "{text}" asks for quality, which this run did not measure; add quality = "kid" '
                '(texts: "edit_similarity") to the spec\'s [scan], and run it again'
            )
        return compiled

    def _matches(self, compiled: Query, quality: Floats | None) -> Bools:
        applied: Query | None = compiled
        columns: Mapping[str, Array] = self.estimator.space.columns()
        if quality is not None and "quality" in compiled.names:
            columns = {**{name: columns[name] for name in compiled.names - {"quality"}}, "quality": quality}
            if np.isnan(quality).all():
                applied = compiled.without("quality")  # before a run has started it excludes nothing
        matches = np.array(True) if applied is None else applied.evaluate(columns)
        return np.broadcast_to(matches, self.estimator.space.shape).reshape(-1)


def listing(values: Sequence[object] | Array) -> str:
    return ", ".join(map(str, values[:12])) + (", …" if len(values) > 12 else "")
