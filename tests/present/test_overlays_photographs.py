"""Boxes and label maps drawn on photographs."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.present import overlays
from testifai.present.overlays import FALSE, MISSED, OTHER, RIGHT, marks, wanted, with_boxes, with_map

NAMES = ("cat", "dog", "Bücher")
EXPECTED = np.array(
    [[10, 10, 40, 40, 1, 0], [60, 10, 90, 40, 1, 1], [10, 60, 40, 90, 1, 0], [0, 95, 9, 99, 0, 0]], np.float32
)
FOUND = np.array(
    [[10, 10, 40, 41, 0.9, 0], [60, 10, 90, 40, 0.8, 0], [60, 60, 90, 90, 0.7, 2], [10, 60, 40, 90, 0.1, 0]], np.float32
)


def drawn():
    return marks(FOUND, EXPECTED, iou=0.5, confidence=0.25, name=NAMES.__getitem__)


def test_each_box_is_marked_as_what_it_is():
    assert [(mark.kind, mark.words) for mark in drawn()] == [
        (RIGHT, "cat 0.90"),
        (OTHER, "cat 0.80, not dog"),
        (FALSE, "Bücher 0.70"),
        (MISSED, "no cat"),  # below the confidence is not found
    ]
    assert overlays.in_words(drawn()) == "1 right, 1 missed, 1 false, 1 of another class"
    assert [mark.words for mark in wanted(EXPECTED, NAMES.__getitem__)] == ["cat", "dog", "cat"]


def test_nothing_expected_and_nothing_found_is_said():
    none = np.zeros((0, 6), np.float32)
    assert overlays.in_words(marks(none, none, 0.5, 0.25, str)) == "nothing expected, nothing found"


@pytest.mark.parametrize("shape", [(100, 100, 3), (100, 100), (1000, 1000, 3)])
def test_colours_stand_where_the_boxes_are(shape):
    image = np.full(shape, 50, np.uint8)
    scale = shape[0] / 100
    scaled = [overlays.Mark(mark.box * scale, mark.kind, mark.words) for mark in drawn()]
    before = image.copy()
    picture = with_boxes(image, scaled, largest=300)
    assert picture.shape == (300, 300, 3)
    assert np.array_equal(image, before)
    for mark, edge in zip(drawn(), [(60, 30), (60, 180), (210, 180), (195, 30)], strict=True):
        colour = overlays.COLOURS[mark.kind]
        assert (picture[edge[0] - 9 : edge[0] + 9, edge[1] - 2 : edge[1] + 3] == colour).all(axis=-1).any()
    assert (picture[130:140, 130:140] == 50).all()


def test_a_box_at_the_edge_keeps_its_words_within_the_picture():
    far = overlays.Mark(np.array([95.0, 0, 400, 30]), RIGHT, "a long name 0.99")
    picture = with_boxes(np.zeros((100, 100, 3), np.uint8), [far], largest=300)
    assert (picture == overlays.INK).all(axis=-1).any()


def test_words_stand_at_the_wrong_boxes_first():
    crowd = np.zeros((200, 200, 3), np.uint8)
    right = [overlays.Mark(np.array([x, 20.0, x + 18, 60]), RIGHT, "cat") for x in range(0, 180, 20)]
    wrong = overlays.Mark(np.array([80.0, 100, 120, 140]), FALSE, "dog")
    picture = with_boxes(crowd, [wrong, *right], largest=200)
    assert (picture[85:100, 80:120] == overlays.COLOURS[FALSE]).all(axis=-1).sum() > 50
    tags = (picture[5:19] == overlays.COLOURS[RIGHT]).all(axis=-1).any(axis=0)
    assert 0 < np.count_nonzero(np.diff(tags.astype(int)) == 1) < len(right)


def test_wrong_pixels_are_striped_and_those_not_judged_plain():
    image = np.full((50, 50, 3), 200, np.uint8)
    found, expected = np.zeros((50, 50), int), np.zeros((50, 50), int)
    found[:, 25:] = 1
    expected[:25, :10] = 1
    expected[25:, :10] = 255
    expected[:, 25:] = 1
    picture = with_map(image, found, expected, void=255, largest=50)
    red = (picture == overlays.COLOURS[FALSE]).all(axis=-1)
    assert 0.3 < red[:25, :10].mean() < 0.7
    assert not red[25:].any()
    assert not red[:, 10:].any()
    assert (picture[25:, :10] == 200).all()
    first, second = picture[40, 15], picture[40, 40]
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, [200, 200, 200])
    alone = with_map(image, expected, None, void=255, largest=50)
    assert (alone[25:, :10] == 200).all()
    assert not (alone == overlays.COLOURS[FALSE]).all(axis=-1).any()
