"""Sliders and text as two hands on one query: ranges of severities read from it, and written back into it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testifai import query as queries
from testifai.app.state import EVERYTHING
from testifai.query import And, Column, Comparison, Condition, Constant
from testifai.space import Axis, Space

Range = tuple[int, int]  # positions of the first and the last severity


def read(text: str, space: Space) -> tuple[dict[str, Range], list[Condition]]:
    """The range of every axis that a query asks for, and those of its conditions that are not ranges of an axis.

    >>> from testifai.perturb import Perturbation
    >>> fade = Perturbation("fade", lambda batch, parameter, rng: batch, (0, 1, 2, 3))
    >>> ranges, rest = read("1 <= a and order < 2", Space({"a": fade, "b": fade}))
    >>> ranges, str(rest[0])
    ({'a': (1, 3), 'b': (0, 3)}, 'order < 2')
    """
    tree = queries.compile(text, list(space.columns()), space.levels).tree
    axes = {axis.name: axis for axis in space.axes}
    inside = {name: np.ones(len(axis.severities), bool) for name, axis in axes.items()}
    rest: list[Condition] = []
    for part in tree.parts if isinstance(tree, And) else (tree,):
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
    parts = (*rest, *(condition for condition in conditions if condition is not None))
    if not parts:
        return EVERYTHING
    return str(parts[0] if len(parts) == 1 else And(parts))


def _axis_of(part: Condition, axes: Mapping[str, Axis]) -> str | None:
    """The axis whose range a condition is, where it is one."""
    if not isinstance(part, Comparison) or not set(part.operators) <= {"<", "<=", ">", ">=", "=="}:
        return None
    columns = {operand.name for operand in part.operands if isinstance(operand, Column)}
    return next(iter(columns)) if len(columns) == 1 and columns <= axes.keys() else None


def _holds(part: Condition, axis: Axis) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    levels = np.asarray(axis.severities)
    query = queries.Query("", part, frozenset([axis.name]))
    return np.broadcast_to(query.evaluate({axis.name: levels}), levels.shape)


def _in_one_piece(found: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> bool:
    places = np.flatnonzero(found)
    return len(places) > 0 and int(places[-1] - places[0]) + 1 == len(places)


def _condition(axis: Axis, first: int, last: int) -> Condition | None:
    levels, column = axis.severities, Column(axis.name)
    if first == 0 and last == len(levels) - 1:
        return None
    if first == last:
        return Comparison((column, Constant(levels[first])), ("==",))
    if first == 0:
        return Comparison((column, Constant(levels[last])), ("<=",))
    if last == len(levels) - 1:
        return Comparison((column, Constant(levels[first])), (">=",))
    return Comparison((Constant(levels[first]), column, Constant(levels[last])), ("<=", "<="))
