"""What a result says of itself in a prompt: in a few words, not every array it holds."""

import pickle

import numpy as np
import pytest

import testifai as ta
from testifai import locality, operational
from testifai.tomogram import trust
from testifai.tomogram.regions import worst_regions


def add(x, by, rng):
    return x + by


def right(x):
    return (x[:, 0] > 0).astype(int)


SHIFT = ta.Perturbation("shift", add, [0.0, 0.2, 0.4, 0.6], levels=(0.0, 0.6))
SPACE = ta.Space({"shift": SHIFT, "push": (SHIFT, [1, 2])})
ROWS = np.linspace(-1, 1, 200)[:, None]
DATA = (ROWS, right(ROWS))


@pytest.fixture(scope="module")
def run():
    return ta.scan(right, DATA, SPACE, budget=700)


@pytest.fixture(scope="module")
def shown(run):
    """Every kind of result, by a name."""
    local = locality.local(right, DATA, SPACE, per_class=40)
    network = locality.Network(locality.learn(local))
    told = locality.compose(local)
    failed = np.arange(300) % 7 == 0
    return {
        "tomogram": run,
        "answer": run.query("shift >= 2"),
        "expected": run.expected({"shift": {0: 0.5, 1: 0.5}}),
        "trust": trust.assess(run),
        "regions": worst_regions(run),
        "comparison": ta.compare(run, run).overall,
        "hunt": ta.hunt(run, right, DATA, 40),
        "priorities": ta.prioritised(run, 20),
        "sweep": ta.sweep(lambda level: 1 - level / 2, 0, 1),
        "calibrated": ta.calibrate(right, DATA, SHIFT, [0.1], confidence=None),
        "space": SPACE,
        "axis": SPACE["push"],
        "perturbation": SHIFT,
        "estimate": operational.estimate("srs", failed=failed, tests=60),
        "local": local,
        "rates": local.by_class(),
        "sampled": local.sampled,
        "explanation": locality.explain(local),
        "network": network,
        "tables": network.tables,
        "prediction": told,
        "composite": locality.composite(right, DATA),
    }


def test_every_result_is_short_and_has_no_raw_array_or_function(shown):
    for name, result in shown.items():
        text = repr(result)
        assert len(text) < 1200, name
        assert max(map(len, text.split("\n"))) < 300, (name, text)
        assert not any(raw in text for raw in ("array(", "<function", "dtype", " object at 0x")), (name, text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("answer", "<Answer 0."),
        ("expected", "<Expected 0."),
        ("hunt", " inferences>"),
        ("calibrated", "<Calibrated shift: accuracy 1.000, levels 0."),
        ("axis", "<Axis push: shift [0, 1, 2]>"),
        ("perturbation", "<Perturbation shift: severities 1 to 3 (0.2, 0.4, 0.6)>"),
        ("estimate", " by srs: "),
        ("local", "<Local of 2 classes under shift, push: robustness 0."),
        ("prediction", "<Prediction of 3 combinations of classes under shift, push: "),
    ],
)
def test_the_first_things_to_know_are_said(shown, name, said):
    assert said in repr(shown[name])


def test_a_table_of_answers_is_still_a_dictionary(run):
    found = run.by_order()
    assert isinstance(found, dict)
    assert list(found) == [0, 1, 2]
    head, *rows = repr(found).split("\n")
    assert head.split() == ["order", "robustness", "95", "%", "interval", "tests", "measured"]
    assert [row.split()[1] for row in rows] == [f"{answer.robustness:.3f}" for answer in found.values()]
    assert "<th>order</th>" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found)) == found
    found.clear()
    assert len(run.by_order()) == 3


def test_a_table_by_axis_has_a_line_for_each(run):
    found = run.by_severity()
    assert [line.split()[0] for line in repr(found).split("\n")] == ["severity", "shift", "push"]
    assert f"{found['push'][2].robustness:.3f} ± " in repr(found)
    assert 'title="' in found._repr_html_()
    assert found["push"][2].info.query == "push == 2"


def test_severities_within_a_region_are_those_of_its_tests(run):
    found = run.by_severity("shift >= 2")
    assert list(found["shift"]) == [2, 3]
    inside = run.query("(shift >= 2) and push == 1")
    assert found["push"][1].robustness == pytest.approx(inside.robustness, abs=0.05)
    assert found["push"][1].tests == inside.tests


def test_axes_are_found_by_name_and_completed():
    assert SPACE["push"].severities == (0, 1, 2)
    assert SPACE._ipython_key_completions_() == ["shift", "push"]
    with pytest.raises(ta.InputError, match="axis: 'psh' is not an axis of this space; did you mean 'push'"):
        SPACE["psh"]
    with pytest.raises(TypeError, match="not iterable"):
        list(SPACE)
