"""A run in one SQLite file: its identity, and every outcome as bits. Numbers and text, nothing executable.

Places of the visiting order are grouped into blocks; a row contains the attempted and passed bits of one configuration
in one block. Every row has a checksum of its cells. A save writes everything measured since the last one in one
transaction.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from testifai.errors import InputError
from testifai.runs import keys, reader
from testifai.runs.lock import Lock
from testifai.runs.outcomes import Outcomes, Places
from testifai.runs.reader import BLOCK, Loaded, checksum, damaged, plain_errors, sealed, short, span
from testifai.runs.rows import is_stored
from testifai.support.types import Array, Record


class Store:
    """A run file, open for reading, or for writing with a lock against other writers."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, lock: Lock | None, watch: reader.Watch | None = None
    ) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
        self._watch = watch  # only for reading
        self._dirty: set[tuple[int, int]] = set()
        self._dirty_arrays: set[tuple[str, int]] = set()
        # The file may be renamed, and a model may change the current folder.
        self._absolute = path.absolute()
        self._file = self._absolute.stat()
        self._lost = False

    @classmethod
    def create_or_open(cls, path: str | os.PathLike[str]) -> Self:
        """Open for writing; create the file if it is missing or empty."""
        path = Path(path)
        reader.refuse_others(path, "choose another place with --out")
        if not path.parent.is_dir():
            raise InputError(f"run file: the folder {path.parent} does not exist")
        lock = Lock(path)
        with ExitStack() as undo, plain_errors(path):
            undo.callback(lock.release)
            connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
            undo.callback(connection.close)
            reader.distrust(connection)
            fresh = reader.has_no_tables(connection, path)
            if not fresh:
                with plain_errors(path, reader.Watch(connection, reader.size(path))):
                    reader.check_file(connection, path)
                connection.set_progress_handler(None, 0)  # the tables are our own; the run may grow
            for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {setting}")
            if fresh:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {reader.SCHEMA} PRAGMA application_id = {reader.APPLICATION_ID}; "
                    f"PRAGMA user_version = {reader.VERSION}; COMMIT;"
                )
            undo.pop_all()
        return cls(path, connection, lock)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing run for reading."""
        path = Path(path)
        reader.refuse_others(path, "make one with: testifai run SPEC.toml")
        if not path.is_file():
            raise InputError(f"run file: {path} does not exist; make one with: testifai run SPEC.toml")
        with ExitStack() as undo, plain_errors(path):
            connection = reader.connect_to_read(path)
            undo.callback(connection.close)
            watch = reader.Watch(connection, reader.size(path))
            with plain_errors(path, watch):
                if reader.has_no_tables(connection, path):
                    raise InputError(f"run file: {path} holds no run yet; start it with: testifai run SPEC.toml")
                reader.check_file(connection, path)
            undo.pop_all()
        return cls(path, connection, None, watch)

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._check_place()
        finally:
            self.close()

    def _check_place(self) -> None:
        """If the file was deleted or replaced, save a copy and raise: SQLite would write into the unlinked file."""
        if self._lock is None or self._lost:
            return
        with suppress(OSError):
            if os.path.samestat(self._absolute.stat(), self._file):
                return
        self._lost = True
        happened = "was replaced by another file" if self._absolute.exists() else "was deleted"
        copy = self._copy_beside()
        raise InputError(
            f"run file: {self.path} {happened} while the run went on; all that was measured is in {copy}: "
            f"rename it to {self.path.name}, or continue with --out {copy}"
        )

    def _copy_beside(self) -> Path:
        """Save what was written under an unused name."""
        # The folder may be gone too.
        for folder in (self._absolute.parent, Path.cwd(), Path(tempfile.gettempdir())):
            for number in itertools.count(1):
                copy = folder / f"{self.path.stem}.recovered-{number}.db"
                try:
                    copy.touch(exist_ok=False)
                except FileExistsError:
                    continue
                except OSError:
                    break
                with plain_errors(copy), closing(sqlite3.connect(copy, isolation_level=None)) as target:
                    self._connection.backup(target)
                return copy
        raise InputError(f"run file: {self.path} was deleted while the run went on, and no folder can be written to")

    # -- plain data ---------------------------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """Return a stored value, or None."""
        with self._plain_errors():
            row = self._connection.execute("SELECT value, crc FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        value, crc = row
        if checksum(key, value) != crc:
            raise damaged(self.path, f"{key!r} does not match its checksum")
        with self._readable(repr(key)):
            found = reader.read_json(value)
            if (wrong := keys.problem(key, found)) is not None:
                raise reader.Unreadable(wrong)
        return found

    def put(self, **values: Any) -> None:
        """Store values as JSON."""
        texts = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
        with self._transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)",
                [(key, text, checksum(key, text)) for key, text in texts.items()],
            )

    def get_array(self, name: str) -> Array | None:
        """Return a stored array, or None."""
        blocks = [block for _, block in self._array_blocks(name)]
        if len({(block.dtype, block.shape[1:], block.ndim) for block in blocks}) > 1:
            raise damaged(self.path, f"the array {name!r} has parts that do not fit together")
        return np.concatenate(blocks) if blocks else None

    def put_array(self, name: str, array: Array) -> None:
        """Store a whole array."""
        with self._transaction():
            self._write_array(name, 0, array)

    def put_blocks(self, blocks: Iterable[tuple[str, int, Array]]) -> None:
        """Store blocks of arrays by name and number, in one transaction."""
        with self._transaction():
            for name, block, array in blocks:
                self._write_array(name, block, array)

    def array_names(self, prefix: str) -> list[str]:
        """Return the names of stored arrays with a prefix."""
        with self._plain_errors():
            names = self._connection.execute("SELECT DISTINCT name FROM arrays ORDER BY name").fetchall()
        return [name for (name,) in names if isinstance(name, str) and name.startswith(prefix)]

    def get_blocks(self, prefix: str) -> Iterator[tuple[str, int, Array]]:
        """Return name, number and content of all blocks of arrays with a prefix."""
        for name in self.array_names(prefix):
            yield from ((name, block, array) for block, array in self._array_blocks(name))

    def is_empty(self) -> bool:
        """Return True if the file has no outcomes."""
        with self._plain_errors():
            return self._connection.execute("SELECT 1 FROM outcomes LIMIT 1").fetchone() is None

    def clear(self) -> None:
        """Delete the data of a run without outcomes, except for sweeps, which have their own identity."""
        with self._transaction():
            for table, column in (("meta", "key"), ("arrays", "name")):
                self._connection.execute(f"DELETE FROM {table} WHERE {column} NOT LIKE '{keys.SWEEPS}%'")

    # -- outcomes -----------------------------------------------------------------------------------------------

    def touch(self, configuration: int, places: Places, *, reference: bool = False, contents: bool = False) -> None:
        """Record what the next save has to write."""
        first, last = int(places.min()) // BLOCK, int(places.max()) // BLOCK
        blocks = [first] if first == last else np.unique(places // BLOCK).tolist()
        self._dirty.update((configuration, block) for block in blocks)
        for name, touched in ((keys.REFERENCE, reference), (keys.CONTENTS, contents)):
            if touched:
                self._dirty_arrays.update((name, block) for block in blocks)

    def save(self, outcomes: Outcomes, references: Array | None = None, contents: Array | None = None) -> None:
        """Write everything touched since the last save, in one transaction."""
        if not self._dirty:
            return
        rows, kept, boxes = [], [], []
        for configuration, block in sorted(self._dirty):
            if configuration not in outcomes:
                continue  # announced, then interrupted
            tried, won = outcomes.span(configuration, *span(block))
            attempted, passed = tried.tobytes(), (won & tried).tobytes()
            whole = attempted == reader.all_of(outcomes.inputs, block)
            rows.append(sealed(configuration, block, None if whole else attempted, passed))
            for name in outcomes.kept_names():
                known = outcomes.kept_span(configuration, name, *span(block)).astype("<f4")
                kept.append(sealed(configuration, block, name, known.tobytes()))
            for name in outcomes.boxes_names():
                found = outcomes.boxes_span(name, configuration, *span(block))
                boxes.append((keys.boxes(name, configuration), block, found))
        with self._transaction():
            # Not INSERT OR REPLACE: replacing would delete the row that a kept value refers to.
            self._connection.executemany(
                "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "attempted = excluded.attempted, passed = excluded.passed, crc = excluded.crc",
                rows,
            )
            self._connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", kept)
            for key, block, found in boxes:
                self._write_array(key, block, found)
            by_place = {keys.REFERENCE: references, keys.CONTENTS: contents}
            for name, block in sorted(self._dirty_arrays):
                if (values := by_place[name]) is not None:
                    self._write_array(name, block, values[slice(*span(block))])
        self._dirty.clear()
        self._dirty_arrays.clear()

    def load(self, inputs: int, tests: int | None = None, before: Loaded | None = None) -> Outcomes:
        """Return the outcomes of the run, of at most `tests` configurations; rows read `before` are skipped."""
        known = before or Loaded()
        with self._plain_errors(), self._one_state():
            # Boxes would be added twice.
            outcomes = known.onto(inputs, anew=bool(self.array_names(keys.BOXES)))
            for configuration, block, attempted, passed in self._new_rows("outcomes", "outcomes", 2, known):
                whole = self._whole_block("outcomes", configuration, block, inputs, tests)
                tried = whole if attempted is None else attempted
                if not reader.is_within(whole, tried) or not reader.is_within(tried, passed):
                    raise self._wrong("outcomes", configuration, f"are not of {inputs} inputs")
                outcomes.load(configuration, block * BLOCK, *(np.frombuffer(one, np.uint8) for one in (tried, passed)))
            for configuration, block, name, data in self._new_rows("kept", "values", 3, known):
                self._whole_block("values", configuration, block, inputs, tests)
                if not isinstance(name, str) or not isinstance(data, bytes) or configuration not in outcomes:
                    raise self._wrong("values", configuration, "belong to no outcomes")
                places = np.arange(*span(block))[: inputs - block * BLOCK]
                places = places[outcomes.attempted(configuration, places)]
                if len(data) != 4 * len(places):
                    raise self._wrong("values", configuration, "are not of its inputs")
                outcomes.load_kept(configuration, name, places, np.frombuffer(data, "<f4"))
            self._load_boxes(outcomes, tests)
        return outcomes

    def _new_rows(self, table: str, what: str, key: int, known: Loaded) -> Iterator[list[Any]]:
        """Return the cells of rows that were not read before; the first `key` cells identify a row."""
        for *cells, crc in self._connection.execute(f"SELECT * FROM {table}"):
            if known.is_new(*cells[:key], crc):
                if checksum(*cells) != crc:
                    raise self._wrong(what, cells[0], "do not match their checksum")
                yield cells

    @contextmanager
    def _one_state(self) -> Iterator[None]:
        """Read one state of the file while another process may write."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _load_boxes(self, outcomes: Outcomes, tests: int | None) -> None:
        for key, block, stored in self.get_blocks(keys.BOXES):
            name, _, number = key.removeprefix(keys.BOXES).rpartition("/")
            if not number.isdecimal() or not is_stored(stored, BLOCK):
                raise damaged(self.path, f"the array {key!r} holds no boxes")
            configuration, start = int(number), block * BLOCK
            self._whole_block("boxes", configuration, block, outcomes.inputs, tests)
            places = start + stored[:, 0].astype(np.intp)
            if (places >= outcomes.inputs).any() or not outcomes.attempted(configuration, places).all():
                raise self._wrong("boxes", configuration, "belong to no outcomes")
            outcomes.load_boxes(name, configuration, start, stored)

    def _whole_block(self, what: str, configuration: Any, block: Any, inputs: int, tests: int | None) -> bytes:
        """Return the bits of a completely attempted block; raise if there is no such block."""
        if not type(configuration) is type(block) is int or configuration < 0 or not 0 <= block * BLOCK < inputs:
            raise self._wrong(what, configuration, f"are of a block {short(block)} that {inputs:,} inputs do not have")
        if tests is not None and configuration >= tests:
            raise self._wrong(what, configuration, f"in a space of {tests:,} tests")
        return reader.all_of(inputs, block)

    def _wrong(self, what: str, configuration: Any, why: str) -> InputError:
        return damaged(self.path, f"{what} of configuration {short(configuration)} {why}")

    def load_by_place(self, name: str, inputs: int) -> Array | None:
        """Return an array with a row per input (`keys.REFERENCE`, `keys.CONTENTS`); zeros if not measured."""
        values: Array | None = None
        for block, rows in self._array_blocks(name):
            if values is None:
                values = np.zeros((inputs, *rows.shape[1:]), rows.dtype)
            part = slice(*span(block))
            if block < 0 or values[part].shape != rows.shape or values.dtype != rows.dtype:
                raise damaged(self.path, f"the array {name!r} is not of {inputs:,} inputs")
            values[part] = rows
        return values

    def import_run(self, other: Store, outcomes: Outcomes) -> None:
        """Merge another run of the same identity into these outcomes and save them."""
        inputs = outcomes.inputs
        theirs = other.load(inputs)
        mine, held = (self.load_by_place(name, inputs) for name in (keys.REFERENCE, keys.CONTENTS))
        added, other_held = (other.load_by_place(name, inputs) for name in (keys.REFERENCE, keys.CONTENTS))
        if added is not None:
            mine = np.zeros_like(added) if mine is None else mine
            known = theirs.attempted(0, np.arange(inputs))
            mine[known] = added[known]
        if other_held is not None:
            held = np.zeros_like(other_held) if held is None else held
            known = np.asarray(other_held.any(axis=1))
            if (held[known] != other_held[known])[held[known].any(axis=1)].any():
                raise InputError(
                    f"merge: {other.path} was measured on other contents of the data than the parts before"
                )
            held[known] = other_held[known]
        outcomes.merge(theirs)
        for configuration in theirs:
            tried, _ = theirs.trials(configuration)
            if len(tried):
                self.touch(configuration, tried, reference=configuration == 0, contents=held is not None)
        self.save(outcomes, mine, held)

    def _array_blocks(self, name: str) -> Iterator[tuple[int, Array]]:
        with self._plain_errors():
            for block, dtype, shape, data, crc in self._connection.execute(
                "SELECT block, dtype, shape, data, crc FROM arrays WHERE name = ? ORDER BY block", (name,)
            ):
                if checksum(name, block, dtype, shape, data) != crc:
                    raise damaged(self.path, f"the array {name!r} does not match its checksum")
                with self._readable(f"the array {name!r}"):
                    if type(block) is not int:
                        raise reader.Unreadable("has a part without a number")
                    array = reader.read_array(dtype, shape, data)
                yield block, array

    def _write_array(self, name: str, block: int, array: Array) -> None:
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        data = zlib.compress(little.tobytes(), 1)
        self._connection.execute(
            "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?, ?)",
            sealed(name, block, little.dtype.str, json.dumps(little.shape), data),
        )

    def _plain_errors(self) -> AbstractContextManager[None]:
        return plain_errors(self.path, self._watch)

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        try:
            yield
        except reader.Unreadable as error:
            raise damaged(self.path, f"{what} {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with plain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
                self._check_place()
            except BaseException:
                # SQLite itself rolls back if the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def identity_changes(stored: Record, now: Record) -> list[str]:
    """Return the differences between two identities in words."""
    return [
        f"{key} was {short(stored.get(key))}, now {short(now.get(key))}"
        for key in sorted({*stored, *now})
        if stored.get(key) != now.get(key)
    ]
