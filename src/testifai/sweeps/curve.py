"""`sweep` and `sweep_model`: the robustness of a curve of accuracies, and of a model over a perturbation's level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.perturb import Perturbation
from testifai.perturb.registry import resolve
from testifai.session.assembly import session_of
from testifai.space import Space
from testifai.support.validation import number, whole
from testifai.sweeps import asap
from testifai.sweeps import probe as sampled
from testifai.sweeps.asap import NARROWEST, LevelGrid, Points
from testifai.sweeps.probe import Probe, SweepBatch
from testifai.sweeps.result import Compared, Scale, Sweep, SweepError, SweepSetting, results

METHODS = ("asap", "uniform", "quad", "random")
Accuracy = Callable[[float], float]
Given = str | Perturbation
TARGET = 0.01


def checked_setting(
    scale: Scale,
    threshold: Any,
    method: Any,
    curvature: Any,
    points: Any,
    narrowest: Any,
    unit: float = 1.0,
    **others: Any,
) -> SweepSetting:
    """The options of a sweep, checked; the curvature is per square of a `unit` of levels."""
    bend = curvature
    if not (isinstance(curvature, str) and curvature == "auto"):
        curvature = number('curvature, unless "auto"', curvature, above=0)
        bend = curvature / unit**2
    several = isinstance(threshold, Sequence | np.ndarray) and not isinstance(threshold, str)
    thresholds = tuple(number("threshold", one, least=0, most=1) for one in (threshold if several else [threshold]))
    if not thresholds:
        raise InputError("threshold: the list is empty; give an accuracy between 0 and 1, or several")
    if method not in METHODS:
        raise InputError(f"method: {method!r} is not known; {suggest(method, METHODS)}")
    points = whole("points", points, least=2)
    if narrowest is not None and curvature != "auto":
        raise InputError(
            f"narrowest: {narrowest!r} with curvature {curvature:g}, which alone decides where to look; "
            'leave it out, or set curvature="auto"'
        )
    width = NARROWEST if narrowest is None else number("narrowest", narrowest, above=0, most=1)
    return SweepSetting(scale, thresholds, method, curvature, bend, points, width, **others)


def sweep(
    accuracy: Accuracy,
    low: float,
    high: float,
    threshold: float | Sequence[float] = 0.8,
    curvature: float | str = 128,
    points: int = 1024,
    method: str = "asap",
    *,
    integer: bool = False,
    narrowest: float | None = None,
    seed: int = 0,
    repetitions: int = 1,
    name: str = "",
) -> Any:
    """The share of the levels low … high at which accuracy(level) is at least the threshold, with a bound.

    When the curve fails, the SweepError holds what was measured.

    Args:
        accuracy: a function from a level to an accuracy; each level is asked for once
        low: the first level
        high: the last
        threshold: the accuracy to reach, or several, which share the measurements and give a result each
        curvature: in accuracy per level²; "auto": found from the curve
        points: the finest step is (high − low) / points; for "uniform", "random" and "quad" the number of levels
        method: "asap", or "uniform", "random" and "quad", to compare with
        integer: whether only whole levels are tried
        narrowest: width of the narrowest dip to be found, as a share of the span (for curvature "auto"); None: 0.05
        seed: of "random"
        repetitions: how many times "random" is repeated
        name: for people

    >>> found = sweep(lambda level: 1 - level / 200, 0, 100, threshold=0.75, curvature="auto")
    >>> round(found.robustness, 2), found.evaluations, [round(level) for level in found.crossings]
    (0.5, 33, [50])
    """
    if not callable(accuracy):
        raise InputError(f"accuracy: {accuracy!r} cannot be called; f(level) -> accuracy is accepted")
    ends = number("low", low), number("high", high)
    if ends[0] >= ends[1]:
        raise InputError(f"low, high: low must be below high, got {low!r} and {high!r}")
    if integer and not all(end.is_integer() for end in ends):
        raise InputError(f"low, high: must be whole numbers when integer is set, got {low!r} and {high!r}")
    setting = checked_setting(Scale(ends, ends), threshold, method, curvature, points, narrowest, name=name)
    grid = LevelGrid(*ends, setting.points, integer, setting.narrowest)
    repetitions = whole("repetitions", repetitions, least=1)
    known: dict[float, float] = {}

    def evaluate(level: float) -> float:
        if level not in known:
            value = accuracy(level)
            try:
                found = float(value)
            except (TypeError, ValueError):
                raise InputError(f"accuracy: at level {level:g} it is {value!r}; a number is accepted") from None
            if not math.isfinite(found):
                raise InputError(f"accuracy: at level {level:g} it is {found}; a finite number is accepted")
            known[level] = found
        return known[level]

    try:
        compared = run(evaluate, known, grid, setting, seed=whole("seed", seed, least=0), repetitions=repetitions)
    except Exception as error:
        raise unfinished(error, setting, Points.exact(known, setting.bend)) from error
    found = results(setting, Points.exact(known, setting.bend), compared)
    return found[0] if np.ndim(threshold) == 0 else found


def run(
    evaluate: Accuracy,
    known: dict[float, float],
    grid: LevelGrid,
    setting: SweepSetting,
    *,
    seed: int,
    repetitions: int,
) -> list[Compared] | None:
    """Evaluate the levels that the method needs; return a comparator's result per threshold, None for asap."""
    if setting.method == "asap":
        asap.explore(evaluate, known, grid, setting.thresholds, setting.bend)
        return None
    if setting.method == "random":
        return random(evaluate, grid, setting.thresholds, seed=seed, repetitions=repetitions)
    return (uniform if setting.method == "uniform" else quad)(evaluate, grid, setting.thresholds)


def unfinished(error: Exception, setting: SweepSetting, points: Points) -> InputError:
    """The error to raise when a sweep breaks off: one line, with what was measured until then."""
    reason = " ".join(str(error).split()) or "no message"
    if not isinstance(error, InputError):
        reason = f"accuracy: raised {type(error).__name__}: {reason}"
    count = len(points.levels)
    if not count:
        return SweepError(reason)
    made = SweepError(f"{reason} (the {count} levels measured before are kept in .partial)")
    made.partial = results(setting, points)
    return made


def sweep_model(
    model: Any,
    data: Any,
    perturbation: Given,
    threshold: float | Sequence[float] = 0.8,
    curvature: float | str = "auto",
    points: int = 1024,
    method: str = "asap",
    *,
    levels: tuple[float, float] | None = None,
    integer: bool = False,
    narrowest: float | None = None,
    confidence: float | None = 0.95,
    target: float = TARGET,
    population: str = "future",
    oracle: Any = "label",
    batch_size: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    workers: int | str | None = None,
    executor: Any = None,
    recorded: Iterable[SweepBatch] = (),
    on_batch: Callable[[SweepBatch], None] | None = None,
) -> Any:
    """The share of a perturbation's levels at which a model's accuracy is at least the threshold, with a bound.

    Levels count as 0..1: a curvature means the same for every perturbation. The accuracy at a level is measured on as
    many inputs as it takes to tell its side of the threshold with this confidence, until the bound is at most the
    target or steps of 1/points are reached; by the methods other than asap, on all inputs.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        perturbation: its name, or the object
        threshold: the accuracy to reach, or several, which share the measurements and give a result each
        curvature: per level², where levels count as 0..1; "auto": found from the curve
        points: how fine: steps of 1 / points of the span at most
        method: "asap", or "uniform", "random" and "quad", to compare with
        levels: (first, last) of the levels to try; None: from off to strongest, as the perturbation declares
        integer: whether only whole levels are tried
        narrowest: width of the narrowest dip to be found, as a share of the span (for curvature "auto"); None: 0.05
        confidence: with which each level's side of the threshold is told; None: all inputs are tried
        target: the bound wanted; measuring ends there
        population: whether the answer is about new inputs like these, 'future', or about exactly these, 'data'
        oracle: when an input passes: a name, a table with 'use', an object or a function
        batch_size: inputs handed to the model at once; None: what is quickest
        seed: of all that is drawn
        repetitions: how many times "random" is repeated
        workers: how many work side by side here, or 'ray' and 'ray:ADDRESS'; None: as the model allows
        executor: where inputs are run, by name, as a table with 'use' or as an object; None: on this machine
        recorded: batches of an earlier sweep, as `on_batch` got them: not measured again
        on_batch: called with every batch that was measured

    >>> import numpy as np, testifai as ta
    >>> rows = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5], levels=(0.0, 0.5))
    >>> found = sweep_model(lambda x: (x[:, 0] > 0.5).astype(int), (rows, rows[:, 0] > 0.5), shift)
    >>> found.bound <= 0.2, abs(found.robustness - 0.4) < 0.05, found.inferences < 2000 * 30
    (True, True, True)
    """
    task = SweepTask(
        model, data, perturbation, levels=levels, integer=integer, oracle=oracle, batch_size=batch_size, seed=seed,
        workers=workers, executor=executor, population=population, recorded=recorded, on_batch=on_batch,
    )  # fmt: skip
    options = {"curvature": curvature, "points": points, "narrowest": narrowest}
    setting = task.setting(threshold, method, confidence, target, **options)
    with closing(task.probe):
        found = task.run(setting, repetitions=whole("repetitions", repetitions, least=1))
    return found[0] if np.ndim(threshold) == 0 else found


class SweepTask:
    def __init__(
        self,
        model: Any,
        data: Any,
        perturbation: Given,
        *,
        levels: tuple[float, float] | None,
        integer: bool,
        recorded: Iterable[SweepBatch],
        on_batch: Callable[[SweepBatch], None] | None,
        **options: Any,
    ) -> None:
        chosen = resolve(perturbation)
        given = chosen.levels if levels is None else levels
        if given is None:
            raise InputError(
                f"perturbation '{chosen.name}': it has no continuous level; "
                "give levels=(first, last) where its function takes any number between them"
            )
        try:
            first, last = (number("levels", end) for end in given)
        except (TypeError, ValueError):
            first = last = 0.0
        if first == last:
            raise InputError(f"levels: give two different numbers (first, last), got {given!r}")
        if integer and not (first.is_integer() and last.is_integer()):
            raise InputError(f"levels: must be whole numbers when integer is set, got {given!r}")
        self.session = session_of(model, data, Space({"level": chosen}), strategy="full", **options)
        self.probe = Probe(self.session, chosen, (first, last), recorded, on_batch)
        self.scale = Scale((first, last), (0.0, abs(last - first) if integer else 1.0))
        self.integer, self.name = integer, chosen.name

    def setting(
        self, threshold: Any, method: str, confidence: float | None, target: float, **options: Any
    ) -> SweepSetting:
        """The checked options of a sweep; a curvature is for levels from 0 to 1, in any unit of the perturbation."""
        checked = None if confidence is None else number("confidence", confidence, above=0, below=1)
        target = number("target", target, least=0, below=1)
        return checked_setting(
            self.scale, threshold, method, unit=self.scale.work[1], confidence=checked if method == "asap" else None,
            population=self.session.options.population, target=target, name=self.name, **options,
        )  # fmt: skip

    def accuracy(self, level: float) -> float:
        parts = [passed for _, passed in self.probe.measure([sampled.Ask(level, 0, self.probe.inputs)])]
        return float(np.concatenate(parts).mean())

    def run(self, setting: SweepSetting, *, repetitions: int = 1) -> tuple[Sweep, ...]:
        """Measure what the setting asks for; what was measured before an error is in the SweepError."""
        grid = asap.LevelGrid(*self.scale.work, setting.points, self.integer, setting.narrowest)
        inputs = self.probe.inputs
        # All inputs are the sample of the methods without a confidence: what they measure is exact for the data.
        population = self.session.options.population if setting.confidence is not None else "data"
        samples = sampled.Samples(self._measure, inputs, setting.confidence or 0.5, population, grid)

        def points() -> Points:
            return replace(samples.points(setting.bend), inferences=self.probe.inferences)

        def evaluate(place: float) -> float:
            if samples.trials(place) < inputs:
                samples.grow({place: inputs})
            return samples.accuracy(place)

        compared = None
        try:
            if setting.confidence is not None:
                sampled.explore(samples, setting.thresholds, setting.bend, setting.target)
            else:
                compared = run(evaluate, {}, grid, setting, seed=self.session.seed, repetitions=repetitions)
        except Exception as error:
            raise unfinished(error, setting, points()) from error
        return results(setting, points(), compared)

    def _measure(self, asks: list[sampled.Ask]) -> Iterable[tuple[float, sampled.Bits]]:
        """Asks in the units of the work as asks at the perturbation's levels, and back."""
        places = {self.scale.shown(ask.level): ask.level for ask in asks}
        for level, passed in self.probe.measure([ask._replace(level=self.scale.shown(ask.level)) for ask in asks]):
            yield places[level], passed


# Evaluations of scipy.integrate.quad: the Gauss-Kronrod rule has 21 levels, and halving an interval costs two rules.
QUAD_RULE = 21


def uniform(evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...]) -> list[Compared]:
    """Definition 3: the share of equally spaced levels, both ends among them, at or above the threshold."""
    levels = np.linspace(grid.low, grid.high, grid.points)
    if grid.integer:
        levels = np.unique(np.rint(levels))
    accuracies = np.array([evaluate(float(level)) for level in levels])
    return [Compared(float(np.mean(accuracies >= threshold))) for threshold in thresholds]


def quad(evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...]) -> list[Compared]:
    """Definition 2 by scipy's adaptive quadrature of the step function, with at most `points` evaluations."""
    from scipy import integrate

    if grid.points < QUAD_RULE:
        raise InputError(f"points: quad needs at least {QUAD_RULE} evaluations, got {grid.points}")
    halvings = (grid.points - QUAD_RULE) // (2 * QUAD_RULE)
    found = []
    for threshold in thresholds:

        def step(level: float, threshold: float = threshold) -> float:
            return float(evaluate(float(np.rint(level)) if grid.integer else float(level)) >= threshold)

        result = integrate.quad(step, grid.low, grid.high, limit=halvings + 1, full_output=1)
        timeout = len(result) > 3  # a fourth part is the reason why it did not converge
        found.append(Compared(float(result[0] / (grid.high - grid.low)), timeout=timeout))
    return found


def random(
    evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...], *, seed: int = 0, repetitions: int = 1
) -> list[Compared]:
    """The share of random levels at or above the threshold: the mean over repetitions of `points` levels each."""
    rng, shape = np.random.default_rng(seed), (repetitions, grid.points)
    if grid.integer:
        draws = rng.integers(int(grid.low), int(grid.high), shape, endpoint=True).astype(float)
    else:
        draws = rng.uniform(grid.low, grid.high, shape)
    accuracies = np.array([[evaluate(float(level)) for level in row] for row in draws])
    shares = [(accuracies >= threshold).mean(axis=1) for threshold in thresholds]
    return [Compared(float(share.mean()), float(share.std(ddof=1)) if repetitions > 1 else np.nan) for share in shares]
