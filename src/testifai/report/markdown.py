"""A report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testifai.present.gate_page import asked_words
from testifai.present.terminal import interval, rate, signed
from testifai.report import words
from testifai.report.contents import Contents
from testifai.support.formatting import code_in_markdown as code
from testifai.support.formatting import in_markdown as escape

MOST = 60_000  # characters: what code hosts take in a comment, with some room
MOST_GATES = 100  # those that do not hold first
MOST_TESTS = 5
MOST_TRENDS = 5
SIGNS = {"holds": "✅ holds", "fails": "❌ fails", "undecided": "⚠️ undecided"}


def markdown(contents: Contents) -> str:
    """Summary, gates, queries, worst regions and tests."""
    space, rate_of = contents.tomogram.space, escape(contents.tomogram.settings.quantity)
    gates = [
        (
            SIGNS[verdict.status],
            escape(verdict.gate.name or ""),
            code(asked_words(verdict.gate, " for ")),
            f"{verdict.gate.at_least:g}",
            rate(verdict.answer.robustness),
            escape(verdict.reason + (f"; required because: {verdict.gate.because}" if verdict.gate.because else "")),
        )
        for verdict in sorted(contents.verdicts, key=lambda verdict: verdict.holds)[:MOST_GATES]
    ]
    left = len(contents.verdicts) - len(gates)
    asked = [
        (name, code(one.query), rate(one.answer.robustness), interval(one.answer.low, one.answer.high),
         signed(one.answer.drop), f"{one.answer.tests:,}", f"{one.answer.measured:,}")
        for name, one in contents.standard.items()
    ]  # fmt: skip
    regions = [
        (code(one.query), rate(one.answer.robustness), interval(one.answer.low, one.answer.high),
         f"{one.answer.tests:,}")
        for one in contents.search.regions
    ]  # fmt: skip
    worst = [
        (escape(space.words(test.sigma)), rate(test.estimate), interval(test.low, test.high), f"{test.trials:,}")
        for test in contents.worst[:MOST_TESTS]
    ]
    scores = {} if contents.benchmark is None else contents.benchmark.headline()
    scored = [(escape(name), rate(one.value), interval(one.low, one.high)) for name, one in scores.items()]
    score_notes = "" if contents.benchmark is None else escape("; ".join(contents.benchmark.notes()))
    trends = () if contents.errors is None else contents.errors.trends[:MOST_TRENDS]
    ranked = "\n".join(f"{rank}. {escape(trend.text)}" for rank, trend in enumerate(trends, start=1))
    parts = [
        f"**{contents.unfinished}**" if contents.unfinished else "",
        f"## {contents.tomogram.settings.quantity.capitalize()}: {code(contents.run)}",
        escape(words.made_of(contents)),
        "\n".join(escape(line) for line in words.summary(contents)),
        table(("verdict", "gate", "query", "at least", "estimate", "why"), gates),
        f"{left:,} more gates are in the full report." if left else "",
        _folded("Standard queries", words.together_line(contents), table(
            ("", "query", rate_of, "interval", "drop", "tests", "measured"), asked)),
        _folded("Standard scores", score_notes, table(("", "score", "95 % interval"), scored)),
        _folded("Worst regions", words.searched_line(contents), table(
            ("region", rate_of, "interval", "tests"), regions)),
        _folded("Worst tests", "", table(("test", rate_of, "95 % interval", "trials"), worst)),
        _folded("What is confused with what", "", ranked),
        _folded("How far to trust this", "", "\n".join(
            f"- {escape(line)}" for line in (*words.how(contents), *contents.trust.lines()))),
    ]  # fmt: skip
    return _limited([part for part in parts if part])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing if there are no rows."""
    lines = [" | ".join(row) for row in rows]
    head_lines = [" | ".join(head), " | ".join("---" for _ in head)]
    return "\n".join(f"| {line} |" for line in (*head_lines, *lines)) if lines else ""


def _folded(title: str, note: str, content: str) -> str:
    if not content:
        return ""
    inner = "\n\n".join(part for part in (escape(note), content) if part)
    return f"<details><summary>{title}</summary>\n\n{inner}\n\n</details>"


def _limited(parts: list[str]) -> str:
    text = ""
    for number, part in enumerate(parts):
        longer = f"{text}{part}\n\n"
        if len(longer) > MOST:
            return f"{text}_{len(parts) - number} more parts are left out here; see the full report._\n"
        text = longer
    return text.rstrip() + "\n"
