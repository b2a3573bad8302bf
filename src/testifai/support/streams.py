"""Standard output and error for any text, in any encoding."""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

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


class _Pipe(io.FileIO):
    """A standard stream; once its reader is gone, the rest is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _drop(self.fileno())
            return memoryview(data).nbytes


def prepare() -> None:
    """Let the standard streams replace characters that their encoding lacks, and ignore that a reader is gone."""
    codecs.register_error("testifai", _replace)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            if codecs.lookup(stream.encoding).name != "utf-8":
                stream.reconfigure(errors="testifai")
            raw = getattr(stream.buffer, "raw", stream.buffer)  # of an unbuffered stream it is the file itself
            if type(raw) is io.FileIO:
                setattr(sys, name, _with_pipe(stream, raw))


def _with_pipe(stream: io.TextIOWrapper, raw: io.FileIO) -> io.TextIOWrapper:
    pipe = _Pipe(raw.fileno(), "wb", closefd=False)
    buffer = pipe if raw is stream.buffer else io.BufferedWriter(pipe)
    return io.TextIOWrapper(
        buffer,  # Python does the same with -u
        encoding=stream.encoding, errors=stream.errors, line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )  # fmt: skip


def flush() -> bool:
    """Flush standard output; return False if it cannot be written."""
    if sys.stdout is None:  # closed by the parent process
        return True
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        with suppress(OSError, ValueError):
            _drop(sys.stdout.fileno())
        return isinstance(error, BrokenPipeError)
    return True


def _drop(stream: int) -> None:
    """Drop what could not be written: Python would try again at exit, and fail with its own exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end
