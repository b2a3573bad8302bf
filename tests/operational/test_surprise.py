from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import gaussian_kde

from testifai.errors import InputError
from testifai.operational import surprise
from testifai.operational.surprise import combined, dsa, lsa

REFERENCE = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "reference" / "surprise"


def traces(train=400, new=60, features=6, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    labels, chosen = rng.integers(classes, size=train), rng.integers(classes, size=new)
    centres = 2 * rng.normal(size=(classes, features))
    rows = lambda of: (centres[of] + rng.normal(size=(len(of), features))).astype(np.float32)  # noqa: E731
    return rows(labels), labels, rows(chosen), chosen


def brute_dsa(train, labels, new, chosen):
    train, new = train.astype(float), new.astype(float)
    values = []
    for row, label in zip(new, chosen, strict=True):
        same, other = train[labels == label], train[labels != label]
        distance = np.linalg.norm(same - row, axis=1)
        nearest = same[np.argmin(distance)]
        values.append(distance.min() / np.linalg.norm(other - nearest, axis=1).min())
    return np.array(values)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("block", [1, 1000, 4_000_000])
def test_dsa_equals_brute_force_in_blocks_of_any_size(monkeypatch, seed, block):
    monkeypatch.setattr(surprise, "_BLOCK", block)
    given = traces(seed=seed)
    np.testing.assert_allclose(dsa(*given), brute_dsa(*given), rtol=1e-9)


def test_dsa_is_exact_where_single_precision_products_are_not():
    # Far from the origin, |a|^2 + |b|^2 - 2ab in float32 has no correct digit for neighbours this close.
    train, labels, new, chosen = traces(features=4)
    given = train / 64 + 1000, labels, new / 64 + 1000, chosen
    np.testing.assert_allclose(dsa(*given), brute_dsa(*given), rtol=1e-9)


def test_dsa_of_coinciding_traces():
    train, labels = np.array([[0.0, 0], [0, 0], [3, 0]]), [0, 1, 0]
    assert dsa(train, labels, [[0.0, 0], [0, 1]], [0, 0]).tolist() == [1.0, np.inf]


def test_lsa_equals_the_kernel_density_of_another_library():
    train, labels, new, chosen = traces()
    train[:, 2] = 0.5  # Does not vary: left out by both.
    kept = [0, 1, 3, 4, 5]
    expected = [
        -gaussian_kde(train[labels == c][:, kept].T).logpdf(row[kept])[0] for row, c in zip(new, chosen, strict=True)
    ]
    np.testing.assert_allclose(lsa(train, labels, new, chosen), expected, rtol=1e-5)


def test_lsa_copes_with_features_that_repeat_each_other():
    train, labels, new, chosen = traces()
    doubled = lsa(np.hstack([train, train]), labels, np.hstack([new, new]), chosen)
    # The kernels are the same but for a stretch of sqrt(2) along each of six directions.
    np.testing.assert_allclose(doubled, lsa(train, labels, new, chosen) + 3 * np.log(2), rtol=1e-4)


def test_shapes_with_more_axes_are_flattened():
    train, labels, new, chosen = traces()
    assert np.array_equal(
        dsa(train.reshape(-1, 2, 3), labels, new.reshape(-1, 2, 3), chosen), dsa(train, labels, new, chosen)
    )


def test_memory_does_not_grow_with_the_number_of_pairs():
    given = traces(train=20_000, new=2_000, features=64, classes=2)
    tracemalloc.start()
    dsa(*given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All pairs in float32 would be 160 MB and the anchors' as many again; inputs and their copies are 30 MB.
    assert peak < 90e6


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference vectors (set TESTIFAI_DATA)")
def test_reference_vectors():
    load = lambda name: np.load(REFERENCE / f"{name}.npy")  # noqa: E731
    given = [load("original_mnist_train_activation_3_ats"), load("original_mnist_train_pred")]
    part = slice(0, None, 4)
    given += [load("mnist_test_activation_3_ats")[part], load("mnist_test_pred")[part]]
    np.testing.assert_allclose(dsa(*given), load("original_dsa_scores")[part], atol=1e-5)
    # The layer is a softmax: its features sum to 1 up to rounding, and the covariance's condition is 1e13. The
    # reference inverted it; of 10,000 values one (number 6150) is off by 0.019, and so it is from SciPy's of today.
    error = np.abs(lsa(*given) - load("original_lsa_scores")[part])
    assert np.count_nonzero(error > 1e-2) <= 1
    assert error.max() < 0.02


def test_combined_is_one_minus_the_product_of_equation_4():
    confidence, far = np.array([1.0, 0.9, 0.5]), np.array([0.0, 2.0, 4.0])
    np.testing.assert_allclose(combined(confidence, far), [0.0, 1 - 0.9 * 0.5, 1.0])
    np.testing.assert_allclose(combined(confidence, np.zeros(3)), 1 - confidence)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: np.zeros((400, 5))}, "traces: 6 features, but train_traces have 5"),
        ({1: np.zeros(3)}, "train_labels: shape (3,)"),
        ({3: np.full(60, 9)}, "labels: class 9 is not among train_labels"),
        ({2: np.full((60, 6), np.nan)}, "traces: holds NaN or infinity at row 0"),
        ({1: np.zeros(400), 3: np.zeros(60)}, "train_labels: only one class"),
        ({0: np.zeros(400)}, "train_traces: shape (400,)"),
    ],
)
def test_mistakes_in_traces(change, words):
    given = list(traces())
    for place, value in change.items():
        given[place] = value
    with pytest.raises(InputError, match=words.replace("(", r"\(").replace(")", r"\)")):
        dsa(*given)


def test_mistakes_only_densities_know():
    train, labels, new, chosen = traces()
    with pytest.raises(InputError, match="variance: no feature varies by 100"):
        lsa(train, labels, new, chosen, variance=100)
    with pytest.raises(InputError, match="train_traces: class 7 has a single trace"):
        lsa(np.vstack([train, new[:1]]), [*labels, 7], new[:1], [7])
    with pytest.raises(InputError, match="confidence and distances"):
        combined([0.5], [1.0, 2.0])
