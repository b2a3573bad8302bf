"""`sweep`: the robustness of any curve of accuracies that can be evaluated level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.support.validation import number, whole
from testifai.sweeps import asap
from testifai.sweeps.asap import NARROWEST, LevelGrid, Points
from testifai.sweeps.result import Compared, Scale, SweepError, SweepSetting, results

METHODS = ("asap", "uniform", "quad", "random")
Accuracy = Callable[[float], float]


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
        points: the finest step is (high − low) / points; for "uniform" and "random" the number of levels, for
            "quad" the most
        method: "asap", or "uniform", "random" and "quad", to compare with
        integer: whether only whole levels are tried
        narrowest: with curvature "auto", the width of the narrowest dip that is sure to be found, as a share of the
            span; None: 0.05
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


# -- the methods that the ASAP paper compares with: uniform levels, numerical integration, random levels ---------------

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
    """Definition 2 by scipy's adaptive quadrature of the step function, with at most `points` evaluations.

    Where these do not suffice the method has timed out; its last estimate is returned all the same.
    """
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
