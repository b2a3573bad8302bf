from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import cv2
import numpy as np
import pytest

from testifai.operational.input_previews import Card, data_uri, is_image, page

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
