"""A test is run on all inputs, on some, or not run: the same three counts and words everywhere."""

import json

import numpy as np
import pytest

import testifai as ta
from testifai.report.contents import gather
from testifai.report.markdown import markdown
from testifai.runs.outcomes import Outcomes
from testifai.session.stored_runs import open_run

SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1, 0.2])
WORDS = "1 run on all inputs, 8 on some, 0 not run"  # all of the clean test


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rows = np.linspace(0, 1, 400)[:, None]
    model = lambda x: (x[:, 0] > 0.5).astype(int)  # noqa: E731
    found = tmp_path_factory.mktemp("run") / "run.db"
    space = ta.Space({"up": SHIFT, "on": SHIFT})
    ta.scan(model, (rows, model(rows)), space, strategy="balanced", budget=900, store=found)
    return found


def test_the_counts_are_those_of_the_trials(path, call):
    for arguments in (["show"], ["query", "order >= 0"]):
        found = json.loads(call(arguments[0], str(path), *arguments[1:], "--json")[1])
        assert (found["complete"], found["partial"], found["unrun"]) == (1, 8, 0)
        assert WORDS in call(arguments[0], str(path), *arguments[1:])[1]
    assert WORDS in markdown(gather(path, examples=0))
    found = json.loads(call("show", str(path), "--by", "order", "--json")[1])["by_order"]
    assert [found[order]["partial"] for order in "012"] == [0, 4, 4]


def test_some_of_each():
    outcomes = Outcomes(40)
    outcomes.record(0, np.arange(40), np.ones(40, bool))
    outcomes.record(1, np.arange(7), np.ones(7, bool))
    run = ta.Tomogram(ta.Space({"up": SHIFT, "on": SHIFT}), outcomes, np.arange(40))
    assert str(run.query("order >= 0").info.runs) == "1 run on all inputs, 1 on some, 7 not run"
    assert run.query("on > 1").as_dict()["unrun"] == 3


def test_answers_keep_their_fields(path):
    answer = open_run(path).query("order >= 0")
    assert answer.measured + answer.inferred == answer.tests == 9
