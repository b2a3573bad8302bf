"""KID: halves, features from every source, and what it refuses before anything is run."""

from __future__ import annotations

import numpy as np
import pytest

from testifai import models
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.models import Model
from testifai.perturb import get
from testifai.quality import resolve
from testifai.quality.kid import Discrepancy


@pytest.fixture(scope="module")
def digits():
    return demo_data().inputs


@pytest.fixture(scope="module")
def lenet():
    return models.load("onnx", demo_model_path())


class Untouched(Model):
    """A model that must not be run."""

    name, outputs, fingerprint = "untouched", "scores", "1"

    def __call__(self, batch):
        raise AssertionError("it was run")

    features = __call__


def test_it_compares_one_half_with_the_other(digits, lenet):
    reference = resolve({"use": "kid", "control": False, "scale": "raw"}).reference(digits, lenet, seed=4)
    assert len(reference.rows) == 250
    zoomed = get("mnist_c.zoom").apply(digits, 3)
    found = reference.score(zoomed[reference.rows])
    # The other half is not told: only 250 of the remaining 750 digits, which none but a distance to them reveals.
    order = np.random.default_rng([4, 0x9A11]).permutation(1000)
    other = np.sort(order[250:500])
    assert not set(other) & set(reference.rows)
    expected = Discrepancy(lenet.features(digits[other])).score(lenet.features(zoomed[reference.rows]))
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_set_against_itself_is_0_on_average_and_within_its_errors(digits, lenet):
    scores = []
    for seed in range(30):
        reference = resolve({"use": "kid", "sample": 200, "control": False}).reference(digits, lenet, seed=seed)
        scores.append(reference.score(digits[reference.rows]))
    values, errors = np.array(scores).T
    # Seeds share digits, so their values are not independent: half their spread is allowed for.
    assert abs(values.mean()) < 0.5 * values.std()
    assert np.mean(np.abs(values) < 2 * errors) > 0.8
    # The same images on both sides would be far below 0, by what an image has in common with itself.
    rows = reference.rows
    features = lenet.features(digits[rows]).astype(float)
    biased = Discrepancy(features, unit=True).score(features).value
    assert biased < min(values) < 0
    assert biased < -3 * abs(values.mean())


def test_a_control_makes_clean_inputs_exactly_0_and_changes_all_by_the_same(digits, lenet):
    with_control = resolve("kid").reference(digits, lenet, seed=0)
    without = resolve({"use": "kid", "control": False}).reference(digits, lenet, seed=0)
    rows = with_control.rows
    assert np.array_equal(rows, without.rows)
    assert with_control.score(digits[rows]) == (0.0, 0.0)
    luck = without.score(digits[rows]).value
    for severity in (1, 5):
        zoomed = get("mnist_c.zoom").apply(digits[rows], severity)
        assert with_control.score(zoomed).value == pytest.approx(without.score(zoomed).value - luck, abs=1e-9)
    assert (with_control.inferences, without.inferences) == (500 + 750, 250 + 750)
    for told, clean in (("kid", 500), ({"use": "kid", "control": False}, 250)):
        measure = resolve(told)
        assert (measure.clean_share * measure.sample, measure.share * measure.sample) == (clean, 250)


def test_subsets_give_nearly_the_same_with_a_larger_error(digits, lenet):
    whole = resolve("kid").reference(digits, lenet, seed=0)
    parts = resolve({"use": "kid", "subsets": 50, "subset_size": 100}).reference(digits, lenet, seed=0)
    zoomed = get("mnist_c.zoom").apply(digits[whole.rows], 4)
    one, other = whole.score(zoomed), parts.score(zoomed)
    assert one.error < other.error < 1.2 * one.error
    assert abs(one.value - other.value) < 0.5 * one.error
    assert parts.score(zoomed) == other


def test_extractors_of_every_kind_give_the_same(digits, lenet, tmp_path):
    told = [
        None,
        str(demo_model_path()),
        demo_model_path(),
        {"onnx": str(demo_model_path()), "features": "features"},
        lenet.features,
    ]
    scores = []
    for extractor in told:
        measure = resolve({"use": "kid", "sample": 100, "extractor": extractor})
        assert measure.uses_model == (extractor is None)
        reference = measure.reference(digits, lenet if extractor is None else Untouched(), seed=0)
        scores.append(reference.score(255 - digits[reference.rows]))
        assert reference.inferences == (150 if extractor is None else 0)
    np.testing.assert_allclose(scores, [scores[0]] * len(told), rtol=1e-6)


def test_an_extractor_is_found_from_the_folder_of_a_spec(digits):
    path = demo_model_path()
    measure = resolve({"use": "kid", "extractor": path.name}, folder=path.parent)
    assert str(path.parent) not in str(measure.describe())
    assert measure.describe() == resolve({"use": "kid", "extractor": str(path)}).describe()
    assert measure.describe() != resolve("kid").describe()


def test_a_layer_of_the_model_or_of_an_extractor(digits, lenet):
    by_layer = resolve({"use": "kid", "sample": 100, "layer": "logits"})
    from_extractor = resolve({"use": "kid", "sample": 100, "layer": "logits", "extractor": str(demo_model_path())})
    plain = resolve({"use": "kid", "sample": 100, "extractor": lenet.__call__})
    scores = []
    for measure in (by_layer, from_extractor, plain):
        reference = measure.reference(digits, lenet, seed=0)
        scores.append(reference.score(digits[reference.rows] // 2))
    np.testing.assert_allclose(scores, [scores[0]] * 3, rtol=1e-5)


def test_a_module_of_torch_as_extractor(digits):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.Flatten())
    for options in ({}, {"layer": "0"}):
        measure = resolve({"use": "kid", "sample": 60, "extractor": module, **options})
        reference = measure.reference(digits, None, seed=0)
        assert reference.score(255 - digits[reference.rows]).value > 0


def test_features_of_texts():
    def letters(texts):
        return np.array([[text.count(letter) for letter in "abcdef"] for text in texts], float)

    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdef"), 20)) for _ in range(80)]
    reference = resolve({"use": "kid", "extractor": letters}).reference(texts, None, seed=0)
    assert reference.score([texts[row].replace("a", "b") for row in reference.rows]).value > 0


def test_batches_do_not_matter(digits):
    def means(batch):
        assert len(batch) <= 32
        return batch.reshape(len(batch), -1)[:, ::50] / 255.0

    small = models.PythonModel(means, batch_size=32)
    whole = lambda batch: batch.reshape(len(batch), -1)[:, ::50] / 255.0  # noqa: E731
    scores = []
    for extractor in (small, whole):
        reference = resolve({"use": "kid", "sample": 150, "extractor": extractor}).reference(digits, None, seed=0)
        scores.append(reference.score(255 - digits[reference.rows]))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample": 100, "subset_size": 60}, r"subset_size = 60 is more than half the sample \(50 of sample = 100\)"),
        ({"subsets": 10}, "subsets = 10 without subset_size"),
        ({"subset_size": 1}, "subset_size: must be a whole number, at least 2, got 1"),
        ({"subset_size": 50, "subsets": 0}, "subsets: must be a whole number, at least 1, got 0"),
        ({"scale": "big"}, "scale: must be one of unit, raw, got 'big'"),
        ({"control": 1}, "control: must be true or false, got 1"),
        ({"extractor": "net.pt"}, r"extractor = 'net.pt' is not accepted; a path that ends in \.onnx"),
        ({"extractor": 3}, "extractor = 3 is not accepted"),
        ({"extractor": {"onyx": "a"}}, "give one of .*onnx"),
        ({"extractor": "net.onnx", "weights": "w.pt"}, "weights belong to extractor = 'inception'"),
        ({"weights": "w.pt"}, "weights belong to extractor = 'inception'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options, words):
    with pytest.raises(InputError, match=f"^quality: .*{words}") as problem:
        resolve({"use": "kid", **options})
    assert "\n" not in str(problem.value)


def test_a_missing_extractor_is_named():
    with pytest.raises(InputError, match=r"none\.onnx does not exist"):
        resolve({"use": "kid", "extractor": "none.onnx"})


def test_too_few_inputs_are_refused_before_the_model_runs(digits):
    with pytest.raises(InputError, match="kid needs at least 20 inputs; there are 19"):
        resolve("kid").reference(digits[:19], Untouched(), seed=0)
    with pytest.raises(InputError, match=r"subset_size = 100 is more than half the sample \(75 of 150 inputs\)"):
        resolve({"use": "kid", "subset_size": 100}).reference(digits[:150], Untouched(), seed=0)


class NoFeatures(Model):
    """A model that gives scores alone."""

    name, outputs, fingerprint = "plain", "scores", "1"

    def __call__(self, batch):
        raise AssertionError("it was run")


def test_a_model_without_features_is_refused_before_it_runs(digits):
    with pytest.raises(InputError, match=r"plain has no features output; give extractor = 'x\.onnx'"):
        resolve("kid").reference(digits, NoFeatures(), seed=0)
    with pytest.raises(InputError, match="there is no model"):
        resolve("kid").reference(digits, None, seed=0)
    with pytest.raises(InputError, match="does not trace layers"):
        resolve({"use": "kid", "extractor": len, "layer": "fc"}).reference(digits, None, seed=0)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda batch: np.full((len(batch), 3), np.nan), "NaN or infinity"),
        (lambda batch: np.zeros((3, 3)), "one row each"),
        (lambda batch: [[1], [1, 2]], "different length|one row each"),
        (lambda batch: np.full((len(batch), 2), "a"), "values; a layer that gives numbers"),
    ],
)
def test_features_that_are_no_rows_of_numbers_are_refused(made, words):
    with pytest.raises(InputError, match=words) as problem:
        resolve({"use": "kid", "extractor": made}).reference(np.zeros((30, 4, 4)), None, seed=0)
    assert "\n" not in str(problem.value)
