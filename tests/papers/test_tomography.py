"""The first paper's section on tiny grids, and its figures against a recount by hand."""

import re

import numpy as np
import pytest
from evaluation import tomography
from evaluation.page import Page
from evaluation.setting import Setting
from evaluation.tasks import TASKS
from evaluation.tomography_claims import INFERRED, MEASURED
from evaluation.tomography_runs import PARTIAL, WINDOW, Known, batch_of, ours, published, shares
from replay import Grid

HERE = {"mnist": 120, "qqp": 40}  # inputs of the grids that are there


def grid(axes: tuple[str, ...], inputs: int, idle: int | None = None) -> Grid:
    """Rates fall with the sum of the severities, but for those of an idle axis."""
    severities = np.indices((6,) * len(axes))
    sums = severities.sum(axis=0) - (0 if idle is None else severities[idle])
    luck = np.random.default_rng(0).random(inputs)
    return Grid(axes, inputs, np.packbits(luck < 0.97 - 0.14 * sums[..., None] / len(axes), axis=-1))


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    for task in TASKS:
        if task.name in HERE:
            made = grid(task.axes, HERE[task.name], idle=2 if task.name == "qqp" else None)
            np.savez(
                folder / f"{task.name}.npz",
                axes=np.array(made.axes), inputs=np.array(made.inputs), passes=made.passes,
            )  # fmt: skip
    return Setting(folder, folder, tiny=True)


@pytest.fixture(scope="module")
def page(setting, tmp_path_factory):
    pytest.importorskip("matplotlib")
    made = Page("tomography", tmp_path_factory.mktemp("page") / "results")
    tomography.write(made, setting)
    return made


@pytest.mark.slow
def test_every_table_and_figure_is_there(page):
    text = page.markdown()
    for part in ("Table 1", "Figure 2", "Figure 3", "Table 2 and Figure 6", "Figure 4", "Four dimensions"):
        assert f"### {part}" in text
    assert {path.name for path in page.figures.iterdir()} == {
        f"tomography_figure{name}.svg" for name in ("2", "3", "3_queries", "4", "6_errors", "6_drops")
    }
    assert all(path.stat().st_size < 150_000 for path in page.figures.iterdir())
    assert not re.search(r"\bnan\b", text)


@pytest.mark.slow
def test_tasks_without_a_grid_are_named_and_the_others_go_on(page):
    text = page.markdown()
    for task in TASKS:
        missing = f"{task.title}: {task.name}.npz (made by `make papers FULL=1`)"
        assert (missing in page.missing) == (task.name not in HERE)
        assert (f"| {task.title}, partial |" in text) == (task.name in HERE)


def test_without_any_grid_the_section_says_so(tmp_path):
    made = Page("tomography", tmp_path / "results")
    tomography.write(made, Setting(tmp_path, tmp_path, tiny=True))
    assert len(made.missing) == len(TASKS)
    assert not made.claims
    assert "| MNIST | brightness, zoom, motion_blur, shear |" in made.markdown()


@pytest.mark.slow
def test_table_2_has_the_published_counts(page):
    lines = page.markdown().splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("| query | m | ℓ |")) + 2
    rows = [line.strip("| ").split(" | ") for line in lines[begin : begin + 12]]
    assert [row[0] for row in rows] == [f"Q{number}" for number in range(1, 13)]
    assert [int(row[1]) for row in rows] == MEASURED
    assert [int(row[2]) for row in rows] == INFERRED


@pytest.mark.slow
def test_claims_are_all_checked(page):
    found = {one.claim: one for one in page.claims}
    assert found["tests measured and inferred for each query (Table 2)"].holds
    assert found["inferences saved by partial tomography"].found == "MNIST 57.9%, QQP 57.9%"
    # Rates that fall on and on: a forest stays above them.
    assert found["the forest is too optimistic on order 3 (our claim)"].found.startswith("mean error MNIST +0.")


@pytest.fixture(scope="module")
def cube():
    return Known(grid(("a", "b", "c"), 200))


def test_partial_tomography_measures_orders_up_to_two(cube):
    found = cube.judged(published(200)[PARTIAL], seed=0)
    assert found.share == pytest.approx(91 / 216)
    assert found.saved == pytest.approx(125 / 216)
    assert np.abs(found.errors[cube.orders <= 2]).max() == 0
    assert found.close == pytest.approx((np.abs(found.errors) <= 0.1).mean())
    assert found.high == pytest.approx(found.errors[cube.orders == 3])
    octant = np.ix_(*[[3, 4, 5]] * 3)
    assert found.query_errors[7] == pytest.approx(found.errors.reshape(6, 6, 6)[octant].mean())


def test_ours_spends_its_share_and_has_intervals(cube):
    found = cube.judged({"strategy": "adaptive", "budget": 2160}, seed=0)
    assert found.share == pytest.approx(0.05)
    assert found.held.mean() > 0.8
    assert found.queries_held.shape == found.query_errors.shape == (12,)


def test_early_stopping_stops_where_batches_agree(cube):
    whole, early = (cube.judged(published(200)[name], seed=0) for name in (PARTIAL, WINDOW))
    assert early.share < whole.share


def test_the_weakest_axis_is_the_one_that_changes_least():
    passes = np.packbits(np.arange(40) < 40 - 8 * np.indices((2, 3))[1][..., None], axis=-1)
    assert Known(Grid(("idle", "busy"), 40, passes)).weakest == ("idle", 0)
    turned = Known(Grid(("busy", "fade"), 40, passes.transpose(1, 0, 2)[:, [0, 0]]))
    assert turned.weakest == ("fade", 0)


@pytest.mark.slow
def test_where_the_published_method_is_better_it_is_said(page):
    # An axis without effect: all that happens is measured.
    told = "On QQP (40 inputs) `partial` errs less on order 3 than `ours, equal` and `ours, 5 %`; its weakest axis, "
    assert told + "contraction, changes rates by 0.0000 on average." in page.markdown()


def test_batches_and_shares_follow_the_inputs():
    assert [batch_of(inputs) for inputs in (80, 1_000, 10_000)] == [8, 100, 100]
    assert [shares(inputs) for inputs in (1_000, 10_000)] == [(0.01, 0.05), (0.001, 0.01)]
    assert ours(0.001) == "ours, 0.1 %"
