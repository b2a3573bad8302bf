"""What papers report of a suite of single perturbations: mean accuracy, mCE, relative mCE, the worst of them.

D. Hendrycks and T. Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations"
(ICLR 2019, arXiv:1903.12261), define the corruption errors; F. Croce and others, "RobustBench" (2021,
arXiv:2010.09670), rank by the mean accuracy over the fifteen corruptions and five severities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from testifai.errors import InputError, suggest
from testifai.perturb.registry import SUITES, get, main_names, names, suite_of
from testifai.runs.outcomes import Ids
from testifai.space import Axis, Space
from testifai.statistics.multiplicity import confidence_each
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Record
from testifai.support.views import view
from testifai.tomogram.answers import PlainRecord
from testifai.tomogram.estimator import Estimated, Estimator
from testifai.tomogram.profile import weighted_sum

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class Baseline:
    """Errors of the model that others are compared with: on clean inputs, and per perturbation over its severities."""

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
class BenchmarkScore(PlainRecord):
    """A score with its bounds; NaN if a test has no estimate."""

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"<BenchmarkScore {estimate_text(self.value, self.low, self.high)}>"


@dataclass(frozen=True)
class Benchmark:
    """The standard scores of a suite, each with a 95 % interval; accuracies are shares, mCE too (1 is the baseline)."""

    suite: str
    clean: BenchmarkScore
    accuracy: BenchmarkScore  # mean over perturbations and severities
    worst: tuple[str, BenchmarkScore]  # lowest mean accuracy; the interval allows for the choice among all
    perturbations: dict[str, BenchmarkScore]  # mean accuracy over severities, by axis, the published ones
    severities: dict[int, BenchmarkScore]  # mean accuracy over perturbations
    extra: BenchmarkScore | None  # mean over the suite's perturbations that are published separately
    baseline: str | None
    mce: BenchmarkScore | None
    relative_mce: BenchmarkScore | None
    missing: tuple[str, ...] = ()  # perturbations of the suite that the space does not contain in full

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {score.value:.3f}" for name, score in self.headline().items())
        return f"<Benchmark {self.suite}: {scores}>"

    def plot(self, *, dark: bool = False) -> Figure:
        figure: Figure = view("benchmark as a figure")(self, dark=dark)
        return figure

    def headline(self) -> dict[str, BenchmarkScore]:
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
        said = [f"errors are divided by those of {self.baseline}"] if self.baseline is not None else []
        if self.missing:
            many = ", ".join(self.missing)
            said.append(f"not comparable with published scores of {self.suite}: without all severities of {many}")
        return said

    def as_dict(self) -> Record:
        perturbation, score = self.worst
        found = {**vars(self), "worst": {"perturbation": perturbation, **vars(score)}}
        return {name: plain(value) for name, value in found.items()}


def whole_suite(space: Space) -> str | None:
    """Return the suite whose published perturbations a space contains, all at every severity; None without one."""
    for suite in sorted({suite_of(axis.perturbation.name) for axis in space.axes} & {*SUITES}):
        axes = {axis.perturbation.name: len(axis.severities) for axis in space.axes}
        if all(axes.get(name) == len(get(name).severities) for name in main_names(suite)):
            return suite
    return None


def benchmark(
    tomogram: Estimated, suite: str | None = None, baseline: Estimated | Baseline | Mapping[str, float] | None = None
) -> Benchmark:
    """Return the scores of the tests with one perturbation of a suite each; see `Tomogram.benchmark`."""
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
        return _bounded(*self._sum(dict.fromkeys(rows, 1 / len(rows)), confidence=confidence))

    def by_severity(self) -> dict[int, BenchmarkScore]:
        space = self.estimator.space
        ids = np.concatenate([self.ids[name] for name in self.main])
        severity = space.columns_of(space.matrix(ids))["severity"]
        found = {}
        for one in np.unique(severity):
            some = ids[severity == one]
            found[int(one)] = _bounded(*weighted_sum(self.estimator, some, np.full(len(some), 1 / len(some))))
        return found

    def corruption_error(self, errors: Mapping[str, float]) -> BenchmarkScore:
        """Return mCE: the mean over perturbations of the error divided by the baseline's."""
        value, low, high = self._sum({name: -1 / (errors[name] * len(self.main)) for name in self.main})
        at_zero = float(np.mean([1 / errors[name] for name in self.main]))
        return BenchmarkScore(at_zero + value, max(at_zero + low, 0.0), at_zero + high)

    def relative(self, baseline: Baseline) -> BenchmarkScore:
        """Return relative mCE: the growth of errors from the clean error, divided by the baseline's growth."""
        assert baseline.clean is not None
        growth = {name: baseline.errors[name] - baseline.clean for name in self.main}
        shares = {name: -1 / (one * len(growth)) for name, one in growth.items()}
        clean = float(np.mean([1 / one for one in growth.values()]))
        return BenchmarkScore(*self._sum(shares, clean))

    def _sum(
        self, shares: Mapping[str, float], clean: float | None = None, confidence: float = 0.95
    ) -> tuple[float, float, float]:
        ids = [self.ids[name] for name in shares]
        weights = [np.full(len(own), share / len(own)) for own, share in zip(ids, shares.values(), strict=True)]
        if clean is not None:
            ids, weights = [np.zeros(1, np.int64), *ids], [np.array([clean]), *weights]
        return weighted_sum(self.estimator, np.concatenate(ids), np.concatenate(weights), confidence)


def _bounded(value: float, low: float, high: float) -> BenchmarkScore:
    return BenchmarkScore(value, *(float(np.clip(bound, 0, 1)) for bound in (low, high)))


def _short(name: str) -> str:
    return name.partition(".")[2]


def _alone(space: Space, axis: Axis) -> Ids:
    rows = np.zeros((len(axis.severities) - 1, len(space.axes)), np.int64)
    rows[:, space.axes.index(axis)] = axis.severities[1:]
    return space.ids(rows)


def _suite(space: Space, asked: str | None) -> str:
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
    if given is None:
        return PUBLISHED.get(suite)
    if isinstance(given, Estimated):
        table, ids = given.estimator.table, _Singles(given.estimator, suite).ids
        errors = {name: 1 - float(table(own).estimate.mean()) for name, own in ids.items()}
        given = Baseline("the other run's model", errors, 1 - given.estimator.clean.estimate)
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
