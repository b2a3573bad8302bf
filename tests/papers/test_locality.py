"""Section `locality` on tiny made-up answers: all of it runs, twice the same, and says what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import locality, locality_answers, locality_network
from evaluation.locality_answers import PROPERTIES, SUBJECTS, halves, read
from evaluation.page import Page
from evaluation.setting import Setting

from testifai.locality import Local, Sampled
from testifai.locality.local import count_answers

pytest.importorskip("matplotlib", reason="the page's figures need matplotlib")
pytest.importorskip("pyagrum", reason="the Bayesian network needs pyAgrum: pip install 'testifai[bayes]'")


def answers(classes: int, inputs: int, seed: int) -> Local:
    """Answers that are wrong more often, and less sure, at higher severities; wrong ones are mostly the class 3."""
    generator = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), inputs)
    shape = (len(truth), len(PROPERTIES), 5)
    wrong = generator.random(shape) < 0.06 * np.arange(1, 6)
    others = np.where(generator.random(shape) < 0.7, 3, generator.integers(0, classes, shape))
    predicted = np.where(wrong, others, truth[:, None, None]).astype(np.int32)
    sure = np.where(wrong, 0.6, 0.9) + generator.uniform(0, 0.1, shape)
    single = Sampled(np.arange(len(truth)), truth, predicted, sure.astype(np.float32))
    names = [str(one) for one in range(classes)]
    counts = count_answers(predicted, truth, classes, classes)
    return Local.from_counts(names, list(PROPERTIES), [range(1, 6)] * len(PROPERTIES), counts, sampled=single)


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grids")
    for one, classes in zip(SUBJECTS, (10, 6), strict=True):
        locality_answers.write(folder / one.recorded, answers(classes, 40, classes))
    return folder


def written(grids, folder) -> Page:
    page = Page("locality", folder / "figures")
    locality.write(page, Setting(grids, folder / "nothing", tiny=True))
    return page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_section_is_written_from_recorded_answers_and_says_what_else_it_wants(grids, tmp_path):
    page = written(grids, tmp_path)
    text = page.markdown()
    for part in ("Local robustness", "How sure", "adder of two digits", "cameras", "worked example", "Error summary"):
        assert part in text
    assert page.missing == [
        "An adder over a continuous level: models/mnist_lenet5.onnx (below TESTIFAI_DATA)",
    ]
    assert len(page.claims) == 4
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "locality_adder.svg",
        "locality_local.svg",
    ]
    assert written(grids, tmp_path).markdown() == text


def test_without_answers_the_example_is_left(tmp_path):
    page = written(tmp_path, tmp_path)
    assert [claim.found for claim in page.claims] == ["class 5, noise with 0.758, 6 with 0.879"]
    assert len(page.missing) == 7
    assert all("locality_" in line or "models/" in line for line in page.missing)


def test_answers_are_read_back_as_they_were_recorded(grids):
    table, again = answers(6, 40, 6), read(grids / SUBJECTS[1].recorded)
    np.testing.assert_array_equal(again.confusion, table.confusion)
    np.testing.assert_array_equal(again.sampled.predicted, table.sampled.predicted)
    assert np.abs(again.sampled.confidence - table.sampled.confidence).max() <= 0.5 / 255 + 1e-6


def test_the_two_halves_share_no_input(grids):
    everything = read(grids / SUBJECTS[0].recorded)
    first, rest = halves(everything, 1, per_class=12)
    assert np.bincount(first.sampled.classes).tolist() == [12] * 10
    together = np.concatenate([first.sampled.ids, rest.sampled.ids])
    assert sorted(together) == sorted(everything.sampled.ids)
    assert len(halves(everything, 1)[0].sampled.ids) == 200  # half of classes of 40


def test_the_example_has_the_published_rates():
    table = locality_network.example()
    for (digit, name), rate in locality_network.PUBLISHED.items():
        found = table.rate[table.classes.index(digit), table.properties.index(name), 0]
        assert found == pytest.approx(rate)
