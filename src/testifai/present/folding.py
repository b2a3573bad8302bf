"""Tables that fit the terminal: the worst rows of many, and columns below each other where they are too wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

ROWS = 10


def folded(out: Console, table: Table) -> Iterator[Table]:
    """The table as it is or, where it is too wide, in pieces with the first column each.

    >>> table = Table("axis", "0", "1", "2", box=None, pad_edge=False)
    >>> table.add_row("blur", "0.98", "0.76", "0.54")
    >>> [[column.header for column in piece.columns] for piece in folded(Console(width=17), table)]
    [['axis', '0', '1'], ['axis', '2']]
    """
    if _width(out, table) <= out.width or len(table.columns) < 3:
        yield table
        return
    rest = list(range(1, len(table.columns)))
    title = table.title
    while rest:
        count = len(rest)
        while count > 1 and _width(out, _piece(table, rest[:count])) > out.width:
            count -= 1
        piece = _piece(table, rest[:count])
        piece.title, title = title, None
        yield piece
        rest = rest[count:]


def _width(out: Console, table: Table) -> int:
    return Measurement.get(out, out.options.update(width=10_000), table).maximum


def _piece(table: Table, columns: list[int]) -> Table:
    """The first column and some others."""
    made = Table(
        title_justify=table.title_justify, title_style=table.title_style, pad_edge=table.pad_edge, box=table.box
    )
    chosen = [table.columns[place] for place in (0, *columns)]
    for column in chosen:
        made.add_column(column.header, justify=column.justify, header_style=column.header_style)
    for row in zip(*(column.cells for column in chosen), strict=True):
        made.add_row(*row)
    return made
