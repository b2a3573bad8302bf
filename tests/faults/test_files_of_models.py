"""Python models that read files or import modules when they are called."""

from __future__ import annotations

import sys

import pytest

from testifai.gates.runner import measure
from testifai.spec.parsing import read

READS = """
from pathlib import Path
def model(b):
    limit = int(Path(__file__).with_name("limit.txt").read_text())
    return (b[:, 0, 0] > limit).astype(int)
"""
GATE = '[[gate]]\nquery = "order == 0"\nat_least = 0.8\n'
IMPORTS = "def model(b):\n    from sibling_of_own import limit\n    return (b[:, 0, 0] > limit).astype(int)\n"


@pytest.fixture
def gates(tmp_path):
    """Evaluate the gates of a spec as pytest does: whether the gate holds, and the number of new inferences."""

    def evaluate(spec, session):
        found = measure(read(spec), spec.parent, tmp_path / "cache", name="x", again=session)
        return found.verdicts[0].holds, found.new

    return evaluate


def test_gates_of_a_test_suite_are_measured_again(own, gates, tmp_path):
    spec = own(READS, lines=GATE)
    limit = tmp_path / "limit.txt"
    limit.write_text("127")
    holds, new = gates(spec, "first")
    assert holds
    assert new > 0
    assert gates(spec, "first") == (True, 0)  # another process of the same session
    limit.write_text("250")
    assert gates(spec, "second") == (False, new)


def test_a_version_identifies_the_files_too(own, gates, tmp_path):
    (tmp_path / "limit.txt").write_text("127")
    spec = own(READS, lines=GATE, model='version = "1"')
    _, new = gates(spec, "first")
    assert new > 0
    assert gates(spec, "second") == (True, 0)
    (tmp_path / "limit.txt").write_text("250")
    assert gates(own(READS, lines=GATE, model='version = "2"'), "third") == (False, new)


def test_a_run_that_is_resumed_says_what_is_not_checked(own, command, tmp_path):
    (tmp_path / "limit.txt").write_text("127")
    spec = own(READS)
    said = "changes to files that the model reads when it is called are not detected"
    assert said not in command("run", spec)[2]
    assert command("run", spec)[2].count(said) == 1
    spec = own(READS, model='version = "1"')
    for _ in range(2):
        assert said not in command("run", spec, "-o", tmp_path / "other.db")[2]


def test_a_function_imports_a_sibling_in_both(own, command, gates, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "sibling_of_own.py").write_text("limit = 127\n")
    spec = own(IMPORTS, lines=GATE)
    code, _, err = command("run", spec)
    assert code == 0, err
    sys.modules.pop("sibling_of_own")
    assert gates(spec, "first")[0]
    sys.modules.pop("sibling_of_own")
    assert sys.path[-1] == str(tmp_path)  # last: it hides no library
