"""testifai sweep, through the entry point: tables, pictures, and a run file that loses nothing."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.runs.store import Store
from testifai.session import assembly
from testifai.spec.parsing import parse
from testifai.sweeps import storage

SPEC = """
[space]
noise = "classic.gaussian_noise"
zoom = "mnist_c.zoom"
"""
COUNT = 300


@pytest.fixture(scope="module")
def ready(digits):
    return digits(COUNT, spec=SPEC)


def swept(command, *arguments):
    code, out, _ = command("sweep", "spec.toml", *arguments, "--json")
    assert code == 0
    return json.loads(out)["sweeps"]


def test_all_axes_with_a_level_are_swept_and_the_others_named(command, folder):
    code, out, err = command("sweep", "spec.toml", "--threshold", "0.8", "--plot", "curve.png")
    assert code == 0
    assert "noise" in out
    assert "unseen" in out
    assert "zoom (mnist_c.zoom) has no continuous level" in err
    assert (folder / "curve.png").stat().st_size > 1000
    with Store.open("spec.db") as store:
        [found] = store.get("sweep/classic.gaussian_noise/found")
    assert found["threshold"] == 0.8
    assert found["evaluations"] == len(found["levels"])
    assert 0 < found["unseen"] <= 0.05


def test_narrower_dips_are_looked_for_where_asked(command, folder):
    [wide] = swept(command, "-p", "noise", "--narrowest", "0.2")["noise"]
    [narrow] = swept(command, "-p", "noise", "--narrowest", "0.02")["noise"]
    assert narrow["unseen"] <= 0.02 < wide["unseen"] <= 0.2


def test_several_thresholds_and_perturbations_each_have_their_picture(command, folder):
    found = swept(command, "-p", "noise", "-p", "classic.rotation", "-t", "0.8", "-t", "0.6", "--plot", "c.png")
    assert {axis: [one["threshold"] for one in listed] for axis, listed in found.items()} == {
        "noise": [0.8, 0.6],
        "classic.rotation": [0.8, 0.6],
    }
    assert sorted(path.name for path in folder.glob("c-*.png")) == [
        "c-classic.rotation-0.6.png", "c-classic.rotation-0.8.png", "c-noise-0.6.png", "c-noise-0.8.png",
    ]  # fmt: skip


def test_an_interrupted_sweep_goes_on_where_it_stopped(command, folder, monkeypatch):
    whole = swept(command, "-p", "noise", "--out", "whole.db")
    add, count = storage.SweepRecord.add, [0]

    def interrupted(record, measured):
        add(record, measured)
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(storage.SweepRecord, "add", interrupted)
    code, _, err = command("sweep", "spec.toml", "-p", "noise")
    assert code == cli.INTERRUPTED
    assert "the same command continues" in err
    monkeypatch.setattr(storage.SweepRecord, "add", add)
    with Store.open("spec.db") as store:
        kept = sum(len(array) for _, _, array in store.get_blocks("sweep/"))
    measured = []
    monkeypatch.setattr(storage.SweepRecord, "add", lambda record, one: (measured.append(one), add(record, one))[1])
    assert swept(command, "-p", "noise") == whole
    assert kept > 0
    assert sum(len(one.passed) for one in measured) == whole["noise"][0]["inferences"] - kept


def test_a_finished_sweep_costs_nothing_and_a_scan_shares_its_file(command, folder, monkeypatch):
    first = swept(command, "-p", "noise")
    assert command("run", "spec.toml")[0] == 0
    measured = []
    monkeypatch.setattr(storage.SweepRecord, "add", lambda record, one: measured.append(one))
    assert swept(command, "-p", "noise") == first
    assert not measured
    assert command("query", "spec.db", "noise > 2")[0] == 0


def test_a_sweep_of_something_else_is_not_continued(command, folder, spec_text):
    swept(command, "-p", "noise")
    (folder / "spec.toml").write_text(spec_text + "[scan]\nseed = 3\n")
    code, _, err = command("sweep", "spec.toml", "-p", "noise")
    assert code == 2
    assert "holds a sweep of classic.gaussian_noise from something else: seed was 0, now 3" in err


def test_drops_make_an_axis_for_the_spec(command, folder, spec_text):
    code, out, _ = command(
        "sweep", "spec.toml", "--calibrate", "-p", "noise", "--drops", "0.03", "--drops", "0.1", "--drops", "0.9"
    )
    assert code == 0
    assert "not reached" in out
    line = next(line for line in out.splitlines() if line.startswith("noise = "))
    spec = parse(tomllib.loads(spec_text.replace('noise = "classic.gaussian_noise"', line)))
    space = assembly.space(spec, folder)
    assert space.shape == (3, 6)
    accuracies = [np.mean(demo_accuracy(space, severity)) for severity in range(3)]
    assert accuracies[0] - accuracies[1] >= 0.02
    assert accuracies[0] - accuracies[2] >= 0.09


def test_calibrate_takes_any_perturbation_and_prints_an_axis_that_a_spec_accepts(command, folder, spec_text):
    code, out, _ = command("sweep", "spec.toml", "--calibrate", "-p", "classic.rotation", "--drops", "0.05")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("rotation = "))
    spec = parse(tomllib.loads(spec_text.replace('noise = "classic.gaussian_noise"', line)))
    assert assembly.space(spec, folder).shape == (2, 6)


def test_calibrate_has_five_drops_of_its_own(command, folder):
    code, out, _ = command("sweep", "spec.toml", "--calibrate", "-p", "noise", "--json")
    found = json.loads(out)["sweeps"]["noise"]
    assert code == 0
    assert sorted(found["drops"] + found["unreached"]) == [0.01, 0.05, 0.1, 0.2, 0.4]


def demo_accuracy(space, severity):
    from testifai.models.onnx import OnnxModel

    data = demo_data()
    images = space.axes[0].perturbation.apply(data.inputs[:COUNT], severity)
    return OnnxModel(demo_model_path())(images).argmax(axis=1) == data.labels[:COUNT]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "nois"], "perturbation 'nois' is not known"),
        (["-p", "zoom"], "it has no continuous level"),
        (["-p", "noise", "-t", "1.5"], "threshold: must be a number, at least 0 and at most 1, got 1.5"),
        (["-p", "noise", "--curvature", "steep"], "--curvature: expected a number"),
        (["-p", "noise", "--curvature", "-1"], 'curvature, unless "auto": must be a number, above 0'),
        (["-p", "noise", "--method", "asp"], "method: 'asp' is not known"),
        (["-p", "noise", "--levels", "1"], "--levels: expected FIRST,LAST"),
        (["-p", "noise", "-p", "classic.rotation", "--levels", "0,1"], "name one with --perturbation"),
        (["-p", "noise", "--curvature", "9", "--narrowest", "0.1"], "narrowest: 0.1 with curvature 9, which alone"),
        (["-p", "noise", "--points", "1"], "points: must be a whole number"),
        (["-p", "noise", "--calibrate", "--drops", "2"], "drops: give amounts of accuracy between 0 and 1"),
        (["-p", "noise", "--calibrate", "-t", "0.8"], "--threshold cannot be combined with --calibrate"),
        (["-p", "noise", "--drops", "0.1"], "--drops needs --calibrate"),
        (["-p", "noise", "--out", "no/such/folder.db"], "does not exist"),
    ],
)
def test_mistakes_are_one_line(command, arguments, message):
    code, _, err = command("sweep", "spec.toml", *arguments)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ('{ use = "mnist_c.zoom", levels = [0.5] }', "has no continuous level"),
        ('{ use = "classic.gaussian_noise", levels = [0.7] }', "0.7 is not accepted"),
        ('{ use = "classic.gaussian_noise", levels = [] }', "the list is empty"),
    ],
)
def test_levels_of_an_axis_are_checked(command, folder, spec_text, axis, message):
    (folder / "spec.toml").write_text(spec_text.replace('"classic.gaussian_noise"', axis))
    code, _, err = command("check", "spec.toml")
    assert code == 2
    assert message in err


TURN = ("-p", "classic.rotation", "-t", "0.8")


def test_a_composed_system_is_swept_beside_the_model(command, folder):
    alone = swept(command, *TURN)["classic.rotation"][0]
    adder = swept(command, *TURN, "--arity", "2")["classic.rotation"][0]
    assert adder["name"] == "classic.rotation (2 parts)"
    assert adder["robustness"] < alone["robustness"]
    assert swept(command, *TURN, "--arity", "2")["classic.rotation"][0] == adder
    (folder / "larger_of.py").write_text("def larger(a, b):\n    return max(a, b)\n")
    code, _, err = command("sweep", "spec.toml", *TURN, "--combine", "larger_of:larger")
    assert code == 2
    assert "holds a sweep of classic.rotation (2 parts) from something else" in err
    code, _, err = command("sweep", "spec.toml", "--arity", "2", "--calibrate")
    assert code == 2
    assert "--arity cannot be combined with --calibrate" in err


def test_an_oracle_of_the_users_judges(command, folder):
    """Here nothing passes, at whichever level."""
    (folder / "strict_judge.py").write_text(
        "def never(outputs, expected, clean):\n    return outputs[:, 0] != outputs[:, 0]\n"
    )
    spec = (folder / "spec.toml").read_text()
    (folder / "strict.toml").write_text(f'{spec}\n[scan]\noracle = {{ python = "strict_judge:never" }}\n')
    code, out, err = command("sweep", "strict.toml", "-p", "noise", "--json")
    assert code == 0
    assert "runs your own code, named by scan.oracle" in err
    [found] = json.loads(out)["sweeps"]["noise"]
    assert found["robustness"] == 0
