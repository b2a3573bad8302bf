"""The finished result: what was measured and estimated, and answers to queries over it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import ScoredOutcomes
from testifai.space import Selection
from testifai.space import query as queries
from testifai.space.selection import values_of
from testifai.statistics.multiplicity import confidence_each
from testifai.support.bits import Bits, pack
from testifai.support.progress import note
from testifai.support.types import Array, Bools, RecordLike
from testifai.support.views import view
from testifai.tomogram import region_means
from testifai.tomogram.answers import Answer, Answers, AnswersByAxis, Asked, Excluded
from testifai.tomogram.average_precision import AveragePrecision, average_precision
from testifai.tomogram.benchmark import Benchmark, benchmark
from testifai.tomogram.profile import Expected, expected
from testifai.tomogram.query_engine import DRAWN_EACH, IN_A_TABLE, Chosen, Selecting

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, eq=False)
class Tomogram(Selecting):
    """Everything that is known about a model in a space of conditions.

    The bounds of an answer are the mean bounds of its tests, which is conservative, since tests share inputs; where a
    surrogate knows how their errors hang together, bounds from that.

    Attributes:
        space: the conditions
        outcomes: what was tried, and what passed
        order: in which the inputs were visited
        labels: of the inputs; None: there are none
        classes: their names
        population: whether answers are about exactly these inputs, 'data', or about new ones like them, 'future'
        stopped_early: whether a stopping rule ended tests
        surrogate: what estimates every test: a name, an object, or None for raw rates
        seed: of the run
        provenance: what else the run file says of it
        quality: how plausible the inputs of each test are; None: not measured
        ended_by_width: whether the rule looked at nothing but widths
        score: the score that this is about; None: pass rates
    """

    # What else there is to know of the same trials, by the name of a score.
    _views: dict[str | None, Tomogram] = field(default_factory=dict, init=False, repr=False)
    # Tables of answers that were asked for already, by the column and the query they are about.
    _tables: dict[tuple[str, str | None], Answers[int]] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return (
            f"<Tomogram of {self.space.size:,} tests over {_listing(np.array(self.space.names))}: "
            f"{len(self.outcomes):,} tried, {self.inferences:,} inferences, {self.clean_quantity} {self.base:.3f}>"
        )

    # -- questions ----------------------------------------------------------------------------------------------

    @property
    def scores(self) -> tuple[str, ...]:
        """The scores that the run's oracle gave every trial, beside whether it passed."""
        return tuple((self.provenance.get("identity") or {}).get("scores") or ())

    def scored(self, name: str | None) -> Tomogram:
        """What there is to know about the mean of a score, in all the words of pass rates; None: these themselves.

        Every trial counts by its score. Whatever takes a tomogram takes this one.

        Args:
            name: of a score of the run's oracle; None: pass rates
        """
        if name == self.score:
            return self
        if name is not None and name not in self.scores:
            raise self._no_score(name)
        if name not in self._views:
            outcomes = self.outcomes.plain() if name is None else ScoredOutcomes.of(self.outcomes)
            # One that was given as an object is fitted on what it was given for: this wants another.
            named = isinstance(self.surrogate, str | dict | None)
            surrogate = self.surrogate if named else copy.deepcopy(self.surrogate)
            self._views[name] = replace(self, outcomes=outcomes, surrogate=surrogate, score=name)
        return self._views[name]

    def _no_score(self, name: str) -> InputError:
        if self.scores:
            return InputError(f"score: this run has no {name!r}; accepted: {', '.join(self.scores)}")
        return InputError(
            f"score: this run has no {name!r}: its oracle gives trials no score, or it was made before there were any; "
            "run it again with an oracle that does, such as detection"
        )

    def query(
        self, expression: str, inputs: str | None = None, *, confidence: float = 0.95, score: str | None = None
    ) -> Answer:
        """The mean robustness over the tests an expression selects, for all inputs or a part of them.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
            inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all
            confidence: of the interval, above 0 and below 1
            score: the name of a score, such as "f1", whose mean is asked for; None: the pass rate
        """
        if score is not None:
            return self.scored(score).query(expression, inputs, confidence=confidence)
        chosen, part = self.chosen(expression), self._part(inputs)
        answer = self._checked(self._answer(chosen, part, confidence), chosen, part, confidence)
        answer = replace(answer, excluded=self._excluded(expression, part, confidence))
        return self._about(answer, expression, inputs, confidence)

    def queries(self, expressions: Sequence[str], inputs: str | None = None) -> list[Answer]:
        """Answers to several queries whose intervals hold together, all at once, at 95 % (Bonferroni).

        Args:
            expressions: queries, as for `query`
            inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all
        """
        return [self.query(one, inputs, confidence=confidence_each(len(expressions))) for one in expressions]

    def _excluded(self, expression: str, among: Bits | None, confidence: float) -> Excluded | None:
        """What a query's limit on quality leaves out; None where it has no such limit."""
        compiled = self._compiled(expression)
        if self.quality is None or "quality" not in compiled.names:
            return None
        chosen = self.select(expression)
        rest = compiled.without("quality")
        region = np.ones(len(chosen), bool) if rest is None else self._holds(rest, None)
        ends = [self._holds(compiled, bound) for bound in (self.quality.low, self.quality.high)]
        known = ~np.isnan(self.quality.low.reshape(-1))
        doubtful = int(np.count_nonzero(known & ((ends[0] != chosen) | (ends[1] != chosen))))
        outside = region & ~chosen
        if not outside.any():
            return Excluded(0, doubtful, np.nan, np.nan, np.nan)
        answer = self._answer(Chosen.all_of(np.flatnonzero(outside)), among, confidence)
        return Excluded(answer.tests, doubtful, answer.robustness, answer.low, answer.high)

    def bound(self, expression: str, inputs: str | None = None, *, looks: int = 1) -> Answer:
        """A query's answer with bounds for decisions: valid however often one looks, shared among `looks` questions.

        They are those of the surrogate, where one stands behind the answer. Where the tests' own trials contradict it,
        one of the two misleads: the bounds are the outer ones of both.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
            inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all
            looks: how many questions share the 5 % risk
        """
        confidence = confidence_each(looks)
        chosen, part = self.chosen(expression), self._part(inputs)
        answer = self._answer(chosen, part, confidence, anytime=True)
        answer = self._checked(answer, chosen, part, self._looked(confidence))
        answer = self._about(answer, expression, inputs, confidence)
        if answer.modelled is None:
            return answer
        _, low, high = answer.modelled
        return replace(answer, low=min(low, answer.low), high=max(high, answer.high))

    def average_precision(
        self, expression: str, *, iou: float | None = None, confidence: float = 0.95
    ) -> AveragePrecision:
        """COCO's mean average precision over the tests an expression selects, from kept detections.

        It is the mean of the tests' own, at one threshold of overlap `iou` or over the ten from 0.5 to 0.95, with an
        interval for images like these. Needs a run with `keep = ["detections"]`.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
            iou: the least overlap of boxes that belong together; None: the mean over the ten from 0.5 to 0.95
            confidence: of the interval, above 0 and below 1
        """
        chosen, tried = self.chosen(expression), self.measured_ids
        ids = tried[chosen.contains(tried)]
        return average_precision(self.outcomes, ids, chosen.tests, iou=iou, confidence=confidence, seed=self.seed)

    def plot(
        self,
        kind: str | None = None,
        query: str | None = None,
        *,
        axes: Sequence[str] | None = None,
        score: str | None = None,
        dark: bool = False,
    ) -> Figure:
        """A plotly figure: "pairs" of axes, a "region" (with its query), "orders", "severities", "worst", …

        Another kind is an InputError that lists all of them.

        Args:
            kind: what to draw; None: pairs of axes or, where no two act at once, severities
            query: the region, for the kinds that take one
            axes: those to show; None: all, or as many as fit
            score: the name of a score whose mean is drawn; None: pass rates
            dark: whether for a dark page

        >>> import testifai as ta
        >>> rows = np.linspace(0, 1, 40)[:, None]
        >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
        >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
        >>> space = ta.Space({"up": shift, "on": shift})
        >>> run = ta.scan(model, (rows, model(rows)), space, strategy="full")
        >>> run.plot("orders").layout.title.text
        'robustness by order'
        """
        shown = self if score is None else self.scored(score)
        figure: Figure = view("tomogram as a figure")(shown, kind, query, axes=axes, dark=dark)
        return figure

    def to_pandas(self) -> Any:
        """A DataFrame with a row for every test (extra `pandas`)."""
        return view("tomogram as a data frame")(self)

    def to_xarray(self) -> Any:
        """A Dataset whose dimensions are the axes of the space (extra `xarray`)."""
        return view("tomogram as a dataset")(self)

    def _repr_html_(self) -> str:
        html: str = view("tomogram in a notebook")(self)
        return html

    def expected(self, profile: Any, given: RecordLike | None = None) -> Expected:
        """The robustness to expect in operation, tests weighted by how probable their conditions are.

        See `testifai.tomogram.profile.expected`.

        Args:
            profile: how probable severities are: a `Profile`, its statements, or an array of the space's shape
            given: states that are known, such as {"weather": "rain"}; None: nothing is
        """
        return expected(self, profile, given)

    def benchmark(self, suite: str | None = None, baseline: Any = None) -> Benchmark:
        """What papers report of a suite: mean accuracy over single perturbations, mCE, relative mCE, the worst one.

        Args:
            suite: its name; None: told from the axes
            baseline: what errors are divided by: another run of the suite, or errors by perturbation,
                {"fog": 0.82, …, "clean": 0.435}, both taken as exact; None: for ImageNet-C those published of AlexNet
        """
        return benchmark(self, suite, baseline)

    def by_class(self) -> Answers[str]:
        """For each class, the mean robustness over the tests that were tried."""
        answers: dict[str, Answer] = {}
        if self.labels is not None and self.labels.ndim == 1 and self.labels.dtype.kind != "f":
            measured, pooled = Chosen.all_of(self.measured_ids), self.pooled
            for label in np.unique(self.labels):
                name = self.classes[int(label)] if self.classes else str(label)
                part = self._bits(self.labels == label)
                answers[name] = self._raw(part) if pooled else self._answer(measured, part, 0.95)
        return Answers(answers, "class", self.quantity)

    def _raw(self, among: Bits) -> Answer:
        """The mean over the tests tried from their own trials alone: a surrogate for each class would take long."""
        free = region_means.region(self.outcomes, self.measured_ids, among, finite=self.population == "data")
        drop = free.estimate - region_means.region(self.outcomes, self.measured_ids[:1], among).estimate
        return Answer(free.estimate, free.low, free.high, drop, free.tests, free.tests, 0, ())

    def by_order(self) -> Answers[int]:
        """For each order, the mean robustness over its tests."""
        return self._by("order")

    def by_severity(self, within: str | None = None) -> AnswersByAxis:
        """For each axis and severity, the mean robustness over its tests, or over those that a query selects too.

        Args:
            within: a query that the tests must fulfil as well; None: all tests
        """
        names = self.space.names
        if self.space.listed or not self.predicts():
            return AnswersByAxis({name: self._by(name, within) for name in names})
        wanted = [name for name in names if (name, within) not in self._tables]
        if wanted:
            note("estimating the means for each severity")
            parts = {name: self._parts(name, within) for name in wanted}
            answers = iter(self._answers_by_sample([part for one in parts.values() for part in one.values()]))
            for name, one in parts.items():
                self._keep(name, within, {value: next(answers) for value in one})
        return AnswersByAxis({name: self._by(name, within) for name in names})

    def by_severity_sum(self) -> Answers[int]:
        """For each sum of severities, the mean robustness over its tests."""
        return self._by("severity")

    # -- inside -------------------------------------------------------------------------------------------------

    def _by(self, column: str, within: str | None = None) -> Answers[int]:
        """For each value of a column, the mean robustness over its tests, or over those that a query selects too."""
        if (column, within) not in self._tables:
            self._keep(column, within, self._means(column, within))
        return copy.copy(self._tables[column, within])

    def _means(self, column: str, within: str | None) -> dict[int, Answer]:
        if not self.space.listed:
            note(f"estimating the means for each value of {column}")
            parts = self._parts(column, within)
            drawn = self._standing(min(DRAWN_EACH, IN_A_TABLE // max(1, len(parts))))
            return {
                value: self._answer(Chosen.some_of(part, drawn, self.seed), None, 0.95) for value, part in parts.items()
            }
        values = np.broadcast_to(self.space.columns()[column], self.space.shape).reshape(-1)
        selected = np.arange(len(values)) if within is None else np.flatnonzero(self.select(within))
        return {
            int(value): self._answer(Chosen.all_of(selected[values[selected] == value]), None, 0.95)
            for value in np.unique(values[selected])
        }

    def _keep(self, column: str, within: str | None, found: Mapping[int, Answer]) -> None:
        narrowed = "" if within is None else f"({within}) and "
        told = {value: self._about(one, f"{narrowed}{column} == {value}") for value, one in found.items()}
        self._tables[column, within] = Answers(told, column, self.quantity)

    def _parts(self, column: str, within: str | None) -> dict[int, Selection]:
        """For each value of a column, the tests that have it."""
        whole = Selection(self.space) if within is None else self.selection(within)
        parts = {value: whole.narrowed(f"{column} == {value}") for value in values_of(self.space, column)}
        return {value: part for value, part in parts.items() if part.count}

    def _about(self, answer: Answer, query: str, inputs: str | None = None, confidence: float = 0.95) -> Answer:
        """The answer with what it is about."""
        worst = tuple(self.space.words(sigma) for sigma, *_ in answer.worst)
        return replace(answer, asked=Asked(query, worst, self.quantity, inputs, confidence))

    def _part(self, inputs: str | None) -> Bits | None:
        if inputs is None:
            return None
        if self.labels is None or self.labels.ndim != 1:
            raise InputError("inputs: this run has no labels to choose inputs by")
        levels = {"label": {name: number for number, name in enumerate(self.classes or ())}}
        try:
            compiled = queries.compile(inputs, ["label"], levels)
        except InputError as error:
            raise InputError(f"inputs: {error}") from error
        chosen = np.broadcast_to(compiled.evaluate({"label": self.labels}), self.labels.shape)
        if not chosen.any():
            asked, known = queries.printable(inputs, 200), _listing(np.unique(self.labels))
            raise InputError(f'inputs: "{asked}" selects no input (labels are {known})')
        # A class of which this run has no input, and the data no name, is a slip of the pen.
        classes = np.union1d(self.labels, np.arange(len(self.classes or ())))
        if len(unknown := np.setdiff1d(compiled.equated("label"), classes)):
            raise InputError(f"inputs: there is no label {_listing(unknown)} (labels are {_listing(classes)})")
        return self._bits(chosen)

    def _bits(self, chosen: Bools) -> Bits:
        """Inputs as bits in visiting order."""
        return pack(chosen[self.order])


def _listing(values: Array, most: int = 12) -> str:
    shown = ", ".join(map(str, values[:most].tolist()))
    return shown + (", …" if len(values) > most else "")
