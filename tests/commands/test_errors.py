"""testifai errors, through the entry point: measures a spec, reads runs, writes page and failures."""

from __future__ import annotations

import json

import numpy as np
import pytest

import testifai as ta
from testifai.locality import measure
from testifai.scans import loading
from testifai.scans.spec import read

SPEC = """
[space]
noise = { use = "classic.gaussian_noise", severities = [0, 3, 5] }
rotation = { use = "classic.rotation", severities = [0, 4] }
"""
COUNT = 500


@pytest.fixture(scope="module")
def ready(digits):
    return digits(COUNT, spec=SPEC)


def told(command, *arguments):
    code, out, _ = command("errors", *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_a_spec_is_measured_and_told(command, folder):
    code, out, _ = command("errors", "spec.toml", "--per-class", "30", "--html", "errors.html")
    assert code == 0
    assert (folder / "errors.html").stat().st_size > 1_000_000
    found = told(command, "spec.local.db")
    assert found["composed"] is None
    first = found["trends"][0]
    assert f"1. {first['text']}. Try: {first['advice']}." in out
    assert f"{first['local_gain']['rate']:+.3f}" in out
    assert "(classic." in first["advice"]


def test_the_same_command_continues_and_measures_nothing_twice(command, monkeypatch):
    first = told(command, "spec.toml", "--per-class", "20")
    steps = []
    real = measure._run
    monkeypatch.setattr(
        measure, "_run", lambda session, store, progress, extra: real(session, store, steps.append, extra)
    )
    assert told(command, "spec.toml", "--per-class", "20") == first
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
    alone = told(command, "spec.toml", "--per-class", "30")
    adder = told(command, "spec.local.db", "--arity", "2")
    assert adder["composed"]["rate"] < alone["local"]["rate"]
    assert adder["trends"][0]["composed_gain"]["rate"] > adder["trends"][0]["local_gain"]["rate"]
    (folder / "own_system.py").write_text("def larger(a, b):\n    return max(a, b)\n")
    code, out, err = command("errors", "spec.local.db", "--combine", "own_system:larger", "--json")
    assert code == 0
    assert "runs your own code" in err
    assert json.loads(out)["composed"]["rate"] > adder["composed"]["rate"]


def test_failing_inputs_are_written_from_the_spec_and_from_the_run(command, folder):
    found = told(command, "spec.toml", "--per-class", "30", "--failures", "a.npz")
    with np.load("a.npz") as file:
        assert len(file["x"]) == found["rows"] == len(file["clean"])
        assert file["trend"].max() == len(found["trends"])
    command("errors", "spec.local.db", "--failures", "b.npz")
    assert (folder / "a.npz").read_bytes() == (folder / "b.npz").read_bytes()


def test_a_scan_that_kept_its_predictions_is_read(command, folder, spec_text):
    spec = read("spec.toml")
    session = loading.session(spec, folder)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.db"], "nothing.db does not exist"),
        (["nothing.toml"], "nothing.toml does not exist"),
        (["digits.npz"], "run file"),
        (["spec.toml", "--spec", "spec.toml"], "--spec: is for a run file"),
        (["run.db", "--per-class", "3"], "--per-class: is for a spec"),
        (["spec.toml", "--html", "page.txt"], "--html: 'page.txt' must end in .html"),
        (["spec.toml", "--failures", "no/f.npz"], "--failures: the folder no does not exist"),
        (["spec.toml", "--combine", "nowhere:f"], "no module 'nowhere'"),
        (["spec.toml", "--arity", "0"], "arity"),
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
    session = loading.session(spec, folder)
    ta.scan(session.model, session.data, session.space, strategy="full", store="plain.db")
    code, _, err = command("errors", "plain.db")
    assert code == 2
    assert "keep = ['predicted']" in err
