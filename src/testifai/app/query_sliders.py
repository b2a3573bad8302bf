"""Sliders and text as two hands on one query: ranges of severities read from it, and written back into it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.app.state import EVERYTHING
from testifai.space import Axis, Space
from testifai.space import query as queries
from testifai.space.query import And, ColumnName, Condition, Constant, Inequality

Range = tuple[int, int]  # positions of the first and the last severity
STEPS = 100  # of the slider of quality


@dataclass(frozen=True)
class Track:
    """What the slider of quality runs over: all values that tests have, in round steps."""

    first: float
    last: float
    step: float
    none: float  # the end at which every test is inside

    @classmethod
    def of(cls, quality: Any) -> Track:
        """For the scores of a run.

        >>> from types import SimpleNamespace
        >>> Track.of(SimpleNamespace(estimate=np.array([0.013, 0.87]), higher_is_better=False))
        Track(first=0.01, last=0.88, step=0.01, none=0.88)
        """
        low, high = float(np.nanmin(quality.estimate)), float(np.nanmax(quality.estimate))
        step = 10.0 ** math.ceil(math.log10(max(high - low, 1e-6) / STEPS))
        # Whole numbers of steps, so that the query has few digits.
        first, last = (round(turn(value / step) * step, 9) for turn, value in ((math.floor, low), (math.ceil, high)))
        first, last = (first - step, last) if quality.higher_is_better else (first, last + step)
        return cls(round(first, 9), round(last, 9), step, round(first if quality.higher_is_better else last, 9))


def read(text: str, space: Space) -> tuple[dict[str, Range], list[Condition]]:
    """The range of every axis that a query asks for, and those of its conditions that are not ranges of an axis.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> ranges, rest = read("1 <= a and order < 2", Space({"a": fade, "b": fade}))
    >>> ranges, str(rest[0])
    ({'a': (1, 3), 'b': (0, 3)}, 'order < 2')
    """
    axes = {axis.name: axis for axis in space.axes}
    inside = {name: np.ones(len(axis.severities), bool) for name, axis in axes.items()}
    rest: list[Condition] = []
    for part in _parts(text, space):
        name = _axis_of(part, axes)
        found = None if name is None else inside[name] & _holds(part, axes[name])
        if name is None or found is None or not _in_one_piece(found):
            rest.append(part)
        else:
            inside[name] = found
    ranges = {}
    for name, found in inside.items():
        places = np.flatnonzero(found)
        ranges[name] = (int(places[0]), int(places[-1]))
    return ranges, [part for part in rest if str(part) != EVERYTHING]


def write(text: str, space: Space, ranges: Mapping[str, Range]) -> str:
    """The query with these ranges in place of its own; its other conditions stay.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> write("a > 2 and order < 2", Space({"a": fade, "b": fade}), {"a": (0, 3), "b": (1, 2)})
    'order < 2 and 1 <= b <= 2'
    """
    _, rest = read(text, space)
    conditions = [_condition(axis, *ranges[axis.name]) for axis in space.axes]
    return _joined((*rest, *(condition for condition in conditions if condition is not None)))


def read_limit(text: str, space: Space, sign: str) -> float | None:
    """The limit on quality that a query asks for; the strictest, where there are several.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> read_limit("a > 1 and quality <= 0.5 and 0.2 >= quality", Space({"a": fade}), "<=")
    0.2
    """
    limits = [limit for part in _parts(text, space) if (limit := _limit(part, sign)) is not None]
    return None if not limits else max(limits) if sign == ">=" else min(limits)


def write_limit(text: str, space: Space, sign: str, limit: float | None) -> str:
    """The query with this limit on quality in place of its own.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> write_limit("a > 1 and quality <= 0.5", Space({"a": fade}), "<=", 0.25)
    'a > 1 and quality <= 0.25'
    """
    rest = [part for part in _parts(text, space) if _limit(part, sign) is None and str(part) != EVERYTHING]
    own = [] if limit is None else [Inequality((ColumnName("quality"), Constant(limit)), (sign,))]
    return _joined((*rest, *own))


def _limit(part: Condition, sign: str) -> float | None:
    """The number that quality is limited by, where a condition does just that."""
    if not isinstance(part, Inequality) or len(part.operands) != 2:
        return None
    one, two = part.operands
    if isinstance(two, ColumnName):
        one, two, sign = two, one, {"<=": ">=", ">=": "<="}[sign]
    if one != ColumnName("quality") or not isinstance(two, Constant) or part.operators != (sign,):
        return None
    return float(two.value)


def _parts(text: str, space: Space) -> tuple[Condition, ...]:
    """The conditions that all must hold."""
    tree = queries.compile(text, [*space.column_names, "quality"], space.levels, space.sequenced).tree
    return tree.parts if isinstance(tree, And) else (tree,)


def _joined(parts: tuple[Condition, ...]) -> str:
    if not parts:
        return EVERYTHING
    return str(parts[0] if len(parts) == 1 else And(parts))


def _axis_of(part: Condition, axes: Mapping[str, Axis]) -> str | None:
    """The axis whose range a condition is, where it is one."""
    if not isinstance(part, Inequality) or not set(part.operators) <= {"<", "<=", ">", ">=", "=="}:
        return None
    columns = {operand.name for operand in part.operands if isinstance(operand, ColumnName)}
    return next(iter(columns)) if len(columns) == 1 and columns <= axes.keys() else None


def _holds(part: Condition, axis: Axis) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    levels = np.asarray(axis.severities)
    query = queries.Query("", part, frozenset([axis.name]))
    return np.broadcast_to(query.evaluate({axis.name: levels}), levels.shape)


def _in_one_piece(found: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    places = np.flatnonzero(found)
    return len(places) > 0 and int(places[-1] - places[0]) + 1 == len(places)


def _condition(axis: Axis, first: int, last: int) -> Condition | None:
    levels, column = axis.severities, ColumnName(axis.name)
    if first == 0 and last == len(levels) - 1:
        return None
    if first == last:
        return Inequality((column, Constant(levels[first])), ("==",))
    if first == 0:
        return Inequality((column, Constant(levels[last])), ("<=",))
    if last == len(levels) - 1:
        return Inequality((column, Constant(levels[first])), (">=",))
    return Inequality((Constant(levels[first]), column, Constant(levels[last])), ("<=", "<="))
