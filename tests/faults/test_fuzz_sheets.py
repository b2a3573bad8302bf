"""Labelling sheets and selections that were damaged on their way: one line, or the answer of what is in them."""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testifai.data import Data
from testifai.errors import InputError
from testifai.operational.answer import answer
from testifai.operational.label_file import read_filled
from testifai.operational.rounds import collect, write_first
from testifai.operational.selection import choose, read

pytestmark = pytest.mark.slow

DAMAGED = 1_000
CELLS = [
    *("", "-1", "3", "2.0", "9" * 5000, "1e9", "x", "'=1+1", "=1+1", "NaN", "\x1b[2J", "١", "1.5", '"', "a\nb", "3,3"),
    *("+2", "--1", " 1 ", "\ufeff", "\0", "x" * 200_000, "0" * 4500, "1." + "0" * 5000, "∞", "\ud7ff", "id", "label"),
]
FACTS = [None, -1, 0, 10**30, 1.5, "x", [], {}, True, [[]], "\x1b[2J", float("nan")]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, bytes]:
    """The files of a small selection, all of its rows filled in."""
    folder = tmp_path_factory.mktemp("sheets")
    rows = np.random.default_rng(3).random((60, 3)).astype(np.float32)
    selection = choose(lambda batch: batch, Data(rows), technique="confidence", tests=20, classes=("a", "b", "c"))
    out = folder / "to_label.csv"
    write_first(selection, Data(rows), out)
    table = list(csv.DictReader(io.StringIO(out.read_text())))
    for number, row in enumerate(table):
        row["label"] = "abc"[number % 3]
    text = io.StringIO()
    writer = csv.DictWriter(text, table[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    out.write_text(text.getvalue())
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in (".csv", ".npz")}


def put(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder / "to_label.csv"


def estimate(path: Path) -> dict[str, Any]:
    """What `testifai estimate` prints, as data and as lines."""
    found = answer(collect([path]), 0.5)
    return {**json.loads(json.dumps(found.as_dict())), "lines": found.lines(path)}


def flip(content: bytes, dice: random.Random) -> bytes:
    """Some bytes changed, or the end missing."""
    damaged = bytearray(content)
    if dice.random() < 0.1:
        return bytes(damaged[: dice.randrange(len(damaged))])
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        damaged[dice.randrange(len(damaged))] ^= dice.randint(1, 255)
    return bytes(damaged)


def respelled(content: bytes, dice: random.Random) -> bytes:
    """A table with other cells, columns or rows."""
    rows = list(csv.reader(io.StringIO(content.decode())))
    for _ in range(dice.randint(1, 3)):
        kind, row = dice.random(), dice.randrange(len(rows))
        if kind < 0.6 and rows[row]:
            rows[row][dice.randrange(len(rows[row]))] = dice.choice(CELLS)
        elif kind < 0.7:
            rows.append(list(rows[row]))
        elif kind < 0.8 and len(rows) > 2:
            del rows[row]
        elif kind < 0.9:
            rows[row] = rows[row][: dice.randint(0, len(rows[row]))]
        else:
            dice.shuffle(rows)
    text = io.StringIO()
    csv.writer(text, lineterminator=dice.choice(["\n", "\r\n", "\r"])).writerows(rows)
    return text.getvalue().encode(dice.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"]), "replace")


def recrafted(content: bytes, dice: random.Random) -> bytes:
    """A selection whose file is sound, and what it says is not."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    facts = json.loads(str(arrays["facts"]))
    kind, name = dice.random(), dice.choice(sorted(facts))
    if kind < 0.5:
        facts[name] = dice.choice(FACTS)
        if dice.random() < 0.2:
            del facts[name]
        arrays["facts"] = np.array(json.dumps(facts))
    elif kind < 0.6:
        text = dice.choice(["", "[" * 100_000, "{", "null", "[]", '{"format": 1}', "9" * 5000])
        arrays["facts"] = dice.choice([np.array(text), np.array(5), np.array([text, text]), np.array(b"x")])
    else:
        name = dice.choice(sorted(set(arrays) - {"facts"}))
        one = arrays[name]
        wrong = [one[:-1], one[None], one.astype(str), np.array([]), one.astype(complex), one * 10**6 - 7, one[::-1]]
        with np.errstate(all="ignore"):
            arrays[name] = dice.choice([*wrong, np.full_like(one, -1), np.full(len(one), np.nan), np.array(1)])
        if dice.random() < 0.2:
            del arrays[name]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def retold(content: bytes, dice: random.Random) -> bytes:
    """A selection whose arrays have headers of someone's making: pickles, absurd and negative shapes."""
    headers = [
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }",
        "{'descr': '<U999999999', 'fortran_order': False, 'shape': (), }",
        "{'descr': __import__('os'), 'shape': ()}",
        "(" * 5000,
        "{'descr': '<f8', 'fortran_order': 3, 'shape': 'x'}",
    ]
    header = dice.choice(headers).encode().ljust(118) + b"\n"
    crafted = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        names = old.namelist()
        chosen = dice.choice(names)
        for name in names:
            new.writestr(name, crafted if name == chosen else old.read(name))
    return buffer.getvalue()


def test_sheets(made, tmp_path, watch, report):
    path = put(tmp_path, made)
    truth = estimate(path)
    selection_file = tmp_path / "to_label.selection.npz"
    classes = read(selection_file).classes
    labels = read_filled(path, classes)
    named = [path, selection_file]
    dice = random.Random(18)
    kinds = [
        ("sheet", flip),
        ("sheet", respelled),
        ("selection", flip),
        ("selection", recrafted),
        ("selection", retold),
    ]
    for number in range(DAMAGED):
        kind, change = kinds[number % len(kinds)]
        file = path if kind == "sheet" else selection_file
        put(tmp_path, made)
        file.write_bytes(change(made[file.name], dice))
        found, problems = watch.case(lambda: estimate(path), named, seconds=10)
        if not problems and not isinstance(found, InputError):
            problems = judge(found, truth, kind, change is flip, lambda: read_filled(path, classes) == labels)
        report.add(f"{kind} {number} ({change.__name__})", problems)
        report.count(found)
    report.check()
    assert report.refused > DAMAGED / 3
    assert report.answered > DAMAGED / 20
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(file.name for file in named)


def judge(found: dict[str, Any], truth: dict[str, Any], kind: str, damaged: bool, same_labels: Any) -> list[str]:
    """What is wrong with an answer: damage to a selection is noticed, and the same labels give the same answer."""
    if (kind == "selection" and damaged) or (kind == "sheet" and same_labels()):
        return [] if found == truth else ["a wrong number"]
    low, middle, high = (found[key] for key in ("low", "accuracy", "high"))
    if middle is None or low is None or high is None:  # a few labels give no interval
        return [] if low is None and high is None else ["one bound alone"]
    # An unbiased estimate from a handful of labels may lie outside; its bounds do not.
    inside = min(max(middle, 0), 1)
    return [] if 0 <= low <= inside <= high <= 1 else ["bounds that do not hold the estimate"]
