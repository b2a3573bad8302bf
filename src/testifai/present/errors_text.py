"""The error summary in the terminal: trends, confidences, a measured system, and what the network answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table

from testifai.locality import summary as wording
from testifai.locality.local import Confidences, Rates
from testifai.present import terminal
from testifai.support.types import RecordLike

if TYPE_CHECKING:
    from testifai.locality.network import Belief
    from testifai.locality.pairs import Agreement
    from testifai.locality.summary import Explanation, Trend

MOST_WORDS = 3  # trends that are also told in words
MOST_STATES = 5  # of a variable
MOST_STATEMENTS = 10  # about combinations for which prediction and measurement differ


def show(found: Explanation, top: int, agreement: Agreement | None, *, by_class: bool) -> None:
    """Print rates, the ranked trends, advice for the first few, and how confident the model is."""
    console = terminal.console()
    rates = {"local robustness": found.local.overall()}
    if found.composed is not None:
        rates["robustness of the composed system, predicted from it"] = found.composed.overall
    if agreement is not None:
        rates["robustness of the composed system, measured on other inputs"] = agreement.seen.overall
    for name, one in rates.items():
        console.print(f"{name}: [bold]{terminal.rate(one.rate)}[/bold] ({terminal.interval(one.low, one.high)})")
    if agreement is not None:
        table = _table("global robustness", ["under"], ["predicted", "", "measured", ""])
        both = (agreement.told.by_condition, agreement.seen.by_condition)
        for place, name in enumerate(agreement.conditions):
            table.add_row(escape(name), *(cell for one in both for cell in _cells(one, place)))
        console.print(table)
        for line in agreement.statements()[:MOST_STATEMENTS]:
            console.print(line, markup=False, soft_wrap=True)
    shown = found.trends[:top]
    console.print(_trends(shown) if shown else wording.no_trend(found))
    for rank, trend in enumerate(shown[:MOST_WORDS], start=1):
        console.print(f"{rank}. {trend.text}. Try: {trend.advice}.", markup=False, soft_wrap=True)
    if len(found.trends) > len(shown):
        console.print(f"{len(found.trends) - len(shown)} more trends: --top {len(found.trends)} prints all")
    for line in wording.rest(found):
        console.print(line, markup=False)
    if found.confidences is not None:
        console.print(_confidences(found.confidences, by_class=by_class))


def show_beliefs(given: RecordLike, beliefs: Sequence[Belief], notes: Sequence[str]) -> None:
    console = terminal.console()
    said = ", ".join(f"{name} = {state}" for name, state in given.items())
    console.print(f"given {said}, with 95 % intervals:", markup=False, soft_wrap=True)
    table = _table(None, ["variable", "state"], ["probability", "interval"])
    for one in beliefs:
        ranked = one.ranked()
        for place, (state, rate, low, high) in enumerate(ranked[:MOST_STATES]):
            name = one.name if place == 0 else ""
            table.add_row(escape(name), escape(str(state)), terminal.rate(rate), terminal.interval(low, high))
        if len(ranked) > MOST_STATES:
            table.add_row("", f"{len(ranked) - MOST_STATES} more", "", "")
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", markup=False)


def _confidences(found: Confidences, *, by_class: bool) -> Table:
    heads = ["under", "class"] if by_class else ["under"]
    table = _table("mean confidence", heads, ["right", "", "wrong", "", "all", ""])
    kinds = ("right", "wrong", "all")
    for which, name in enumerate(found.properties):
        every = ["all"] if by_class else []
        table.add_row(escape(name), *every, *(cell for one in kinds for cell in _cells(found.by_property[one], which)))
        for place, own in enumerate(found.classes if by_class else ()):
            cells = (cell for one in kinds for cell in _cells(found.cells[one], (place, which)))
            table.add_row("", escape(own), *cells)
    return table


def _cells(rates: Rates, place: int | tuple[int, int]) -> list[str]:
    rate = rates.rate[place]
    return [terminal.rate(rate), "" if rate != rate else f"({terminal.interval(rates.low[place], rates.high[place])})"]


def _table(title: str | None, words: Sequence[str], figures: Sequence[str]) -> Table:
    columns = [Column(name, header_style="dim") for name in words]
    columns += [Column(name, justify="right", header_style="dim", no_wrap=True) for name in figures]
    return Table(*columns, title=title, title_justify="left", title_style="bold", pad_edge=False, box=None)


def _trends(trends: Sequence[Trend]) -> Table:
    gains = ["local gain"] if trends[0].composed_gain is None else ["system gain", "local gain"]
    table = _table(
        "trends, by what fixing them would give at most", [], ["", "class", "under", "severity", "read as", "failures",
        "tries", *gains, "p"],
    )  # fmt: skip
    for column in table.columns[1:5]:
        column.justify, column.no_wrap = "left", column.header in ("under", "severity")
    for rank, one in enumerate(trends, start=1):
        cells = [
            *(str(rank), ", ".join(one.classes), one.property, wording.span(one.severities), wording.read_as(one)),
            *(wording.count(one.failures), wording.count(one.trials)),
            *(wording.gain_text(gain) for gain in (one.composed_gain, one.local_gain) if gain is not None),
            wording.p_text(one.p_value),
        ]
        table.add_row(*map(escape, cells))
    return table
