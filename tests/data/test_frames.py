"""Frames of pandas and polars as they are handed over: tables, and texts."""

import numpy as np
import pytest

from testifai.data import wrap

COLUMNS = {"age": [30, 41, 22], "city": ["Rome", "Bonn", "Rome"], "target": [0, 1, 0]}
REVIEWS = ["a fine film, well played", "dull from the first minute on", "not bad at all, really"]


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    return pytest.importorskip(request.param).DataFrame


def test_a_table(frame):
    data = wrap(frame(COLUMNS))
    assert [(column.name, column.kind) for column in data.table.columns] == [("age", "whole"), ("city", "category")]
    assert data.labels.tolist() == [0, 1, 0]


def test_a_table_with_labels_beside_it(frame):
    columns = frame({name: COLUMNS[name] for name in ("age", "city")})
    assert wrap((columns, frame({"y": [2, 1, 0]})["y"])).labels.tolist() == [2, 1, 0]


def test_texts_and_pairs(frame):
    data = wrap(frame({"text": REVIEWS, "label": [1, 0, 1]}))
    assert (data.inputs, data.labels.tolist()) == (REVIEWS, [1, 0, 1])
    pairs = wrap(frame({"question1": REVIEWS, "question2": REVIEWS[::-1], "is_duplicate": [0, 1, 0]}))
    assert pairs.inputs == list(zip(REVIEWS, REVIEWS[::-1], strict=True))


def test_the_same_table_of_either_library_is_the_same_data():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    found = [wrap(library.DataFrame(COLUMNS)) for library in (pandas, polars)]
    assert np.array_equal(found[0].inputs, found[1].inputs)
    assert found[0].fingerprint == found[1].fingerprint
