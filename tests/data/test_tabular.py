"""Tables from files and frames: columns, kinds, targets; and how a table is told from texts."""

import numpy as np
import pytest

from testifai import data
from testifai.data.tabular import from_columns, is_table
from testifai.errors import InputError
from testifai.testing import check_data

CSV = """id,age,income,city,member,target
1,30,1000.5,Bonn,true,0
2,41,,Ulm,false,1
3,NA,2000,Bonn,true,1
"""


def written(tmp_path, content=CSV, name="t.csv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def kinds(found):
    return {column.name: column.kind for column in found.table.columns}


def refused(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        data.load("table", path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_kinds_of_columns_are_told_from_what_they_hold(tmp_path):
    found = data.wrap(written(tmp_path))
    assert kinds(found) == {"id": "whole", "age": "whole", "income": "number", "city": "category", "member": "boolean"}
    np.testing.assert_array_equal(found.inputs, [[1, 30, 1000.5, 0, 1], [2, 41, np.nan, 1, 0], [3, np.nan, 2000, 0, 1]])
    assert found.table.columns[3].values == ("Bonn", "Ulm")
    assert found.labels.tolist() == [0, 1, 1]
    check_data(found)


def test_target_features_categories_and_a_marker_can_be_told(tmp_path):
    found = data.load("table", written(tmp_path), target="city", features=["id", "age"], categories=["id"], missing=30)
    assert kinds(found) == {"id": "category", "age": "whole"}
    assert found.table.columns[0].values == (1, 2, 3)
    assert np.isnan(found.inputs[:, 1]).tolist() == [True, False, True]
    assert found.classes == ("Bonn", "Ulm")
    assert found.labels.tolist() == [0, 1, 0]


def test_no_target_is_no_labels(tmp_path):
    found = data.load("table", written(tmp_path), target="")
    assert found.labels is None
    assert found.table.names[-1] == "target"


def test_tsv_and_parquet_hold_the_same(tmp_path):
    first = data.wrap(written(tmp_path))
    second = data.wrap(written(tmp_path, CSV.replace(",", "\t"), "t.tsv"))
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pandas.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    third = data.wrap(tmp_path / "t.parquet")
    fourth = data.wrap(pandas.read_csv(tmp_path / "t.csv"))
    assert first.fingerprint == second.fingerprint == third.fingerprint == fourth.fingerprint


def test_a_frame_with_labels_beside_it():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.5, 2.5, None], "b": pandas.Categorical(["x", "y", "x"], ["y", "x", "z"])})
    found = data.wrap((frame, pandas.Series([0, 1, 1])))
    assert found.table.columns[1].values == ("y", "x", "z")
    assert found.inputs[:, 1].tolist() == [1, 0, 1]
    assert found.labels.tolist() == [0, 1, 1]


def test_the_fingerprint_changes_with_names_and_not_for_arrays(tmp_path):
    columns = {"a": [1.0, 2.0], "b": [3.0, 4.5]}
    other = {"a": [1.0, 2.0], "c": [3.0, 4.5]}
    assert from_columns(columns).fingerprint != from_columns(other).fingerprint
    rows = np.array([[1.0, 3.0], [2.0, 4.5]])
    assert data.from_arrays(rows).schema is None
    assert data.from_arrays(rows).table.names == ("x0", "x1")
    assert data.from_arrays(np.zeros((2, 8, 8))).table is None


@pytest.mark.parametrize(
    ("content", "table"),
    [
        (CSV, True),
        ("a,b,c\n1,2,3\n4,5,6\n", True),
        ("x1,x2,y\n0.5,1.5,0\n1.0,2.5,1\n", True),
        ("x,y\n0.5,0\n1.5,1\n", True),
        ("age,city,label\n30,Bonn,0\n31,Ulm,1\n", True),
        ("text,label\nthis is a text,0\nanother one here,1\n", False),
        ("text,label\n12,0\n13,1\n", False),
        ("question1,question2,is_duplicate\nwho are you,what is it,0\n", False),
        ("title,body,label\nA short title of it,and a longer text follows here,0\nb b b b,c c c c c,1\n", False),
        ("a;b;c\n1;2;3\n", False),
        ("sentiment,words\n0,good film\n1,bad film\n", False),
    ],
)
def test_a_table_is_told_from_texts(tmp_path, content, table):
    path = written(tmp_path, content)
    assert is_table(path) is table
    assert data.recognise(path) == ("table" if table else "csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "agee"}, "target: t.csv has no column 'agee'; did you mean 'age'"),
        ({"features": ["age", "incme"]}, "features: t.csv has no column 'incme'; did you mean 'income'"),
        ({"categories": ["town"]}, "categories: t.csv has no column 'town'"),
        ({"features": ["age", "age"]}, "features: column 'age' is listed twice"),
        ({"target": "age", "features": ["age"]}, "column 'age' cannot be both target and feature"),
        ({"target": "income"}, "target 'income' is missing in 1 of 3 rows (the first is row 1)"),
    ],
)
def test_columns_that_are_not_there_are_one_line(tmp_path, options, message):
    assert message in refused(written(tmp_path), **options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1\n", "line 2 has 1 cells for 2 columns"),
        ("a,a\n1,2\n", "has several columns 'a'"),
        ("", "does not begin with a line of column names"),
        ("a,b\n", "has no rows"),
        ("a,b\n1,inf\n", "column 'b' holds infinity (row 0)"),
    ],
)
def test_files_that_cannot_be_read_are_one_line(tmp_path, content, message):
    assert message in refused(written(tmp_path, content))


def test_parquet_that_is_none_or_holds_lists_or_times(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    assert "cannot be read as Parquet" in refused(written(tmp_path, "nothing", "t.parquet"))
    import datetime

    for values, message in ([[[1], [2]], "holds lists"], [[datetime.date(2026, 1, 1)] * 2, "holds times"]):
        parquet.write_table(pyarrow.table({"a": [1, 2], "b": values}), tmp_path / "u.parquet")
        assert message in refused(tmp_path / "u.parquet")
