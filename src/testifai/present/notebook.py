"""A tomogram and an answer as HTML, for notebooks: plain tables that follow the notebook's colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from testifai.present.terminal import clean, counted, excluded, extent, interval, rate, second_opinion, signed, spent
from testifai.support.formatting import in_html as escape
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.answers import Answers, AnswersByAxis

BAR = 6.0  # em, the width of a robustness of 1


def tomogram_html(tomogram: Tomogram) -> str:
    """A run on a page: its extent, robustness by order and by axis, the worst tests."""
    head = f"Tomogram of {extent(tomogram)}; {spent(tomogram)}"
    if not len(tomogram.outcomes):
        return f"<div>{escape(head)}</div>"
    everything = tomogram.query("order >= 0")
    parts = [
        f"<div><b>{escape(head)}</b>; {escape(tomogram.settings.quantity)} {_rate_in_words(everything)}</div>",
        f"<div>{escape(tomogram.settings.clean_quantity)} {escape(clean(tomogram))}</div>",
        answers_html(tomogram.by_order()),
        by_axis_html(tomogram.by_severity()),
        _worst(everything),
    ]
    return "".join(parts)


def answers_html(answers: Answers[Any]) -> str:
    """Answers by the value of something, a row each."""
    return _table(
        (answers.by, "tests", answers.quantity, "95 % interval"),
        (
            (escape(str(value)), f"{found.tests:,}", _bar(found.robustness), escape(interval(found.low, found.high)))
            for value, found in answers.items()
        ),
    )


def by_axis_html(by_axis: AnswersByAxis) -> str:
    """Answers for each severity of each axis, a row for an axis; hovering over a number shows its interval."""
    levels = sorted({level for found in by_axis.values() for level in found})

    def cell(answer: Answer | None) -> str:
        if answer is None:
            return ""
        return f'<span title="{escape(interval(answer.low, answer.high))}">{rate(answer.robustness)}</span>'

    rows = [[escape(name), *(cell(found.get(level)) for level in levels)] for name, found in by_axis.items()]
    return _table(["axis", *map(str, levels)], rows)


def answer_html(answer: Answer) -> str:
    """An answer: the number, its interval, its basis, and its worst tests."""
    asked = "" if answer.info is None else f" for {escape(answer.info.query)}"
    drop = f"{escape(signed(answer.drop))} against clean inputs"
    parts = [f"<div>{_rate_in_words(answer)}{asked}, {drop}; {counted(answer)}</div>"]
    if answer.excluded is not None:
        parts.append(f"<div>{escape(excluded(answer.excluded))}</div>")
    if answer.model_free is not None:
        parts.append(f"<div>{escape(second_opinion(answer))}</div>")
    return "".join([*parts, _worst(answer)])


def _rate_in_words(answer: Answer) -> str:
    return f"<b>{rate(answer.robustness)}</b> ({escape(interval(answer.low, answer.high))})"


def _worst(answer: Answer) -> str:
    rows = [
        (escape(name), _bar(estimate), escape(interval(low, high)))
        for name, (_, estimate, low, high) in zip(answer.worst_names, answer.worst, strict=True)
    ]
    return _table(("worst tests", answer.quantity, "interval"), rows) if rows else ""


def _bar(value: float) -> str:
    if value != value:
        return rate(value)
    style = f"display:inline-block;height:.6em;width:{BAR * value:.2f}em;background:currentColor;opacity:.35"
    return f'{rate(value)} <span style="{style}"></span>'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
