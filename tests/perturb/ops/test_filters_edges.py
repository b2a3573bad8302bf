"""Edges and distances, image by image against OpenCV and brute force."""

from __future__ import annotations

import cv2
import numpy as np

from testifai.perturb import ops
from testifai.testing import example_images


def pictures(count, form=(28, 30)):
    """Digits on a ramp: edges of several strengths."""
    height, width = form
    ramp = np.linspace(0, 120, height * width).reshape(form)
    return np.minimum(example_images(count, form) // 2 + ramp, 255).astype(np.uint8)


def test_canny_marks_the_edges_of_opencv_by_one():
    grey = pictures(6)
    edges = ops.canny(grey, 40, 90)
    assert edges.dtype == np.uint8
    assert set(np.unique(edges)) == {0, 1}
    for image, result in zip(grey, edges, strict=True):
        assert np.array_equal(255 * result, cv2.Canny(image, 40, 90))


def test_the_edge_of_a_step_lies_beside_the_step():
    grey = np.zeros((1, 20, 20), np.uint8)
    grey[:, :, 10:] = 200
    edges = ops.canny(grey, 50, 150)[0]
    assert (edges.sum(axis=1) == 1).all()
    assert set(np.nonzero(edges)[1]) <= {9, 10}


def test_distance_is_that_of_opencv_up_to_a_most():
    edges = ops.canny(pictures(6), 40, 90)
    away = ops.distance(edges, 5.5)
    assert away.dtype == np.float32
    for image, result in zip(edges, away, strict=True):
        expected = cv2.distanceTransform(255 - 255 * image, cv2.DIST_L2, 5)
        assert np.array_equal(result, np.minimum(expected, np.float32(5.5)))


def test_distance_is_nearly_euclidean():
    edges = (np.random.default_rng(3).random((3, 40, 50)) < 0.004).astype(np.uint8)
    away = ops.distance(edges, 1000)
    y, x = np.indices((40, 50))
    for image, result in zip(edges, away, strict=True):
        places = np.argwhere(image)
        expected = np.sqrt(np.min([(y - row) ** 2 + (x - column) ** 2 for row, column in places], axis=0))
        # The published error of the 5×5 mask is about two per cent.
        np.testing.assert_allclose(result, expected, rtol=0.025)


def test_without_an_edge_the_distance_is_the_most():
    assert (ops.distance(np.zeros((2, 16, 20), np.uint8), 20) == 20).all()


def test_equalise_is_that_of_opencv():
    grey = pictures(6)
    for image, result in zip(grey, ops.equalise(grey), strict=True):
        assert np.array_equal(result, cv2.equalizeHist(image))


def test_equalise_spreads_the_levels_and_keeps_their_order():
    grey = (40 + np.arange(64) // 8).reshape(1, 8, 8).astype(np.uint8)
    expected = np.rint(255 * np.arange(8) / 7)
    assert np.array_equal(ops.equalise(grey)[0, :, 0], expected)


def test_results_do_not_depend_on_the_batch_to_the_last_bit():
    grey = pictures(50)
    before = grey.copy()
    whole = [ops.canny(grey, 40, 90), ops.distance(ops.canny(grey, 40, 90), 20), ops.equalise(grey)]
    assert np.array_equal(grey, before)
    for one in (0, 17, 49):
        part = slice(one, one + 1)
        edges = ops.canny(grey[part], 40, 90)
        alone = [edges, ops.distance(edges, 20), ops.equalise(grey[part])]
        for batch, result in zip(whole, alone, strict=True):
            assert np.array_equal(batch[part], result)
