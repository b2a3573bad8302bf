from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from testifai.data import Data, from_arrays
from testifai.data.table_columns import Column, learn
from testifai.errors import InputError
from testifai.operational.input_previews import KeptInputs, cells, have_pictures, packed, shown

PICTURES = np.zeros((3, 8, 8), np.uint8)


def test_texts_and_pairs():
    assert list(shown(from_arrays(["a", "b"]), [1])) == [{"texts": ["b"]}]
    assert list(shown(from_arrays([("a", "b"), ("c", "d")]), [1, 0])) == [{"texts": ["c", "d"]}, {"texts": ["a", "b"]}]


def test_rows_of_a_table_have_the_names_of_their_columns():
    rows = np.array([[30.0, 0.0], [np.nan, 1.0]])
    data = Data(rows, schema=learn([Column("age"), Column("sex", "category", ("f", "m"))], rows))
    assert list(shown(data, [1])) == [{"columns": [["age", "missing"], ["sex", "m"]]}]
    assert cells(data, [1, 0]) == ["age missing; sex m", "age 30; sex f"]  # not the numbers of the categories
    (plain,) = shown(from_arrays(np.array([[1.5, 2.0], [3.0, 4.0]])), [0])
    assert [value for _, value in plain["columns"]] == ["1.5", "2"]


@pytest.mark.parametrize(
    "inputs",
    [PICTURES, np.zeros((2, 3, 9, 9), np.float32), [np.zeros((4, 5, 3), np.uint8), np.ones((6, 4, 3), np.uint8)]],
)
def test_pictures_of_every_kind(inputs):
    data = from_arrays(inputs)
    assert have_pictures(data)
    assert [one["picture"][:15] for one in shown(data, [1, 0])] == ["data:image/png;"] * 2


def test_other_arrays_are_numbers():
    (found,) = shown(from_arrays(np.ones((2, 5, 7, 300))), [1])
    assert found["texts"][0].startswith("1, 1, 1")
    assert found["texts"][0].endswith("…")


def test_they_are_found_again_whatever_the_files_are_called(tmp_path):
    data = from_arrays(["a", "b", "c", "d"])
    (tmp_path / "to_label.inputs.zip").write_bytes(packed("mine", data, [2, 0]))
    (tmp_path / "to_label.2.inputs.zip").write_bytes(packed("mine", data, [3]))
    (tmp_path / "other.inputs.zip").write_bytes(packed("other", from_arrays(["x"] * 4), [0, 1]))
    (tmp_path / "broken.inputs.zip").write_bytes(b"PK")
    kept = KeptInputs(tmp_path / "of_anna.csv", "mine")
    kept.check([0, 2, 3])
    assert [kept[example] for example in (0, 3)] == [{"texts": ["a"]}, {"texts": ["d"]}]
    with pytest.raises(InputError, match=r"nothing to look at for id 1 \(1 in all\); put of_anna\.inputs\.zip"):
        kept.check([0, 1])


def test_the_same_inputs_give_the_same_bytes():
    assert packed("t", from_arrays(PICTURES), [1, 2]) == packed("t", from_arrays(PICTURES), [1, 2])


@pytest.mark.parametrize("content", ["no JSON", json.dumps([1]), "x" * 200])
def test_what_somebody_changed_is_refused_in_one_line(tmp_path, content, monkeypatch):
    monkeypatch.setattr("testifai.operational.input_previews.MOST_BYTES", 100)
    with zipfile.ZipFile(tmp_path / "a.inputs.zip", "w") as archive:
        archive.comment = b"t"
        archive.writestr("1.json", content)
    kept = KeptInputs(tmp_path / "a.csv", "t")
    with pytest.raises(InputError, match=r"a\.inputs\.zip: id 1 (cannot be read|is too large)") as caught:
        kept[1]
    assert "\n" not in str(caught.value)
