"""A rectangle drawn on an image is found on the canvas where the box says, and comes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.models.detection.onnx import Letterbox


@given(
    size=st.tuples(st.integers(20, 90), st.integers(20, 90)),
    canvas=st.tuples(st.sampled_from([32, 64, 96]), st.sampled_from([32, 64, 96])),
    centred=st.booleans(),
    stretch=st.booleans(),
)
def test_a_drawn_rectangle_comes_back(
    size: tuple[int, int], canvas: tuple[int, int], centred: bool, stretch: bool
) -> None:
    box = np.array([size[1] // 4, size[0] // 4, size[1] * 3 // 4, size[0] * 3 // 4], np.float32)
    left, top, right, bottom = box.astype(int)
    image = np.zeros((1, *size, 3), np.uint8)
    image[:, top:bottom, left:right] = 255
    fit = Letterbox(canvas, centred, stretch)
    (shown,) = fit(image)
    rows, columns = (np.flatnonzero((shown[..., 0] > 127).any(axis=axis)) for axis in (1, 0))
    seen = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
    down, across = fit.placed(size).scale
    back = fit.placed(size).back(seen[None], size)[0]
    # A pixel of the canvas is as much as 1 / scale of the image, and half of one at either end may be lost.
    assert np.abs(back - box).max() <= 1 / min(down, across) + 1


def test_images_of_the_canvas_size_are_handed_on() -> None:
    images = np.zeros((2, 8, 8, 3), np.uint8)
    assert Letterbox((8, 8))(images) is images


def test_the_rest_of_the_canvas_is_grey() -> None:
    shown = Letterbox((8, 8))(np.zeros((1, 4, 8, 3), np.uint8))[0]
    assert shown[:2].max() == shown[:2].min() == 114
    assert shown[2:6].max() == 0


def test_boxes_are_cut_off_at_the_image() -> None:
    back = Letterbox((8, 8)).placed((4, 8)).back(np.array([[-5.0, 0, 20, 8]]), (4, 8))
    assert back == pytest.approx(np.array([[0, 0, 8, 4]]))
