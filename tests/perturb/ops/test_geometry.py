"""Moving pixels, against SciPy, brute force and published arithmetic."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from testifai.perturb import ops
from testifai.testing import example_images

# How far OpenCV may be from exact interpolation; before version 5 it rounds places to a 32nd of a pixel.
ROUNDING = 0.51 if int(cv2.__version__.split(".")[0]) >= 5 else 16


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def layers(*shape, scale=1.0, seed=1):
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def sampled(image, matrix, **border):
    """Bilinear sampling by SciPy."""
    y, x = np.indices(image.shape)
    place_x, place_y = (row[0] * x + row[1] * y + row[2] for row in np.asarray(matrix))
    return map_coordinates(image.astype(float), [place_y, place_x], order=1, **border)


def zooms(height, width, count=11):
    return [ops.about_centre(np.eye(2) / factor, height, width) for factor in np.linspace(1, 1.3, count)]


@given(
    st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    st.lists(st.floats(-20, 20), min_size=2, max_size=2),
    st.sampled_from([0, 255, 90]),
)
@settings(max_examples=24, deadline=None)
def test_warp_of_small_images_is_bilinear_to_within_rounding(linear, move, border):
    images = noise(2, 17, 23)
    matrix = np.column_stack([np.reshape(linear, (2, 2)), move])
    warped = ops.warp(images, matrix, border=border)
    for image, result in zip(images, warped, strict=True):
        assert np.abs(result - sampled(image, matrix, mode="grid-constant", cval=border)).max() <= 0.52


@pytest.mark.parametrize("border", [0, 255])
def test_warp_of_large_images_is_bilinear(border):
    image = noise(1, 70, 81)
    matrix = ops.about_centre([[0.9, -0.3], [0.25, 1.2]], 70, 81)
    expected = sampled(image[0], matrix, mode="grid-constant", cval=border)
    difference = ops.warp(image, matrix, border=border)[0] - expected
    assert np.abs(difference).mean() < 1
    assert np.abs(difference).max() < ROUNDING


@pytest.mark.parametrize("channels", [1, 3])
def test_both_ways_to_warp_agree(monkeypatch, channels):
    images = example_images(5, (28, 30, 3))[..., :channels]
    matrices = [ops.about_centre(np.eye(2) / 0.7, 28, 30), [[1, 0, -2.25], [0, 1, 3.5]]]
    which = [0, 1, 1, 0, 1]

    def both():
        return ops.warp(images, matrices, which, border=9), ops.mean_of_warps(images, matrices)

    small = both()
    monkeypatch.setattr("testifai.perturb.ops.geometry.SMALL", 0)
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


@pytest.mark.parametrize("shape", [(2, 17, 23, 3), (3, 20, 20, 1), (1, 70, 81, 3)])
def test_the_mean_of_warps_is_the_mean_of_samples_with_edges_repeated(shape):
    images = noise(*shape)
    matrices = [*zooms(*shape[1:3]), [[1.1, 0.2, -7.3], [-0.1, 0.9, 2.6]], [[1, 0, 200], [0, 1, 0]]]
    mean = ops.mean_of_warps(images, matrices)
    assert mean.shape == shape
    for image, result in zip(images, mean, strict=True):
        for channel in range(shape[3]):
            warps = [sampled(image[..., channel], matrix, mode="nearest") for matrix in matrices]
            assert np.abs(result[..., channel] - np.mean(warps, axis=0)).max() < max(ROUNDING, 0.53)


@pytest.mark.parametrize("side", [20, 70])
@pytest.mark.parametrize("level", [0, 1, 254, 255])
def test_the_mean_of_warps_keeps_a_constant_image(side, level):
    images = np.full((2, side, side, 3), level, np.uint8)
    assert (ops.mean_of_warps(images, zooms(side, side, 13)) == level).all()


def test_the_grid_holds_the_places_of_pixels():
    x, y = ops.grid(None, 5, 7)
    assert x.shape == (1, 1, 7)
    assert y.shape == (1, 5, 1)
    assert x.dtype == y.dtype == np.float32
    assert np.array_equal(np.broadcast_arrays(y[0], x[0]), np.indices((5, 7)))


@pytest.mark.parametrize("scale", [0.4, 3.0, 90.0])
@pytest.mark.parametrize("shape", [(3, 17, 23, 3), (2, 28, 28, 1), (1, 70, 81, 3)])
def test_displace_is_bilinear_in_the_mirrored_image(shape, scale):
    images = noise(*shape)
    dx, dy = layers(*shape[:3], scale=scale), layers(*shape[:3], scale=scale, seed=2)
    displaced = ops.displace(images, dx, dy)
    y, x = np.indices(shape[1:3])
    for image, across, down, result in zip(images, dx, dy, displaced, strict=True):
        for channel in range(shape[3]):
            places = [y + down.astype(float), x + across.astype(float)]
            expected = map_coordinates(image[..., channel].astype(float), places, order=1, mode="reflect")
            difference = np.abs(result[..., channel] - expected)
            assert difference.mean() < 1.2
            assert difference.max() < ROUNDING


def test_displacement_by_whole_pixels_moves_pixels_and_mirrors_them_outside():
    images = noise(2, 6, 8, 3)
    moved = ops.displace(images, np.full((2, 6, 8), 3, np.float32), np.full((2, 6, 8), -2, np.float32))
    expected = np.pad(images, [(0, 0), (2, 0), (0, 3), (0, 0)], mode="symmetric")[:, :6, 3:]
    assert np.array_equal(moved, expected)


def test_one_displacement_may_serve_a_whole_batch():
    images = noise(3, 16, 18, 3)
    across, down = layers(1, 16, 1, scale=4), layers(1, 1, 18, scale=4, seed=2)
    shape = (3, 16, 18)
    whole = ops.displace(images, np.broadcast_to(across, shape).copy(), np.broadcast_to(down, shape).copy())
    assert np.array_equal(ops.displace(images, across, down), whole)


def test_displace_leaves_the_shape_and_the_argument_as_they_are():
    grey = noise(2, 16, 18)
    before = grey.copy()
    dx = layers(2, 16, 18)
    assert np.array_equal(ops.displace(grey, dx, dx), ops.displace(grey[..., None], dx, dx)[..., 0])
    assert np.array_equal(grey, before)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
@settings(max_examples=20, deadline=None)
def test_resample_is_bilinear_and_clamped(height, width, data):
    rows = np.array(data.draw(st.lists(st.floats(-2, height + 1), min_size=1, max_size=6)))
    columns = np.array(data.draw(st.lists(st.floats(-2, width + 1), min_size=1, max_size=6)))
    layer = layers(2, height, width)
    result = ops.resample(layer, rows, columns)
    assert result.dtype == np.float32
    places = np.meshgrid(rows, columns, indexing="ij")
    expected = [map_coordinates(one.astype(float), places, order=1, mode="nearest") for one in layer]
    np.testing.assert_allclose(result, expected, atol=2e-6)


def mean_of_boxes(line, boxes):
    """Pillow's resize of a line with its BOX filter: weights 1 on the pixels whose centre is inside, normalised."""
    scale = len(line) / boxes
    means = []
    for box in range(boxes):
        centre = (box + 0.5) * scale
        pixels = range(int(centre - scale / 2 + 0.5), int(centre + scale / 2 + 0.5))
        inside = [line[x] for x in pixels if -0.5 < (x - centre + 0.5) * (1 / scale) <= 0.5]
        means.append(int(sum(inside) / len(inside) + 0.5))
    return means


def nearest_boxes(line, size):
    """Pillow's resize of a line with NEAREST."""
    place, shown = len(line) / size / 2, []
    for _ in range(size):
        shown.append(line[int(place)])
        place += len(line) / size
    return shown


def pixelated_by_hand(image, rows, columns):
    """Rows first, then columns, each rounded, as Pillow does."""
    height, width = image.shape
    small = np.array([mean_of_boxes(row.tolist(), columns) for row in image])
    small = np.array([mean_of_boxes(column.tolist(), rows) for column in small.T]).T
    wide = np.array([nearest_boxes(row.tolist(), width) for row in small])
    return np.array([nearest_boxes(column.tolist(), height) for column in wide.T]).T


@given(st.integers(2, 30), st.integers(2, 30), st.floats(0, 1), st.floats(0, 1), st.sampled_from([1, 3]))
@settings(max_examples=32, deadline=None)
def test_pixelate_equals_pillow_to_within_the_rounding_of_one_axis(height, width, down, across, channels):
    rows, columns = max(1, int(height * down)), max(1, int(width * across))
    images = noise(2, height, width, channels, seed=height * width)
    result = ops.pixelate(images, rows, columns)
    for image, boxes in zip(images, result, strict=True):
        for channel in range(channels):
            expected = pixelated_by_hand(image[..., channel], rows, columns)
            assert np.abs(boxes[..., channel] - expected).max() <= 1


@pytest.mark.parametrize(("size", "factor"), [(32, 0.95), (32, 0.65), (70, 0.4), (85, 0.6), (299, 0.75)])
def test_pixelate_of_published_sizes(size, factor):
    image = noise(1, size, size, 3)
    boxes = int(size * factor)
    expected = pixelated_by_hand(image[0, ..., 1], boxes, boxes)
    assert np.abs(ops.pixelate(image, boxes, boxes)[0, ..., 1] - expected).max() <= 1


def test_pixelate_at_its_two_ends():
    images = noise(3, 16, 20, 3)
    assert np.array_equal(ops.pixelate(images, 16, 20), images)
    means = np.floor(images.mean(axis=(1, 2), keepdims=True) + 0.5)
    assert np.array_equal(ops.pixelate(images, 1, 1), np.broadcast_to(means, images.shape))


def test_sums_of_large_batches_may_wrap_around():
    white = np.full((1, 3000, 3000, 1), 255, np.uint8)
    assert (ops.pixelate(white, 7, 11) == 255).all()


def moved(images, dx, dy, which):
    """Everything in this file, one array per image and primitive."""
    height, width = images.shape[1:3]
    turns = [ops.about_centre([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]], height, width) for t in (-0.4, 0.4)]
    return [
        ops.warp(images, turns, which),
        ops.mean_of_warps(images, zooms(height, width)),
        ops.displace(images, dx, dy),
        ops.resample(dx, np.linspace(0, height - 1, 41), np.linspace(0, width - 1, 37)),
        ops.pixelate(images, height * 2 // 3, width // 2),
    ]


@pytest.mark.parametrize("shape", [(50, 28, 28, 1), (50, 32, 32, 3), (50, 66, 65, 3)])
def test_results_do_not_depend_on_the_batch_to_the_last_bit(shape):
    images = noise(*shape)
    dx, dy = layers(*shape[:3], scale=2), layers(*shape[:3], scale=2, seed=2)
    dx[7], dy[9] = 300 * dx[7], 0
    which = (dx[:, 0, 0] > 0).astype(int)
    whole = moved(images, dx, dy, which)
    for one in (0, 7, 9, 31, 49):
        part = slice(one, one + 1)
        for batch, alone in zip(whole, moved(images[part], dx[part], dy[part], which[part]), strict=True):
            assert np.array_equal(batch[part], alone)


def test_one_far_place_does_not_change_how_the_others_are_mirrored():
    images = noise(20, 16, 400)
    dx, dy = layers(20, 16, 400, scale=60), np.zeros((20, 16, 400), np.float32)
    expected = ops.displace(images[1:], dx[1:], dy[1:])
    dx[0] = 1e4
    assert np.array_equal(ops.displace(images, dx, dy)[1:], expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_resize_takes_means_and_interpolates(channels):
    images = noise(3, 24, 36, channels)
    means = images.reshape(3, 8, 3, 12, 3, channels).mean(axis=(2, 4))
    assert np.abs(ops.resize(images, 8, 12) - means).max() <= 0.51
    ramp = np.broadcast_to(np.arange(0, 200, 20, dtype=np.uint8)[:, None, None], (2, 10, 10, channels))
    # Pixel centres stay in place: a ramp of 20 levels a pixel becomes one of 5.
    assert np.abs(np.diff(ops.resize(ramp, 40, 40)[:, 2:-2].astype(int), axis=1) - 5).max() <= 1
