from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.models import align_labels, check_outputs
from testifai.models.outputs import as_rows


class Tensor:
    """As much of a torch tensor as is looked at."""

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    def cpu(self):
        return self.array


def test_good_outputs_come_back_as_arrays():
    scores = np.zeros((3, 2), np.float32)
    assert check_outputs(scores, 3) is scores
    assert check_outputs([1, 0, 2], 3).tolist() == [1, 0, 2]
    assert check_outputs([[0.5, 0.5]], 1).shape == (1, 2)
    assert check_outputs(Tensor(scores), 3) is scores
    assert check_outputs(np.array([True, False]), 2).tolist() == [1, 0]
    assert check_outputs(scores, 3, columns=2) is scores
    assert check_outputs([1, 0, 2], 3, columns=0, classes=3).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        (np.zeros(2), {}, "model returned 2 outputs for 3 inputs"),
        (np.zeros((3, 2, 2)), {}, r"shape \(3, 2, 2\) for 3 inputs; accepted: \(N,\) labels, \(N, d\)"),
        (np.float32(1), {}, r"shape \(\)"),
        (np.zeros((3, 0)), {}, "no columns"),
        (np.array([[0, 1], [np.nan, np.nan], [np.nan, 0]]), {}, "returned NaN for 2 of 3 inputs"),
        (np.array([0, np.inf, 0]), {}, "returned infinity for 1 of 3 inputs"),
        (["cat", "dog", "cat"], {}, "dtype <U3"),
        (np.zeros((3, 2)), {"columns": 4}, r"shape \(N, 2\) after \(N, 4\)"),
        (np.zeros(3), {"columns": 4}, r"shape \(N,\) after \(N, 4\)"),
        ([[1, 2], [3], [4]], {}, "different length"),
        ({"logits": 1}, {}, "returned dict"),
        (None, {}, "returned NoneType"),
        ([0, 10, -1], {"classes": 10}, r"label 10 \(2 of 3 labels are outside the 10 classes\)"),
        ([0, 0.5, 1], {"classes": 10}, r"label 0\.5"),
    ],
)
def test_bad_outputs_are_one_line(outputs, options, message):
    with pytest.raises(InputError, match=message) as caught:
        check_outputs(outputs, 3, "lenet5.onnx", **options)
    assert str(caught.value).startswith("lenet5.onnx: ")
    assert "\n" not in str(caught.value)


def test_labels_are_brought_to_the_models_classes():
    assert align_labels(np.array([0, 1]), ("a", "b"), None).tolist() == [0, 1]
    assert align_labels(np.array([5, 3, 5]), None, np.array([3, 5])).tolist() == [1, 0, 1]
    assert align_labels(np.array([0, 1, 1]), ("ape", "cat"), np.array(["ant", "ape", "cat"])).tolist() == [1, 2, 2]
    assert align_labels(np.array([0, 1]), ("negative", "positive"), ["POSITIVE", "NEGATIVE"]).tolist() == [1, 0]
    assert align_labels(np.array([0, 1]), ("a", "A"), ["A", "a"]).tolist() == [1, 0]
    assert align_labels(np.array([1, 0]), None, ["far", "near"]).tolist() == [1, 0]
    with pytest.raises(InputError, match="labels: 4 is not a class of the model; known: 3, 5"):
        align_labels(np.array([3, 4]), None, [3, 5])
    with pytest.raises(InputError, match="'cta' is not a class of the model; did you mean 'cat'"):
        align_labels(np.array([0]), ("cta",), np.array(["ape", "cat"]))


RNG = np.random.default_rng(0)


def test_every_shape_becomes_rows():
    assert as_rows(RNG.normal(size=5), 5, "a").shape == (5, 1)
    table = RNG.normal(size=(5, 3)).astype(np.float32)
    assert np.array_equal(as_rows(table, 5, "a"), table)
    maps = RNG.normal(size=(5, 3, 4, 6))
    by_hand = [[maps[i, c].sum() / 24 for c in range(3)] for i in range(5)]
    np.testing.assert_allclose(as_rows(maps, 5, "a"), by_hand, rtol=1e-5, atol=1e-7)
    tokens = RNG.normal(size=(5, 7, 2))
    np.testing.assert_allclose(as_rows(tokens, 5, "a"), sum(tokens[:, t] for t in range(7)) / 7, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("activations", "problem"),
    [
        (np.ones((4, 2)), "one row each"),
        (np.array(3.0), "one row each"),
        (np.full((5, 2), np.nan), "NaN or infinity"),
        (np.full((5, 2), "a"), "numbers is needed"),
    ],
)
def test_what_is_no_trace(activations, problem):
    with pytest.raises(InputError, match=problem):
        as_rows(activations, 5, "layer")
