"""`sweep`: the robustness of any curve of accuracies that can be evaluated level by level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.support.checks import whole
from testifai.sweeps import asap, checks, comparators, exact
from testifai.sweeps.build import Points, Scale, SweepSetting, results
from testifai.sweeps.result import SweepError

Accuracy = Callable[[float], float]


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
    ends = checks.span(low, high, integer=integer)
    bend = checks.curvature(curvature)
    setting = SweepSetting(
        scale=Scale(ends, ends),
        thresholds=checks.thresholds(threshold),
        method=checks.method(method),
        curvature=bend,
        bend=bend,
        points=whole("points", points, least=2),
        narrowest=checks.narrowest(narrowest, bend),
        name=name,
    )
    grid = asap.LevelGrid(*ends, setting.points, integer, setting.narrowest)
    repetitions = whole("repetitions", repetitions, least=1)
    known: dict[float, float] = {}

    def evaluate(level: float) -> float:
        if level not in known:
            known[level] = checks.accuracy(accuracy(level), level)
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
    grid: asap.LevelGrid,
    setting: SweepSetting,
    *,
    seed: int,
    repetitions: int,
) -> comparators.Compared | None:
    """Evaluate what the method asks for; what a comparator found, None for asap."""
    if setting.method == "asap":
        exact.explore(evaluate, known, grid, setting.thresholds, setting.bend)
        return None
    if setting.method == "random":
        return comparators.random(evaluate, grid, setting.thresholds, seed=seed, repetitions=repetitions)
    method = comparators.uniform if setting.method == "uniform" else comparators.quad
    return method(evaluate, grid, setting.thresholds)


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
