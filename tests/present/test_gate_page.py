"""What a gate that does not hold says of itself."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import testifai as ta
from testifai.gates.runner import GatedRun
from testifai.gates.verdicts import Verdict, judge
from testifai.present.gate_page import line, page
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.spec.parsing import Gate
from testifai.tomogram import Answer, EstimatorSettings, Tomogram

KEEP = ta.Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2])
SPACE = ta.Space({"zoom": KEEP, "blur": KEEP})
INPUTS = 200


def measured(trials, *, tests=range(9), population="data", adaptive=True, gates=1):
    outcomes = Outcomes(INPUTS)
    for test in tests:
        outcomes.record(test, np.arange(trials), np.arange(trials) < 0.8 * trials)
    run = Tomogram(
        SPACE,
        outcomes,
        visiting_order(INPUTS, 0),
        settings=EstimatorSettings(population=population),
        labels=np.arange(INPUTS) % 10,
    )
    return GatedRun(run, (), Path("x.db"), 5, 1000, adaptive, gates)


def shown(found, gate):
    (verdict,) = judge([gate], found.tomogram)
    return line(verdict), page(found, verdict)


def test_a_failed_gate():
    short, long = shown(measured(INPUTS), Gate(name="mild", query="zoom > 0", at_least=0.9))
    assert short == "fails: 0.800 (exact), at least 0.9 is required: zoom > 0"
    assert long.splitlines() == [
        "gate 'mild'",
        "  query      zoom > 0",
        "  required   the lower bound is at least 0.9",
        "  estimate   0.800 (clean accuracy 0.800)",
        "  interval   exact at 95 %; valid however often one looks",
        "  verdict    fails: even the upper bound is below 0.9",
        "  tests      6 tests: 6 run on all inputs, 0 on some, 0 not run",
        "  inferences 1,800 of at most 1,000, 5 of them new",
        "  worst tests",
        "    zoom 1          0.800  exact",
        "    zoom 1, blur 1  0.800  exact",
        "    zoom 1, blur 2  0.800  exact",
        "    zoom 2          0.800  exact",
        "    zoom 2, blur 1  0.800  exact",
        "  run file   x.db",
        "  report     testifai report x.db --open",
    ]


def test_a_lenient_gate_on_some_inputs():
    gate = Gate(query="zoom > 0", at_least=1.0, basis="estimate", inputs="label < 5")
    short, long = shown(measured(INPUTS), gate)
    assert short.endswith("at least 1 is required of the estimate: zoom > 0 for inputs label < 5")
    assert "  query      zoom > 0 for inputs label < 5" in long
    assert "  required   the estimate is at least 1" in long
    assert "fails: the estimate is below 1" in long


def test_several_gates_say_that_they_share():
    found, gate = measured(INPUTS, gates=4), Gate(query="zoom > 0", at_least=0.9)
    verdicts = tuple(judge([gate] * 4, found.tomogram))
    assert "at 98.75 %, 95 % shared among the 4 gates of the file; valid" in page(
        replace(found, verdicts=verdicts), verdicts[0]
    )
    assert "shared among the 4 gates of the project; valid" in page(replace(found, verdicts=verdicts[:1]), verdicts[0])


@pytest.mark.parametrize(
    ("made", "at_least", "advice"),
    [
        ({"trials": 100}, 0.78, "set budget = "),
        ({"trials": 100}, 0.8, "all 600 inferences left on these tests would decide it: set budget = 1500 in [scan]"),
        ({"trials": 100, "adaptive": False}, 0.8, "strategy = 'adaptive' asks for them until a gate is decided"),
        ({"trials": INPUTS, "population": "future"}, 0.8, "only more data can decide it"),
    ],
    ids=["guess", "all", "strategy", "data"],
)
def test_an_undecided_gate_says_what_would_be_needed(made, at_least, advice):
    short, long = shown(measured(**made), Gate(query="zoom > 0", at_least=at_least))
    assert short.startswith("undecided: 0.800 (0.")
    verdict = next(text for text in long.splitlines() if text.startswith("  verdict "))
    assert f"undecided: {at_least:g} lies between the bounds; " in verdict
    assert advice in verdict


def test_tests_without_trials_of_their_own_say_so():
    _, long = shown(measured(INPUTS, tests=[0, 1, 2, 3, 6]), Gate(query="order == 2", at_least=0.5))
    assert "undecided: not enough runs in this region: 0 of 30 different inputs on tests drawn from it" in long
    assert "  interval   no interval" in long


def test_a_gate_without_a_name_begins_with_its_query():
    answer = Answer(0.5, 0.4, 0.6, -0.1, 1, 1, 0, (((1, 0), 0.5, 0.4, 0.6),))
    verdict = Verdict(Gate(query="zoom == 1", at_least=0.9), answer, "fails", "")
    assert page(measured(100), verdict).startswith("  query      zoom == 1\n")
