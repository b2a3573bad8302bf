from __future__ import annotations

import numpy as np
import pytest

from testifai.data.annotations import are_records, from_records, unpack
from testifai.errors import InputError
from testifai.models import check_outputs

FOUND = [{"boxes": [[0, 0, 2, 2]], "labels": [1], "scores": [0.5]}, {"boxes": [], "labels": [], "scores": []}]


def test_records_become_rows_of_the_surest_boxes():
    many = {"boxes": np.tile([0, 0, 1, 1], (150, 1)), "labels": np.zeros(150), "scores": np.linspace(0, 1, 150)}
    outputs = check_outputs([*FOUND, many], 3)
    one, none, most = unpack(outputs)
    assert one.tolist() == [[0, 0, 2, 2, 0.5, 1]]
    assert (len(none), len(most), most[0, 4]) == (0, 100, 1)
    assert outputs.shape == (3, 100, 6)


def test_boxes_without_scores_are_certain():
    assert from_records([{"boxes": [[1, 2, 3, 4]], "labels": [0]}], "labels").tolist() == [[[1, 2, 3, 4, 1, 0]]]


def test_tensors_are_taken_too():
    torch = pytest.importorskip("torch")
    record = {"boxes": torch.ones(1, 4, requires_grad=True), "labels": torch.tensor([3]), "scores": torch.ones(1)}
    assert from_records([record], "model")[0, 0, 5] == 3


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"boxes": []}, "model: image 0 has boxes, and no labels; {'boxes'"),
        ({"boxes": [[0, 0, 1]], "labels": [0]}, r"has boxes \(1, 3\), labels \(1,\)"),
        ({"boxes": [[0, 0, 1, 1]], "labels": [0, 1]}, r"labels \(2,\)"),
        ({"boxes": [[5, 0, 1, 1]], "labels": [0]}, "x1 ≤ x2"),
        ({"boxes": [[0, 0, 1, 1]], "labels": [-1]}, "whole numbers from 0 on"),
        ({"boxes": [[0, 0, 1, 1]], "labels": ["cat"]}, "has boxes"),
    ],
)
def test_mistakes_are_one_line(record, message):
    assert are_records([record])
    with pytest.raises(InputError, match=message) as told:
        from_records([record], "model")
    assert "\n" not in str(told.value)
