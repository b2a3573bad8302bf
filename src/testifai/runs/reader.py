"""Reading run files of unknown origin: tables, JSON and arrays, in bounded time and memory.

Checksums detect damage only: a crafted run file has valid ones.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.support.types import Array

VERSION = 2
BLOCK = 1024  # places of the visiting order in a row of a table

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE arrays (
    name TEXT NOT NULL, block INTEGER NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    data BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (name, block)
) WITHOUT ROWID;
CREATE TABLE outcomes (
    configuration INTEGER NOT NULL, block INTEGER NOT NULL,
    attempted BLOB,  -- NULL: the whole block
    passed BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (configuration, block)
) WITHOUT ROWID;
CREATE TABLE kept (
    configuration INTEGER NOT NULL, block INTEGER NOT NULL, name TEXT NOT NULL,
    data BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (configuration, block, name),
    FOREIGN KEY (configuration, block) REFERENCES outcomes (configuration, block)
) WITHOUT ROWID;
"""

MAGIC = b"SQLite format 3\0"
APPLICATION_ID = 0x7E57FA1  # in the header of every run file
_ID_AT = 68  # bytes into the header
RUN, DATABASE, SPEC = "a run file", "an SQLite file", "a spec"
KINDS = {
    ".toml": SPEC,
    ".csv": "a table", ".tsv": "a table", ".parquet": "a table", ".xlsx": "a table", ".json": "a JSON file",
    ".jsonl": "a JSON file", ".ndjson": "a JSON file", ".npz": "a file of NumPy arrays",
    ".npy": "a file of NumPy arrays", ".bin": "a data file", ".gz": "a packed file", ".zip": "a packed file",
    ".onnx": "an ONNX model", ".pt": "a torch model", ".pth": "a torch model", ".safetensors": "a file of weights",
    ".py": "Python code", ".ipynb": "a notebook", ".html": "a page", ".md": "a text", ".txt": "a text",
    ".xml": "an XML file", ".pdf": "a PDF file", ".png": "an image", ".jpg": "an image", ".jpeg": "an image",
    ".svg": "an image",
}  # fmt: skip


def kind_of(path: Path) -> str | None:
    """Return the kind of a file or folder in words; None if it is unknown."""
    if path.is_dir():
        return "a folder"
    if _beginning(path, len(MAGIC)) == MAGIC:
        return RUN if is_ours(path) else DATABASE
    return KINDS.get(path.suffix.lower())


def refuse_others(path: Path, advice: str) -> None:
    """Raise InputError for a file of another kind; an empty file may become a run."""
    kind = kind_of(path)
    empty = not path.exists() or (path.is_file() and not path.stat().st_size)
    if empty or kind in (None, RUN, DATABASE):
        return
    if kind == SPEC:
        run_file = path.with_suffix(".db")
        made = "" if run_file.is_file() else f": testifai run {path} makes it"
        advice = f"its run file is {run_file}{made}"
    raise InputError(f"run file: {path} is {kind}, not a run file; {advice}")


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Return True if the header is that of a run file, damaged or not."""
    begin = _beginning(path, _ID_AT + 4)
    return begin[: len(MAGIC)] == MAGIC and begin[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _beginning(path: str | os.PathLike[str], length: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be read."""
    if not os.path.isfile(path):  # reading a pipe would block
        return b""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(length)
    return b""


def size(path: Path) -> int:
    """Return the size of a run file and its log in bytes."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a connection for reading only."""

    def connect(options: str) -> sqlite3.Connection:
        uri = f"{path.resolve().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None, check_same_thread=False)
        try:
            distrust(connection)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute("PRAGMA query_only = ON")
        except Exception:
            connection.close()
            raise
        return connection

    try:
        # Not mode=ro: only a connection that may write removes the log behind the last reader.
        return connect("mode=rw")
    except sqlite3.OperationalError as error:
        # In a read-only folder, SQLite cannot create the files through which it reads a write-ahead log.
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise InputError(
                f"run file: the last outcomes of {path} are in {log.name}, which can only be read where testifai may "
                "write; copy both files to another folder"
            ) from error
        return connect("mode=ro&immutable=1")


STEPS = 10_000  # of SQLite's virtual machine, between two checks
MOST_STEPS = 20_000_000  # of one statement, plus these for every byte of the file; ours take a few per row
STEPS_PER_BYTE = 20

LONGEST_JSON = 1 << 28  # characters
DEEPEST_JSON = 64  # ours nest a dozen deep

# Arrays are written at zlib's first level, which makes them 229 times smaller at most.
SAFE_BYTES = 1 << 28
MOST_SHRUNK = 300

_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c(8|16)|[US]\d{1,6})")


class Unreadable(ValueError):  # noqa: N818
    """An invalid value in a run file."""


class Watch:
    """Ends a statement that takes more steps than any of ours can on a file of this size.

    Steps do not depend on the speed of the machine. During a statement, Python raises KeyboardInterrupt only in here
    and SQLite swallows it: a statement that was interrupted without being `overdue` was ended by Ctrl-C.
    """

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._most = (MOST_STEPS + STEPS_PER_BYTE * size) // STEPS
        self.start()
        connection.set_progress_handler(self._tick, STEPS)

    def start(self) -> None:
        self._left, self.overdue = self._most, False

    def _tick(self) -> bool:
        self._left -= 1
        self.overdue = self._left < 0
        return self.overdue


def distrust(connection: sqlite3.Connection) -> None:
    """Configure a connection for a schema that may be hostile: no functions, no cells outside their page."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def check_schema(connection: sqlite3.Connection, schema: str) -> None:
    """Reject anything but our own tables: views and triggers run statements when a table is read or written."""
    ours = _objects(schema)
    theirs = _tables(connection, len(ours) + 1)
    if theirs == ours:
        return
    known = {(kind, name) for kind, name, _ in ours}
    strange = sorted({f"{kind} {name}" for kind, name, _ in theirs if (kind, name) not in known})
    changed = sorted({f"{kind} {name}" for kind, name, _ in theirs if (kind, name) in known})
    what = f"has a {strange[0]}" if strange else f"lacks a table, or has another {', '.join(changed)}"
    raise Unreadable(f"{what}, which no run file has")


@functools.cache
def _objects(schema: str) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return _tables(connection)


def _tables(connection: sqlite3.Connection, most: int = -1) -> list[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master LIMIT ?", (most,)).fetchall()
    return sorted((str(kind), str(name), " ".join(str(sql).split())) for kind, name, sql in rows)


def read_json(text: object) -> Any:
    """Parse JSON that is neither too long nor too deep."""
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
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST_JSON + 1):
        parts = (one.values() if isinstance(one, dict) else one for one in level)
        level = [inner for part in parts for inner in part if isinstance(inner, list | dict)]
    if level:
        raise Unreadable(f"is nested more than {DEEPEST_JSON} deep")
    return value


def read_array(dtype: object, shape: object, data: object) -> Array:
    """Return an array from its cells, whose size is checked before it is unpacked."""
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


@dataclass(frozen=True)
class Signature:
    """Changes with every outcome that is saved in a run file."""

    file: tuple[int, int]  # device and inode
    written: tuple[tuple[int, int], ...]  # sizes and times of the file and its log

    @classmethod
    def of(cls, path: Path) -> Signature | None:
        """Return the current signature of a run file; None if there is no file."""
        try:
            about = [path.stat()]
        except OSError:
            return None
        with suppress(OSError):
            about.append(path.with_name(path.name + "-wal").stat())
        return cls((about[0].st_dev, about[0].st_ino), tuple((one.st_size, one.st_mtime_ns) for one in about))


class Loaded:
    """Outcomes that were read from a run file, and their rows; `Store.load` adds to them, so callers keep snapshots."""

    def __init__(self) -> None:
        self.outcomes: Outcomes | None = None
        self._rows: set[int] = set()

    def onto(self, inputs: int, *, anew: bool) -> Outcomes:
        """Return the outcomes to add new rows to; `anew` starts again."""
        if self.outcomes is None or anew or self.outcomes.inputs != inputs:
            self.outcomes = Outcomes(inputs)
            self._rows.clear()
        return self.outcomes

    def is_new(self, *row: object) -> bool:
        """Return True for the first call with a row's key and checksum."""
        mark = hash(row)
        if mark in self._rows:
            return False
        self._rows.add(mark)
        return True


def has_no_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return True for an empty file, such as that of a process killed while it created the file."""
    if path.stat().st_size == 1:  # SQLite treats it as empty
        raise damaged(path, "file is not a database")
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(tables == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0)


def check_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raise InputError for a file that is not a run, has another format or is damaged."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise InputError(f"run file: {path} is an SQLite file but not a testifai run")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise InputError(
            f"run file: {path} has format {version}, this testifai reads format {VERSION}; start a new run, or install "
            "the testifai that made it"
        )
    try:
        # First, because the statements below rely on our own tables.
        check_schema(connection, SCHEMA)
    except Unreadable as error:
        raise damaged(path, str(error)) from None
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise damaged(path, problem.splitlines()[-1])
    # A row with a damaged key would seem to be missing.
    for what, columns in (("meta", "key, value"), ("arrays", "name, block, dtype, shape, data")):
        for *cells, crc in connection.execute(f"SELECT {columns}, crc FROM {what}"):
            if checksum(*cells) != crc:
                raise damaged(path, f"{short(cells[0])} does not match its checksum")


# in messages of SQLite and its Python module about damaged files
DAMAGE = ("not a database", "malformed", "encrypted", "unsupported file format", "no such", "decode", "too big")


def damaged(path: str | os.PathLike[str], what: str) -> InputError:
    """Return the error for a damaged file."""
    reason = " ".join(what.split())[:200]
    # Deleting is only suggested for our own files.
    again = "delete it and run again" if is_ours(path) else "start a new run with another --out"
    return InputError(f"run file: {path} is damaged ({reason}); restore a copy, or {again}")


@contextmanager
def plain_errors(path: Path, watch: Watch | None = None) -> Iterator[None]:
    """Turn errors of SQLite into InputErrors that suggest what to do."""
    if watch is not None:
        watch.start()
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        text = str(error)
        if text == "interrupted":
            if watch is None or not watch.overdue:
                raise KeyboardInterrupt from None
            raise damaged(path, "reading it does not end") from None
        if getattr(error, "sqlite_errorname", None) == "SQLITE_IOERR_SHORT_READ":  # of SQLite 3.46; earlier: malformed
            raise damaged(path, "it is cut short") from error
        if any(sign in text for sign in DAMAGE):
            raise damaged(path, text) from error
        for signs, message in (
            (
                ("full", "disk I/O"),
                f"could not write {path} ({text}); what was saved before is intact: make room and run the same command "
                "again",
            ),
            (("locked",), f"{path} is in use by another program"),
            (("readonly", "unable to open"), f"cannot write {path} ({text}); choose another place with --out"),
        ):
            if any(sign in text for sign in signs):
                raise InputError(f"run file: {message}") from error
        raise InputError(f"run file: {path}: {text}") from error
    except OSError as error:
        raise InputError(f"run file: {path}: {error.strerror or error}") from error


def short(value: object, most: int = 60) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= most else text[: most - 1] + "…"


# -- cells of tables --------------------------------------------------------------------------------------------------


def span(block: int) -> tuple[int, int]:
    """Return the first place of a block, and the one after the last."""
    return block * BLOCK, (block + 1) * BLOCK


@functools.lru_cache(maxsize=4096)
def all_of(inputs: int, block: int) -> bytes:
    """Return the attempted bits of a block in which every input was tried."""
    return np.packbits(np.ones(max(0, min(BLOCK, inputs - block * BLOCK)), bool)).tobytes()


def is_within(whole: bytes, part: object) -> bool:
    """Return True if a cell has as many bits as another, and sets none that is not set there."""
    if not isinstance(part, bytes) or len(part) != len(whole):
        return False
    return part is whole or not int.from_bytes(part, "big") & ~int.from_bytes(whole, "big")


def checksum(*cells: object) -> int:
    """Return the checksum of a row's cells, including their lengths: a damaged key must not match another row."""
    crc = 0
    for cell in cells:
        data = cell if isinstance(cell, bytes) else repr(cell).encode("utf-8", "surrogatepass")
        crc = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), crc))
    return crc


def sealed(*cells: object) -> tuple[object, ...]:
    """Return a row with its checksum."""
    return *cells, checksum(*cells)
