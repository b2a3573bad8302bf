"""The finished result of a run: what was measured, estimates of all tests, and answers to queries."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.predict import Scores
from testifai.runs import keys
from testifai.runs.outcomes import Ids, Outcomes, ScoredOutcomes
from testifai.space import Space
from testifai.statistics.multiplicity import confidence_each
from testifai.support.types import Array, Floats, RecordLike
from testifai.support.views import view
from testifai.tomogram.answers import Answer, Answers, AnswersByAxis
from testifai.tomogram.average_precision import AveragePrecision, average_precision
from testifai.tomogram.benchmark import Benchmark, benchmark
from testifai.tomogram.estimator import Estimator, EstimatorSettings
from testifai.tomogram.profile import Expected, expected
from testifai.tomogram.profile_parser import Profile
from testifai.tomogram.query_engine import QueryEngine, listing

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, eq=False)
class Tomogram:
    """Everything that is known about a model in a space of conditions: a record that later outcomes do not change.

    The bounds of an answer come from the covariance of its tests' errors if the surrogate knows it; otherwise they are
    the mean bounds of its tests, which is conservative. `estimator` has more about single tests, `query_engine` more
    about regions.

    Attributes:
        space: the conditions
        outcomes: what was tried, and what passed
        order: in which the inputs were visited
        labels: of the inputs; None: there are none
        classes: names of the labels
        settings: how estimates are made: surrogate, seed, population, score
        provenance: what else the run file contains
        quality: how plausible the inputs of each test are; None: not measured

    The examples of its methods continue this one.

    >>> import numpy as np
    >>> import testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.3, 0.51])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> space = ta.Space({"up": shift, "on": shift})
    >>> tomogram = ta.scan(model, (rows, model(rows)), space, strategy="full", population="future")
    >>> tomogram
    <Tomogram of 16 tests over up, on: 16 tried, 640 inferences, clean accuracy 1.000>
    """

    space: Space
    outcomes: Outcomes
    order: NDArray[np.intp]
    labels: Array | None = None
    classes: tuple[str, ...] | None = None
    settings: EstimatorSettings = field(default_factory=EstimatorSettings)
    provenance: RecordLike = field(default_factory=dict)
    quality: Scores | None = None
    # Tomograms of the same trials, by the name of a score.
    _views: dict[str | None, Tomogram] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", self.outcomes.snapshot())

    def __repr__(self) -> str:
        return (
            f"<Tomogram of {self.space.size:,} tests over {listing(self.space.names)}: {len(self.outcomes):,} tried, "
            f"{self.inferences:,} inferences, {self.settings.clean_quantity} {self.base:.3f}>"
        )

    def _repr_html_(self) -> str:
        return str(view("tomogram in a notebook")(self))

    @cached_property
    def estimator(self) -> Estimator:
        """Estimates of single tests.

        >>> tomogram.estimator.clean.trials
        40
        """
        return Estimator(self.space, self.outcomes, self.settings, self.provenance.get(keys.FIT))

    @cached_property
    def query_engine(self) -> QueryEngine:
        """Answers to queries, and the tests that they select.

        >>> int(tomogram.query_engine.select("up > 1 and on == 0").sum())
        2
        """
        return QueryEngine(self.estimator, self.order, self.labels, self.classes, self.quality)

    @cached_property
    def inferences(self) -> int:
        """Number of inputs passed to the model, for outcomes and for quality.

        >>> tomogram.inferences
        640
        """
        return self.outcomes.total() + (0 if self.quality is None else self.quality.inferences)

    @property
    def base(self) -> float:
        """Clean accuracy.

        >>> tomogram.base
        1.0
        """
        return self.estimator.clean.estimate

    @property
    def passes(self) -> Array:
        """Passed trials of every test; of a score, the sum of its values.

        >>> tomogram.passes[:, 0]
        array([40, 36, 28, 20])
        """
        return self.estimator.counts[0].reshape(self.space.shape)

    @property
    def trials(self) -> Ids:
        """Trials of every test.

        >>> tomogram.trials[:, 0]
        array([40, 40, 40, 40])
        """
        return self.estimator.counts[1].reshape(self.space.shape)

    @property
    def estimate(self) -> Floats:
        """Pass rate of every test, from its own trials if it is measured, else predicted.

        A space with more tests than are listed has no such array: use `predict` for some tests, `query` for regions.

        >>> tomogram.estimate[:, 0]
        array([1. , 0.9, 0.7, 0.5])
        """
        return self.estimator.whole.estimate.reshape(self.space.shape)

    @property
    def low(self) -> Floats:
        """Lower 95 % bound of every test; NaN if the surrogate has none.

        >>> tomogram.low[:, 0].round(2)
        array([0.91, 0.77, 0.55, 0.35])
        """
        return self.estimator.whole.low.reshape(self.space.shape)

    @property
    def high(self) -> Floats:
        """Upper 95 % bound of every test; NaN if the surrogate has none.

        >>> tomogram.high[:, 0].round(2)
        array([1.  , 0.96, 0.82, 0.65])
        """
        return self.estimator.whole.high.reshape(self.space.shape)

    def predict(self, configurations: Iterable[Sequence[int]]) -> tuple[Floats, Floats, Floats]:
        """Return the estimates and bounds of some tests, in a space of any size.

        Args:
            configurations: severities in axis order, for each

        >>> estimate, low, high = tomogram.predict([(0, 0), (3, 0)])
        >>> estimate
        array([1. , 0.5])
        """
        ids = np.array([self.space.id(tuple(sigma)) for sigma in configurations], np.int64)
        found = self.estimator.rates(ids)
        return found.estimate, found.low, found.high

    def query(
        self, expression: str, inputs: str | None = None, *, confidence: float = 0.95, score: str | None = None
    ) -> Answer:
        """Return the mean robustness over the tests an expression selects, for all inputs or a part of them.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
            inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all
            confidence: of the interval, above 0 and below 1
            score: name of a score, such as "f1", to return its mean; None: the pass rate

        >>> tomogram.query("up > 1 and on == 0").robustness
        0.6
        >>> tomogram.query("up > 1 and on == 0", inputs="label == 1").robustness
        1.0
        """
        scored = self if score is None else self.scored(score)
        return scored.query_engine.answer(expression, inputs, confidence)

    def queries(self, expressions: Sequence[str], inputs: str | None = None) -> list[Answer]:
        """Return answers to several queries whose intervals are valid together, at 95 % (Bonferroni).

        Args:
            expressions: queries, as for `query`
            inputs: a query over `label`, such as "label in {3, 5}", for a part of the inputs; None: all

        >>> [answer.robustness for answer in tomogram.queries(["up == 3 and on == 0", "order == 0"])]
        [0.5, 1.0]
        """
        return [self.query(one, inputs, confidence=confidence_each(len(expressions))) for one in expressions]

    def by_class(self) -> Answers[str]:
        """Return the mean robustness over the tests that were tried, for each class.

        >>> tomogram.by_class()["1"].robustness
        1.0
        """
        return self.query_engine.by_class()

    def by_order(self) -> Answers[int]:
        """Return the mean robustness for each order (number of perturbations applied).

        >>> round(tomogram.by_order()[1].robustness, 3)
        0.7
        """
        return self.query_engine.by("order")

    def by_severity(self, within: str | None = None) -> AnswersByAxis:
        """Return the mean robustness for each axis and severity.

        Args:
            within: a query that the tests must fulfil as well; None: all tests

        >>> tomogram.by_severity(within="on == 0")["up"][3].robustness
        0.5
        """
        return self.query_engine.by_severity(within)

    def expected(
        self, profile: Profile | RecordLike | Sequence[RecordLike] | Array, given: RecordLike | None = None
    ) -> Expected:
        """Return the robustness to expect in operation: tests are weighted by how probable their conditions are.

        See `testifai.tomogram.profile.expected`.

        Args:
            profile: how probable severities are: a `Profile`, its statements, or an array of the space's shape
            given: states that are known, such as {"weather": "rain"}; None: nothing is

        >>> tomogram.expected({"up": {0: 0.5, 3: 0.5}, "on": {0: 1.0}}).robustness
        0.75
        """
        return expected(self, profile, given)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores that the run's oracle gave every trial, in addition to whether it passed.

        >>> tomogram.scores
        ()
        """
        return tuple((self.provenance.get(keys.IDENTITY) or {}).get("scores") or ())

    def scored(self, name: str | None) -> Tomogram:
        """Return a tomogram of the means of a score instead of pass rates.

        Args:
            name: of a score of the run's oracle; None: pass rates

        >>> tomogram.scored("iou")
        Traceback (most recent call last):
        testifai.errors.InputError: score: this run has no 'iou': its oracle gives trials no score; ...
        """
        if name == self.settings.score:
            return self
        if name is not None and name not in self.scores:
            reason = f"accepted: {', '.join(self.scores)}"
            if not self.scores:
                reason = "its oracle gives trials no score; run it again with an oracle that does, such as detection"
            raise InputError(f"score: this run has no {name!r}{';' if self.scores else ':'} {reason}")
        if name not in self._views:
            outcomes = self.outcomes.plain() if name is None else ScoredOutcomes.of(self.outcomes)
            # A surrogate that was passed as an object may be fitted on the outcomes it was passed for.
            surrogate = self.settings.surrogate
            surrogate = surrogate if isinstance(surrogate, str | Mapping | None) else copy.deepcopy(surrogate)
            settings = replace(self.settings, surrogate=surrogate, score=name)
            self._views[name] = replace(self, outcomes=outcomes, settings=settings)
        return self._views[name]

    def average_precision(
        self, expression: str, *, iou: float | None = None, confidence: float = 0.95
    ) -> AveragePrecision:
        """Return COCO's mean average precision over the tests an expression selects, from kept detections.

        It is the mean over the tests, at one threshold of overlap `iou` or over the ten from 0.5 to 0.95, with an
        interval for images like these. Needs a run with `keep = ["detections"]`.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
            iou: the least overlap of boxes that belong together; None: the mean over the ten from 0.5 to 0.95
            confidence: of the interval, above 0 and below 1

        >>> detector_run.average_precision("order == 0", iou=0.5)  # doctest: +SKIP
        """
        sample, tried = self.query_engine.sample(expression), self.estimator.measured_ids
        ids = tried[sample.contains(tried)]
        seed = self.settings.seed
        return average_precision(self.outcomes, ids, sample.tests, iou=iou, confidence=confidence, seed=seed)

    def benchmark(self, suite: str | None = None, baseline: Tomogram | Mapping[str, float] | None = None) -> Benchmark:
        """Return what papers report of a suite: mean accuracy over single perturbations, mCE, relative mCE, the worst.

        Args:
            suite: its name; None: the suite that the axes belong to
            baseline: what errors are divided by: another run of the suite, or errors by perturbation,
                {"fog": 0.82, …, "clean": 0.435}, both taken as exact; None: for ImageNet-C those published of AlexNet

        >>> suite_run.benchmark("imagenet_c")  # doctest: +SKIP
        """
        return benchmark(self, suite, baseline)

    def plot(
        self,
        kind: str | None = None,
        query: str | None = None,
        *,
        axes: Sequence[str] | None = None,
        score: str | None = None,
        dark: bool = False,
    ) -> Figure:
        """Return a plotly figure: "pairs" of axes, a "region" (with its query), "orders", "severities", "worst", …

        Another kind is an InputError that lists all of them.

        Args:
            kind: of figure; None: pairs of axes or, if no two are combined, severities
            query: the region, for the kinds that take one
            axes: those to show; None: all, or as many as fit
            score: name of a score whose mean is drawn; None: pass rates
            dark: whether for a dark page

        >>> tomogram.plot("orders").layout.title.text
        'robustness by order'
        """
        shown = self if score is None else self.scored(score)
        figure: Figure = view("tomogram as a figure")(shown, kind, query, axes=axes, dark=dark)
        return figure

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for every test (extra `pandas`).

        >>> tomogram.to_pandas().columns.tolist()[:4]  # doctest: +SKIP
        ['up', 'on', 'order', 'severity']
        """
        return view("tomogram as a data frame")(self)

    def to_xarray(self) -> Any:
        """Return a Dataset whose dimensions are the axes of the space (extra `xarray`).

        >>> tomogram.to_xarray().estimate.sel(up=3, on=0).item()  # doctest: +SKIP
        0.5
        """
        return view("tomogram as a dataset")(self)
