"""A run in one SQLite file: who made it from what, and every outcome as bits. Numbers and text, nothing executable.

Places of the visiting order are grouped into blocks; a row holds the attempted and passed bits of one configuration on
one block, with a checksum. Everything measured since the last save is written in one transaction or not at all.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.lock import Lock
from testifai.outcomes import Outcomes, Places

APPLICATION_ID = 0x7E57FA1
VERSION = 1
BLOCK = 1024

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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

# version -> statements that bring a file of that version to the next one
MIGRATIONS: dict[int, str] = {}


class Store:
    """One run's file, open for writing (with a lock that keeps a second writer out) or for reading."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._dirty: set[tuple[int, int]] = set()
        self._dirty_references: set[int] = set()

    @classmethod
    def create_or_open(cls, path: str | os.PathLike[str]) -> Self:
        """Open for writing; a file that does not exist, or is empty, becomes a new run."""
        path = Path(path)
        if path.is_dir():
            raise InputError(f"run file: {path} is a folder; give a file name such as {path / 'run.db'}")
        if not path.parent.is_dir():
            raise InputError(f"run file: the folder {path.parent} does not exist")
        lock = Lock(path)
        try:
            with _plain_errors(path):
                connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
                # A process killed while it made the file leaves one without tables.
                tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                fresh = tables == 0 and connection.execute("PRAGMA application_id").fetchone()[0] == 0
                if not fresh:
                    _check(connection, path)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA foreign_keys = ON")
                if fresh:
                    connection.executescript(
                        f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; "
                        f"PRAGMA user_version = {VERSION}; COMMIT;"
                    )
                else:
                    _migrate(connection, path)
        except BaseException:
            lock.release()
            raise
        return cls(path, connection, lock)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing run for reading."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"run file: {path} does not exist; make one with: testifai run SPEC.toml")
        with _plain_errors(path):
            connection = _connect_to_read(path)
            _check(connection, path)
            if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
                connection.close()
                cls.create_or_open(path).close()
                connection = _connect_to_read(path)
        return cls(path, connection, None)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- plain data ---------------------------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """A stored value, or None."""
        with _plain_errors(self.path):
            row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, **values: Any) -> None:
        """Store values as JSON."""
        with self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(key, json.dumps(value, ensure_ascii=False)) for key, value in values.items()],
            )

    def get_array(self, name: str) -> NDArray[Any] | None:
        """A stored array, or None."""
        blocks = list(self._array_blocks(name))
        return np.concatenate([block for _, block in blocks]) if blocks else None

    def put_array(self, name: str, array: NDArray[Any]) -> None:
        """Store a whole array."""
        with self._transaction():
            self._write_array(name, 0, array)

    # -- outcomes -----------------------------------------------------------------------------------------------

    def touch(self, configuration: int, places: Places, *, reference: bool = False) -> None:
        """Note what the next save has to write."""
        blocks = np.unique(places // BLOCK).tolist()
        self._dirty.update((configuration, block) for block in blocks)
        if reference:
            self._dirty_references.update(blocks)

    def save(self, outcomes: Outcomes, references: NDArray[Any] | None = None) -> None:
        """Write everything touched since the last save, in one transaction."""
        if not self._dirty:
            return
        rows, kept = [], []
        for configuration, block in sorted(self._dirty):
            attempted, passed = (bits[_bytes(block)].tobytes() for bits in outcomes.bits(configuration))
            whole = attempted == _all(outcomes.inputs, block)
            crc = zlib.crc32(attempted + passed)
            rows.append((configuration, block, None if whole else attempted, passed, crc))
            for name in outcomes.kept_names():
                values = outcomes.kept(configuration, name)[_places(block)].astype("<f4").tobytes()
                kept.append((configuration, block, name, values, zlib.crc32(values)))
        with self._transaction():
            # Not INSERT OR REPLACE: replacing would delete the row that a kept value refers to.
            self._connection.executemany(
                "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "attempted = excluded.attempted, passed = excluded.passed, crc = excluded.crc",
                rows,
            )
            self._connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", kept)
            if references is not None:
                for block in self._dirty_references:
                    self._write_array("reference", block, references[_places(block)])
        self._dirty.clear()
        self._dirty_references.clear()

    def load(self, inputs: int) -> Outcomes:
        """All outcomes of the run."""
        outcomes = Outcomes(inputs)
        with _plain_errors(self.path):
            for configuration, block, attempted, passed, crc in self._connection.execute(
                "SELECT configuration, block, attempted, passed, crc FROM outcomes"
            ):
                tried = _all(inputs, block) if attempted is None else attempted
                if zlib.crc32(tried + passed) != crc or len(tried) != len(_all(inputs, block)):
                    raise _damaged(self.path, f"outcomes of configuration {configuration} do not match their checksum")
                outcomes.load(configuration, block * BLOCK, _bits(tried), _bits(passed))
            for configuration, block, name, data, crc in self._connection.execute("SELECT * FROM kept"):
                if zlib.crc32(data) != crc:
                    raise _damaged(self.path, f"values of configuration {configuration} do not match their checksum")
                outcomes.kept(configuration, name)[_places(block)] = np.frombuffer(data, "<f4")
        return outcomes

    def load_references(self, inputs: int) -> NDArray[Any] | None:
        """What the oracle remembered of the clean outputs, by place; zeros where nothing was measured."""
        values: NDArray[Any] | None = None
        for block, rows in self._array_blocks("reference"):
            if values is None:
                values = np.zeros((inputs, *rows.shape[1:]), rows.dtype)
            values[_places(block)] = rows
        return values

    def import_run(self, other: Store, outcomes: Outcomes) -> None:
        """Merge another run of the same identity into these outcomes and save them."""
        theirs = other.load(outcomes.inputs)
        mine = self.load_references(outcomes.inputs)
        added = other.load_references(outcomes.inputs)
        if added is not None:
            places = np.arange(outcomes.inputs)
            known = theirs.attempted(0, places)
            mine = np.zeros_like(added) if mine is None else mine
            mine[known] = added[known]
        outcomes.merge(theirs)
        for configuration in theirs:
            self.touch(configuration, np.arange(outcomes.inputs), reference=True)
        self.save(outcomes, mine)

    def _array_blocks(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        with _plain_errors(self.path):
            for block, dtype, shape, data, crc in self._connection.execute(
                "SELECT block, dtype, shape, data, crc FROM arrays WHERE name = ? ORDER BY block", (name,)
            ):
                if zlib.crc32(data) != crc:
                    raise _damaged(self.path, f"the array {name!r} does not match its checksum")
                yield block, np.frombuffer(zlib.decompress(data), np.dtype(dtype)).reshape(json.loads(shape)).copy()

    def _write_array(self, name: str, block: int, array: NDArray[Any]) -> None:
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        data = zlib.compress(little.tobytes(), 1)
        self._connection.execute(
            "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?, ?)",
            (name, block, little.dtype.str, json.dumps(little.shape), data, zlib.crc32(data)),
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _plain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself when the disk was full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _bytes(block: int) -> slice:
    return slice(block * BLOCK // 8, (block + 1) * BLOCK // 8)


def _places(block: int) -> slice:
    return slice(block * BLOCK, (block + 1) * BLOCK)


def _bits(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _all(inputs: int, block: int) -> bytes:
    """The attempted bits of a block in which every input was tried."""
    return np.packbits(np.ones(max(0, min(BLOCK, inputs - block * BLOCK)), bool)).tobytes()


def _connect_to_read(path: Path) -> sqlite3.Connection:
    def connect(options: str) -> sqlite3.Connection:
        uri = f"{path.resolve().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None, check_same_thread=False)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection

    try:
        return connect("mode=ro")
    except sqlite3.OperationalError as error:
        # In a folder we may not write to, SQLite cannot make the files it reads a write-ahead log through.
        if "unable to open" in str(error) or "readonly" in str(error):
            return connect("mode=ro&immutable=1")
        raise


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what is not a run, what a newer testifai wrote, and what is damaged."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise InputError(f"run file: {path} is an SQLite file but not a testifai run")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise InputError(
            f"run file: {path} has schema {version}, this testifai reads up to {VERSION}; install a newer testifai"
        )
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise _damaged(path, problem.splitlines()[-1])


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    while version < VERSION:
        if version not in MIGRATIONS:
            raise InputError(f"run file: {path} has schema {version}, which this testifai cannot bring up to date")
        connection.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[version]} PRAGMA user_version = {version + 1}; COMMIT;")
        version += 1


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"run file: {path} is damaged ({what}); restore a copy, or delete it and run again")


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as one line that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            raise InputError(
                f"run file: could not write {path} ({text}); what was saved before is intact: "
                "make room and run the same command again"
            ) from error
        if "not a database" in text or "malformed" in text or "encrypted" in text:
            raise _damaged(path, text) from error
        if "locked" in text:
            raise InputError(f"run file: {path} is in use by another program") from error
        if "readonly" in text or "unable to open" in text:
            raise InputError(f"run file: cannot write {path} ({text}); choose another place with --out") from error
        raise InputError(f"run file: {path}: {text}") from error
    except OSError as error:
        raise InputError(f"run file: {path}: {error.strerror or error}") from error


def identity_changes(stored: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs between the run in the file and the run asked for, in words."""
    return [
        f"{key} was {_short(stored.get(key))}, now {_short(now.get(key))}"
        for key in sorted({*stored, *now})
        if stored.get(key) != now.get(key)
    ]


def _short(value: Any, most: int = 60) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= most else text[: most - 1] + "…"
