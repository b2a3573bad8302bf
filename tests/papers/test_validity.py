"""The section on validity, on made-up tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from evaluation import validity, validity_cost
from evaluation.page import Page, without_times
from evaluation.recording import quality as recording
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS, Task
from evaluation.validity_quality import WAYS, Prediction, Quality

from testifai.data.sample import demo_data, demo_model_path

SHAPE = (6, 6, 6, 6)
TASK = {task.name: task for task in TASKS}


def made_up(task: Task, measure: str) -> Quality:
    """Damage that adds up, each axis less than the one before; a little more where all four come together."""
    severities = np.indices(SHAPE)
    added: np.ndarray = sum(severity / (2 + axis) for axis, severity in enumerate(severities)) / 10
    damage = added + 0.02 * severities.prod(axis=0) ** 0.25
    values = 1 - 0.3 * damage if measure == "bertscore" else damage
    return Quality(task, measure, 200, 100 if measure == "kid" else 200, values, np.full(SHAPE, 0.01))


def made_up_grid(path: Path, task: Task) -> None:
    """Outcomes of 64 inputs, fewer of which pass where severities are higher."""
    severities = np.indices(SHAPE).sum(axis=0)
    passes = np.arange(64) < (62 - 2 * severities)[..., None]
    np.savez(path, axes=np.array(task.axes), inputs=np.array(64), passes=np.packbits(passes, axis=-1))


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """Tables of two tasks, outcomes of one of them, and the embedded model and digits in place of MNIST's."""
    grids, data = tmp_path / "grids", tmp_path / "data"
    for folder in (grids, data / "data", data / "models"):
        folder.mkdir(parents=True)
    made_up(TASK["mnist"], "kid").write(grids / "quality_mnist.npz")
    made_up(TASK["qqp"], "bertscore").write(grids / "quality_qqp.npz")
    made_up_grid(grids / "mnist.npz", TASK["mnist"])
    shutil.copy(demo_model_path(), data / "models" / "mnist_lenet5.onnx")
    np.savez(data / "data" / "mnist_test.npz", x=demo_data().inputs[:100])
    return Setting(grids, data, tiny=True)


def written(setting: Setting, folder: Path) -> Page:
    page = Page("validity", folder)
    validity.write(page, setting)
    return page


def test_section_has_figures_tables_and_claims_and_says_what_is_missing(setting: Setting, tmp_path: Path) -> None:
    page = written(setting, tmp_path / "figures")
    text = page.markdown()
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "validity_errors.svg", "validity_severity_sum.svg", "validity_sheet.svg",
    ]  # fmt: skip
    assert "| MNIST | KID | 100 clean, 100 perturbed |" in text
    assert "| QQP | BERTScore F1 | 200 questions |" in text
    assert "| MNIST | full tomography | 13,824 |" in text  # 216 tests of 64 inputs
    assert len(page.claims) == 8
    assert any("quality_gtsrb.npz" in line for line in page.missing)
    assert any("cifar10_test.npz" in line for line in page.missing)


@pytest.mark.slow
def test_two_runs_give_equal_pages_but_for_times(setting: Setting, tmp_path: Path) -> None:
    first, second = (written(setting, tmp_path / name / "figures") for name in ("first", "second"))
    assert without_times(first.markdown()) == without_times(second.markdown())
    for path in (tmp_path / "first" / "figures").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / "figures" / path.name).read_bytes()


def test_section_without_any_file_only_says_so(tmp_path: Path) -> None:
    page = written(Setting(tmp_path, tmp_path, tiny=True), tmp_path / "figures")
    assert page.markdown().count("*Not run: ") == 2
    assert not (tmp_path / "figures").exists()


def test_tables_are_read_as_written(setting: Setting) -> None:
    table = Quality.read(TASK["mnist"], setting)
    expected = made_up(TASK["mnist"], "kid")
    np.testing.assert_allclose(table.values, expected.values, rtol=1e-6)
    assert (table.measure, table.sample, table.perturbed) == ("kid", 200, 100)
    assert table.accuracy is not None
    assert table.drop is not None
    assert table.accuracy[0] == 62 / 64
    assert table.drop[0] == 0


def test_errors_are_of_tests_of_three_and_more_that_were_not_measured() -> None:
    table = made_up(TASK["mnist"], "kid")
    forest, _, ours, few = (way.predictions(table, 2) for way in WAYS)
    assert [len(one) for one in (forest, ours, few)] == [1, 2, 2]
    assert [int(one[0].known.sum()) for one in (forest, ours, few)] == [171, 221, 100]
    assert [len(one[0].errors) for one in (forest, ours)] == [1125, 1075]
    assert forest[0].mean_error == pytest.approx(np.abs(forest[0].values - table.flat)[table.orders > 2].mean())
    # The forest cannot go beyond what it has seen; a surface can.
    assert forest[0].bias < -0.05 * table.range
    assert ours[0].mean_error < 0.2 * forest[0].mean_error
    assert ours[0].explained > 0.99 > forest[0].explained


def test_share_of_variance_is_nought_for_the_mean_and_one_for_the_truth() -> None:
    table = made_up(TASK["mnist"], "kid")
    known = table.low_orders()

    def prediction(values: np.ndarray) -> Prediction:
        return Prediction(table, known, values, values - 1, values + 1)

    mean = np.full(len(table.flat), table.flat[~known].mean())
    assert prediction(table.flat).explained == 1
    assert prediction(mean).explained == pytest.approx(0)
    assert prediction(mean).covered == 1


def test_equal_pair_has_one_quality_and_accuracies_far_apart(setting: Setting) -> None:
    table = Quality.read(TASK["mnist"], setting)
    assert table.accuracy is not None
    less, more = table.equal_pair()
    assert abs(table.flat[less] - table.flat[more]) <= 0.01 * table.range
    close = np.abs(table.flat[:, None] - table.flat) <= 0.01 * table.range
    assert table.accuracy[more] - table.accuracy[less] == (close * (table.accuracy[:, None] - table.accuracy)).max()


def test_transformation_of_a_test_is_the_sum_of_its_perturbations() -> None:
    cost = validity_cost.Cost(np.arange(18.0).reshape(3, 6) * (np.arange(6) > 0), 2.0)
    assert cost.of_tests()[2, 0, 3] == 2 + 0 + 15
    assert cost.ratio == pytest.approx(cost.of_tests().mean() / 2)


def test_recording_measures_every_test_of_tasks_that_are_there_and_names_the_others(setting: Setting) -> None:
    with pytest.raises(MissingFileError, match=r"gtsrb: data/gtsrb_test\.npz"):
        recording.record(setting.grids, setting.data, "cpu", inputs=40)
    table = Quality.read(TASK["mnist"], setting)
    assert (table.sample, table.perturbed) == (40, 20)
    assert table.flat[0] == pytest.approx(0, abs=1e-6)
    assert table.flat[-1] > table.flat[0] + 0.1
    assert np.isfinite(table.flat).all()


def test_scores_by_hand() -> None:
    table = made_up(TASK["qqp"], "bertscore")
    means, spread = table.by_sum(table.flat)
    assert len(means) == 21
    assert means[1] == pytest.approx(table.flat[table.sums == 1].mean())
    assert spread[1] == pytest.approx(table.flat[table.sums == 1].std(ddof=1) / 2)
    assert table.within(table.flat, 0.9).tolist() == (table.flat >= 0.9).tolist()
