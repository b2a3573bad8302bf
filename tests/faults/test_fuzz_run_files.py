"""Run files that were damaged, and run files that someone crafted: one line or the right answer, nothing else."""

from __future__ import annotations

import io
import json
import random
import shutil
import sqlite3
import sys
import zlib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.present import terminal
from testifai.runs.reader import SCHEMA, checksum
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run

CRAFTED = 200
INPUTS = 200
SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
[space]
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
blur = { use = "mnist_c.motion_blur", severities = [0, 4] }
[scan]
strategy = "full"
keep = ["value", "predicted"]
quality = { use = "ssim", sample = 20 }
[[gate]]
name = "clean"
query = "order == 0"
at_least = 0.5
"""
QUERIES = ["zoom >= 2", "order == 1 and blur == 0", "severity > 3 or zoom == 0"]


def command(*arguments: object) -> tuple[int, str, str]:
    """The command line in this process: exit code, standard output, standard error."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["testifai", *map(str, arguments)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            cli.main()
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = before
    raise AssertionError("the command line always ends with an exit code")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A finished run of every kind of content: outcomes, kept values, scores, labels, a spec with a gate."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    data = demo_data()
    np.savez(folder / "digits.npz", x=data.inputs[:INPUTS], y=data.labels[:INPUTS])
    (folder / "spec.toml").write_text(SPEC)
    code, _, err = command("run", folder / "spec.toml", "--out", folder / "run.db")
    assert code == 0, err
    connection = sqlite3.connect(folder / "run.db", isolation_level=None)
    for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 512", "VACUUM"):
        connection.execute(statement)  # so that most bytes are read
    connection.close()
    return folder / "run.db"


def answers(path: Path) -> dict[str, Any]:
    """All that a stored run says: its page, its answers, every outcome, score and kept value."""
    tomogram = open_run(path)
    page = Console(file=io.StringIO(), width=120, highlight=False)
    terminal.summary(page, tomogram)
    outcomes, quality = tomogram.outcomes, tomogram.quality
    return {
        "page": page.file.getvalue(),
        "queries": [tomogram.query(query).as_dict() for query in QUERIES],
        "bits": {i: tuple(bits.tobytes() for bits in outcomes.bits(i)) for i in sorted(outcomes)},
        "kept": {(i, name): outcomes.kept(i, name).tobytes() for name in outcomes.kept_names() for i in outcomes},
        "quality": None if quality is None else (quality.name, quality.estimate.tobytes(), quality.high.tobytes()),
        "provenance": tomogram.provenance,
    }


def damage(content: bytes, dice: random.Random) -> bytes:
    """Mostly one byte, now and then several, a piece that is missing, or one that stands where another was."""
    damaged = bytearray(content)
    kind = dice.random()
    if kind < 0.9:
        for _ in range(1 if kind < 0.75 else dice.randint(2, 40)):
            damaged[dice.randrange(len(damaged))] ^= dice.randint(1, 255)
    elif kind < 0.94:
        del damaged[dice.randrange(len(damaged)) :]
    elif kind < 0.97:
        start, length = dice.randrange(len(damaged)), dice.randint(1, 4096)
        damaged[start : start + length] = bytes(len(damaged[start : start + length]))
    else:
        start, other = dice.randrange(len(damaged)), dice.randrange(len(damaged))
        length = min(dice.randint(1, 4096), len(damaged) - max(start, other))
        damaged[start : start + length] = content[other : other + length]
    return bytes(damaged)


@pytest.mark.parametrize("cases", [100, pytest.param(5_000, marks=pytest.mark.simulation)])
def test_damaged_run_files(cases, whole, tmp_path, watch, report):
    """No flip of a byte is a wrong number: it is noticed, or it was in a place that nothing is read from."""
    truth, content = answers(whole), whole.read_bytes()
    path = tmp_path / "run.db"
    truth["provenance"]["path"] = str(path)
    dice = random.Random(15)
    for number in range(cases):
        path.write_bytes(damage(content, dice))
        found, problems = watch.case(lambda: answers(path), [path])
        if not problems and not isinstance(found, InputError):
            problems = [f"wrong: {key}" for key in truth if found[key] != truth[key]]
        report.add(f"flip {number}", problems)
        report.count(found)
        for beside in tmp_path.glob("run.db-*"):
            beside.unlink()
    report.check()
    assert report.refused > cases / 5, "damage must mostly hit what is read"
    assert report.answered > cases / 50, "and not only what nobody can read any more"
    assert [file.name for file in tmp_path.iterdir()] == ["run.db"]


# -- crafted: every checksum is right ---------------------------------------------------------------------------------

DEEP = 100_000
VALUES = [
    *("", "nul", "{", "[" * DEEP, '{"a":' * DEEP, "[" * DEEP + "]" * DEEP, "\ud800".encode("utf-8", "surrogatepass")),
    *("null", "true", "-1", "0", "1e400", "NaN", "9" * 5000, str(2**63), '"x"', "[]", "{}", "[null]", '{"a": 1}'),
]
KEYS = ["identity", "inputs", "classes", "stopped_early", "spec", "folder", "gates", "environment", "quality"]
PARTS = [None, -1, 10**30, 1.5, "x", [], {}, [[]], True, "\x1b[2J\n= 1+1"]


def with_meta(key: str, text: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, text, checksum(key, text)))]


def with_array(name: str, dtype: Any, shape: Any, data: Any, block: Any = 0) -> list[tuple[str, tuple[Any, ...]]]:
    row = (name, block, dtype, shape, data)
    return [("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?, ?)", (*row, checksum(*row)))]


def with_outcomes(configuration: Any, block: Any, attempted: Any, passed: Any) -> list[tuple[str, tuple[Any, ...]]]:
    row = (configuration, block, attempted, passed)
    return [("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))]


def with_kept(configuration: Any, block: Any, name: Any, data: Any) -> list[tuple[str, tuple[Any, ...]]]:
    row = (configuration, block, name, data)
    return [("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))]


def bomb(megabytes: int) -> bytes:
    """Zeros that take a thousandth of the room until they are unpacked."""
    packer = zlib.compressobj(9, wbits=-15)
    # After a full flush a packer knows nothing of what was before, so that one piece can be repeated.
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = ((megabytes << 20) % 65521) << 16 | 1  # Adler's, of nothing but zeros
    return b"\x78\xda" + piece * megabytes + packer.flush() + checksum.to_bytes(4, "big")


def changed(identity: dict[str, Any], path: tuple[Any, ...], value: Any, *, drop: bool = False) -> str:
    """An identity with one part of it replaced, or left out."""
    copy = json.loads(json.dumps(identity))
    place = copy
    for step in path[:-1]:
        place = place[step]
    if drop:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(copy)


def crafted_schemas() -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """What a table may be replaced by, and what may be put beside it. All of these must be refused."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
    views = {
        "meta": "'identity' AS key, CAST(i AS TEXT) AS value, i AS crc FROM n WHERE i < 0",
        "outcomes": "i AS configuration, 0 AS block, NULL AS attempted, x'00' AS passed, 0 AS crc FROM n",
        "kept": "i AS configuration, 0 AS block, 'value' AS name, x'00' AS data, 0 AS crc FROM n WHERE i < 0",
        "arrays": "'labels' AS name, i AS block, '|u1' AS dtype, '[1]' AS shape, x'00' AS data, 0 AS crc FROM n "
        "WHERE i < 0",
    }
    made: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}
    for table, columns in views.items():
        made[f"{table} is an endless view"] = [
            (f"DROP TABLE {table}", ()),
            (f"CREATE VIEW {table} AS {endless}{columns}", ()),
        ]
        made[f"{table} is a view of itself"] = [
            (f"ALTER TABLE {table} RENAME TO inner_{table}", ()),
            (f"CREATE VIEW {table} AS SELECT * FROM inner_{table}", ()),
        ]
        made[f"no table {table}"] = [(f"DROP TABLE {table}", ())]
        made[f"{table} has one more column"] = [(f"ALTER TABLE {table} ADD COLUMN more TEXT DEFAULT 'x'", ())]
        made[f"trigger on {table}"] = [
            (f"CREATE TRIGGER t_{table} AFTER INSERT ON {table} BEGIN DELETE FROM meta; END", ())
        ]
    made["without keys"] = [
        ("DROP TABLE meta", ()),
        ("CREATE TABLE meta (key, value, crc)", ()),
        *with_meta("identity", "{}"),
    ]
    made["generated columns"] = [
        ("DROP TABLE meta", ()),
        ("CREATE TABLE meta (key TEXT, value TEXT AS (hex(zeroblob(400000000))), crc INTEGER)", ()),
        ("INSERT INTO meta (key, crc) VALUES ('identity', 0)", ()),
    ]
    made["another application"] = [("PRAGMA application_id = 7", ())]
    made["a later schema"] = [("PRAGMA user_version = 9", ())]
    made["an earlier schema"] = [("PRAGMA user_version = 0", ())]
    return made


def crafted_arrays() -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Arrays that are not what they say, or are too large. All of these must be refused."""
    packed, large = zlib.compress(bytes(INPUTS)), bomb(6 * 1024)
    shapes = [
        "[-1]",
        f"[{INPUTS}, -1]",
        "[1e9]",
        "[1, 1000000000000]",
        f"{INPUTS}",
        "null",
        "[",
        '"x"',
        "[" * 1000,
        f"[{INPUTS + 1}]",
        "[true]",
    ]
    dtypes = ["O", "|O8", "<U99999999", "<f99", "x", "", "V0", ">c32", "M8[s]", "|u1, |u1", "[('a', 'u1')]", "|S0"]
    made = {f"labels of shape {shape[:20]}": with_array("labels", "|u1", shape, packed) for shape in shapes}
    made |= {f"labels of dtype {dtype}": with_array("labels", dtype, f"[{INPUTS}]", packed) for dtype in dtypes}
    made["labels that are no zlib"] = with_array("labels", "|u1", f"[{INPUTS}]", b"abc")
    made["labels that are cut short"] = with_array("labels", "|u1", f"[{INPUTS}]", packed[:-3])
    made["labels that are text"] = with_array("labels", "|u1", f"[{INPUTS}]", "text")
    made["labels that are a number"] = with_array("labels", "|u1", f"[{INPUTS}]", 5)
    made["labels of two shapes"] = with_array("labels", "|u1", f"[{INPUTS // 2}, 2]", packed, block=1)
    made["labels for more inputs"] = with_array("labels", "|u1", f"[{INPUTS}]", packed, block=1)
    made["a bomb"] = with_array("labels", "|u1", f"[{INPUTS}]", large)
    made["a bomb that says so"] = with_array("labels", "|u1", f"[{6 << 30}]", large)
    made["a bomb of many rows"] = with_array("labels", "|u1", f"[{INPUTS}, {(6 << 30) // INPUTS}]", large)
    return made


def crafted_outcomes() -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Rows of outcomes and kept values that cannot be. All of these must be refused."""
    bits, values = bytes(INPUTS // 8), bytes(4 * INPUTS)
    made = {
        f"outcomes of configuration {number}": with_outcomes(number, 0, None, bits) for number in (-1, 6, 10**6, 2**62)
    }
    made |= {f"outcomes of block {block}": with_outcomes(0, block, None, bits) for block in (-1, 1, 2**40, 2**62)}
    made |= {
        f"outcomes as {passed!r}": with_outcomes(0, 0, None, passed)
        for passed in ("text", 5, 1.5, b"", bits[:-1], bits + b"\0", b"\0" * 10**6)
    }
    made |= {f"attempts as {tried!r}": with_outcomes(0, 0, tried, bits) for tried in ("text", 5, b"", bits[:-1])}
    made["passed what was not tried"] = with_outcomes(0, 0, bits, b"\xff" * len(bits))
    made["outcomes by name"] = with_outcomes("x", 0, None, bits)
    made["outcomes by half a number"] = with_outcomes(0, 0.5, None, bits)
    made |= {
        f"values of configuration {number}": with_kept(number, 0, "value", values) for number in (-1, 6, 2**62, "x")
    }
    made |= {f"values of block {block}": with_kept(0, block, "value", values) for block in (-1, 1, 2**62)}
    made |= {f"values as {data!r}"[:40]: with_kept(0, 0, "value", data) for data in (b"", b"abc", values[:-1], "x", 7)}
    return made


def crafted_facts(identity: dict[str, Any]) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Plain data that is of another kind or lacks something: refused, or answered where it does not matter."""
    made = {f"{key} is {str(text)[:12]!r}": with_meta(key, text) for key in KEYS for text in VALUES}
    for key in identity:
        made[f"identity without {key}"] = with_meta("identity", changed(identity, (key,), None, drop=True))
        made |= {
            f"identity.{key} is {part!r}": with_meta("identity", changed(identity, (key,), part)) for part in PARTS
        }
    axis = identity["space"]["axes"][0]
    places = [("space", key) for key in identity["space"]] + [("space", "axes", 0, key) for key in axis]
    for path in places:
        words = ".".join(map(str, path))
        made[f"identity without {words}"] = with_meta("identity", changed(identity, path, None, drop=True))
        made |= {
            f"identity.{words} is {part!r}": with_meta("identity", changed(identity, path, part)) for part in PARTS
        }
    many = [{**axis, "name": f"a{number}"} for number in range(60)]
    made["identity of 60 axes"] = with_meta("identity", changed(identity, ("space", "axes"), many))
    made["a billion inputs"] = with_meta("inputs", str(10**12))
    return made


def shown(path: Path) -> str:
    """What the commands say of a run file: their exit codes and how many lines of error, or what is wrong."""
    said = []
    for arguments in (("show", path), ("query", path, "zoom >= 2"), ("query", path, "order >= 0", "--json")):
        code, out, err = command(*arguments)
        lines = err.splitlines()
        if code == 0:
            assert out.strip(), "no answer"
            assert "\x1b" not in out, "an escape sequence"
        else:
            assert code == 2, f"exit code {code}"
            assert len(lines) == 1, f"{len(lines)} lines of error: {lines[-1:]}"
            assert lines[0].startswith("error: "), lines
            assert "\x1b" not in err, "an escape sequence"
            assert len(err) < 2000, "a line of more than 2,000 characters"
        said.append(code)
    return f"refused: {err.strip()}" if said == [2, 2, 2] else f"answered: {said}"


@pytest.mark.slow
def test_crafted_run_files(whole, tmp_path, watch, report, edit_run):
    """Whatever a file with right checksums says, it costs neither much time nor memory and is one line or an answer."""
    with Store.open(whole) as store:
        identity = store.get("identity")
    must = {**crafted_schemas(), **crafted_arrays(), **crafted_outcomes()}
    may = crafted_facts(identity)
    # Of the many facts a part, by seed: the others are of the same kinds.
    chosen = random.Random(15).sample(sorted(may), CRAFTED - len(must) + 40)
    assert len(must) + len(chosen) >= CRAFTED
    path = tmp_path / "run.db"
    for name, statements in [*must.items(), *((name, may[name]) for name in chosen)]:
        shutil.copy(whole, path)
        edit_run(path, statements)
        said, problems = watch.apart(lambda: shown(path), [path], seconds=8)
        if not problems and name in must and "refused: " not in said:
            problems = [f"not refused: {said}"]
        report.add(name, problems)
        report.count(said.strip("'\""))
        for beside in tmp_path.glob("run.db*"):
            beside.unlink()
    report.check()
    assert report.answered > 0


def test_the_bombs_are_what_they_should_be():
    assert zlib.decompress(bomb(3)) == bytes(3 << 20)
    assert len(bomb(6 * 1024)) < 8 << 20


def test_an_empty_run_with_the_right_schema_is_one_line(tmp_path):
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.executescript(SCHEMA)
    with pytest.raises(InputError, match="not a testifai run"):
        open_run(tmp_path / "run.db")
