"""The section on operational testing, on tables and streams made up here."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from evaluation import operational, operational_study
from evaluation.operational_curves import area
from evaluation.operational_published import TESTS, failures_as_worded
from evaluation.operational_study import KNOB, Study, balanced
from evaluation.operational_subjects import SUBJECTS, published, recorded
from evaluation.operational_trials import Arm, measure
from evaluation.page import Page, without_times
from evaluation.recording import operational as recording
from evaluation.setting import MissingFileError, Setting

from testifai.data.sample import demo_data, demo_model_path
from testifai.operational.ces import binned

SIZE = 900


def population(seed):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, SIZE)
    failed = rng.random(SIZE) < (1 - confidence) ** 1.5
    return confidence, rng.gamma(2, 0.3, SIZE) + failed, rng.normal(50, 20, SIZE) + 30 * failed, failed


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """Five tables as the paper's authors write them, and a stream of our own."""
    folder = tmp_path_factory.mktemp("papers")
    tables, grids = folder / "data" / "reference" / "deepest", folder / "grids"
    tables.mkdir(parents=True)
    grids.mkdir()
    for seed, name in enumerate(SUBJECTS):
        lines = ["ID,Outcome,Class,Confidence,DSA,LSA,Combined"]
        for row, (sure, near, likely, wrong) in enumerate(zip(*population(seed), strict=True)):
            outcome = "Fail" if wrong else "pass"
            lines.append(f"{row},{outcome},1,{sure:.6f},{near:.6f},{likely:.6f},{sure * max(0, 1 - near / 4):.6f}")
        text = "\r\n".join(lines) + "\r\n"
        (tables / f"{name}.csv").write_text(text, encoding="utf-8-sig" if seed % 2 else "utf-8", newline="")
    sure, near, likely, wrong = population(9)
    np.savez_compressed(
        grids / "operational_mnist.npz", title="a stream", size=SIZE, failed=np.packbits(wrong), confidence=sure,
        dsa=near, lsa=likely, bins=np.random.default_rng(0).integers(0, 9, (SIZE, 5), np.uint8),
    )  # fmt: skip
    return Setting(grids, folder / "data", tiny=True)


def written(setting, folder):
    page = Page("operational", folder)
    operational.write(page, setting)
    return page


@pytest.mark.slow
def test_the_whole_section_twice_the_same(setting, tmp_path):
    page = written(setting, tmp_path)
    text = page.markdown()
    assert not page.missing
    for words in ("Table II", "Table III", "RQ2", "RQ3", "r = 0.95", "LSA, q0.9", "CES", "balanced 0.3", "⏱"):
        assert words in text
    assert "nan" not in text
    drawn = sorted(path.stem for path in tmp_path.glob("*.svg"))
    assert drawn == [f"operational_{name}" for name in ("frontier", "own", "shares", "sizes")]
    assert without_times(text) == without_times(written(setting, tmp_path).markdown())


def test_a_clean_clone_has_our_own_models_and_says_what_is_missing(setting, tmp_path):
    page = written(Setting(setting.grids, tmp_path / "nowhere", tiny=True), tmp_path)
    text = page.markdown()
    assert "a stream" in text
    assert len(page.missing) == 7
    assert all("reference/deepest/CN5_MNIST.csv (below TESTIFAI_DATA)" in line for line in page.missing)
    nothing = written(Setting(tmp_path, tmp_path / "nowhere", tiny=True), tmp_path)
    assert "operational_mnist.npz (made by `make papers FULL=1`) not found" in nothing.markdown()


def test_tables_are_read_with_all_their_traps(setting):
    for seed, name in enumerate(SUBJECTS):
        subject = published(setting.file(f"reference/deepest/{name}.csv"))
        confidence, near, _, failed = population(seed)
        np.testing.assert_array_equal(subject.failed, failed)
        np.testing.assert_allclose(subject.risk("confidence"), 1 - confidence, atol=1e-6)
        np.testing.assert_allclose(subject.risk("dsa"), near, atol=1e-6)
        assert set(subject.thresholds) == {"dsa", "lsa"}


def test_trials_are_what_simple_random_sampling_must_give(setting):
    subject = recorded(setting.grid("operational_mnist.npz"))
    trials = measure(subject, Arm("SRS", "srs"), TESTS, 300)
    assert abs(trials.mse - subject.simple(TESTS)) < 4 * trials.mse_error
    assert abs(trials.found - TESTS * subject.rate) < 4 * trials.deviation / np.sqrt(300)
    assert trials.coverage >= 0.93
    assert [len(group.accuracy) for group in trials.groups(30)] == [30] * 10
    assert trials.first(30).found == next(trials.groups(30)).found


def test_equal_failures_are_read_off_the_curve(setting):
    study = Study(setting)
    subject = study.streams[0]
    runs = [study.trials(subject, balanced(knob), 200) for knob in KNOB]
    at_default = study.equal(subject, study.curve(subject)[2][1].found)
    assert at_default is not None
    assert 0 <= at_default.balance <= 1
    assert study.equal(subject, max(run.found for run in runs) + 1) is None


def test_the_area_is_a_chance():
    failed = np.array([True, False, True, False])
    assert area(np.array([4.0, 1, 3, 2]), failed) == 1
    assert area(np.array([1.0, 4, 2, 3]), failed) == 0
    assert area(np.ones(4), failed) == 0.5


def test_links_as_the_text_words_them_stay_closed_until_a_suspect_is_drawn(setting):
    subject = published(setting.file(f"reference/deepest/{SUBJECTS[0]}.csv"))
    risk = subject.risk("confidence")
    never = failures_as_worded(risk, 2.0, subject.failed, 20)
    opened = failures_as_worded(risk, 0.3, subject.failed, 20)
    assert abs(never.mean() - TESTS * subject.rate) < 4
    assert opened.mean() > 1.5 * never.mean()


def test_a_stream_is_recorded_and_read_back(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copy(demo_model_path(), folder / "model.onnx")
    digits = demo_data()
    np.savez(folder / "digits.npz", x=digits.inputs[:400], y=digits.labels[:400])
    mixes = ({"mnist_c.zoom": 2, "mnist_c.shear": 2}, {"mnist_c.brightness": 3})
    stream = recording.Stream("operational_mnist", "digits", "model.onnx", "digits.npz", 100, mixes)
    elsewhere = recording.Stream("not_there", "none", "none.onnx", "none.npz", 100, mixes)
    monkeypatch.setattr(recording, "STREAMS", (stream, elsewhere))
    with pytest.raises(MissingFileError, match=r"none\.onnx, none\.npz \(below TESTIFAI_DATA\)"):
        recording.record(tmp_path, folder, "cpu")
    assert [path.name for path in tmp_path.glob("*.npz")] == ["operational_mnist.npz"]
    subject = recorded(tmp_path / "operational_mnist.npz")
    seen, _, failed = stream.observed(folder)
    np.testing.assert_array_equal(subject.failed, failed)
    np.testing.assert_allclose(1 - subject.risk("confidence"), seen.confidence, atol=1e-6)
    # What `ces` makes of the bins is what it makes of the traces.
    np.testing.assert_array_equal(binned(subject.features), binned(seen.traces))
    monkeypatch.setattr(operational_study, "STREAMS", (stream,))
    assert Study(Setting(tmp_path, folder)).streams[0].title == "digits"
