"""Run files that someone made by hand, checksums and all: one line each, in bounded time and memory."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.report.contents import gather, read_stored
from testifai.report.sweep_report import gather_sweeps
from testifai.runs import keys, reader
from testifai.runs.reader import checksum
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run

WORDS = "is damaged"


@pytest.fixture
def run(whole_run, tmp_path):
    """A copy of the run, to be spoilt."""
    shutil.copy(whole_run / "spec.db", tmp_path / "run.db")
    return tmp_path / "run.db"


def change(path: Path, *statements: str) -> None:
    """Statements run on the file as anyone can."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.executescript(statement)


def say(path: Path, key: str, text: str) -> None:
    """Put a text under a key, with the checksum that it has."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, text, checksum(key, text)))


def put(path: Path, table: str, *cells: object) -> None:
    """A row of the file, with the checksum that it has."""
    with closing(sqlite3.connect(path)) as connection, connection:
        marks = ", ".join("?" * (len(cells) + 1))
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (*cells, checksum(*cells)))


# -- tables -----------------------------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
SCHEMAS = {
    "view": f"DROP TABLE kept; CREATE VIEW kept AS {ENDLESS} i, i, 'value', x'00', 0 FROM n;",
    "view of meta": f"DROP TABLE meta; CREATE VIEW meta AS {ENDLESS} 'identity' AS key, '1' AS value, i AS crc FROM n;",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM outcomes; END;",
    "index": "CREATE INDEX i ON outcomes (passed);",
    "another table": "CREATE TABLE more (a);",
    "virtual table": "CREATE VIRTUAL TABLE more USING fts5(a);",
    "generated column": "DROP TABLE kept; CREATE TABLE kept (configuration, block, name, data, crc AS (abs(block)));",
    "no table": "DROP TABLE kept;",
}


@pytest.mark.parametrize("how", SCHEMAS)
@pytest.mark.parametrize("open_it", [Store.open, Store.create_or_open])
def test_only_our_tables(run, how, open_it):
    try:
        change(run, SCHEMAS[how])
    except sqlite3.OperationalError as error:
        pytest.skip(str(error))
    began = time.monotonic()
    with pytest.raises(InputError, match=WORDS):
        open_it(run)
    assert time.monotonic() - began < 5


def test_a_statement_without_an_end_is_ended(run):
    with closing(sqlite3.connect(run)) as connection:
        watch = reader.Watch(connection, 1_000_000)
        began = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(f"{ENDLESS} max(i) FROM n").fetchone()
    assert watch.overdue
    assert time.monotonic() - began < 20


def test_ctrl_c_is_heard_while_sqlite_works(run):
    script = f"""
        import signal, sys, threading, os
        from testifai.runs import reader as guard
        from testifai.runs.store import Store
        guard.MOST_STEPS = 10**15
        store = Store.open({str(run)!r})
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            with store._plain_errors():
                store._connection.execute({ENDLESS + " max(i) FROM n"!r}).fetchone()
        except KeyboardInterrupt:
            print("stopped")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "stopped", done.stderr


def test_the_longest_statements_of_ours_are_far_from_the_limit(run):
    """Rows of the least size there can be: a configuration with a block of one input."""
    with Store.create_or_open(run) as store, store._transaction():
        rows = ((i, 0, b"\x80", b"\x80", 0) for i in range(10**5, 3 * 10**5))
        store._connection.executemany("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", rows)
    with Store.open(run) as store:
        store._watch.start()
        whole = store._watch._left
        store._connection.execute("PRAGMA quick_check(1)").fetchone()
        assert whole - store._watch._left < whole / 4


# -- plain data -------------------------------------------------------------------------------------------------------

TEXTS = {
    "no JSON": "{",
    "deep": "[" * 900 + "]" * 900,
    "too deep for a parser": "[" * 200_000,
    "a long number": "9" * 100_000,
    "a number": "3",
    "text": '"x"',
    "a list": "[1, 2]",
    "an empty table": "{}",
    "infinite": "Infinity",
}
DECLARED = (keys.IDENTITY, keys.INPUTS, keys.CLASSES, keys.GATES, keys.QUALITY, keys.LOCALITY, keys.ENVIRONMENT)


@pytest.mark.parametrize("key", DECLARED)
@pytest.mark.parametrize("what", TEXTS)
def test_what_stands_under_a_key_is_of_its_kind(run, key, what):
    harmless = {
        (keys.ENVIRONMENT, "an empty table"),
        (keys.INPUTS, "a number"),
    }
    say(run, key, TEXTS[what])
    if (key, what) in harmless:
        return
    with pytest.raises(InputError, match=WORDS):
        open_run(run)


@pytest.mark.parametrize("value", [0, -1, 39, 41, 10**9, 10**30, 2.5, True, "40", None])
def test_the_number_of_inputs(run, value):
    say(run, keys.INPUTS, json.dumps(value))
    began = time.monotonic()
    with pytest.raises(InputError, match=WORDS):
        open_run(run)
    assert time.monotonic() - began < 5


# -- arrays -----------------------------------------------------------------------------------------------------------

ZEROS = zlib.compress(bytes(10_000_000), 9)
ARRAYS = {
    "bomb with the shape of it": ("|u1", "[6000000000]", ZEROS),
    "more than its shape": ("<i8", "[40]", ZEROS),
    "less than its shape": ("<i8", "[40]", zlib.compress(bytes(80))),
    "negative": ("<i8", "[-40]", zlib.compress(bytes(320))),
    "overflow": ("<i8", "[4294967296, 4294967296]", zlib.compress(bytes(320))),
    "no list": ("<i8", "40", zlib.compress(bytes(320))),
    "objects": ("|O", "[40]", zlib.compress(bytes(320))),
    "records": ("i4,O", "[40]", zlib.compress(bytes(320))),
    "huge text": ("<U99999999", "[0]", zlib.compress(b"")),
    "no zlib": ("<i8", "[40]", b"x" * 320),
    "cut off": ("<i8", "[40]", zlib.compress(np.arange(40).tobytes())[:-6]),
    "no bytes": ("<i8", "[40]", "text"),
    "too few labels": ("<i8", "[39]", zlib.compress(bytes(8 * 39))),
}


@pytest.mark.parametrize("how", ARRAYS)
def test_arrays_are_measured_before_they_are_unpacked(run, how):
    put(run, "arrays", keys.LABELS, 0, *ARRAYS[how])
    with pytest.raises(InputError, match=WORDS):
        open_run(run)


def test_a_small_file_takes_little_memory(run, tmp_path):
    """Megabytes that unpack to gigabytes, by arrays or by outcomes of very many inputs."""
    pytest.importorskip("resource")
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc")
    bombs = [tmp_path / "arrays.db", tmp_path / "outcomes.db"]
    for path in bombs:
        shutil.copy(run, path)
    packed = zlib.compressobj(9, wbits=-15)
    # After a full flush a packer knows nothing of what was before, so that one piece can be repeated.
    piece = packed.compress(bytes(10**6)) + packed.flush(zlib.Z_FULL_FLUSH)
    adler = ((10**9) % 65521) << 16 | 1  # of nothing but zeros
    zeros = b"\x78\xda" + piece * 1000 + packed.flush() + adler.to_bytes(4, "big")
    put(bombs[0], "arrays", keys.LABELS, 0, "|u1", f"[40, {25 * 10**6}]", zeros)
    with closing(sqlite3.connect(bombs[1])) as connection, connection:
        connection.execute("DELETE FROM arrays")
        connection.execute("DELETE FROM outcomes")
        connection.execute("DELETE FROM kept")
        connection.execute("DELETE FROM meta WHERE key = 'quality'")
        rows = [(i, 7, None, b"\0" * 128) for i in range(9)]
        connection.executemany("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", [(*r, checksum(*r)) for r in rows])
        values = [(i, 7, f"v{n}", b"\0" * 4096) for i in range(9) for n in range(20)]
        connection.executemany("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", [(*r, checksum(*r)) for r in values])
    say(bombs[1], keys.INPUTS, str(10**7))
    script = f"""
        import re, resource, time
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        import testifai as ta
        for path in {[str(path) for path in bombs]!r}:
            began = time.monotonic()
            try:
                print("opened", ta.open(path).inferences)
            except ta.InputError as error:
                print(error)
            assert time.monotonic() - began < 30
        # ru_maxrss would start with the peak of the process that started this one.
        print(int(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]) // 1024)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second, most = done.stdout.splitlines()
    assert WORDS in first
    assert second == f"opened {9 * 1024}"  # outcomes take what they are, not what there are inputs
    assert all(path.stat().st_size < 4_000_000 for path in bombs)
    assert int(most) < 1500


# -- outcomes ---------------------------------------------------------------------------------------------------------

ROW = b"\xff" * 5  # of 40 inputs
OUTCOMES = {
    "a test the space does not have": (9, 0, None, ROW),
    "a negative test": (-1, 0, None, ROW),
    "a test that is no number": ("x", 0, None, ROW),
    "a block the inputs do not have": (3, 1, None, b""),
    "a negative block": (3, -1, None, b"\xff" * 128),
    "a block that is no number": (3, 0.5, None, ROW),
    "passed and not tried": (8, 0, b"\x00" * 5, ROW),
    "bits as text": (8, 0, None, "x" * 5),
    "too few": (8, 0, None, b"\xff"),
}


@pytest.mark.parametrize("how", OUTCOMES)
def test_outcomes_are_of_the_space_and_the_inputs(run, how):
    change(run, "PRAGMA foreign_keys = OFF; DELETE FROM kept; DELETE FROM outcomes WHERE configuration = 8;")
    put(run, "outcomes", *OUTCOMES[how])
    with pytest.raises(InputError, match=WORDS):
        open_run(run)


@pytest.mark.parametrize("cells", [(99, 0, "value", b"\0" * 160), (0, 0, "value", b"\0"), (0, 0, "value", "text"),
                                   (0, -1, "value", b"\0" * 160), (0, 0, b"value", b"\0" * 160)])  # fmt: skip
def test_kept_values_belong_to_outcomes(run, cells):
    put(run, "kept", *cells)
    with pytest.raises(InputError, match=WORDS):
        open_run(run)


# -- everything at once -----------------------------------------------------------------------------------------------

GONE = object()
HOSTILE = (None, -1, 0, 1e308, 10**30, float("nan"), "x", "\x1b[2J", [], {}, [[1]], True, "9" * 300, GONE)


def _places(value: object, path: tuple[object, ...] = ()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            yield from _places(value[number], (*path, number))


def _with(text: str, path: tuple[object, ...], new: object) -> str:
    value = json.loads(text)
    if not path:
        return json.dumps(None if new is GONE else new)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if new is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return json.dumps(value)


def _read_all(path: Path) -> None:
    stored = read_stored(path)
    if stored.tomogram is None:
        swept = gather_sweeps(stored)
        if swept is not None:
            json.dumps(swept.as_dict())
        return
    gather(stored, examples=0).as_dict()


@pytest.mark.parametrize("count", [25, pytest.param(300, marks=pytest.mark.simulation)])
@pytest.mark.parametrize("name", ["spec.db", "spec.local.db"])
def test_any_value_in_the_place_of_any_other(whole_run, tmp_path, name, count):
    """A seeded sample; whatever is not refused in one line is reported on."""
    with closing(sqlite3.connect(whole_run / name)) as connection:
        meta = dict(connection.execute("SELECT key, value FROM meta"))
    cases = [(key, path, new) for key, text in meta.items() for path in _places(json.loads(text)) for new in HOSTILE]
    refused, lines = 0, set()
    for key, path, new in random.Random(15).sample(cases, count):
        spoilt = tmp_path / "run.db"
        shutil.copy(whole_run / name, spoilt)
        say(spoilt, key, _with(meta[key], path, new))
        try:
            _read_all(spoilt)
        except InputError as error:
            refused += 1
            lines |= {str(error)}
        except Exception as error:
            raise AssertionError(f"{key} {path} {new!r}") from error
    assert refused > count / 10
    assert not any("\n" in line for line in lines)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm here")
def test_commands_say_one_line(run, whole_run, call):
    spec = whole_run / "spec.toml"
    say(run, keys.IDENTITY, TEXTS["deep"])
    for arguments in (
        ["show", run],
        ["query", run, "order == 0"],
        ["report", run],
        ["run", spec, "--merge", run, "-o", "x.db"],
    ):
        code, out, err = call(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert WORDS in err
