"""Reading a file that anyone may have written: its tables, its JSON and its arrays, in bounded time and memory.

Checksums tell damage, not intent: whoever crafts a run file computes them too. Nothing here trusts one.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sqlite3
import sys
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 10_000  # of SQLite's machine, between two looks at the clock
MOST_STEPS = 20_000_000  # of one statement, plus these for every byte of the file; ours take a few for a row
STEPS_PER_BYTE = 20

LONGEST_JSON = 1 << 28  # characters
DEEPEST_JSON = 64  # ours nest a dozen deep

# Arrays are written at zlib's first level, which makes them 229 times smaller at most.
SAFE_BYTES = 1 << 28
MOST_SHRUNK = 300

_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c(8|16)|[US]\d{1,6})")


class Unreadable(ValueError):  # noqa: N818 - what a cell is
    """What is wrong with a part of a file, in words."""


class Watch:
    """Ends a statement that takes more steps than any of ours can on a file of this size.

    The steps are counted rather than timed, so that a slow disk or a busy machine is no damage. While SQLite works,
    Python sees a Ctrl-C only from in here, and SQLite swallows the exception: a statement that was interrupted without
    having been `overdue` was ended by the user.
    """

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._most = (MOST_STEPS + STEPS_PER_BYTE * size) // STEPS
        self.start()
        connection.set_progress_handler(self._tick, STEPS)

    def start(self) -> None:
        """A new statement begins."""
        self._left, self.overdue = self._most, False

    def _tick(self) -> bool:
        self._left -= 1
        self.overdue = self._left < 0
        return self.overdue


def distrust(connection: sqlite3.Connection) -> None:
    """Settings for a file whose schema may be hostile: no functions from it, no cells that leave their page."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def check_schema(connection: sqlite3.Connection, schema: str) -> None:
    """Refuse anything but our own tables: a view or a trigger runs whatever it says when a table is read or written."""
    ours = _objects(schema)
    found = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT ?", (len(ours) + 1,)).fetchall()
    theirs = {(kind, name): _words(sql) for kind, name, sql in found}
    if theirs == ours and len(found) == len(ours):
        return
    strange = sorted({f"{kind} {name}" for kind, name in theirs if (kind, name) not in ours})
    changed = sorted(f"{kind} {name}" for kind, name in theirs if (kind, name) in ours)
    what = f"has a {strange[0]}" if strange else f"lacks a table, or has another {', '.join(changed)}"
    raise Unreadable(f"{what}, which no run file has")


@functools.cache
def _objects(schema: str) -> dict[tuple[Any, Any], str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(schema)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    finally:
        connection.close()
    return {(kind, name): _words(sql) for kind, name, sql in rows}


def _words(sql: object) -> str:
    return " ".join(str(sql).split())


def read_json(text: Any) -> Any:
    """Plain data from its text, neither long nor deep enough to bring a reader of it down."""
    if not isinstance(text, str):
        raise Unreadable("is not text")
    if len(text) > LONGEST_JSON:
        raise Unreadable(f"is {len(text):,} characters long")
    try:
        value = json.loads(text)
    except RecursionError:
        raise Unreadable(f"is nested more than {DEEPEST_JSON} deep") from None
    except ValueError as error:
        raise Unreadable(f"is not JSON: {str(error)[:80]}") from None
    if text.count("[") + text.count("{") > DEEPEST_JSON and _deep(value):
        raise Unreadable(f"is nested more than {DEEPEST_JSON} deep")
    return value


def _deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_JSON + 1):
        level = [
            inner
            for one in level
            if isinstance(one, list | dict)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return False
    return True


def read_array(dtype: Any, shape: Any, data: Any) -> NDArray[Any]:
    """An array from its cells; what it takes is known, and in proportion to the file, before it is unpacked."""
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise Unreadable(f"has a type {str(dtype)[:40]!r}")
    kind, sizes = np.dtype(dtype), read_json(shape)
    if not isinstance(sizes, list) or len(sizes) > 16 or not all(type(n) is int and 0 <= n < 1 << 48 for n in sizes):
        raise Unreadable(f"has a shape {str(shape)[:40]!r}")
    if not isinstance(data, bytes):
        raise Unreadable("holds no bytes")
    size = math.prod(sizes) * kind.itemsize
    if size > max(SAFE_BYTES, MOST_SHRUNK * len(data)):
        raise Unreadable(f"is {len(data):,} bytes that say they are {size:,}")
    unpacker = zlib.decompressobj()
    try:
        # One byte more than it may have: nought would mean no limit.
        content = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise Unreadable(f"cannot be unpacked: {error}") from None
    if len(content) != size or not unpacker.eof:
        raise Unreadable(f"does not have the {size:,} bytes of its shape")
    return np.frombuffer(content, kind).reshape(sizes).copy()
