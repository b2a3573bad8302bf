"""What a sweep found: the accuracies measured over one continuous level, the robustness and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.serialization import plain
from testifai.support.types import Floats, Record
from testifai.support.views import view
from testifai.sweeps import asap
from testifai.sweeps.asap import Points

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, eq=False)
class Sweep:
    """Robustness over one level: the share of `span` on which the accuracy is at least `threshold`.

    `robustness` is within `bound` of the truth; NaN where a method has no bound. `levels` run from the first end of
    the span to the second, with `accuracies` and, where they were measured on samples, their intervals
    `lows` … `highs` from `trials` inputs each. `uncertain` are the stretches of levels whose side of the threshold is
    not settled: their share is the bound. `low` and `high` limit the robustness. All of that holds unless the curve
    crosses the threshold and comes back between two neighbouring levels: a dip narrower than `unseen`, a share of the
    span, may not have been seen. `assumes` says it in words.
    """

    span: tuple[float, float]
    threshold: float
    robustness: float
    bound: float
    low: float
    high: float
    levels: Floats
    accuracies: Floats
    lows: Floats
    highs: Floats
    trials: NDArray[np.int64] | None
    evaluations: int
    inferences: int
    crossings: tuple[float, ...]
    uncertain: tuple[tuple[float, float], ...]
    method: str
    curvature: float | str
    points: int
    confidence: float | None = None
    population: str | None = None
    timeout: bool = False
    spread: float = math.nan
    name: str = ""
    unseen: float = math.nan

    @property
    def assumes(self) -> str:
        """Under what conditions the robustness is within its bound of the truth."""
        if math.isnan(self.bound):
            return f"{self.method} has no bound"
        sure = "" if self.confidence is None else f", with {100 * self.confidence:g} % confidence"
        if not self.unseen:
            return f"within ± {self.bound:.4f}{sure}"
        ruled_out = "" if isinstance(self.curvature, str) else f" (more curved than {self.curvature:g})"
        return (
            f"within ± {self.bound:.4f}{sure}, unless accuracy crosses {self.threshold:g} and comes back between two "
            f"neighbouring levels: a dip or peak narrower than {self.unseen:.2g} of the span{ruled_out}"
        )

    def as_dict(self) -> Record:
        """Everything as plain data for JSON; what is not known is None."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @overload
    def plot(self, path: None = None, *, dark: bool = False) -> Figure: ...

    @overload
    def plot(self, path: str | PathLike[str], *, dark: bool = False) -> None: ...

    def plot(self, path: str | PathLike[str] | None = None, *, dark: bool = False) -> Figure | None:
        """The curve with threshold, levels and uncertain stretches: a plotly figure, or a .png or .jpg at a path."""
        if path is not None:
            view("sweep as a picture")(self, path)
            return None
        figure: Figure = view("sweep as a figure")(self, dark=dark)
        return figure

    def __repr__(self) -> str:
        of = f" of {self.name}" if self.name else ""
        bound = "no bound" if math.isnan(self.bound) else f"± {self.bound:.4f}"
        bound += "" if math.isnan(self.unseen) else f", dips below {self.unseen:.2g} unseen"
        return (
            f"<Sweep{of}: robustness {self.robustness:.4f} ({bound}) at {self.threshold:g}, {self.evaluations} levels>"
        )


class SweepError(InputError):
    """A sweep that could not be finished; `partial` holds what was measured, one `Sweep` per threshold."""

    partial: tuple[Sweep, ...] = ()


@dataclass(frozen=True)
class Scale:
    """The user's levels from ends[0] to ends[1], which may run downwards, worked with as work[0] up to work[1]."""

    ends: tuple[float, float]
    work: tuple[float, float]

    def shown(self, level: float) -> float:
        if self.ends == self.work or level in self.work:
            return self.ends[self.work.index(level)] if level in self.work else level
        share = (level - self.work[0]) / (self.work[1] - self.work[0])
        return self.ends[0] + share * (self.ends[1] - self.ends[0])


@dataclass(frozen=True)
class SweepSetting:
    scale: Scale
    thresholds: tuple[float, ...]
    method: str
    curvature: float | str  # as told
    bend: float | str  # in the units the levels are worked with
    points: int
    narrowest: float = asap.NARROWEST
    confidence: float | None = None
    population: str | None = None
    target: float = 0.0
    name: str = ""


class Compared(NamedTuple):
    """Robustness by a method that asap is compared with, its standard deviation over repetitions, and its timeout."""

    robustness: float
    spread: float = math.nan
    timeout: bool = False


def results(setting: SweepSetting, points: Points, compared: Sequence[Compared] | None = None) -> tuple[Sweep, ...]:
    shown, levels, accuracies = setting.scale.shown, points.levels, points.accuracies
    # As printed for the method as published; else as near as the measurements allow.
    share = asap.interpolated if isinstance(setting.bend, str) else asap.robustness
    found = []
    for place, threshold in enumerate(setting.thresholds):
        certain = compared is None and setting.method == "asap"
        compare = compared[place] if compared else Compared(share(levels, accuracies, threshold))
        certainty = _certainty(points, threshold, setting.scale) if certain else _Certainty()
        sweep = Sweep(
            span=setting.scale.ends, threshold=threshold, levels=np.array([shown(level) for level in levels], float),
            accuracies=accuracies, lows=points.lows, highs=points.highs, trials=points.trials,
            evaluations=len(levels), inferences=points.inferences,
            crossings=tuple(shown(level) for level in asap.crossings(levels, accuracies, threshold)),
            method=setting.method, curvature=setting.curvature, points=setting.points,
            confidence=setting.confidence, population=setting.population, name=setting.name,
            **compare._asdict(), **certainty._asdict(),
        )  # fmt: skip
        found.append(sweep)
    return tuple(found)


class _Certainty(NamedTuple):
    """The error bound of the robustness, its limits, the uncertain levels, and the width of unseen dips."""

    bound: float = math.nan
    low: float = math.nan
    high: float = math.nan
    uncertain: tuple[tuple[float, float], ...] = ()
    unseen: float = math.nan


def _certainty(points: Points, threshold: float, scale: Scale) -> _Certainty:
    """Theorem 1: the share of the uncertain pairs; between the two levels of any other one, a dip would not be seen."""
    levels = points.levels
    if len(levels) < 2:
        return _Certainty(1.0, 0.0, 1.0, (scale.ends,), 0.0)
    pairs = asap.may_cross(levels, points.lows, points.highs, points.curvature, threshold)
    widths = np.diff(levels) / (levels[-1] - levels[0])
    bound = float(widths[pairs].sum())
    sure = float(widths[~pairs & (points.lows[1:] >= threshold)].sum())
    # Neighbouring uncertain pairs are one stretch.
    edges = np.flatnonzero(np.diff(np.concatenate([[False], pairs, [False]]).astype(int))).reshape(-1, 2)
    stretches = tuple((scale.shown(float(levels[start])), scale.shown(float(levels[end]))) for start, end in edges)
    return _Certainty(bound, sure, min(1.0, sure + bound), stretches, float(widths[~pairs].max(initial=0.0)))
