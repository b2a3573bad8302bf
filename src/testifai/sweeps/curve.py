"""`sweep`: the robustness of any curve of accuracies that can be evaluated level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.support.validation import number, whole
from testifai.sweeps import level_selection
from testifai.sweeps.asap import NARROWEST, LevelGrid
from testifai.sweeps.result import Compared, Points, Scale, SweepError, SweepSetting, results

METHODS = ("asap", "uniform", "quad", "random")
Accuracy = Callable[[float], float]


def check_thresholds(given: Any) -> tuple[float, ...]:
    """One threshold or several, each in 0..1."""
    listed = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    if not listed:
        raise InputError("threshold: the list is empty; give an accuracy between 0 and 1, or several")
    return tuple(number("threshold", one, least=0, most=1) for one in listed)


def check_span(low: Any, high: Any, *, integer: bool = False) -> tuple[float, float]:
    """Both ends of the levels, the first below the second."""
    ends = number("low", low), number("high", high)
    if ends[0] >= ends[1]:
        raise InputError(f"low, high: low must be below high, got {low!r} and {high!r}")
    if integer and not all(end.is_integer() for end in ends):
        raise InputError(f"low, high: must be whole numbers when integer is set, got {low!r} and {high!r}")
    return ends


def check_curvature(given: Any) -> float | str:
    """A positive number or "auto"."""
    if isinstance(given, str) and given == "auto":
        return "auto"
    return number('curvature, unless "auto"', given, above=0)


def check_narrowest(given: Any, curvature: float | str) -> float:
    """The narrowest dip to be found, as a share of the span; None: the usual one."""
    if given is None:
        return NARROWEST
    if not isinstance(curvature, str):
        raise InputError(
            f"narrowest: {given!r} with curvature {curvature:g}, which alone decides where to look; "
            'leave it out, or set curvature="auto"'
        )
    return number("narrowest", given, above=0, most=1)


def check_method(given: Any) -> str:
    """The name of a method."""
    if given not in METHODS:
        raise InputError(f"method: {given!r} is not known; {suggest(given, METHODS)}")
    return str(given)


def check_accuracy(value: Any, level: float) -> float:
    """What the curve returned at a level, as a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"accuracy: at level {level:g} it is {value!r}; a number is accepted") from None
    if not math.isfinite(found):
        raise InputError(f"accuracy: at level {level:g} it is {found}; a finite number is accepted")
    return found


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
    ends = check_span(low, high, integer=integer)
    bend = check_curvature(curvature)
    setting = SweepSetting(
        scale=Scale(ends, ends),
        thresholds=check_thresholds(threshold),
        method=check_method(method),
        curvature=bend,
        bend=bend,
        points=whole("points", points, least=2),
        narrowest=check_narrowest(narrowest, bend),
        name=name,
    )
    grid = LevelGrid(*ends, setting.points, integer, setting.narrowest)
    repetitions = whole("repetitions", repetitions, least=1)
    known: dict[float, float] = {}

    def evaluate(level: float) -> float:
        if level not in known:
            known[level] = check_accuracy(accuracy(level), level)
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
) -> Compared | None:
    """Evaluate what the method asks for; return what a comparator found, None for asap."""
    if setting.method == "asap":
        level_selection.explore(evaluate, known, grid, setting.thresholds, setting.bend)
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


def uniform(evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...]) -> Compared:
    """Definition 3: the share of equally spaced levels, both ends among them, at or above the threshold."""
    levels = np.linspace(grid.low, grid.high, grid.points)
    if grid.integer:
        levels = np.unique(np.rint(levels))
    accuracies = np.array([evaluate(float(level)) for level in levels])
    shares = tuple(float(np.mean(accuracies >= threshold)) for threshold in thresholds)
    return Compared(shares, (np.nan,) * len(shares), (False,) * len(shares))


def quad(evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...]) -> Compared:
    """Definition 2 by scipy's adaptive quadrature of the step function, with at most `points` evaluations.

    Where these do not suffice the method has timed out; its last estimate is returned all the same.
    """
    from scipy import integrate

    if grid.points < QUAD_RULE:
        raise InputError(f"points: quad needs at least {QUAD_RULE} evaluations, got {grid.points}")
    halvings = (grid.points - QUAD_RULE) // (2 * QUAD_RULE)
    found, gave_up = [], []
    for threshold in thresholds:

        def step(level: float, threshold: float = threshold) -> float:
            return float(evaluate(float(np.rint(level)) if grid.integer else float(level)) >= threshold)

        result = integrate.quad(step, grid.low, grid.high, limit=halvings + 1, full_output=1)
        found.append(float(result[0] / (grid.high - grid.low)))
        gave_up.append(len(result) > 3)  # a fourth part is the reason why it did not converge
    return Compared(tuple(found), (np.nan,) * len(found), tuple(gave_up))


def random(
    evaluate: Accuracy, grid: LevelGrid, thresholds: tuple[float, ...], *, seed: int = 0, repetitions: int = 1
) -> Compared:
    """The share of random levels at or above the threshold: the mean over repetitions of `points` levels each."""
    rng, shape = np.random.default_rng(seed), (repetitions, grid.points)
    if grid.integer:
        draws = rng.integers(int(grid.low), int(grid.high), shape, endpoint=True).astype(float)
    else:
        draws = rng.uniform(grid.low, grid.high, shape)
    accuracies = np.array([[evaluate(float(level)) for level in row] for row in draws])
    shares = [(accuracies >= threshold).mean(axis=1) for threshold in thresholds]
    spread = tuple(float(share.std(ddof=1)) if repetitions > 1 else np.nan for share in shares)
    return Compared(tuple(float(share.mean()) for share in shares), spread, (False,) * len(shares))
