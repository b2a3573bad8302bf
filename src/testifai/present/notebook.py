"""A tomogram and an answer as HTML, for notebooks: plain tables that follow the notebook's colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from testifai.present.terminal import clean, excluded, extent, interval, rate, second_opinion, signed, spent
from testifai.space import Space
from testifai.tomogram import Answer, Tomogram

BAR = 6.0  # em, the width of a robustness of 1


def tomogram_html(tomogram: Tomogram) -> str:
    """A run in a page: what it covers, robustness by order and by axis, the worst tests."""
    space = tomogram.space
    head = f"Tomogram of {extent(tomogram)}; {spent(tomogram)}"
    if not len(tomogram.outcomes):
        return f"<div>{escape(head)}</div>"
    everything = tomogram.query("order >= 0")
    parts = [
        f"<div><b>{escape(head)}</b>; {escape(tomogram.quantity)} {_rate_in_words(everything)}</div>",
        f"<div>{escape(tomogram.clean_quantity)} {escape(clean(tomogram))}</div>",
        _table(
            ("order", "tests", escape(tomogram.quantity), "95 % interval"),
            (
                (str(order), f"{found.tests:,}", _bar(found.robustness), escape(interval(found.low, found.high)))
                for order, found in tomogram.by_order().items()
            ),
        ),
        _by_axis(tomogram),
        _worst(everything, space, tomogram.quantity),
    ]
    return "".join(parts)


def answer_html(answer: Answer, space: Space | None = None) -> str:
    """An answer: the number, its interval, how it was come by and, where the space is known, its worst tests in words.

    >>> answer_html(Answer(0.5, 0.4, 0.6, -0.1, 1, 1, 0, (((2,), 0.5, 0.4, 0.6),)))[:57]
    '<div><b>0.500</b> (0.400 … 0.600), -0.100 against clean i'
    """
    parts = [
        f"<div>{_rate_in_words(answer)}, {escape(signed(answer.drop))} against clean inputs; {answer.tests:,} tests: "
        f"{answer.measured:,} measured, {answer.inferred:,} predicted</div>"
    ]
    if answer.excluded is not None:
        parts.append(f"<div>{escape(excluded(answer.excluded))}</div>")
    if answer.model_free is not None:
        parts.append(f"<div>{escape(second_opinion(answer))}</div>")
    return "".join([*parts, _worst(answer, space)])


def _rate_in_words(answer: Answer) -> str:
    return f"<b>{rate(answer.robustness)}</b> ({escape(interval(answer.low, answer.high))})"


def _by_axis(tomogram: Tomogram) -> str:
    by_axis = tomogram.by_severity()
    levels = sorted({level for found in by_axis.values() for level in found})
    rows = [
        [escape(name), *(rate(found[level].robustness) if level in found else "" for level in levels)]
        for name, found in by_axis.items()
    ]
    return _table(["axis", *map(str, levels)], rows)


def _worst(answer: Answer, space: Space | None, quantity: str = "robustness") -> str:
    rows = [
        (
            escape(str(sigma) if space is None else space.words(sigma)),
            _bar(estimate),
            escape(interval(low, high)),
        )
        for sigma, estimate, low, high in answer.worst
    ]
    return _table(("worst tests", escape(quantity), "interval"), rows) if rows else ""


def _bar(value: float) -> str:
    """A rate with a bar of its length beside it."""
    if value != value:
        return rate(value)
    style = f"display:inline-block;height:.6em;width:{BAR * value:.2f}em;background:currentColor;opacity:.35"
    return f'{rate(value)} <span style="{style}"></span>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
