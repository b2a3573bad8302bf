"""Primitives against brute force and against other libraries."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from testifai.errors import InputError
from testifai.perturb import ops
from testifai.testing import example_images


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def sampled(image, matrix, border):
    """Bilinear sampling by SciPy."""
    y, x = np.indices(image.shape)
    place_x, place_y = (row[0] * x + row[1] * y + row[2] for row in np.asarray(matrix))
    places = [place_y, place_x]
    return map_coordinates(image.astype(float), places, order=1, mode="grid-constant", cval=border)


@given(
    st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    st.lists(st.floats(-20, 20), min_size=2, max_size=2),
    st.sampled_from([0, 255, 90]),
)
@settings(max_examples=60, deadline=None)
def test_warp_of_small_images_is_bilinear_to_within_rounding(linear, move, border):
    images = noise(2, 17, 23)
    matrix = np.column_stack([np.reshape(linear, (2, 2)), move])
    warped = ops.warp(images, matrix, border=border)
    for image, result in zip(images, warped, strict=True):
        assert np.abs(result - sampled(image, matrix, border)).max() <= 0.52


@pytest.mark.parametrize("border", [0, 255])
def test_warp_of_large_images_is_bilinear(border):
    image = noise(1, 70, 81)
    matrix = ops.about_centre([[0.9, -0.3], [0.25, 1.2]], 70, 81)
    difference = ops.warp(image, matrix, border=border)[0] - sampled(image[0], matrix, border)
    # Older OpenCV rounds places to a 32nd of a pixel.
    assert np.abs(difference).mean() < 1
    assert np.abs(difference).max() < 16


@pytest.mark.parametrize("channels", [1, 3])
def test_both_ways_to_warp_and_to_blur_agree(monkeypatch, channels):
    images = example_images(5, (28, 30, 3))[..., :channels]
    matrices = [ops.about_centre(np.eye(2) / 0.7, 28, 30), [[1, 0, -2.25], [0, 1, 3.5]]]
    which = [0, 1, 1, 0, 1]
    degrees = [-45, -10, 0, 33, 45]

    def both():
        return ops.warp(images, matrices, which, border=9), ops.line_blur(images, degrees, 30, 8)

    small = both()
    monkeypatch.setattr(ops, "SMALL", 0)
    for one, other in zip(small, both(), strict=True):
        difference = np.abs(one.astype(int) - other)
        assert difference.mean() < 0.5
        assert difference.max() <= 8


def test_warp_chooses_a_matrix_per_image():
    images = noise(4, 16, 16)
    left, right = [[1, 0, 1], [0, 1, 0]], [[1, 0, -1], [0, 1, 0]]
    warped = ops.warp(images, [left, right], [1, 0, 1, 0])
    assert np.array_equal(warped[1::2, :, :-1], images[1::2, :, 1:])
    assert np.array_equal(warped[::2, :, 1:], images[::2, :, :-1])
    assert (warped[::2, :, 0] == 0).all()


def test_a_warp_that_stays_inside_keeps_a_constant_image():
    white = np.full((2, 20, 20), 255, np.uint8)
    assert (ops.warp(white, ops.about_centre(0.37 * np.eye(2), 20, 20)) == 255).all()


def blurred_by_hand(image, degrees, length, sigma):
    """One pixel, one tap at a time: along the line y = round(x tan angle) on from each pixel."""
    height, width = image.shape
    slope, cosine = math.tan(math.radians(degrees)), math.cos(math.radians(degrees))
    result = np.zeros(image.shape)
    for y in range(height):
        for x in range(width):
            total = weight_sum = 0.0
            for tap in range(math.floor(length * cosine + 1e-9) + 1):
                row = y + round((x + tap) * slope) - round(x * slope)
                weight = math.exp(-((tap / cosine) ** 2) / (2 * sigma**2))
                total += weight * image[min(max(row, 0), height - 1), min(x + tap, width - 1)]
                weight_sum += weight
            result[y, x] = total / weight_sum
    return result


@pytest.mark.parametrize("degrees", [-45, -31, -1, 0, 14, 45])
@pytest.mark.parametrize(("length", "sigma"), [(20, 3), (30, 8), (40, 15)])
def test_line_blur_equals_taps_one_by_one(degrees, length, sigma):
    image = noise(1, 16, 21, seed=degrees % 7)
    expected = blurred_by_hand(image[0], degrees, length, sigma)
    assert np.abs(ops.line_blur(image, [degrees], length, sigma)[0] - expected).max() < 0.6


def test_line_blur_of_a_large_colour_image_equals_taps_one_by_one():
    images = noise(1, 480, 640, 3)
    degrees, length, sigma = 27, 480.0, 150.0
    blurred = ops.line_blur(images, [degrees], length, sigma)
    slope, cosine = math.tan(math.radians(degrees)), math.cos(math.radians(degrees))
    taps = np.arange(math.floor(length * cosine) + 1)
    weights = np.exp(-((taps / cosine) ** 2) / (2 * sigma**2))
    for y, x in [(0, 0), (479, 639), (470, 3), (5, 630), (200, 300), (300, 100)]:
        rows = np.clip(y + np.rint((x + taps) * slope) - np.rint(x * slope), 0, 479).astype(int)
        columns = np.minimum(x + taps, 639)
        expected = (weights[:, None] * images[0, rows, columns]).sum(axis=0) / weights.sum()
        assert np.abs(blurred[0, y, x] - expected).max() < 0.7


def test_line_blur_is_close_to_the_taps_of_imagemagick():
    """ImageMagick rounds both coordinates of taps one step apart: lines differ by a pixel here and there."""
    images = example_images(30)
    y, x = np.indices((28, 28))
    for radius, sigma in [(10, 3), (15, 8), (20, 15)]:
        steps = np.arange(2 * radius + 1)
        weights = np.exp(-(steps**2) / (2 * sigma**2))
        for degrees in (-40, 0, 10, 25, 45):
            angle = math.radians(degrees)
            right, down = np.rint(steps * math.cos(angle)), np.rint(steps * math.sin(angle))
            taps = zip(right.astype(int), down.astype(int), weights / weights.sum(), strict=True)
            expected = sum(w * images[:, np.clip(y + d, 0, 27), np.clip(x + r, 0, 27)] for r, d, w in taps)
            blurred = ops.line_blur(images, np.full(30, degrees), 2 * radius, sigma)
            change = np.abs(expected - images).mean()
            assert np.abs(blurred - expected).mean() < 0.2 * change


def test_results_do_not_depend_on_the_batch_to_the_last_bit():
    images = noise(301, 28, 28)
    degrees = np.random.default_rng(1).integers(-45, 46, 301)
    blurred = ops.line_blur(images, degrees, 30, 8)
    matrices = [ops.about_centre([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]], 28, 28) for t in (-0.4, 0.4)]
    warped = ops.warp(images, matrices, degrees > 0)
    for step in (1, 7, 100):
        parts = [slice(start, start + step) for start in range(0, 301, step)]
        again = [ops.line_blur(images[part], degrees[part], 30, 8) for part in parts]
        assert np.array_equal(np.concatenate(again), blurred)
        again = [ops.warp(images[part], matrices, degrees[part] > 0) for part in parts]
        assert np.array_equal(np.concatenate(again), warped)


@pytest.mark.parametrize("amount", [0.1, 0.5])
def test_brighten_raises_the_value_of_hsv(amount):
    images = noise(2, 16, 16, 3)
    images[0, 0, :4] = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [1, 0, 0]]
    brightened = ops.brighten(images, amount)
    for pixel, result in zip(images.reshape(-1, 3), brightened.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(pixel / 255))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(value + amount, 1))
        assert np.abs(result - 255 * np.array(expected)).max() <= 0.501


def test_brighten_of_grey_is_the_same_with_and_without_channels():
    grey = noise(3, 16, 18)
    plain = ops.brighten(grey, 0.3)
    assert np.array_equal(plain, np.minimum(grey + 77.0, 255))
    assert np.array_equal(ops.brighten(grey[..., None], 0.3)[..., 0], plain)
    assert np.abs(ops.brighten(np.repeat(grey[..., None], 3, axis=3), 0.3)[..., 1] - plain.astype(int)).max() <= 1


def test_lookup_is_indexing():
    table = noise(256)
    images = noise(3, 16, 20, 3)[:, ::2, ::-1]
    assert np.array_equal(ops.lookup(images, table), table[images])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 28, 28)), "uint8.*float64.*convert"),
        (np.zeros((2, 28, 28), bool), "bool"),
        (np.zeros((28, 28), np.uint8), r"\(28, 28\)"),
        (np.zeros((2, 3, 28, 28), np.uint8), "channels first"),
        (["a"], "list"),
    ],
)
def test_what_is_no_batch_of_images_is_refused(images, words):
    with pytest.raises(InputError, match=words):
        ops.image_shape(images)
