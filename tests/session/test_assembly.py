"""What a spec names of the user's own code, loaded."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.gates import runner
from testifai.session import assembly
from testifai.spec.parsing import parse

CODE = """
import numpy as np
from testifai.oracles import Outcome

def near(outputs, expected, clean):
    return abs(outputs - expected) <= 1

class Judge:
    def judge(self, outputs, expected, clean):
        return Outcome(outputs == expected)

judge = Judge()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model that is off by one, and judges of two kinds."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "judging.py").write_text(CODE)
    (tmp_path / "answers.py").write_text("def model(rows):\n    return rows[:, 0].astype(int) + 1\n")
    rows = np.arange(20, dtype=float)[:, None].repeat(2, axis=1)
    np.savez(tmp_path / "rows.npz", x=rows, y=rows[:, 0].astype(int))
    yield tmp_path
    for name in ("judging", "answers"):
        sys.modules.pop(name, None)


def spec(oracle, **more):
    return parse(
        {
            "model": {"python": "answers:model", "classes": 21},
            "data": {"npz": "rows.npz"},
            "space": {"noise": {"use": "tabular.noise", "severities": [0, 1]}},
            "scan": {"oracle": oracle, "strategy": "full"},
            **more,
        }
    )


@pytest.mark.parametrize(("oracle", "clean"), [("judging:near", 1.0), ("judging:judge", 0.0)])
def test_an_oracle_of_the_users(folder, oracle, clean):
    session = assembly.session(spec({"python": oracle}), folder)
    assert session.run().base == clean


def test_gates_are_judged_by_it(folder):
    asked = spec({"python": "judging:near"}, gate=[{"query": "order == 0", "at_least": 0.9}])
    found = runner.prepare(asked, folder)
    assert found.oracle.describe()["function"] == "judging:near"


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        ({"python": "judging:near", "use": "label"}, "scan.oracle: needs exactly one of use, python"),
        ({"python": "judging:gone"}, "scan.oracle"),
        ({"python": "judging:judge", "needs_labels": True}, "scan.oracle: needs_labels: an object with judge()"),
        ({"python": "judging:near", "eps": 1}, "eps"),
        ({"use": "function", "function": "judging:near"}, "oracle = { python = 'module:name' }"),
    ],
)
def test_mistakes_are_one_line(folder, oracle, words):
    with pytest.raises(InputError) as caught:
        assembly.session(spec(oracle), folder)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
