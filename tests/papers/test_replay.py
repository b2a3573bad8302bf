"""Recorded grids: what is read is what was written, and a replay finds what the scan found."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from replay import Grid, replay

import testifai as ta
from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.present.export import write_npz
from testifai.runs.outcomes import visiting_order

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 1, 2] }
zoom = { use = "mnist_c.zoom", severities = [0, 1, 2, 3] }
blur = { use = "mnist_c.motion_blur", severities = [0, 1] }
[scan]
strategy = "full"
seed = 5
keep = ["value"]
"""
DIGITS = 157  # no multiple of eight
SPACE = {
    "brightness": ("mnist_c.brightness", [0, 1, 2]),
    "zoom": ("mnist_c.zoom", [0, 1, 2, 3]),
    "blur": ("mnist_c.motion_blur", [0, 1]),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with the recorded grid of a real model, made by the command."""
    folder = tmp_path_factory.mktemp("replay")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    np.savez(folder / "digits.npz", x=demo_data().inputs[:DIGITS], y=demo_data().labels[:DIGITS])
    (folder / "full.toml").write_text(SPEC)
    for arguments in (["run", "full.toml"], ["export", "full.db", "-o", "grid.npz", "--grid"]):
        given = [str(folder / word) if "." in word else word for word in arguments]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", *given])
            with pytest.raises(SystemExit) as left:
                cli.main()
        assert left.value.code == 0
    return folder


@pytest.fixture(scope="module")
def grid(recorded):
    return Grid.read(recorded / "grid.npz")


CASES = [
    {"strategy": "full"},
    {"strategy": "full", "budget": 777},
    {"strategy": "full", "budget": 7},
    {"strategy": "full", "target": 0.1},
    {"strategy": "ordered", "stopping": "window"},
    {"strategy": {"use": "ordered", "max_order": 1}, "stopping": {"use": "window-cumulative", "batch": 20}},
    {"strategy": "ordered", "stopping": "interval", "target": 0.15, "budget": 1000},
    {"strategy": {"use": "random", "tests_run": 9}, "surrogate": "none"},
    {"strategy": "balanced", "surrogate": "forest", "budget": 500},
    {"strategy": "balanced", "surrogate": "forest", "budget": 20},
]


@pytest.mark.parametrize("options", CASES)
def test_a_replay_finds_what_the_scan_found(recorded, grid, options):
    data = (demo_data().inputs[:DIGITS], demo_data().labels[:DIGITS])
    model = str(recorded / "lenet5.onnx")
    scanned = ta.scan(model, data, ta.Space(SPACE), seed=5, keep=("value",), population="data", **options)
    replayed = replay(grid, seed=5, scores=True, **options)
    assert replayed.inferences == scanned.inferences <= options.get("budget", np.inf)
    for name in ("passes", "trials", "estimate", "low", "high"):
        np.testing.assert_array_equal(getattr(replayed, name), getattr(scanned, name), err_msg=name)
    assert {i: tuple(map(bytes, replayed.outcomes.bits(i))) for i in replayed.outcomes} == {
        i: tuple(map(bytes, scanned.outcomes.bits(i))) for i in scanned.outcomes
    }
    for configuration in scanned.outcomes:
        kept, exact = (t.outcomes.kept(configuration, "value") for t in (replayed, scanned))
        np.testing.assert_array_equal(np.isnan(kept), np.isnan(exact))
        np.testing.assert_allclose(kept, exact, atol=1.001 / grid.margin_scale)
    question = "zoom >= 1 and blur == 1"
    if options.get("surrogate") != "none":
        assert replayed.query(question).as_dict() == scanned.query(question).as_dict()
    for part in ("strategy", "surrogate", "seed", "population"):
        assert replayed.provenance["identity"][part] == scanned.provenance["identity"][part]


def test_the_strategys_own_surrogate_is_taken(recorded, grid):
    data = (demo_data().inputs[:DIGITS], demo_data().labels[:DIGITS])
    options = {"strategy": "balanced", "budget": 500, "seed": 5, "keep": (), "population": "data"}
    scanned = ta.scan(str(recorded / "lenet5.onnx"), data, ta.Space(SPACE), **options)
    replayed = replay(grid, "balanced", seed=5, budget=500)
    assert replayed.settings.surrogate == scanned.settings.surrogate == "process"
    for name in ("trials", "estimate", "low", "high"):
        np.testing.assert_array_equal(getattr(replayed, name), getattr(scanned, name), err_msg=name)


def test_truth_and_outcomes_are_those_of_the_run(recorded, grid):
    run = ta.open(recorded / "full.db")
    np.testing.assert_array_equal(grid.truth, run.estimate)
    assert (grid.axes, grid.inputs, grid.levels) == (("brightness", "zoom", "blur"), DIGITS, (3, 4, 2))
    assert grid.space.names == run.space.names
    assert grid.space.shape == run.space.shape
    places = np.arange(DIGITS)
    for configuration in range(run.space.size):
        inputs = run.order[places]
        np.testing.assert_array_equal(grid.passed(configuration, inputs), run.outcomes.passed(configuration, places))


def test_the_spaces_perturbations_change_nothing(grid):
    batch = np.arange(6.0).reshape(3, 2)
    for axis in grid.space.axes:
        assert axis.severities == tuple(range(len(axis.severities)))
        np.testing.assert_array_equal(axis.perturbation.apply(batch, 1), batch)


def test_a_part_of_a_grid_is_a_grid(grid):
    flat = grid.sub({"zoom": 0})
    assert (flat.axes, flat.levels) == (("brightness", "blur"), (3, 2))
    np.testing.assert_array_equal(flat.truth, grid.truth[:, 0])
    line = grid.sub({"zoom": 2, "blur": 1})
    np.testing.assert_array_equal(line.truth, grid.truth[:, 2, 1])
    inputs = np.array([3, 150, 0])
    np.testing.assert_array_equal(line.values(2, inputs), grid.values(grid.space.id((2, 2, 1)), inputs))
    np.testing.assert_array_equal(replay(line, "full", surrogate="none").estimate, line.truth)


def test_values_are_the_margins_in_the_models_units():
    margins = np.array([[4, -8, 1], [0, 127, -127]], np.int8)
    grid = Grid(("a",), 3, np.packbits(margins >= 0, axis=-1), margins, 4)
    np.testing.assert_array_equal(grid.values(0, np.array([1, 0])), np.array([-2, 1], np.float32))
    tomogram = replay(grid, "full", surrogate="none", scores=True, seed=1)
    np.testing.assert_array_equal(tomogram.outcomes.kept(1, "value"), margins[1, visiting_order(3, 1)] / 4)
    assert replay(grid, "full", surrogate="none").outcomes.kept_names() == ()


def test_a_grid_without_margins_has_no_scores(tmp_path):
    write_npz(tmp_path / "g.npz", arrays(margins=None, margin_scale=None))
    grid = Grid.read(tmp_path / "g.npz")
    assert grid.margins is None
    with pytest.raises(InputError, match="scores: the grid has no margins"):
        replay(grid, "full", scores=True)
    with pytest.raises(InputError, match="no margins were recorded"):
        grid.values(0, np.array([0]))


class Again:
    """Asks for the same two tests on some inputs, a little more each time."""

    name, surrogate = "again", None

    def __init__(self, rounds):
        self.rounds = rounds
        self.seen = []

    def propose(self, progress):
        self.seen.append(progress.outcomes.total())
        asked = len(self.seen)
        return Work(np.array([0, 3]), np.arange(2 * asked)[::-1]) if asked <= self.rounds else None

    def expected(self, progress):
        return 4 * self.rounds

    def describe(self):
        return {"use": self.name}


def test_what_is_known_is_not_asked_twice(grid):
    strategy = Again(4)
    tomogram = replay(grid, strategy)
    assert strategy.seen == [0, 4, 8, 12, 16]
    assert tomogram.trials.reshape(-1)[[0, 3]].tolist() == [8, 8]
    assert tomogram.inferences == 16


def test_a_strategy_that_overspends_is_caught(grid):
    with pytest.raises(RuntimeError, match="again spent 12 inferences of a budget of 10"):
        replay(grid, Again(4), budget=10)


def test_a_strategy_that_asks_for_nothing_new_ends():
    class Stuck(Again):
        def propose(self, progress):
            super().propose(progress)
            return Work(np.array([0]), [np.array([1])])

    stuck = Stuck(0)
    small = Grid(("a",), 3, np.zeros((2, 1), np.uint8))
    assert replay(small, stuck).inferences == 1
    assert stuck.seen == [0, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "orderd"}, "did you mean 'ordered'"),
        ({"budget": 0}, "budget: must be a whole number, at least 2, got 0"),
        ({"target": 1.5}, "target: must be a number, above 0 and below 1, got 1.5"),
        ({"seed": -1}, "seed: must be a whole number, at least 0, got -1"),
        ({"surrogate": "forrest"}, "did you mean 'forest'"),
        ({"stopping": "windw"}, "did you mean 'window'"),
    ],
)
def test_mistakes_of_a_replay_are_one_line(grid, options, words):
    with pytest.raises(InputError, match=words) as caught:
        replay(grid, **{"strategy": "full", **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"zom": 0}, "no axis 'zom'; did you mean 'zoom'"),
        ({"zoom": 4}, "zoom: must be a whole number, at least 0 and at most 3, got 4"),
        ({"zoom": True}, "zoom: must be a whole number, at least 0 and at most 3, got True"),
        ({"zoom": 0, "blur": 0, "brightness": 0}, "at least one axis"),
    ],
)
def test_mistakes_of_a_part_are_one_line(grid, fixed, words):
    with pytest.raises(InputError, match=words) as caught:
        grid.sub(fixed)
    assert "\n" not in str(caught.value)


def arrays(**changes):
    """The arrays of a small grid: two axes of 2 and 3 levels, 12 inputs."""
    made = {
        "axes": np.array(["a", "b"]),
        "inputs": np.array(12),
        "passes": np.zeros((2, 3, 2), np.uint8),
        "margins": np.zeros((2, 3, 12), np.int8),
        "margin_scale": np.array(4),
    } | changes
    return {name: array for name, array in made.items() if array is not None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"axes": None}, "no array 'axes'; a recorded grid has axes, inputs and passes"),
        ({"passes": None}, "no array 'passes'"),
        ({"margin_scale": None}, "margins without margin_scale"),
        ({"margin_scale": np.array(0.0)}, "margin_scale = 0.0; accepted: a positive number"),
        ({"margin_scale": np.array([1, 2])}, "margin_scale is an array of int64, shape .2,.; accepted: one number"),
        ({"axes": np.array([1, 2])}, "axes is an array of int64"),
        ({"axes": np.array(["a", "b", "c"])}, "passes has shape .2, 3, 2.; accepted for 3 axes and 12 inputs"),
        ({"axes": np.array(["a", "a"])}, "axes a, a; accepted: each name once"),
        ({"axes": np.array(["a", "order"])}, "'order' is a reserved word"),
        ({"axes": np.array(["a", "my axis"])}, "'my axis' is not an identifier"),
        ({"inputs": np.array(17)}, "passes has shape .2, 3, 2.; accepted for 2 axes and 17 inputs"),
        ({"inputs": np.array(0)}, "inputs: must be a whole number, at least 1, got 0"),
        ({"inputs": np.array(12.5)}, "inputs: must be a whole number, at least 1, got 12.5"),
        ({"inputs": np.array("12")}, "inputs is an array of <U2"),
        ({"passes": np.zeros((2, 3, 2), bool)}, "passes is an array of bool; accepted: uint8"),
        ({"passes": np.full((2, 3, 2), 255, np.uint8)}, "bits set beyond the last of 12 inputs"),
        ({"passes": np.zeros((2, 1, 2), np.uint8), "margins": None}, "each with at least 2 levels"),
        ({"margins": np.zeros((2, 3, 13), np.int8)}, r"accepted: int8, shape \(2, 3, 12\)"),
        ({"margins": np.zeros((2, 3, 12))}, "margins is an array of float64"),
    ],
)
def test_a_file_that_is_no_grid_is_refused_in_one_line(tmp_path, changes, words):
    write_npz(tmp_path / "g.npz", arrays(**changes))
    with pytest.raises(InputError, match=words) as caught:
        Grid.read(tmp_path / "g.npz")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "g.npz") in str(caught.value)


def test_unreadable_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "text.npz").write_text("no archive\nat all")
    np.save(tmp_path / "single.npy", np.zeros(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "objects.npz", **arrays(axes=np.array(["a", None], object)))
    write_npz(tmp_path / "whole.npz", arrays())
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-40])
    for name in ("text.npz", "single.npy", "empty.npz", "objects.npz", "cut.npz"):
        with pytest.raises(InputError, match="is not a readable npz file") as caught:
            Grid.read(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="does not exist"):
        Grid.read(tmp_path / "nothing.npz")
    with pytest.raises(InputError, match="is not a file"):
        Grid.read(tmp_path)


def test_a_replay_needs_none_of_what_loads_models_and_shows_results():
    """Simulations run on machines that have NumPy, SciPy, pydantic and threadpoolctl, and nothing else of ours."""
    missing = ("cv2", "onnxruntime", "sklearn", "typer", "click", "rich", "plotly", "jinja2", "rapidfuzz", "torch",
               "pandas", "PIL")  # fmt: skip
    code = f"""
import sys
sys.modules.update(dict.fromkeys({missing}))
sys.path.insert(0, {str(BENCHMARKS)!r})
import numpy as np
from replay import Grid, replay
passed = np.random.default_rng(0).random((3, 3, 200)) < 0.8
grid = Grid(("a", "b"), 200, np.packbits(passed, axis=-1))
for strategy in ("balanced", "adaptive"):
    found = replay(grid, strategy, budget=300)
    assert found.query("a > 0").low < 0.8 < found.query("a > 0").high
"""
    subprocess.run([sys.executable, "-c", code], check=True)
