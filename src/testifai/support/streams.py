"""Standard output and error for any text, in any encoding."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from contextlib import suppress
from typing import TextIO

# replacements in ASCII; other characters lose their accents or become a question mark
PLAIN = {
    "–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "·": "-", "±": "+-", "≥": ">=", "≤": "<=", "→": "->",
    "“": '"', "”": '"', "‘": "'", "’": "'", "∧": "and", "∨": "or", "¬": "not", "µ": "u", "σ": "sigma",
    "─": "-", "━": "-", "│": "|", "┃": "|", "█": "#", "▏": "|", "•": "-", "✓": "ok", "✗": "x",
    "°": " degrees", "ß": "ss",
}  # fmt: skip
_BOXES = range(0x2500, 0x2580)
_BLOCKS = range(0x2580, 0x25A0)


def plain(text: str) -> str:
    """Return readable ASCII."""
    readable = []
    for sign in text:
        bare = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
        drawn = "+" if ord(sign) in _BOXES else "#" if ord(sign) in _BLOCKS else bare or "?"
        readable.append(sign if sign.isascii() else PLAIN.get(sign, drawn))
    return "".join(readable)


def degrade() -> None:
    """Let the standard streams replace characters that their encoding lacks."""
    codecs.register_error("testifai", _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="testifai")


def flush() -> bool:
    """Flush standard output; return False if it cannot be written."""
    if sys.stdout is None:  # closed by the parent process
        return True
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except (OSError, ValueError):
        discard(sys.stdout)
        return False
    return True


def discard(stream: TextIO) -> None:
    """Drop what could not be written: Python would try again at exit, and fail with its own exit code."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
