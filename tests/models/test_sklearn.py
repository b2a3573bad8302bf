from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from testifai.errors import InputError
from testifai.models import align_labels
from testifai.models.sklearn import SklearnModel
from testifai.oracles import predicted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = X[:, :3].argmax(axis=1)
WORDS = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize(
    ("estimator", "outputs"),
    [
        (LogisticRegression(), "scores"),
        (Perceptron(), "scores"),
        (RidgeClassifier(), "scores"),
        (RandomForestClassifier(5, random_state=0), "scores"),
        (SVC(decision_function_shape="ovr"), "scores"),
        (SVC(decision_function_shape="ovo"), "labels"),
        (make_pipeline(SVC(decision_function_shape="ovo")), "labels"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
@pytest.mark.parametrize("labels", [Y, 3 + 2 * Y, WORDS[Y]], ids=["0..k-1", "numbers", "words"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_those_of_predict(estimator, outputs, labels, classes):
    rows = classes > Y
    estimator.fit(X[rows], labels[rows])
    model = SklearnModel(estimator)
    assert model.outputs == ("scores" if classes == 2 else outputs)
    assert model.classes == classes
    values = np.arange(classes) if model.class_values is None else model.class_values
    assert values[predicted(model(X))].tolist() == estimator.predict(X).tolist()


def test_labels_of_the_data_meet_the_columns():
    model = SklearnModel(LogisticRegression().fit(X, 3 + 2 * Y))
    expected = align_labels(3 + 2 * Y, None, model.class_values)
    assert expected.tolist() == Y.tolist()


def test_regression_gives_values():
    model = SklearnModel(LinearRegression().fit(X, X @ [1, 2, 3, 4]))
    assert model.outputs == "values"
    np.testing.assert_allclose(model(X), X @ [1, 2, 3, 4])


def test_several_labels_per_input():
    table = (X[:, :2] > 0).astype(int)
    for estimator in (RandomForestClassifier(5, random_state=0), MultiOutputClassifier(LogisticRegression())):
        model = SklearnModel(estimator.fit(X, table))
        assert model.outputs == "scores"
        assert model(X).shape == (90, 2)
        assert np.array_equal(model(X) > 0.5, estimator.predict(X) == 1)


def test_images_are_flattened():
    digits = load_digits()
    estimator = LogisticRegression(max_iter=500).fit(digits.data[:300], digits.target[:300])
    images = digits.images[:50].astype(np.uint8)
    model = SklearnModel(estimator)
    np.testing.assert_allclose(model(images), estimator.predict_proba(digits.data[:50]))
    with pytest.raises(InputError, match="49 columns; LogisticRegression was fitted on 64"):
        model(images[:, :7, :7])


def test_texts():
    texts = ["good film", "bad film", "good", "bad"]
    model = SklearnModel(make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0]))
    assert predicted(model(["good play", "bad play"])).tolist() == [1, 0]


def test_fingerprint_is_of_what_was_learned():
    def forest(seed):
        return RandomForestClassifier(5, random_state=seed).fit(X, Y)

    same = SklearnModel(forest(0)).fingerprint
    assert SklearnModel(forest(0)).fingerprint == same
    assert SklearnModel(pickle.loads(pickle.dumps(forest(0)))).fingerprint == same
    assert SklearnModel(forest(1)).fingerprint != same


def test_refused():
    with pytest.raises(InputError, match="LogisticRegression is not fitted"):
        SklearnModel(LogisticRegression())
    with pytest.raises(InputError, match="LogisticRegression has nothing to predict with"):
        SklearnModel(LogisticRegression)
    with pytest.raises(InputError, match="CountVectorizer has nothing to predict with"):
        SklearnModel(CountVectorizer())
