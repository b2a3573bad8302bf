"""Conditions on the order of application taken apart into cases, each of which asks about severities alone.

Of the axes that `before` names, a case says which are on and in what order these are applied: then every `before` is
true or false. No test is in two cases.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from testifai.errors import InputError
from testifai.space.query import (
    And,
    Before,
    ColumnName,
    Condition,
    Constant,
    Inequality,
    Not,
    Or,
    Query,
    precedences,
    printable,
)

MOST_AXES = 5  # named by `before`: 326 cases


@dataclass(frozen=True)
class PrecedenceCase:
    """Axes that are on and applied in this order, whatever is applied in between, and what is asked of severities."""

    sequence: tuple[str, ...]
    query: Query | None


def cases(query: Query | None) -> Iterator[PrecedenceCase]:
    """The cases of a query; one without `before` is the only one."""
    named = [] if query is None else list(dict.fromkeys(_axes(query.tree)))
    if query is None or not named:
        yield PrecedenceCase((), query)
        return
    if len(named) > MOST_AXES:
        raise InputError(
            f'query: "{printable(query.text, 200)}" says of {len(named)} axes when they are applied; '
            f"accepted: before with up to {MOST_AXES} axes at once; ask for its parts one by one"
        )
    for count in range(len(named) + 1):
        for sequence in itertools.permutations(named, count):
            place = {name: at for at, name in enumerate(sequence)}
            left = _assigned(query.tree, functools.partial(_holds, place))
            if left is not False:
                on = [_compared(name, ">" if name in place else "==") for name in named]
                tree = And((*on, *(() if left is True else (left,))))
                yield PrecedenceCase(sequence, Query(query.text, tree, query.names))


def _holds(place: Mapping[str, int], one: Before) -> bool:
    """Whether both axes have a place, the first the earlier one."""
    return one.first in place and one.second in place and place[one.first] < place[one.second]


def _axes(node: Condition) -> Iterator[str]:
    for one in precedences(node):
        yield from (one.first, one.second)


def _compared(name: str, sign: str) -> Inequality:
    """That an axis is on, or off."""
    return Inequality((ColumnName(name), Constant(0)), (sign,))


def _assigned(node: Condition, holds: Callable[[Before], bool]) -> Condition | bool:
    """What is left to ask once it is known which precedences hold."""
    if isinstance(node, Inequality):
        return node
    if isinstance(node, Before):
        return holds(node)
    if isinstance(node, Not):
        part = _assigned(node.part, holds)
        return not part if isinstance(part, bool) else Not(part)
    decisive = isinstance(node, Or)  # one such part decides
    parts = [_assigned(part, holds) for part in node.parts]
    if any(part is decisive for part in parts):
        return decisive
    left = tuple(part for part in parts if not isinstance(part, bool))
    if not left:
        return not decisive
    return left[0] if len(left) == 1 else type(node)(left)
