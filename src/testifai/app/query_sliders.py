"""Sliders for a query: ranges of severities and limits on quality, read from its text and written back into it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from testifai.app.state import EVERYTHING
from testifai.space import Axis, Space
from testifai.space import query as queries
from testifai.space.query import And, ColumnName, Condition, Constant, Inequality

if TYPE_CHECKING:
    from testifai.quality.predict import Scores

Bools = NDArray[np.bool_]
Range = tuple[int, int]  # positions of the first and the last severity
STEPS = 100  # of the slider of quality


@dataclass(frozen=True)
class Track:
    """Ends and step of the slider of quality: all values that tests have, in round steps."""

    first: float
    last: float
    step: float
    none: float  # the end at which every test is inside

    @classmethod
    def of(cls, quality: Scores) -> Track:
        low, high = float(np.nanmin(quality.estimate)), float(np.nanmax(quality.estimate))
        step = 10.0 ** math.ceil(math.log10(max(high - low, 1e-6) / STEPS))
        # Whole numbers of steps, so that the query has few digits.
        first, last = (round(turn(value / step) * step, 9) for turn, value in ((math.floor, low), (math.ceil, high)))
        first, last = (first - step, last) if quality.higher_is_better else (first, last + step)
        return cls(round(first, 9), round(last, 9), step, round(first if quality.higher_is_better else last, 9))


def read(text: str, space: Space) -> tuple[dict[str, Range], list[Condition]]:
    """The range of every axis in a query, and the conditions that are not ranges of an axis."""
    axes = {axis.name: axis for axis in space.axes}
    inside = {name: np.ones(len(axis.severities), bool) for name, axis in axes.items()}
    rest: list[Condition] = []
    for part in _parts(text, space):
        name = _axis_of(part, axes)
        if name is not None:
            found = inside[name] & _holds(part, axes[name])
            places = np.flatnonzero(found)
            if len(places) and np.ptp(places) + 1 == len(places):
                inside[name] = found
                continue
        rest.append(part)
    ends = {name: np.flatnonzero(found)[[0, -1]].tolist() for name, found in inside.items()}
    ranges = {name: (first, last) for name, (first, last) in ends.items()}
    return ranges, [part for part in rest if str(part) != EVERYTHING]


def write(text: str, space: Space, ranges: Mapping[str, Range]) -> str:
    """The query with these ranges instead of its own; its other conditions are kept."""
    _, rest = read(text, space)
    conditions = [_condition(axis, *ranges[axis.name]) for axis in space.axes]
    return _joined((*rest, *(condition for condition in conditions if condition is not None)))


def read_limit(text: str, space: Space, sign: str) -> float | None:
    """The limit on quality in a query; the strictest of several."""
    limits = [limit for part in _parts(text, space) if (limit := _limit(part, sign)) is not None]
    return None if not limits else max(limits) if sign == ">=" else min(limits)


def write_limit(text: str, space: Space, sign: str, limit: float | None) -> str:
    """The query with this limit on quality instead of its own."""
    rest = [part for part in _parts(text, space) if _limit(part, sign) is None and str(part) != EVERYTHING]
    own = [] if limit is None else [Inequality((ColumnName("quality"), Constant(limit)), (sign,))]
    return _joined((*rest, *own))


def _limit(part: Condition, sign: str) -> float | None:
    if not isinstance(part, Inequality) or len(part.operands) != 2:
        return None
    one, two = part.operands
    if isinstance(two, ColumnName):
        one, two, sign = two, one, {"<=": ">=", ">=": "<="}[sign]
    if one != ColumnName("quality") or not isinstance(two, Constant) or part.operators != (sign,):
        return None
    return float(two.value)


def _parts(text: str, space: Space) -> tuple[Condition, ...]:
    tree = queries.compile(text, [*space.column_names, "quality"], space.levels, space.sequenced).tree
    return tree.parts if isinstance(tree, And) else (tree,)


def _joined(parts: tuple[Condition, ...]) -> str:
    if not parts:
        return EVERYTHING
    return str(parts[0] if len(parts) == 1 else And(parts))


def _axis_of(part: Condition, axes: Mapping[str, Axis]) -> str | None:
    if not isinstance(part, Inequality) or not set(part.operators) <= {"<", "<=", ">", ">=", "=="}:
        return None
    columns = {operand.name for operand in part.operands if isinstance(operand, ColumnName)}
    return next(iter(columns)) if len(columns) == 1 and columns <= axes.keys() else None


def _holds(part: Condition, axis: Axis) -> Bools:
    levels = np.asarray(axis.severities)
    query = queries.Query("", part, frozenset([axis.name]))
    return np.broadcast_to(query.evaluate({axis.name: levels}), levels.shape)


def _condition(axis: Axis, first: int, last: int) -> Condition | None:
    levels, column = axis.severities, ColumnName(axis.name)
    low, high = Constant(levels[first]), Constant(levels[last])
    if first == 0 and last == len(levels) - 1:
        return None
    if first == last:
        return Inequality((column, low), ("==",))
    if first == 0:
        return Inequality((column, high), ("<=",))
    if last == len(levels) - 1:
        return Inequality((column, low), (">=",))
    return Inequality((low, column, high), ("<=", "<="))
