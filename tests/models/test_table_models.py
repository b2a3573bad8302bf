"""Files of models of tables: skops, XGBoost, LightGBM; and pickles, which are refused."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from testifai import models
from testifai.data import from_columns
from testifai.errors import InputError
from testifai.testing import check_model

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3))
CLASSES = (ROWS[:, 0] > 0).astype(int)
THREE = CLASSES + (ROWS[:, 1] > 0)
VALUES = ROWS @ [1.0, 2.0, 3.0]
DATA = from_columns({name: ROWS[:, place] for place, name in enumerate(["a", "b c", "d"])})


@pytest.fixture
def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(ROWS, columns=["a", "b c", "d"])


def test_skops(tmp_path):
    io = pytest.importorskip("skops.io")
    for estimator, target, outputs in ((LogisticRegression(), THREE, "scores"), (LinearRegression(), VALUES, "values")):
        made = make_pipeline(StandardScaler(), estimator).fit(ROWS, target)
        io.dump(made, tmp_path / "m.skops")
        model = models.wrap(tmp_path / "m.skops", DATA.table)
        assert (model.outputs, model.width) == (outputs, 3)
        expected = made.predict_proba(ROWS) if outputs == "scores" else made.predict(ROWS)
        np.testing.assert_allclose(model(ROWS), expected)
        assert models.wrap(tmp_path / "m.skops").fingerprint == model.fingerprint
        check_model(model, ROWS)


def test_types_that_skops_does_not_trust_have_to_be_named(tmp_path):
    io = pytest.importorskip("skops.io")
    io.dump(DecisionTreeClassifier().fit(ROWS, CLASSES), tmp_path / "m.skops")
    unknown = io.get_untrusted_types(file=tmp_path / "m.skops")
    if not unknown:
        pytest.skip("this skops trusts trees")
    with pytest.raises(InputError, match=r"does not trust by itself: .*; if you do, say trusted = \[") as caught:
        models.load("skops", tmp_path / "m.skops")
    assert unknown[0] in str(caught.value)
    model = models.load("skops", tmp_path / "m.skops", trusted=unknown)
    assert model(ROWS).shape == (120, 2)


@pytest.mark.parametrize(
    ("objective", "target", "outputs", "classes"),
    [
        ("binary:logistic", CLASSES, "scores", 2),
        ("multi:softprob", THREE, "scores", 3),
        ("multi:softmax", THREE, "labels", 3),
        ("reg:squarederror", VALUES, "values", None),
    ],
)
def test_xgboost(tmp_path, frame, objective, target, outputs, classes):
    xgboost = pytest.importorskip("xgboost")
    several = {"num_class": 3} if objective.startswith("multi") else {}
    options = {"objective": objective, "nthread": 1, **several}
    booster = xgboost.train(options, xgboost.DMatrix(frame, target), num_boost_round=5)
    booster.save_model(tmp_path / "m.json")
    model = models.wrap(tmp_path / "m.json", DATA.table)
    assert (model.outputs, model.classes, model.columns) == (outputs, classes, ("a", "b c", "d"))
    expected = booster.predict(xgboost.DMatrix(frame))
    expected = np.stack([1 - expected, expected], axis=1) if objective.startswith("binary") else expected
    np.testing.assert_allclose(model(ROWS), expected, rtol=1e-6)
    assert model.fingerprint == models.wrap(booster).fingerprint
    holes = ROWS.copy()
    holes[:, 1] = np.nan
    assert len(model(holes)) == 120
    check_model(model, ROWS)


@pytest.mark.parametrize(
    ("objective", "target", "outputs", "classes"),
    [("binary", CLASSES, "scores", 2), ("multiclass", THREE, "scores", 3), ("regression", VALUES, "values", None)],
)
def test_lightgbm(tmp_path, frame, objective, target, outputs, classes):
    lightgbm = pytest.importorskip("lightgbm")
    several = {"num_class": 3} if objective == "multiclass" else {}
    options = {"objective": objective, "verbosity": -1, "num_threads": 1, **several}
    booster = lightgbm.train(options, lightgbm.Dataset(frame, target), num_boost_round=5)
    booster.save_model(tmp_path / "m.txt")
    model = models.wrap(tmp_path / "m.txt", DATA.table)
    assert (model.outputs, model.classes, model.columns) == (outputs, classes, ("a", "b_c", "d"))
    expected = booster.predict(frame)
    expected = np.stack([1 - expected, expected], axis=1) if objective == "binary" else expected
    np.testing.assert_allclose(model(ROWS), expected, rtol=1e-6)
    assert models.wrap(booster).outputs == outputs
    check_model(model, ROWS)


def test_categories_reach_gradient_boosting_as_such(tmp_path):
    pandas, lightgbm = pytest.importorskip("pandas"), pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    words = RNG.choice(["x", "y", "z"], 200)
    frame = pandas.DataFrame({"word": pandas.Categorical(words), "number": RNG.normal(size=200)})
    target = (words == "y").astype(int)
    options = {"n_estimators": 20, "n_jobs": 1}
    light = lightgbm.LGBMClassifier(verbose=-1, min_child_samples=5, **options).fit(frame, target)
    light.booster_.save_model(tmp_path / "m.txt")
    extreme = xgboost.XGBClassifier(enable_categorical=True, **options).fit(frame, target)
    extreme.get_booster().save_model(tmp_path / "m.json")
    data = from_columns({"number": frame.number.to_numpy(), "word": words})
    for given in (tmp_path / "m.txt", tmp_path / "m.json", light, extreme):
        model = models.wrap(given, data.table)
        assert (model(data.inputs).argmax(axis=1) == target).all()


@pytest.mark.parametrize(("name", "content"), [("m.pkl", None), ("m.joblib", b"x"), ("m.model", None)])
def test_a_pickle_is_refused_with_the_reason(tmp_path, name, content):
    (tmp_path / name).write_bytes(content or pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match=r"is a pickle, and to load one is to run whatever code is in it; .*skops"):
        models.wrap(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "library", "message"),
    [
        ("m.skops", "skops", "is not a file of skops"),
        ("m.json", "xgboost", "is not a model of XGBoost"),
        ("m.txt", "lightgbm", "is not a model of LightGBM"),
    ],
)
def test_files_that_are_none(tmp_path, name, library, message):
    pytest.importorskip(library)
    with pytest.raises(InputError, match="does not exist"):
        models.wrap(tmp_path / name)
    (tmp_path / name).write_text('{"a": 1}')
    with pytest.raises(InputError, match=message) as caught:
        models.wrap(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_an_object_with_predict_proba_alone():
    class Own:
        def predict_proba(self, rows):
            return np.stack([rows[:, 0], 1 - rows[:, 0]], axis=1)

    model = models.wrap(Own())
    assert model(ROWS).shape == (120, 2)
    assert model.outputs == "scores"


def test_missing_values_where_an_estimator_takes_none():
    model = models.wrap(LinearRegression().fit(ROWS, VALUES), DATA.table)
    holes = ROWS.copy()
    holes[3, 1] = np.nan
    with pytest.raises(InputError, match=r"LinearRegression takes no missing values \(NaN\).*imputer"):
        model(holes)
