from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from testifai.errors import InputError
from testifai.models.texts.encoder import Head, fit_head, pair_features

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(300, 5)) * [1, 10, 0.1, 1, 1] + [0, 3, 0, 0, 7]
TEXTS = [str(place) for place in range(300)]


def encode(texts):
    return POINTS[[int(text) for text in texts]]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_head_is_scikit_learns_regression(classes, tmp_path):
    labels = np.digitize(POINTS[:, 0] + 0.1 * POINTS[:, 1], [0.3, 1][: classes - 1])
    head = fit_head(encode, TEXTS, labels, strength=0.5)
    scaler = StandardScaler().fit(POINTS)
    fitted = LogisticRegression(C=0.5, max_iter=1000).fit(scaler.transform(POINTS), labels)
    scores = head.scores(POINTS)
    softmax = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax, fitted.predict_proba(scaler.transform(POINTS)), atol=1e-6)
    head.write(tmp_path / "head.npz")
    again = Head.read(tmp_path / "head.npz")
    assert again.fingerprint == head.fingerprint
    assert np.array_equal(again.scores(POINTS), scores)
    assert head.classes is None
    assert head.count == classes


def test_pairs_and_names_of_classes():
    pairs = list(zip(TEXTS[:150], TEXTS[150:], strict=True))
    labels = np.where(np.abs(POINTS[:150, 0] - POINTS[150:, 0]) > 1, "far", "near")
    head = fit_head(encode, pairs, labels, strength=10)
    assert head.columns == 10
    assert head.classes.tolist() == ["far", "near"]
    features = pair_features(POINTS[:150], POINTS[150:])
    assert (head.classes[head.scores(features).argmax(axis=1)] == labels).mean() > 0.95
    reverse = pair_features(POINTS[150:], POINTS[:150])
    assert np.array_equal(features, reverse)


def test_scores_do_not_follow_from_the_batch():
    head = Head(RNG.normal(size=(3, 768)), RNG.normal(size=3))
    features = RNG.normal(size=(500, 768)).astype(np.float32)
    whole = head.scores(features)
    assert all(np.array_equal(head.scores(features[place : place + 1])[0], whole[place]) for place in range(500))


def test_fingerprint_is_of_the_numbers():
    coef, intercept = np.ones((1, 4)), np.zeros(1)
    prints = {
        Head(coef, intercept).fingerprint,
        Head(coef * 2, intercept).fingerprint,
        Head(coef, intercept + 1).fingerprint,
        Head(coef, intercept, np.array([3, 5])).fingerprint,
        Head(np.ones((2, 2)), np.zeros(2)).fingerprint,
    }
    assert len(prints) == 5


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"coef": np.ones((1, 4))}, "has no array 'intercept'"),
        ({"coef": np.ones(4), "intercept": np.ones(1)}, "do not fit"),
        ({"coef": np.ones((2, 4)), "intercept": np.ones(1)}, "do not fit"),
        ({"coef": np.full((1, 4), np.nan), "intercept": np.ones(1)}, "NaN"),
        ({"coef": np.array([["a"]]), "intercept": np.ones(1)}, "could not convert"),
        ({"coef": np.ones((1, 4)), "intercept": np.ones(1), "classes": np.arange(3)}, "classes"),
    ],
)
def test_heads_that_are_none(tmp_path, arrays, message):
    np.savez(tmp_path / "head.npz", **arrays)
    with pytest.raises(InputError, match=message) as error:
        Head.read(tmp_path / "head.npz")
    assert str(error.value).startswith("model.head: ")
    assert "\n" not in str(error.value)


def test_files_that_are_no_head(tmp_path):
    with pytest.raises(InputError, match=r"does not exist; make one with testifai\.models\.texts\.encoder\.fit_head"):
        Head.read(tmp_path / "head.npz")
    for content in (b"", b"text", b"PK\x03\x04broken"):
        (tmp_path / "head.npz").write_bytes(content)
        with pytest.raises(InputError, match="not an npz file"):
            Head.read(tmp_path / "head.npz")
    np.save(tmp_path / "alone.npy", np.ones(3))
    with pytest.raises(InputError, match="not an npz file"):
        Head.read(tmp_path / "alone.npy")


@pytest.mark.parametrize("labels", [[0] * 300, [0, 1], [[0, 1]] * 300])
def test_labels_that_cannot_be_learned(labels):
    with pytest.raises(InputError, match="labels: shape"):
        fit_head(encode, TEXTS, labels)
