"""Functions as measures: a value for each input, or one number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.quality import FunctionMeasure, resolve

CLEAN = np.arange(40.0)


def score(function, perturbed=None, clean=CLEAN, **options):
    reference = FunctionMeasure(function, **options).reference(clean, None, seed=0)
    return reference.score((clean + 1 if perturbed is None else perturbed)[reference.rows])


def test_values_are_averaged_with_the_error_of_a_mean():
    perturbed = CLEAN + np.random.default_rng(0).normal(size=40)
    found = score(lambda clean, changed: np.abs(changed - clean), perturbed)
    values = np.abs(perturbed - CLEAN)
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / math.sqrt(40))


def test_one_number_has_the_error_of_leaving_out_tenths():
    # Of a mean, the jackknife in groups estimates the same error as the values would: compare over many draws.
    errors, means = [], []
    for seed in range(200):
        perturbed = CLEAN + np.random.default_rng(seed).normal(size=40)
        found = score(lambda clean, changed: float((changed - clean).mean()), perturbed)
        means.append(found.value)
        errors.append(found.error)
    ratio = math.sqrt(np.mean(np.square(errors))) / np.std(means)
    # The variance of 200 values is known to 10 % (one standard deviation), that of the ratio to 5 %.
    assert abs(ratio - 1) < 0.2


def test_lists_tensors_and_numbers_are_read():
    assert score(lambda clean, changed: [1, 2] * 20).value == 1.5
    assert score(lambda clean, changed: np.float32(0.5)) == (0.5, 0.0)
    assert score(lambda clean, changed: True).value == 1.0


def test_a_tensor_is_read():
    ones = pytest.importorskip("torch").ones
    assert score(lambda clean, changed: ones(len(clean), requires_grad=True)).value == 1.0


def test_it_knows_its_name_its_direction_and_its_code():
    def distance(clean, changed):
        return np.abs(clean - changed)

    def other(clean, changed):
        return np.abs(clean - changed) ** 2

    measure = resolve(distance)
    assert measure.name.endswith("distance")
    assert measure.higher_is_better
    assert FunctionMeasure(distance, name="mine", higher_is_better=False).describe()["use"] == "mine"
    assert measure.describe()["function"] != resolve(other).describe()["function"]
    distance.higher_is_better = False
    assert not resolve(distance).higher_is_better


def fails(clean, changed):
    raise RuntimeError("no\nmore")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda clean, changed: np.zeros(3), r"shape \(3,\) for 40 inputs"),
        (lambda clean, changed: np.zeros((40, 2)), r"shape \(40, 2\)"),
        (lambda clean, changed: "good", "returned str; numbers"),
        (lambda clean, changed: None, "is nan|returned nan|returned NoneType"),
        (lambda clean, changed: float("nan"), "returned nan; one finite number"),
        (lambda clean, changed: np.where(clean == 3, np.inf, 0), "is inf for input 3"),
        (lambda clean, changed: 1.0 if len(clean) == 40 else clean, "after one number"),
        (fails, "failed: RuntimeError: no more"),
        (lambda clean: 1, "failed: TypeError"),
    ],
)
def test_what_is_no_measure_is_refused_in_one_line(function, words):
    with pytest.raises(InputError, match=rf"^quality: .*({words})") as problem:
        score(function)
    assert "\n" not in str(problem.value)


def test_options_are_checked():
    with pytest.raises(InputError, match="higher_is_better: must be true or false, got 'yes'"):
        FunctionMeasure(len, higher_is_better="yes")
    with pytest.raises(InputError, match="sample: must be a whole number, at least 2, got 1"):
        FunctionMeasure(len, sample=1)
