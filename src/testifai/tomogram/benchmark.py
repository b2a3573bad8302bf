"""What papers report of a suite of single perturbations: mean accuracy, mCE, relative mCE, the worst of them.

D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations"
(ICLR 2019, arXiv:1903.12261), define the corruption errors; F. Croce and others, "RobustBench" (2021,
arXiv:2010.09670), rank by the mean accuracy over the fifteen corruptions and five severities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.perturb.registry import SUITES, get, main_names, names, suite_of
from testifai.runs.outcomes import Ids
from testifai.space import Axis, Space
from testifai.statistics.multiplicity import confidence_each
from testifai.support.formatting import estimate_text
from testifai.support.types import Floats, Record
from testifai.support.views import view
from testifai.tomogram.estimator import Estimated, Estimator
from testifai.tomogram.profile import weighted_sum

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Baseline:
    """The errors of a model that others are measured by: on clean inputs, and per perturbation over its severities."""

    name: str
    errors: Mapping[str, float]
    clean: float | None = None


# The mean errors over five severities that the authors normalise by (github.com/hendrycks/robustness), and AlexNet's
# clean error in table 1 of the paper.
ALEXNET = Baseline(
    "AlexNet (Hendrycks and Dietterich, 2019)",
    {
        "gaussian_noise": 0.886428, "shot_noise": 0.894468, "impulse_noise": 0.922640, "defocus_blur": 0.819880,
        "glass_blur": 0.826268, "motion_blur": 0.785948, "zoom_blur": 0.798360, "snow": 0.866816, "frost": 0.826572,
        "fog": 0.819324, "brightness": 0.564592, "contrast": 0.853204, "elastic_transform": 0.646056,
        "pixelate": 0.717840, "jpeg_compression": 0.606500, "speckle_noise": 0.845388, "gaussian_blur": 0.787108,
        "spatter": 0.717512, "saturate": 0.658248,
    },
    clean=0.435,
)  # fmt: skip
PUBLISHED = {"imagenet_c": ALEXNET}


@dataclass(frozen=True)
class BenchmarkScore:
    """A figure with its bounds; NaN where a test has no estimate."""

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"<BenchmarkScore {estimate_text(self.value, self.low, self.high)}>"

    def as_dict(self) -> dict[str, float | None]:
        """Plain data for JSON, None for what does not exist."""
        found = {"value": self.value, "low": self.low, "high": self.high}
        return {name: None if value != value else value for name, value in found.items()}


@dataclass(frozen=True)
class Benchmark:
    """The standard scores of a suite, each with a 95 % interval; accuracies are shares, mCE too (1 is the baseline).

    `worst` is the perturbation with the lowest mean accuracy; its interval allows for the choice among all.
    """

    suite: str
    perturbations: dict[str, BenchmarkScore]  # mean accuracy over severities, by axis, the published ones
    severities: dict[int, BenchmarkScore]  # mean accuracy over perturbations
    clean: BenchmarkScore
    accuracy: BenchmarkScore  # mean over perturbations and severities
    worst: tuple[str, BenchmarkScore]
    extra: BenchmarkScore | None  # mean over the suite's perturbations that are published apart
    baseline: str | None
    mce: BenchmarkScore | None
    relative_mce: BenchmarkScore | None
    missing: tuple[str, ...] = field(default=())  # perturbations of the suite that the space has not in full

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {score.value:.3f}" for name, score in self.headline().items())
        return f"<Benchmark {self.suite}: {scores}>"

    def plot(self, *, dark: bool = False) -> Figure:
        """The mean accuracy under each perturbation with its interval, lowest first, as a plotly figure."""
        figure: Figure = view("benchmark as a figure")(self, dark=dark)
        return figure

    def headline(self) -> dict[str, BenchmarkScore]:
        """The scores of one number each, in words."""
        among = f"{len(self.perturbations)} perturbations"
        found = {
            "clean accuracy": self.clean,
            f"mean accuracy over {among}": self.accuracy,
            f"worst of them: {self.worst[0]}": self.worst[1],
            "mean accuracy over those published apart": self.extra,
            "mCE": self.mce,
            "relative mCE": self.relative_mce,
        }
        return {name: score for name, score in found.items() if score is not None}

    def notes(self) -> list[str]:
        """What the scores are about, a sentence each."""
        said = [f"errors are divided by those of {self.baseline}"] if self.baseline is not None else []
        if self.missing:
            many = ", ".join(self.missing)
            said.append(f"not comparable with published scores of {self.suite}: without all severities of {many}")
        return said

    def as_dict(self) -> Record:
        """Plain data for JSON."""

        def plain(given: BenchmarkScore | None) -> Any:
            return None if given is None else given.as_dict()

        return {
            "suite": self.suite,
            "clean": plain(self.clean),
            "accuracy": plain(self.accuracy),
            "worst": {"perturbation": self.worst[0], **self.worst[1].as_dict()},
            "perturbations": {name: plain(one) for name, one in self.perturbations.items()},
            "severities": {str(name): plain(one) for name, one in self.severities.items()},
            "extra": plain(self.extra),
            "baseline": self.baseline,
            "mce": plain(self.mce),
            "relative_mce": plain(self.relative_mce),
            "missing": list(self.missing),
        }


def whole_suite(space: Space) -> str | None:
    """The suite of which a space has every published perturbation at every severity; None where there is none."""
    for suite in sorted({suite_of(axis.perturbation.name) for axis in space.axes} & {*SUITES}):
        axes = {axis.perturbation.name: len(axis.severities) for axis in space.axes}
        if all(axes.get(name) == len(get(name).severities) for name in main_names(suite)):
            return suite
    return None


def benchmark(
    tomogram: Estimated, suite: str | None = None, baseline: Estimated | Baseline | Mapping[str, float] | None = None
) -> Benchmark:
    """The scores of the tests with one perturbation of a suite each; see `Tomogram.benchmark`."""
    chosen = _suite(tomogram.estimator.space, suite)
    singles = _Singles(tomogram.estimator, chosen)
    against = _baseline(baseline, chosen, singles.main)
    rows, count, clean = singles.main, len(singles.main), tomogram.estimator.clean
    perturbations = {name: singles.mean([name]) for name in rows}
    lowest = min(rows, key=lambda name: perturbations[name].value)
    extra = [name for name in singles.ids if name not in rows]
    return Benchmark(
        suite=chosen,
        perturbations=perturbations,
        severities=singles.by_severity(),
        clean=BenchmarkScore(clean.estimate, clean.low, clean.high),
        accuracy=singles.mean(rows),
        worst=(lowest, singles.mean([lowest], confidence_each(count))),
        extra=singles.mean(extra) if extra else None,
        baseline=None if against is None else against.name,
        mce=None if against is None else singles.corruption_error(against.errors),
        relative_mce=None if against is None or against.clean is None else singles.relative(against),
        missing=singles.missing,
    )


class _Singles:
    """The tests with one perturbation of a suite, by the perturbation's name within it."""

    def __init__(self, estimator: Estimator, suite: str) -> None:
        self.estimator = estimator
        space, main = estimator.space, main_names(suite)
        of_suite = {axis.perturbation.name: axis for axis in space.axes if suite_of(axis.perturbation.name) == suite}
        listed = [*main, *sorted(set(names(suite)) - set(main))]
        self.ids = {_short(name): _alone(space, of_suite[name]) for name in listed if name in of_suite}
        self.main = [_short(name) for name in main if name in of_suite]
        if not self.main:
            raise InputError(f"benchmark: this run has none of the {len(main)} perturbations of {suite}")
        full = {name for name, axis in of_suite.items() if len(axis.severities) == len(axis.perturbation.severities)}
        self.missing = tuple(_short(name) for name in main if name not in full)

    def mean(self, rows: Sequence[str], confidence: float = 0.95) -> BenchmarkScore:
        """The mean accuracy over severities, then over these perturbations."""
        weights = [np.full(len(self.ids[name]), 1 / len(self.ids[name]) / len(rows)) for name in rows]
        return self._bounded(*self._sum(rows, weights, confidence))

    def by_severity(self) -> dict[int, BenchmarkScore]:
        """The mean accuracy over the perturbations that have a severity."""
        space = self.estimator.space
        ids = np.concatenate([self.ids[name] for name in self.main])
        severity = space.columns_of(space.matrix(ids))["severity"]
        found = {}
        for one in np.unique(severity):
            some = ids[severity == one]
            found[int(one)] = self._bounded(*weighted_sum(self.estimator, some, np.full(len(some), 1 / len(some))))
        return found

    def corruption_error(self, errors: Mapping[str, float]) -> BenchmarkScore:
        """mCE: the mean over perturbations of the error divided by the baseline's."""
        weights = [np.full(len(self.ids[name]), -1 / (len(self.ids[name]) * errors[name])) for name in self.main]
        value, low, high = self._sum(self.main, [one / len(self.main) for one in weights])
        at_zero = float(np.mean([1 / errors[name] for name in self.main]))
        return BenchmarkScore(at_zero + value, max(at_zero + low, 0.0), at_zero + high)

    def relative(self, baseline: Baseline) -> BenchmarkScore:
        """Relative mCE: what errors grow by from clean inputs on, divided by what the baseline's grow by."""
        assert baseline.clean is not None
        grown = [baseline.errors[name] - baseline.clean for name in self.main]
        weights = [
            np.full(len(self.ids[name]), -1 / (len(self.ids[name]) * growth * len(self.main)))
            for name, growth in zip(self.main, grown, strict=True)
        ]
        ids = np.concatenate([np.zeros(1, np.int64), *(self.ids[name] for name in self.main)])
        clean = float(np.mean([1 / growth for growth in grown]))
        return BenchmarkScore(*weighted_sum(self.estimator, ids, np.concatenate([[clean], *weights])))

    def _sum(
        self, rows: Sequence[str], weights: Sequence[Floats], confidence: float = 0.95
    ) -> tuple[float, float, float]:
        ids = np.concatenate([self.ids[name] for name in rows])
        return weighted_sum(self.estimator, ids, np.concatenate(list(weights)), confidence)

    @staticmethod
    def _bounded(value: float, low: float, high: float) -> BenchmarkScore:
        return BenchmarkScore(value, *(float(np.clip(bound, 0, 1)) for bound in (low, high)))


def _short(name: str) -> str:
    return name.partition(".")[2]


def _alone(space: Space, axis: Axis) -> Ids:
    """The tests of every severity of an axis with all others off."""
    rows = np.zeros((len(axis.severities) - 1, len(space.axes)), np.int64)
    rows[:, space.axes.index(axis)] = axis.severities[1:]
    return space.ids(rows)


def _suite(space: Space, asked: str | None) -> str:
    """The suite that was asked for, or the only one there is."""
    found = sorted({suite_of(axis.perturbation.name) for axis in space.axes} - {""})
    if asked is not None:
        if asked not in found:
            raise InputError(f"suite: {asked!r} is no suite of this run; {suggest(asked, found)}")
        return asked
    if len(found) != 1:
        there = ", ".join(found) or "none"
        raise InputError(f"benchmark: the axes of this run are of {len(found)} suites ({there}); name one: suite = …")
    return found[0]


def _baseline(given: object, suite: str, wanted: Sequence[str]) -> Baseline | None:
    """A baseline from what was given: one, another run, a table of errors; else the published one of the suite."""
    if given is None:
        return PUBLISHED.get(suite)
    if isinstance(given, Estimated):
        given = _measured(given, suite)
    elif isinstance(given, Mapping):
        errors = {name: error for name, error in given.items() if name != "clean"}
        given = Baseline("the errors given", errors, given.get("clean"))
    if not isinstance(given, Baseline):
        raise InputError("baseline: accepted: a run, or a table of errors such as {'fog': 0.82, …, 'clean': 0.435}")
    if absent := [name for name in wanted if name not in given.errors]:
        raise InputError(f"baseline: has no error for {', '.join(absent)}")
    for name, error in {**{one: given.errors[one] for one in wanted}, "clean": given.clean}.items():
        if error is not None and not (isinstance(error, int | float) and 0 <= error <= 1):
            raise InputError(f"baseline: {name} = {error!r}; accepted: an error from 0 to 1")
        if name != "clean" and (error == 0 or error == given.clean):
            what = "0, by which nothing can be divided" if error == 0 else "that on clean inputs: it does not grow"
            raise InputError(f"baseline: the error for {name} is {what}")
    return given


def _measured(other: Estimated, suite: str) -> Baseline:
    """The errors of another run's model."""
    singles = _Singles(other.estimator, suite)
    errors = {name: 1 - float(other.estimator.table(ids).estimate.mean()) for name, ids in singles.ids.items()}
    return Baseline("the other run's model", errors, 1 - other.estimator.clean.estimate)
