"""Text from elsewhere on a terminal, in a cell of a table, in Markdown: for each, cleaned here and nowhere else."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape as html_escape

# Control characters (among them those that begin a terminal's commands), what turns the direction of writing or ends a
# line without being seen to, tags nobody sees, halves of characters.
_UNSEEN = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff"
_HIDDEN = re.compile(f"[{_UNSEEN}]")
_HIDDEN_IN_LINES = re.compile(f"(?![\t\n])[{_UNSEEN}]")
# JSON escapes the lowest of them itself.
_HIDDEN_IN_JSON = re.compile(f"(?![\x00-\x1f])[{_UNSEEN}]")

# What a spreadsheet takes for the start of a formula, after whatever it skips
_FORMULA = re.compile(r"['\s\x00-\x1f\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*\t")


def printable(text: object, *, lines: bool = False) -> str:
    r"""Text that a terminal shows and does not obey: what would be hidden is escaped. `lines` keeps its lines.

    >>> print(printable("a\x1b[2Jb\u202ec\nd"))
    a\x1b[2Jb\u202ec\x0ad
    >>> printable("naïve 猫 🐈")
    'naïve 猫 🐈'
    """
    return (_HIDDEN_IN_LINES if lines else _HIDDEN).sub(_escaped, str(text))


def printable_json(text: str) -> str:
    r"""The same for JSON, which reads back as it was.

    >>> print(printable_json('["\x9b2J"]'))
    ["\u009b2J"]
    """
    return _HIDDEN_IN_JSON.sub(_json_escaped, text)


def harmless(cell: object) -> object:
    """A cell of a CSV table that no spreadsheet runs: text that begins like a formula gets an apostrophe.

    >>> harmless("=1+1"), harmless(" \\n@SUM(A1)"), harmless("-1.5"), harmless("a=b"), harmless(-3)
    ("'=1+1", "' \\n@SUM(A1)", '-1.5', 'a=b', -3)
    """
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) and not _is_number(cell) else cell


def as_written(cell: str) -> str:
    """The text that `harmless` was given.

    >>> [as_written(harmless(text)) for text in ("=1", "'=1", "-1", "'-1", "it's")]
    ['=1', "'=1", '-1', "'-1", "it's"]
    """
    return cell[1:] if cell.startswith("'") and is_formula(cell) else cell


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run it."""
    return _FORMULA.match(text) is not None


def in_markdown(text: object) -> str:
    """Text that Markdown shows as it is, on one line: no HTML, no marks, no mentions.

    >>> in_markdown("a_b | <img> [x](y) @team #1")
    'a\\\\_b \\\\| &lt;img&gt; \\\\[x\\\\](y) @\\u200bteam #\\u200b1'
    """
    plain = html_escape(printable(" ".join(str(text).split())), quote=False)
    # An @ or # before a word would call people or link to other threads.
    return re.sub(r"([@#])(?=\w)", "\\1\u200b", re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain))


def code_in_markdown(text: object) -> str:
    """Text as code in Markdown, whatever is in it.

    >>> code_in_markdown("a | b"), code_in_markdown("a `b`")
    ('`a \\\\| b`', "`a 'b'`")
    """
    return "`" + printable(" ".join(str(text).split())).replace("`", "'").replace("|", "\\|") + "`"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


def _json_escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def rate(value: float) -> str:
    """A rate, or that there is none.

    >>> rate(0.5), rate(math.nan)
    ('0.500', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def interval(low: float, high: float) -> str:
    """Bounds, or that there are none."""
    if math.isnan(low):
        return "no interval"
    return "exact" if low == high else f"{low:.3f} … {high:.3f}"


def estimate_text(estimate: float, low: float, high: float) -> str:
    """An estimate with its interval.

    >>> estimate_text(0.8, 0.75, 0.85), estimate_text(0.8, 0.8, 0.8), estimate_text(math.nan, math.nan, math.nan)
    ('0.800 (0.750 … 0.850)', '0.800 (exact)', 'unknown')
    """
    return "unknown" if math.isnan(estimate) else f"{rate(estimate)} ({interval(low, high)})"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a table as lines, its columns one below the other.

    >>> print(aligned([("order", "tests"), ("0", "1"), ("1", "12")]))
    order  tests
        0      1
        1     12
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
