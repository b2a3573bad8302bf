"""Which label is which output, told by the user."""

import numpy as np
import pytest

from testifai import data as datasets
from testifai.data import from_arrays
from testifai.data.dataset import numbered
from testifai.errors import InputError

INPUTS = np.zeros((4, 3))
WORDS = from_arrays(INPUTS, ["plane", "car", "plane", "ship"])  # sorted: car, plane, ship
NUMBERS = from_arrays(INPUTS, [0, 1, 0, 2])


def test_a_list_names_the_outputs_in_their_order():
    data = numbered(WORDS, ["plane", "car", "bird", "Ship"])
    assert data.labels.tolist() == [0, 1, 0, 3]
    assert data.classes == ("plane", "car", "bird", "Ship")
    assert numbered(NUMBERS, ["a", "b", "c"]).classes == ("a", "b", "c")


def test_a_table_gives_an_output_or_the_models_name():
    assert numbered(WORDS, {"plane": 9, "car": 1, "ship": 1}).labels.tolist() == [9, 1, 9, 1]
    assert numbered(WORDS, {"plane": 2, "car": 0, "ship": 0}).classes == ("car/ship", "1", "plane")
    renamed = numbered(WORDS, {"plane": "airplane", "car": "auto", "ship": "boat"})
    assert [renamed.classes[label] for label in renamed.labels] == ["airplane", "auto", "airplane", "boat"]
    assert numbered(NUMBERS, {"0": 2, "1": 1, "2": 0}).labels.tolist() == [2, 1, 2, 0]


@pytest.mark.parametrize(
    ("data", "classes", "said"),
    [
        (WORDS, ["plane", "car", "plane"], "'plane' is listed twice"),
        (WORDS, ["plane", "car"], "the data's class 'ship' is not listed"),
        (WORDS, {"plane": 0, "car": 1}, "says nothing of 'ship'"),
        (WORDS, {"plane": 0, "car": 1, "ship": 2, "boat": 3}, "there is no class 'boat' in the data"),
        (WORDS, {"plane": 0, "car": 1, "ship": -1}, "an output, counted from 0"),
        (WORDS, {"plane": 0, "car": "auto", "ship": 1}, "an output, counted from 0"),
        (NUMBERS, ["a", "b"], "2 names for the labels 0 … 2"),
        (from_arrays(INPUTS), ["a", "b"], "have no class per input"),
    ],
)
def test_mistakes_are_one_line(data, classes, said):
    with pytest.raises(InputError, match=said):
        numbered(data, classes)


def test_a_folder_and_an_archive_take_them(tmp_path):
    cv2 = pytest.importorskip("cv2")
    for name in ("car", "plane"):
        (tmp_path / "images" / name).mkdir(parents=True)
        cv2.imwrite(str(tmp_path / "images" / name / "1.png"), np.zeros((4, 4, 3), np.uint8))
    assert datasets.load("folder", tmp_path / "images").labels.tolist() == [0, 1]
    assert datasets.load("folder", tmp_path / "images", classes=["plane", "car"]).labels.tolist() == [1, 0]
    np.savez(tmp_path / "a.npz", x=INPUTS, y=np.array([0, 1, 0, 2]))
    assert datasets.load("npz", tmp_path / "a.npz", classes={"0": 1, "1": 0, "2": 2}).labels.tolist() == [1, 0, 1, 2]
