"""The section on the choice of tests and of the model, on made-up grids."""

import os
from pathlib import Path

import numpy as np
import pytest
from evaluation import selection
from evaluation.page import Page, without_times
from evaluation.recording import mnist_ordered
from evaluation.selection_curves import against, cells, listed, wins
from evaluation.selection_sensitive import Swap, intervals, swaps, told
from evaluation.selection_training import Curve, Selection, orders_of, ours_at, trained
from evaluation.setting import Setting
from evaluation.tasks import TASKS
from replay import Grid

NO_GRID = {"cifar10", "driving", "gtsrb", "qqp"}
DATA = Path(os.environ.get("TESTIFAI_DATA", "../shared"))
COMMITTED = Path(__file__).parents[2] / "benchmarks" / "grids" / mnist_ordered.FILE


def grid(rates, inputs=40):
    """A grid in which each input fails once the rate falls below its own level."""
    passes = np.arange(inputs) < np.rint(inputs * np.asarray(rates))[..., None]
    return Grid(tuple("abcd"[: np.ndim(rates)]), inputs, np.packbits(passes, axis=-1))


def falling(axes, levels=3):
    """Rates that fall with the sum of severities."""
    return np.exp(-0.15 * sum(np.meshgrid(*[np.arange(levels)] * axes, indexing="ij")))


def write_grid(folder, name, made):
    np.savez(folder / name, axes=list(made.axes), inputs=made.inputs, passes=made.passes)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    write_grid(folder, "mnist.npz", grid(falling(4)))
    space = mnist_ordered.space()
    rates = np.exp(-0.1 * space.matrix(np.arange(space.size))[:, :3].sum(axis=1))
    passes = np.packbits(np.random.default_rng(0).random((space.size, 100)) < rates[:, None], axis=1)
    np.savez(folder / mnist_ordered.FILE, axes=list(mnist_ordered.AXES), inputs=100, passes=passes)
    written = Page("selection", tmp_path_factory.mktemp("page") / "results")
    selection.write(written, Setting(folder, folder, tiny=True))
    return written


@pytest.mark.slow
def test_the_section_has_its_figures_tables_and_claims(page):
    assert sorted(path.name for path in page.figures.iterdir()) == [
        "selection_3d.svg", "selection_4d.svg", "selection_order.svg",
    ]  # fmt: skip
    text = page.markdown()
    for piece in ("Figure 7 of the paper", "Figure 8 of the paper", "| boosted trees |", "| multilayer perceptron |"):
        assert piece in text
    assert [claim.claim.split()[0] for claim in page.claims[:2]] == ["Ordered", "Ordered"]
    assert without_times(text) != text


@pytest.mark.slow
def test_what_has_no_grid_is_said_once(page):
    assert page.missing == [f"{task.name}.npz (made by `make papers FULL=1`)" for task in TASKS if task.name in NO_GRID]


def test_without_any_grid_every_part_says_so(tmp_path):
    written = Page("selection", tmp_path / "results")
    selection.write(written, Setting(tmp_path, tmp_path, tiny=True))
    assert written.markdown().count("*Not run: ") == 3
    assert not written.claims


# -- the choice of tests -----------------------------------------------------------------------------------------------


def test_low_orders_alone_say_nothing_of_what_only_high_orders_do():
    orders = orders_of(grid(np.ones((3, 3, 3))))
    made = grid(np.where(orders == 3, 0.2, 0.9).reshape(3, 3, 3))
    complete = 19 / 27  # clean, 6 of order 1, 12 of order 2
    ordered = trained(made, [complete], 2, 10, lambda drawn: drawn[np.argsort(orders[drawn], kind="stable")])
    random = trained(made, [complete], 2, 10, lambda drawn: drawn)
    np.testing.assert_allclose(ordered.errors, 0.49)
    assert (random.errors < ordered.errors).all()
    of_either = selected(ordered, random)
    assert of_either.lead[0] < -2
    assert wins(of_either) == ["MNIST", "3D", "–", "70 %", "0 / 1 / 0"]


def selected(ordered, random):
    return Selection(TASKS[0], 3, 27, {2: 0.7}, ordered, random, ordered, ordered, ordered, ordered)


def test_where_ours_is_worse_is_said():
    low, high = Curve((0.5,), np.array([[0.1]])), Curve((0.5,), np.array([[0.2]]))
    one = Selection(TASKS[0], 3, 27, {2: 0.7}, low, high, low, low, high, high)
    assert against([one], "ours", "as many") == "with as many in 0 of 1 (worse: MNIST 3D at 50 %)"
    one = Selection(TASKS[0], 3, 27, {2: 0.7}, high, high, low, low, low, low)
    assert against([one], "small", "1 %") == "with 1 % in 1 of 1 (worse: none)"


def test_repetitions_draw_apart_and_are_the_same_again():
    made = grid(falling(3))
    first, again = (trained(made, [0.5], 3, 10, lambda drawn: drawn).errors for _ in range(2))
    assert len(set(first[:, 0])) == 3
    np.testing.assert_array_equal(first, again)


def test_ours_knows_all_where_all_is_measured():
    least, everything = ours_at(grid(falling(3)), [0.5, 0.9], 1 / 0.9, 1)
    assert everything.errors[0, 1] < 1e-12
    assert least.errors[0, 0] > 0


def test_a_cell_has_mean_and_deviation_and_a_dash_where_nothing_was_run():
    curve = Curve((0.1, 0.5), np.array([[0.001, 0.002], [0.003, 0.002]]))
    assert cells(curve, (0.1, 0.3, 0.5), [True, False, False]) == ["**2 ± 1.4**", "–", "2 ± 0"]
    assert cells(Curve((0.1,), np.array([[0.001]])), (0.1,)) == ["1"]
    assert listed(np.array([0.1, 0.9])) == "10, 90 %"


# -- the order of application ------------------------------------------------------------------------------------------


def test_every_two_orders_of_the_same_severities_are_compared():
    space = mnist_ordered.space()
    rows = space.matrix(np.arange(space.size))
    noise_first = (rows[:, 3] > 0) & (rows[:, 3] < rows[:, 5])
    found = swaps(space, np.where(noise_first, 0.8, 0.5))
    assert len(found) == 75 + 125 * 15
    largest = max(found, key=lambda one: one.difference)
    assert largest.difference == pytest.approx(0.3)
    assert told(space, largest.second).split()[0] == "noise"
    assert told(space, largest.first).split()[0] == "blur"


def test_the_interval_of_a_swap_is_that_of_paired_rates():
    passed = np.zeros((2, 100), bool)
    passed[1, :60] = True
    ((low, high),) = intervals(passed, [Swap(0, 1, 0.6)], 0.95)
    assert 0 < low < 0.6 < high < 1


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "models" / "mnist_lenet5.onnx").exists(), reason="no model (set TESTIFAI_DATA)")
def test_the_recorded_grid_is_measured_again(tmp_path):
    mnist_ordered.record(tmp_path, DATA, "cpu", inputs=20)
    again = mnist_ordered.read(tmp_path / mnist_ordered.FILE)
    np.testing.assert_array_equal(again, mnist_ordered.read(COMMITTED)[:, :20])
