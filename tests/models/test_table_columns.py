"""From the numbers of a table to what a model takes."""

import numpy as np
import pytest

import testifai as ta
from testifai.data import from_columns
from testifai.errors import InputError
from testifai.models.table_columns import feed

DATA = from_columns(
    {"age": [30, 41, 50], "income": [1.5, None, 2.5], "city": ["Ulm", None, "Bonn"], "member": [True, False, True]}
)


def test_an_array_where_the_model_knows_no_names():
    given = feed(DATA.table, "m", None, 4)(DATA.inputs)
    assert given.dtype == object
    assert given[0].tolist() == [30, 1.5, "Ulm", True]
    assert np.isnan(given[1, 1])
    numbers = from_columns({"a": [1, 2], "b": [0.5, 1.5]})
    assert feed(numbers.table, "m", None, 2)(numbers.inputs).tolist() == [[1, 0.5], [2, 1.5]]


def test_a_frame_in_the_models_order_with_values_and_kinds():
    pandas = pytest.importorskip("pandas")
    frame = feed(DATA.table, "m", ["city", "age"])(DATA.inputs)
    assert list(frame.columns) == ["city", "age"]
    assert frame.age.tolist() == [30, 41, 50]
    assert frame.age.dtype.kind == "i"
    assert frame.city[0] == "Ulm"
    assert pandas.isna(frame.city[1])
    categories = feed(DATA.table, "m", ["city"], categorical=True)(DATA.inputs).city
    assert categories.cat.categories.tolist() == ["Bonn", "Ulm"]
    assert categories.cat.codes.tolist() == [1, -1, 0]


def test_kinds_do_not_depend_on_what_is_missing_in_a_batch():
    pytest.importorskip("pandas")
    codes = from_columns({"word": ["x", "y"], "code": [3, 5], "flag": [True, False]}, categories=["code"])
    made = feed(codes.table, "m", ["word", "code", "flag"])
    assert [made(codes.inputs)[name].dtype.kind for name in ("word", "code", "flag")] == ["O", "i", "b"]
    nothing = made(np.full((2, 3), np.nan))
    assert [nothing[name].dtype.kind for name in ("word", "code", "flag")] == ["O", "f", "O"]


def test_the_marker_stands_for_what_is_missing():
    data = from_columns({"a": [1, -9, 3], "b": [0.5, None, 1.5], "c": ["x", None, "y"]}, missing=-9)
    assert np.isnan(data.inputs[1]).all()
    given = feed(data.table, "m", None)(data.inputs)
    assert given[1, :2].tolist() == [-9, -9]
    assert given[1, 2] != given[1, 2]  # no number stands among words


def test_columns_are_found_by_the_spelling_of_lightgbm():
    data = from_columns({"mean radius": [1.0, 2.0], "area": [3.0, 4.0]})
    made = feed(data.table, "m", ["area", "mean_radius"])
    assert made.places.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("names", "width", "message"),
    [
        (["age", "heigth"], None, "m takes columns that the data do not have: 'heigth'; the data have 'age', 'income'"),
        (None, 7, "m takes 7 columns, and the data have 4"),
    ],
)
def test_a_model_that_wants_other_columns_is_one_line(names, width, message):
    with pytest.raises(InputError, match=message):
        feed(DATA.table, "m", names, width)


def test_a_model_of_numbers_alone_refuses_categories(tmp_path):
    class Numbers(ta.models.Model):
        fingerprint = "x"

        def __call__(self, batch):
            return batch[:, 0]

    with pytest.raises(InputError, match="takes numbers, and column 'city' holds categories"):
        ta.models.wrap(Numbers(), DATA.table)


def test_a_function_gets_the_values():
    seen = []
    model = ta.models.wrap(lambda rows: seen.append(rows) or np.zeros(len(rows), int), DATA.table)
    model(DATA.inputs)
    assert seen[0][0].tolist() == [30, 1.5, "Ulm", True]
