"""Text for terminals, tables and Markdown, with special characters escaped; numbers and intervals as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape as html_escape
from typing import Any

# Control characters (terminal commands start with one), invisible changes of direction, line ends and tags, surrogates.
_UNSEEN = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f\ud800-\udfff"
_UNSEEN += "\ufffe\uffff"  # which XML cannot hold
_HIDDEN = re.compile(f"[{_UNSEEN}]")
_HIDDEN_IN_LINES = re.compile(f"(?![\t\n])[{_UNSEEN}]")
_HIDDEN_IN_JSON = re.compile(f"(?![\x00-\x1f])[{_UNSEEN}]")  # JSON escapes the others

# the start of a formula in a spreadsheet, after characters that it skips
_FORMULA = re.compile(r"['\s\x00-\x1f\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*\t")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def printable(text: object, *, lines: bool = False) -> str:
    r"""Escape characters that a terminal would hide or obey; `lines` keeps line ends and tabs.

    >>> print(printable("a\x1b[2Jb\u202ec\nd"))
    a\x1b[2Jb\u202ec\x0ad
    >>> printable("naïve 猫 🐈")
    'naïve 猫 🐈'
    """
    return (_HIDDEN_IN_LINES if lines else _HIDDEN).sub(_escaped, str(text))


def printable_json(text: str) -> str:
    """Escape the same characters in JSON, without changing its values."""
    return _HIDDEN_IN_JSON.sub(_json_escaped, text)


def printable_parts(value: Any) -> Any:
    """Escape the same characters in all texts of plain data, such as a figure's, that a page shows."""
    if isinstance(value, str):
        return printable(value, lines=True)
    if isinstance(value, dict):
        return {key: printable_parts(part) for key, part in value.items()}
    return [printable_parts(part) for part in value] if isinstance(value, list) else value


def in_html(text: object) -> str:
    """Escape text for HTML."""
    return html_escape(printable(text, lines=True))


def harmless(cell: object) -> object:
    """Put an apostrophe before text that a spreadsheet would run as a formula.

    >>> harmless("=1+1"), harmless(" \\n@SUM(A1)"), harmless("-1.5"), harmless("a=b"), harmless(-3)
    ("'=1+1", "' \\n@SUM(A1)", '-1.5', 'a=b', -3)
    """
    risky = isinstance(cell, str) and is_formula(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if risky else cell


def as_written(cell: str) -> str:
    """Undo `harmless`."""
    return cell[1:] if cell.startswith("'") and is_formula(cell) else cell


def is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None


def in_markdown(text: object) -> str:
    """Escape text for one line of Markdown: no HTML, no formatting, no mentions."""
    plain = html_escape(printable(" ".join(str(text).split())), quote=False)
    # An @ or # before a word would call people or link to other threads.
    return re.sub(r"([@#])(?=\w)", "\\1\u200b", re.sub(r"([\\`*_\[\]|~])", r"\\\1", plain))


def code_in_markdown(text: object) -> str:
    """Return text as inline code of Markdown."""
    return "`" + printable(" ".join(str(text).split())).replace("`", "'").replace("|", "\\|") + "`"


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


def _json_escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def rate(value: float) -> str:
    """Return a rate with three decimals, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def interval(low: float, high: float) -> str:
    if math.isnan(low):
        return "no interval"
    return "exact" if low == high else f"{low:.3f} … {high:.3f}"


def estimate_text(estimate: float, low: float, high: float) -> str:
    """Return an estimate with its interval.

    >>> estimate_text(0.8, 0.75, 0.85), estimate_text(0.8, 0.8, 0.8), estimate_text(math.nan, math.nan, math.nan)
    ('0.800 (0.750 … 0.850)', '0.800 (exact)', 'unknown')
    """
    return "unknown" if math.isnan(estimate) else f"{rate(estimate)} ({interval(low, high)})"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows of a table as lines, with right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
