"""Models that answer with one number, from what they are told by to what a run says of them."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression

import testifai as ta
from testifai import models
from testifai.data import from_arrays, from_columns
from testifai.errors import InputError
from testifai.session.compatibility import clean_tolerance, is_regression, tolerance
from testifai.tomogram.regression_errors import distance, distances

ROWS, TARGET = load_diabetes(return_X_y=True)
REGRESSOR = LinearRegression().fit(ROWS, TARGET)
SPACE = ta.Space({"noise": ("tabular.noise", [0, 2, 4])})


@pytest.mark.parametrize(
    "model", [REGRESSOR, lambda rows: REGRESSOR.predict(rows), lambda rows: REGRESSOR.predict(rows)[:, None]]
)
def test_a_regressor_is_recognised_and_judged_by_the_truth(model):
    tomogram = ta.scan(model, (ROWS, TARGET), SPACE, strategy="full")
    oracle = tomogram.provenance["identity"]["oracle"]
    assert oracle == {"use": "tolerance", "eps": tolerance(TARGET).oracle.eps, "against": "truth"}
    off = np.abs(REGRESSOR.predict(ROWS) - TARGET)
    assert tomogram.base == pytest.approx((off <= oracle["eps"]).mean())
    assert tomogram.by_class() == {}
    clean = distances(tomogram)["clean"]
    assert clean.absolute == pytest.approx(off.mean(), rel=1e-5)
    assert clean.squared == pytest.approx((off**2).mean(), rel=1e-5)
    assert distance(tomogram, "noise == 4").absolute > distance(tomogram, "noise == 2").absolute > clean.absolute
    assert tomogram.query("order == 0", inputs="label > 150").robustness < 1


def test_classifiers_are_judged_by_labels_as_before():
    classes = (TARGET > 140).astype(int)
    model = LogisticRegression().fit(ROWS, classes)
    tomogram = ta.scan(model, (ROWS, classes), SPACE, strategy="full")
    assert tomogram.provenance["identity"]["oracle"]["use"] == "label"
    assert distances(tomogram) == {}


@pytest.mark.parametrize(
    ("model", "labels", "found"),
    [
        (lambda x: x[:, 0], [0.5, 1.5, 2.5], True),
        (lambda x: x[:, 0] * 0, [0, 1, 2], False),
        (lambda x: x[:, 0] + 0.5, np.arange(100) * 7, True),
        (lambda x: np.arange(len(x)), np.arange(100) * 7, False),  # classes with numbers of their own
        (lambda x: x[:, 0] + 0.5, np.arange(100), False),  # 0, 1, 2, … are classes
    ],
)
def test_what_is_a_regression(model, labels, found):
    data = from_arrays(np.ones((len(labels), 2)), labels)
    assert is_regression(models.wrap(model), data) is found


def test_values_over_magnitudes_are_compared_with_themselves():
    chosen = tolerance(np.geomspace(1, 10_000, 500))
    assert chosen.oracle.describe() == {"use": "tolerance", "eps": 0.25, "against": "truth", "relative": True}
    assert "25% of the true value" in chosen.reason
    assert tolerance(np.geomspace(1, 10_000, 500) - 5).oracle.relative is False


def test_half_a_spread_of_the_values_or_of_the_answers():
    normal = np.random.default_rng(0).normal(100, 8, 5000)
    assert tolerance(normal).oracle.eps == pytest.approx(4, abs=0.2)
    assert clean_tolerance(normal).oracle.describe() == {"use": "tolerance", "eps": tolerance(normal).oracle.eps}
    assert tolerance(np.ones(5)).oracle.eps > 0


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        ({"use": "label"}, "LinearRegression answers with numbers, not with classes; use the oracle tolerance"),
        ({"use": "tolerance", "eps": 1, "against": "past"}, "against: must be one of clean, truth, got 'past'"),
        ({"use": "tolerance", "eps": 1, "relative": 2}, "relative"),
    ],
)
def test_an_oracle_that_does_not_fit_is_one_line(oracle, message):
    with pytest.raises(InputError, match=message):
        ta.scan(REGRESSOR, (ROWS, TARGET), SPACE, oracle=oracle)


def test_a_target_of_texts_for_a_regression():
    columns = {f"x{place}": ROWS[:, place] for place in range(10)}
    data = from_columns({**columns, "target": ["high" if one > 140 else "low" for one in TARGET]})
    with pytest.raises(InputError, match=r"the target holds words \(high, low, …\), and LinearRegression answers with"):
        ta.scan(REGRESSOR, data, SPACE)


def test_without_a_truth_answers_are_compared_with_clean_ones():
    oracle = {"use": "tolerance", "eps": 0.1, "relative": True}
    tomogram = ta.scan(REGRESSOR, ROWS, SPACE, oracle=oracle, strategy="full")
    assert tomogram.base == 1.0
    assert tomogram.estimate[2] < tomogram.estimate[1] < 1.0
    assert distances(tomogram) == {}


def test_a_run_of_numbers_is_continued_and_opened(tmp_path):
    path = tmp_path / "run.db"
    first = ta.scan(REGRESSOR, (ROWS, TARGET), SPACE, strategy="full", store=path)
    again = ta.scan(REGRESSOR, (ROWS, TARGET), SPACE, strategy="full", store=path)
    assert again.estimate.tolist() == first.estimate.tolist()
    assert distances(ta.open(path)) == distances(first)
