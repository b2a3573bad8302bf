"""testifai errors, through the entry point: measures a spec, reads runs, writes page and failures."""

from __future__ import annotations

import json

import numpy as np
import pytest

import testifai as ta
from testifai import cli
from testifai.locality import Network, measure
from testifai.session import assembly
from testifai.session.session import Session
from testifai.spec.parsing import read

SPEC = """
[space]
noise = { use = "classic.gaussian_noise", severities = [0, 3, 5] }
rotation = { use = "classic.rotation", severities = [0, 4] }
"""
COUNT = 400
MEASURE = ("spec.toml", "--per-class", "20")


@pytest.fixture(scope="module")
def ready(digits):
    """A folder with a spec and its run of twenty inputs per class, which `MEASURE` finds finished."""
    folder = digits(COUNT, spec=SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["testifai", "errors", str(folder / "spec.toml"), "--per-class", "20", "--json"])
        with pytest.raises(SystemExit) as left:
            cli.main()
    assert left.value.code == 0
    return folder


def told(command, *arguments):
    code, out, _ = command("errors", *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_a_spec_is_measured_and_told(command, folder):
    code, out, _ = command("errors", *MEASURE, "--html", "errors.html")
    assert code == 0
    assert (folder / "errors.html").stat().st_size > 1_000_000
    found = told(command, "spec.local.db")
    assert found["composed"] is None
    first = found["trends"][0]
    assert f"1. {first['text']}. Try: {first['advice']}." in out
    assert f"{first['local_gain']['rate']:+.3f}" in out
    assert "(classic." in first["advice"]


def test_the_same_command_continues_and_measures_nothing_twice(command, monkeypatch):
    first = told(command, *MEASURE)
    steps = []
    real = Session.run
    monkeypatch.setattr(Session, "run", lambda self, store, progress, extra: real(self, store, steps.append, extra))
    assert told(command, *MEASURE) == first
    assert steps == []
    code, _, err = command("errors", "spec.toml", "--per-class", "21")
    assert code == 2
    assert "belongs to another run: strategy" in err


def test_an_interrupt_keeps_what_was_measured(command, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "local", interrupted)
    code, _, err = command("errors", "spec.toml")
    assert code == 130
    assert "the same command continues" in err


def test_a_system_of_parts_is_predicted(command, folder):
    alone = told(command, *MEASURE)
    adder = told(command, "spec.local.db", "--arity", "2")
    assert adder["composed"]["rate"] < alone["local"]["rate"]
    assert adder["trends"][0]["composed_gain"]["rate"] > adder["trends"][0]["local_gain"]["rate"]
    (folder / "own_system.py").write_text("def larger(a, b):\n    return max(a, b)\n")
    code, out, err = command("errors", "spec.local.db", "--combine", "own_system:larger", "--json")
    assert code == 0
    assert "runs your own code" in err
    assert json.loads(out)["composed"]["rate"] > adder["composed"]["rate"]


def test_failing_inputs_are_written_from_the_spec_and_from_the_run(command, folder):
    found = told(command, *MEASURE, "--failures", "a.npz")
    with np.load("a.npz") as file:
        assert len(file["x"]) == found["rows"] == len(file["clean"])
        assert file["trend"].max() == len(found["trends"])
    command("errors", "spec.local.db", "--failures", "b.npz")
    assert (folder / "a.npz").read_bytes() == (folder / "b.npz").read_bytes()


def test_a_scan_that_kept_its_predictions_is_read(command, folder, spec_text):
    spec = read("spec.toml")
    session = assembly.session(spec, folder)
    ta.scan(session.model, session.data, session.space, strategy="full", store="scan.db", keep=["predicted"])
    assert told(command, "scan.db")["trends"]
    code, _, err = command("errors", "scan.db", "--failures", "f.npz")
    assert code == 2
    assert "was not made from a spec" in err
    assert told(command, "scan.db", "--failures", "f.npz", "--spec", "spec.toml")["rows"] > 0
    (folder / "other.toml").write_text(spec_text.replace("[0, 4]", "[0, 5]"))
    code, _, err = command("errors", "scan.db", "--failures", "f.npz", "--spec", "other.toml")
    assert code == 2
    assert "this is not what scan.db was measured on" in err


def test_code_in_a_stored_spec_runs_only_where_the_run_was_made_or_if_it_is_named(
    command, folder, spec_text, monkeypatch
):
    (folder / "own_axis.py").write_text(
        "import testifai as ta\n"
        "fade = ta.Perturbation('fade', lambda x, by, rng: (x * by).astype(x.dtype), [1.0, 0.1])\n"
    )
    (folder / "own.toml").write_text(spec_text.split("[space]")[0] + '[space]\nfade = { python = "own_axis:fade" }\n')
    code, _, err = command("errors", "own.toml", "--per-class", "20", "--failures", "a.npz")
    assert code == 0
    assert "runs your own code" in err
    assert command("errors", "own.local.db", "--failures", "b.npz")[0] == 0
    monkeypatch.setenv("TESTIFAI_STATE", str(folder / "another account"))
    code, _, err = command("errors", "own.local.db", "--failures", "b.npz")
    assert code == 2
    assert "name it with --spec SPEC.toml" in err
    assert command("errors", "own.local.db", "--failures", "b.npz", "--spec", "own.toml")[0] == 0


def test_the_network_answers_what_is_asked_of_it(command):
    pytest.importorskip("pyagrum", reason="the Bayesian network needs pyAgrum: pip install 'testifai[bayes]'")
    assert told(command, *MEASURE)["trends"]
    found = told(command, "spec.local.db", "--given", "class=5,property=noise")
    assert found["given"] == {"class": "5", "property": "noise"}
    beliefs = {one["name"]: one["states"] for one in found["beliefs"]}
    assert set(beliefs) == {"severity", "predicted", "correct"}
    right = beliefs["correct"][0]
    network = Network.of(measure.from_run("spec.local.db"))
    assert right["p"] == pytest.approx(network.predict({"class": "5", "property": "noise"}))
    assert right["low"] < right["p"] < right["high"]
    code, out, _ = command("errors", "spec.local.db", "--given", "class=5", "--given", "property=noise")
    assert code == 0
    assert "given class = 5, property = noise" in out
    assert f"{right['p']:.3f}  {right['low']:.3f} … {right['high']:.3f}" in out
    assert "0.500          exact" in out  # severities are as probable as the profile says
    adder = told(command, "spec.local.db", "--arity", "2", "--given", "class_1=5,class_2=0,composed=False")
    named = {one["name"]: one["states"] for one in adder["beliefs"]}
    assert {"property", "severity", "predicted_1", "correct_2", "output"} <= set(named)


def test_a_system_is_measured_on_other_inputs_beside_its_prediction(command, folder):
    found = told(command, *MEASURE, "--arity", "2", "--measured", "8")["measured"]
    assert found["tuples"] == 55
    for part in ("predicted", "measured"):
        mean = found[part]["overall"]
        assert mean["low"] < mean["rate"] < mean["high"]
        assert len(found[part]["by_condition"]["low"]) == 2
    used = [measure.from_run(name).sampled.ids for name in ("spec.local.db", "spec.composed.db")]
    assert not np.intersect1d(*used).size
    code, out, _ = command("errors", *MEASURE, "--arity", "2", "--measured", "8")
    assert code == 0
    assert "measured on other inputs: " + f"{found['measured']['overall']['rate']:.3f}" in out
    assert found["statements"][0][:40] in out


def test_how_sure_the_model_is_is_told_by_property_and_by_class(command):
    found = told(command, *MEASURE)["confidence"]
    right, wrong = (found["by_property"][kind] for kind in ("right", "wrong"))
    assert right["low"][0] < right["rate"][0] < right["high"][0]
    assert right["rate"][0] > wrong["rate"][0]
    code, out, _ = command("errors", "spec.local.db")
    assert code == 0
    assert f"{right['rate'][0]:.3f}  ({right['low'][0]:.3f} … {right['high'][0]:.3f})" in out
    of_nine = f"{found['cells']['right']['rate'][9][0]:.3f}  ({found['cells']['right']['low'][9][0]:.3f}"
    assert of_nine not in out
    code, out, _ = command("errors", "spec.local.db", "--confidence")
    assert of_nine in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.db"], "nothing.db does not exist"),
        (["nothing.toml"], "nothing.toml does not exist"),
        (["digits.npz"], "run file"),
        (["spec.toml", "--spec", "spec.toml"], "--spec needs a run file"),
        (["run.db", "--per-class", "3"], "--per-class needs a spec"),
        (["spec.toml", "--html", "page.txt"], "--html: 'page.txt' must end in .html"),
        (["spec.toml", "--failures", "no/f.npz"], "--failures: the folder no does not exist"),
        (["spec.toml", "--combine", "nowhere:f"], "no module 'nowhere'"),
        (["spec.toml", "--arity", "0"], "arity"),
        (["spec.toml", "--given", "class"], "--given: 'class' is not accepted; NAME=STATE is"),
        (["spec.toml", "--given", "class=1,class=2"], "--given: class is both 1 and 2"),
        (["spec.toml", "--given", "class=1", "--html", "a.html"], "--html cannot be combined with --given"),
        (["spec.toml", "--given", "class=1", "--confidence"], "--confidence cannot be combined with --given"),
        (["spec.toml", "--measured", "3"], "--measured: there is no system to measure; give --arity or --combine"),
        (["run.db", "--measured", "3"], "--measured needs a spec"),
    ],
)
def test_mistakes_are_one_line(command, arguments, message):
    code, out, err = command("errors", *arguments)
    assert code == 2
    assert message in err
    assert out == ""
    assert len([line for line in err.splitlines() if line.startswith("error")]) == 1


def test_a_run_without_predictions_says_how_to_get_them(command, folder):
    spec = read("spec.toml")
    session = assembly.session(spec, folder)
    ta.scan(session.model, session.data, session.space, strategy="ordered", budget=COUNT, store="plain.db")
    code, _, err = command("errors", "plain.db")
    assert code == 2
    assert "keep = ['predicted']" in err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("clas=5", "given: no variable 'clas'; did you mean 'class'?"),
        ("class=50", "given: class = '50'; did you mean '5'? (accepted: 0, 1, 2"),
        ("property=noize", "given: property = 'noize'; did you mean 'noise'?"),
        ("rotation=4,property=noise", "has probability 0"),
    ],
)
def test_an_unknown_name_or_state_is_one_line_that_says_what_there_is(command, given, message):
    pytest.importorskip("pyagrum", reason="the Bayesian network needs pyAgrum: pip install 'testifai[bayes]'")
    assert told(command, *MEASURE)
    code, out, err = command("errors", "spec.local.db", "--given", given)
    assert code == 2
    assert message in err
    assert out == ""
