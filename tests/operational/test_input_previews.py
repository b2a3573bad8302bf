"""Tests of operational.input_previews."""

from __future__ import annotations

import base64
import json
import re
import zipfile
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from testifai.data import Data, from_arrays
from testifai.data.table_columns import Column, learn
from testifai.errors import InputError
from testifai.operational.input_previews import (
    Card,
    KeptInputs,
    cells,
    data_uri,
    have_pictures,
    is_image,
    packed,
    page,
    shown,
)

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


RNG = np.random.default_rng(0)


def decode(uri):
    head, _, body = uri.partition(",")
    assert head in ("data:image/png;base64", "data:image/jpeg;base64")
    image = cv2.imdecode(np.frombuffer(base64.b64decode(body), np.uint8), cv2.IMREAD_UNCHANGED)
    return image[..., ::-1] if image.ndim == 3 else image


def test_small_images_are_kept_to_the_pixel():
    colour = RNG.integers(0, 256, (32, 20, 3), dtype=np.uint8)
    assert np.array_equal(decode(data_uri(colour)), colour)
    assert np.array_equal(decode(data_uri(np.moveaxis(colour, 2, 0))), colour)
    grey = colour[..., 0]
    for shape in ((32, 20), (32, 20, 1), (1, 32, 20)):
        assert np.array_equal(decode(data_uri(grey.reshape(shape))), grey)
    with_alpha = np.dstack([colour, grey])
    assert np.array_equal(decode(data_uri(with_alpha)), colour)


def test_large_images_are_shrunk_in_proportion():
    image = np.zeros((400, 1000, 3), np.uint8)
    image[:, 500:] = (250, 10, 20)
    small = decode(data_uri(image))
    assert small.shape == (77, 192, 3)
    assert np.abs(small[:, 120:].astype(int) - (250, 10, 20)).max() < 6


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([0.0, 100.0, 200.0], [0, 100, 200]),
        ([-2.0, 0.0, 2.0], [0, 128, 255]),
        ([7.0, 7.0, 7.0], [7, 7, 7]),
        ([900.0, 900.0, 900.0], [0, 0, 0]),
    ],
)
def test_other_numbers_than_bytes_can_be_seen(values, expected):
    assert decode(data_uri(np.array([values]))).tolist() == [expected]


def test_what_can_be_drawn():
    assert is_image(np.zeros((5, 28, 28)))
    assert is_image(np.zeros((5, 8, 8, 3)))
    assert is_image(np.zeros((5, 3, 8, 8)))
    assert not is_image(np.zeros((5, 8)))
    assert not is_image(np.zeros((5, 8, 8, 7)))
    assert not is_image(["a text"])


def test_the_page_needs_nothing_and_runs_nothing():
    evil = '<script>alert("x")</script>&"'
    cards = [Card(7, np.zeros((4, 4), np.uint8), evil, 0.987, evil), Card(3, np.zeros((4, 4, 3)), "cat", None, "b")]
    text = page(evil, evil, cards, [evil, "cat"]).decode()
    tags, attributes, words = [], [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)
            attributes.extend(attrs)

        def handle_data(self, data):
            words.append(data)

    Reader().feed(text)
    assert set(tags) == {
        "html", "head", "meta", "title", "style", "body", "h1", "p", "b", "main", "figure", "img", "figcaption", "br",
        "small",
    }  # fmt: skip
    assert all(value.startswith("data:image/") for name, value in attributes if name == "src")
    assert not re.search(r"https?:|url\(|@import", text)
    shown = "".join(words)
    assert shown.count('<script>alert("x")</script>') == 6
    assert shown.index("id 7") < shown.index("id 3")
    assert "(0.99)" in shown
