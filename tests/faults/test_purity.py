"""Code of the user's changes nothing but its own answer: not its arguments, not the exit code, not without notice."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.models import Model
from testifai.operational.auxiliary import observe
from testifai.oracles import Oracle, Outcome
from testifai.runs.store import Store
from testifai.session.observers import affordable

ROWS = np.random.default_rng(0).normal(size=(400, 1)) * 10
LABELS = (ROWS[:, 0] > 0).astype(int)
SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 1.0, 2.0, 4.0])


# -- arguments --------------------------------------------------------------------------------------------------------


def _edits(batch):
    batch -= 5
    return (batch[:, 0] > -5).astype(int)


def _leaves(batch):
    return (batch[:, 0] > 0).astype(int)


class _Adapter(Model):
    fingerprint = "adapter"

    def __call__(self, batch):
        return _edits(batch)


@pytest.mark.parametrize("size", [1, 7, 64, 400])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("model", [_edits, _Adapter()], ids=["function", "adapter"])
def test_a_model_that_edits_its_batch_changes_nothing_else(size, workers, model):
    data, space = (ROWS.copy(), LABELS), ta.Space({"shift": SHIFT})
    found = ta.scan(model, data, space, strategy="full", batch_size=size, workers=workers)
    expected = ta.scan(_leaves, (ROWS, LABELS), space, strategy="full")
    assert found.estimate.tolist() == expected.estimate.tolist()
    assert np.array_equal(data[0], ROWS)


def test_texts_are_not_edited_either():
    texts = ["one", "two", "three"] * 4
    drop = ta.Perturbation("drop", lambda batch, by, rng: [text[by:] for text in batch], [0, 1])

    def model(batch):
        found = np.array([len(text) for text in batch])
        batch[:] = [""] * len(batch)
        return found

    tomogram = ta.scan(model, texts, ta.Space({"drop": drop}), strategy="full",
                       oracle={"use": "tolerance", "eps": 0.0})  # fmt: skip
    assert tomogram.estimate.tolist() == [1.0, 0.0]


def test_sweeps_and_observations_leave_the_data_alone():
    rows = ROWS.copy()
    observe(_edits, rows)
    assert np.array_equal(rows, ROWS)
    slide = ta.Perturbation("slide", lambda x, by, rng: x + by, [0.0, 4.0], levels=(0.0, 4.0))
    found, expected = (ta.sweep_model(model, (rows, LABELS), slide) for model in (_edits, _leaves))
    assert (found.robustness, found.levels.tolist()) == (expected.robustness, expected.levels.tolist())
    assert np.array_equal(rows, ROWS)


class _Greedy(Oracle):
    name, needs_clean, needs_labels = "greedy", True, True

    def judge(self, outputs, expected, clean):
        passed = outputs == clean
        outputs[:] = 7
        expected[:] = 7
        clean[:] = 7
        return Outcome(np.asarray(passed))


class _Foreign:
    name, needs_clean = "foreign", True

    def reference(self, outputs):
        kept = outputs.copy()
        outputs[:] = 7
        return kept

    def judge(self, outputs, expected, clean):
        passed = outputs == clean
        clean[:] = outputs[:] = 7
        return Outcome(passed)


def _function(outputs, expected, clean):
    passed = outputs == clean
    clean[:] = outputs[:] = 7
    return passed


@pytest.mark.parametrize("oracle", [_Greedy(), _Foreign(), _function], ids=["class", "foreign", "function"])
@pytest.mark.parametrize("size", [3, 400])
def test_an_oracle_that_edits_what_it_judges_changes_nothing_else(oracle, size):
    data, space = (ROWS, LABELS.copy()), ta.Space({"shift": SHIFT})
    found = ta.scan(_leaves, data, space, strategy="full", oracle=oracle, batch_size=size, keep=("predicted",))
    expected = ta.scan(_leaves, data, space, strategy="full", oracle="consistency", keep=("predicted",))
    assert found.estimate.tolist() == expected.estimate.tolist()
    assert np.array_equal(found.outcomes.kept(3, "predicted"), expected.outcomes.kept(3, "predicted"))
    assert np.array_equal(data[1], LABELS)


def test_a_model_may_write_every_answer_to_the_same_place():
    place = np.zeros(400)

    def model(batch):
        place[: len(batch)] = batch[:, 0]
        return place[: len(batch)]

    options = {"strategy": "full", "oracle": {"use": "tolerance", "eps": 1.5}, "workers": 1}
    space = ta.Space({"shift": SHIFT})
    found = ta.scan(model, ROWS, space, batch_size=50, **options)
    assert found.estimate.tolist() == [1.0, 1.0, 0.0, 0.0]


# -- exit codes -------------------------------------------------------------------------------------------------------

GOOD = "def model(b): return (b[:, 0, 0] > 127).astype(int)\n"
FADE = "@ta.perturbation('{}', severities=[0, 1])\ndef fade(b, by, rng): sys.exit(0)\n"


@pytest.mark.parametrize("command_name", ["run", "check"])
@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        ("def model(b): sys.exit(0)\n", {}, "model: raised SystemExit: 0"),
        ("def model(b): sys.exit(0)\n", {"scan": "workers = 2"}, "model: raised SystemExit: 0"),
        ("sys.exit(0)\n", {}, "failed: SystemExit: 0"),
        (GOOD + FADE.format("exits_a"), {"space": 'fade = {python = "OWN:fade"}'}, "'exits_a' failed at severity 1"),
        (GOOD + "def data(): sys.exit(0)\n", {"data": 'python = "OWN:data"'}, "data.python: "),
        (GOOD + "def data(): raise KeyError('x')\n", {"data": 'python = "OWN:data"'}, "data.python: "),
    ],
    ids=["model", "model in threads", "module", "perturbation", "data", "failing data"],
)
def test_only_the_command_decides_its_exit_code(own, command, code, options, said, command_name):
    spec = own(code, lines='[[gate]]\nquery = "order >= 0"\nat_least = 0.99\n', **options)
    left, _, err = command(command_name, spec)
    assert left == 2
    assert said in err
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1


def test_a_quality_function_does_not_decide_it_either(own, command):
    spec = own(GOOD + "def good(clean, perturbed): sys.exit(0)\n", scan='quality = {python = "OWN:good", sample = 20}')
    left, _, err = command("run", spec)
    assert left == 2
    assert "failed: SystemExit: 0" in err


def _exits(outputs, expected, clean):
    sys.exit(0)


@pytest.mark.parametrize("oracle", [_exits, type("Own", (), {"name": "own", "judge": lambda *_: sys.exit(0)})()])
def test_an_oracle_that_exits_is_a_mistake_of_its_own(oracle):
    with pytest.raises(InputError, match=r"oracle .*failed with SystemExit: 0"):
        ta.scan(_leaves, (ROWS, LABELS), ta.Space({"shift": SHIFT}), strategy="full", oracle=oracle)


# -- answers that differ ----------------------------------------------------------------------------------------------

DIFFERING = ("differ", "decisions", "batch_differ", "batch_flips")
DRAWS = "rng = np.random.default_rng()\ndef model(b): return rng.random((len(b), 2))\n"
NOISY = (
    "rng = np.random.default_rng()\n"
    "def model(b):\n    s = b[:, 0, :2] / 255\n    return s * (1 + 1e-9 * rng.normal(size=s.shape))\n"
)


def test_a_model_that_answers_differently_is_noticed(own, command, tmp_path):
    spec = own(DRAWS)
    left, out, err = command("run", spec)
    assert left == 0
    assert "not deterministic: of 16 clean inputs shown to it twice, 16 got another answer" in err
    assert "A run that is resumed, or made again, will not end with the same numbers" in err
    assert "intervals" in err
    assert "model is not deterministic" in out
    run = spec.with_suffix(".db")
    with Store.open(run) as store:
        assert store.get("asked_twice")["differ"] == 16
    assert "model is not deterministic" in command("show", run)[1]
    page = tmp_path / "report.html"
    command("report", run, "-o", page, "--examples", "0")
    assert "model is not deterministic" in page.read_text()
    left, out, err = command("check", spec, "--json")
    assert "model is not deterministic" in err
    assert json.loads(out)["asked_twice"]["differ"] == 16


@pytest.mark.parametrize("code", [GOOD, NOISY], ids=["the same", "rounding"])
def test_one_that_answers_alike_is_not_accused(own, command, code):
    spec = own(code)
    _, out, err = command("run", spec)
    assert "answers differently" not in out + err
    assert "answers differently" not in command("check", spec)[2]
    with Store.open(spec.with_suffix(".db")) as store:
        assert store.get("asked_twice") == {"inputs": 16, **dict.fromkeys(DIFFERING, 0)}


COUNTS = (
    "import pathlib\ndef model(b):\n    with open({!r}, 'a') as log: log.write(f'{{len(b)}}\\n')\n"
    "    return (b[:, 0, 0] > 127).astype(int)\n"
)


@pytest.mark.parametrize("budget", [10, 100, 200])
def test_asking_twice_is_within_the_budget_and_done_once(own, command, tmp_path, budget):
    log = tmp_path / "handed_over"
    spec = own(COUNTS.format(str(log)), scan=f"budget = {budget}")
    found = json.loads(command("run", spec, "--json")[1])
    handed = sum(map(int, log.read_text().split()))
    assert handed == found["inferences"] + 2 * affordable(60, budget) <= budget
    command("run", spec)
    assert sum(map(int, log.read_text().split())) == handed


def test_onnx_models_are_known_to_answer_alike(tmp_path):
    from testifai.data.sample import demo_model_path
    from testifai.models.onnx import OnnxModel

    assert OnnxModel(demo_model_path()).repeatable
