"""Specs with anything wrong in them: read as a spec or refused in one line, and nothing that they name is touched."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from testifai.errors import InputError
from testifai.spec.parsing import Spec, read

WHOLE = """
[model]
python = "evil_module:model"
name = "mine"
batch_size = 8
classes = 3
[data]
npz = "data.npz"
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = { off = 0, most = 5 } }
own = { python = "evil_module:perturbation", severities = [0, 1] }
order_sensitive = false
[scan]
strategy = "ordered"
budget = 500
batch_size = 3
workers = 2
seed = 4
stopping = { use = "window", batch = 40, delta = 0.15 }
keep = ["value"]
quality = { use = "kid", sample = 20 }
[[gate]]
name = "clean"
query = "order == 0"
at_least = 0.9
inputs = "label == 1"
"""
VALUES = [
    *("-1", "0", "1e400", "nan", "inf", "9" * 30, "9" * 5000, "true", '""', '"x"', "[]", "{}", "[[[]]]", "1979-05-27"),
    *('"../../../etc/passwd"', '"evil_module:x"', '"os:system"', "[1, 'a', {}]", "{ use = 3 }", '"\\u001b[2J"'),
    *("'''\nx\n'''", "{ python = 'evil_module:y' }", "[" * 200 + "]" * 200, "{ a = " * 50 + "1" + " }" * 50, "0x7f"),
    *('"' + "x" * 100_000 + '"', "10" + "0" * 18, "-0.0", "[nan]", "{ use = 'full', use2 = 1 }", '"a\\nb"'),
]
DEEP = [
    "[" * 3000 + "]" * 3000,
    "{ a = " * 3000 + "1" + " }" * 3000,
    ".".join(["a"] * 5000) + " = 1",
    "x = " + "[" * 100_000,
]
PIECES = ["=", "[", "]", "{", "}", '"', "'", "#", "\n", "\\", "\0", "\ufeff", "\x1b", ".", ",", "\t", "é", "[[", "]]"]


def spoil(text: str, dice: random.Random) -> str:
    """A spec with a value of another kind, a line lost or twice, or characters where none should be."""
    for _ in range(dice.randint(1, 3)):
        lines = text.split("\n")
        place = dice.randrange(len(lines))
        kind = dice.random()
        if kind < 0.5:
            places = [number for number, line in enumerate(lines) if "=" in line]
            if places:
                place = dice.choice(places)
                lines[place] = f"{lines[place].partition('=')[0]}= {dice.choice(VALUES)}"
        elif kind < 0.6:
            del lines[place]
        elif kind < 0.7:
            lines.insert(place, dice.choice(lines))
        elif kind < 0.75:
            lines.insert(place, dice.choice(DEEP))
        elif kind < 0.9:
            column = dice.randint(0, len(lines[place]))
            lines[place] = lines[place][:column] + dice.choice(PIECES) + lines[place][column:]
        else:
            lines[place] = lines[place][: dice.randint(0, len(lines[place]))]
        text = "\n".join(lines)
    return text


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where the spec stands, with a module that must not be imported, in the current folder and on the path."""
    (tmp_path / "evil_module.py").write_text("raise SystemExit('this must not run')\n")
    (tmp_path / "data.npz").write_bytes(b"this must not be read")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("cases", [100, pytest.param(500, marks=pytest.mark.simulation)])
def test_specs(cases, folder, watch, report):
    path = folder / "spec.toml"
    path.write_text(WHOLE)
    assert read(path).runs_code() == ["model.python", "space.own"]
    dice = random.Random(17)
    for number in range(cases):
        text = spoil(WHOLE, dice)
        content = text.encode("utf-8", "surrogatepass")
        if dice.random() < 0.1:
            content = bytes(one ^ (dice.randrange(256) if dice.random() < 0.003 else 0) for one in content)
        path.write_bytes(content)
        found, problems = watch.case(lambda: read(path), [path], seconds=5)
        if not problems and not isinstance(found, Spec | InputError):
            problems = [f"read as {type(found).__name__}"]
        report.add(f"spec {number}: {_difference(text)}", problems)
        report.count(found)
    report.check()
    assert report.refused > cases / 5
    assert report.answered > cases / 40


def _difference(text: str) -> str:
    """The first line that the whole spec has not."""
    known = set(WHOLE.split("\n"))
    return next((repr(line[:80]) for line in text.split("\n") if line not in known), "lines left out")
