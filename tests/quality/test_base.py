"""Measures by name, and what their options are read with."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.quality import MEASURES, FunctionMeasure, Score, resolve
from testifai.quality.base import draw


def test_by_name_with_options_as_an_object_and_as_a_function():
    assert resolve("ssim").name == "ssim"
    assert resolve({"use": "kid", "sample": 200}).sample == 200
    measure = resolve("bleu")
    assert resolve(measure) is measure
    assert isinstance(resolve(lambda clean, perturbed: 1.0), FunctionMeasure)


def test_the_side_of_pairs_comes_from_the_data_unless_it_is_named():
    assert resolve("bleu", side="first").describe()["side"] == "first"
    assert resolve({"use": "bleu", "side": "second"}, side="first").describe()["side"] == "second"
    assert resolve("ssim", side="first").name == "ssim"
    with pytest.raises(InputError, match=r"^quality: side: must be one of first, second, both, got 'left'$"):
        resolve({"use": "edit_similarity", "side": "left"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("kdi", "'kdi' is not known; did you mean 'kid'"),
        ("", "'' is not known; known: bertscore"),
        ({"sample": 3}, "has no 'use'"),
        ({"use": 3}, "3 is not known"),
        ({"use": "bertscore"}, "bertscore needs encoder = …"),
        (3, "int is not accepted"),
        (None, "NoneType is not accepted"),
        (dict, "dict is a class"),
    ],
)
def test_mistakes_are_one_line_that_says_what_is_known(given, words):
    with pytest.raises(InputError, match=f"^quality: .*{words}") as problem:
        resolve(given)
    assert "\n" not in str(problem.value)


def test_names_are_those_of_the_measures():
    for name in set(MEASURES) - {"bertscore"}:
        assert resolve(name).name == name


def test_a_score_is_a_value_and_its_error():
    assert Score(1.0, 0.5) == (1.0, 0.5)


def test_rows_are_drawn_evenly():
    counts = np.zeros(10)
    for seed in range(2000):
        rows = draw(3, 10, seed)
        assert len(set(rows.tolist())) == 3
        counts[rows] += 1
    # Each row is in 3 of 10 samples: 600 ± 4 standard deviations of a binomial count.
    assert np.abs(counts - 600).max() < 4 * np.sqrt(2000 * 0.3 * 0.7)
