"""Movements of tensors against SciPy, against Pillow's rules by hand and against the same operation on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from testifai.perturb import ops

torch = pytest.importorskip("torch")

from testifai.perturb.ops_torch import geometry  # noqa: E402


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def smooth(*shape):
    """Waves of a few pixels: what photographs are like between neighbouring pixels."""
    count, height, width, channels = shape
    n, y, x, c = np.ogrid[:count, :height, :width, :channels]
    return np.rint(127 + 120 * np.sin(0.3 * x + n) * np.cos(0.2 * y - c + 0.1 * x)).astype(np.uint8)


def turned(height, width, angle=0.4, factor=1.2):
    cosine, sine = factor * np.cos(angle), factor * np.sin(angle)
    return ops.about_centre([[cosine, -sine], [sine, cosine]], height, width)


def sampled(image, matrix, mode, cval=0):
    """Bilinear sampling by SciPy."""
    y, x = np.indices(image.shape)
    place_x, place_y = (row[0] * x + row[1] * y + row[2] for row in np.asarray(matrix))
    return map_coordinates(image.astype(float), [place_y, place_x], order=1, mode=mode, cval=cval)


@given(
    st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    st.lists(st.floats(-20, 20), min_size=2, max_size=2),
    st.sampled_from([0, 255, 90]),
)
@settings(max_examples=24, deadline=None)
def test_warp_is_bilinear_to_within_rounding(linear, move, border):
    images = noise(2, 17, 23, 1)
    matrix = np.column_stack([np.reshape(linear, (2, 2)), move])
    warped = geometry.warp(torch.from_numpy(images), matrix, border=border).numpy()
    for image, result in zip(images[..., 0], warped[..., 0], strict=True):
        assert np.abs(result - sampled(image, matrix, "grid-constant", border)).max() <= 0.52


@pytest.mark.parametrize("shape", [(5, 32, 32, 3), (5, 28, 40, 1), (5, 80, 96, 3)])
@pytest.mark.parametrize("border", [0, 77, 255])
def test_warp_equals_that_of_arrays(shape, border):
    images = smooth(*shape)
    matrices = [turned(*shape[1:3]), [[1, 0, 2], [0, 1, -3]], turned(*shape[1:3], -0.7, 0.6)]
    which = np.array([0, 2, 1, 1, 0])
    expected = ops.warp(images, matrices, which, border=border)
    result = geometry.warp(torch.from_numpy(images), matrices, torch.from_numpy(which), border=border).numpy()
    difference = np.abs(expected.astype(int) - result)
    assert difference.max() <= 1
    assert difference.mean() < 0.05


@pytest.mark.parametrize("shape", [(3, 32, 32, 3), (3, 28, 40, 1)])
def test_mean_of_warps_is_the_mean_of_scipys(shape):
    images = smooth(*shape)
    matrices = [turned(*shape[1:3], angle, factor) for angle, factor in [(0, 1), (0, 0.9), (0.2, 1.3), (0, 1.1)]]
    result = geometry.mean_of_warps(torch.from_numpy(images), matrices).numpy()
    planes = np.moveaxis(images, 3, 1).reshape(-1, *shape[1:3])
    expected = [np.mean([sampled(plane, matrix, "nearest") for matrix in matrices], axis=0) for plane in planes]
    shown = np.moveaxis(result, 3, 1).reshape(-1, *shape[1:3])
    assert np.abs(shown - expected).max() <= 0.51


@pytest.mark.parametrize("shape", [(3, 32, 32, 3), (3, 80, 96, 3)])
def test_mean_of_warps_equals_that_of_arrays(shape):
    images = smooth(*shape)
    matrices = [ops.about_centre(np.eye(2) / zoom, *shape[1:3]) for zoom in np.arange(1, 1.2, 0.03)]
    expected = ops.mean_of_warps(images, matrices)
    difference = np.abs(expected.astype(int) - geometry.mean_of_warps(torch.from_numpy(images), matrices).numpy())
    assert difference.max() <= 1
    assert difference.mean() < 0.05


@pytest.mark.parametrize("reach", [0.0, 2.0, 100.0])
@pytest.mark.parametrize("channels", [1, 3])
def test_displace_is_bilinear_in_the_mirrored_image(reach, channels):
    images = noise(3, 19, 24, channels)
    dx, dy = np.random.default_rng(1).uniform(-reach, reach, (2, 3, 19, 24)).astype(np.float32)
    result = geometry.displace(torch.from_numpy(images), torch.from_numpy(dx), torch.from_numpy(dy)).numpy()
    y, x = np.indices((19, 24))
    for number in range(3):
        places = [y + dy[number], x + dx[number]]
        for channel in range(channels):
            plane = images[number, ..., channel].astype(float)
            expected = map_coordinates(plane, places, order=1, mode="reflect")
            # Far away, a place in float32 is known to about 10⁻⁵ pixels only.
            assert np.abs(result[number, ..., channel] - expected).max() <= 0.51


def test_displace_takes_layers_that_are_the_same_for_all():
    images = torch.from_numpy(smooth(3, 16, 20, 3))
    x, y = geometry.grid(images, 16, 20)
    # x shown from 19 - x: the image from right to left.
    assert torch.equal(geometry.displace(images, 19 - 2 * x, 0 * y), images.flip(2))


def test_grid_numbers_the_pixels():
    x, y = geometry.grid(torch.zeros(1), 3, 5)
    assert (x.shape, y.shape, x.dtype) == ((1, 1, 5), (1, 3, 1), torch.float32)
    assert torch.equal(x.flatten(), torch.arange(5.0))
    assert torch.equal(y.flatten(), torch.arange(3.0))


@given(
    st.lists(st.floats(-3, 20), min_size=1, max_size=9),
    st.lists(st.floats(-3, 20), min_size=1, max_size=9),
)
@settings(max_examples=16, deadline=None)
def test_resample_is_bilinear_and_stays_inside(rows, columns):
    layer = np.random.default_rng(0).normal(size=(2, 11, 14)).astype(np.float32)
    result = geometry.resample(torch.from_numpy(layer), np.array(rows), np.array(columns)).numpy()
    assert result.dtype == np.float32
    places = np.meshgrid(rows, columns, indexing="ij")
    for one, image in zip(result, layer, strict=True):
        expected = map_coordinates(image, places, order=1, mode="nearest")
        assert np.abs(one - expected).max() < 1e-5


def pixelated_by_hand(image, rows, columns):
    """Pillow's boxes, one at a time."""
    height, width = image.shape[:2]
    result = np.empty(image.shape)
    for y in range(height):
        for x in range(width):
            row, column = int((y + 0.5) * rows / height), int((x + 0.5) * columns / width)
            (top, bottom), (left, right) = (
                (int(at * size / count + 0.5), int((at + 1) * size / count + 0.5))
                for at, size, count in [(row, height, rows), (column, width, columns)]
            )
            result[y, x] = image[top:bottom, left:right].mean(axis=(0, 1))
    return result


@pytest.mark.parametrize(("rows", "columns"), [(12, 10), (19, 23), (24, 30), (1, 1), (5, 30), (23, 7)])
@pytest.mark.parametrize("channels", [1, 3])
def test_pixelate_shows_the_means_of_boxes(rows, columns, channels):
    images = noise(2, 24, 30, channels)
    result = geometry.pixelate(torch.from_numpy(images), rows, columns).numpy()
    for image, one in zip(images, result, strict=True):
        assert np.abs(one - pixelated_by_hand(image, rows, columns)).max() <= 0.5


def test_pixelate_equals_that_of_arrays_also_where_boxes_meet_within_a_pixel():
    images = noise(2, 24, 30, 3)
    for boxes in range(1, 25):
        result = geometry.pixelate(torch.from_numpy(images), boxes, boxes).numpy()
        assert np.array_equal(result, ops.pixelate(images, boxes, boxes))


def test_one_box_for_a_large_image_does_not_overflow():
    images = torch.full((1, 1024, 1024, 1), 255, dtype=torch.uint8)
    assert torch.equal(geometry.pixelate(images, 1, 1), images)


def test_results_do_not_depend_on_the_batch_to_the_last_bit():
    images = torch.from_numpy(noise(37, 20, 22, 3))
    dx, dy = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 37, 20, 22)).astype(np.float32) * 3)
    which = torch.arange(37) % 2
    matrices = [turned(20, 22), turned(20, 22, -0.4)]
    layer = images[..., 0].float() / 7
    rows, columns = np.linspace(0, 19, 33), np.linspace(0, 21, 27)

    def results(part):
        return [
            geometry.warp(images[part], matrices, which[part]),
            geometry.mean_of_warps(images[part], matrices),
            geometry.displace(images[part], dx[part], dy[part]),
            geometry.resample(layer[part], rows, columns),
            geometry.pixelate(images[part], 9, 13),
        ]

    whole = results(slice(None))
    for step in (1, 5, 16):
        parts = [results(slice(start, start + step)) for start in range(0, 37, step)]
        for one, others in zip(whole, zip(*parts, strict=True), strict=True):
            assert torch.equal(torch.cat(others), one)


def test_results_are_contiguous_and_arguments_stay():
    images = torch.from_numpy(noise(4, 18, 18, 3))[:, ::2, 1:].transpose(1, 2)
    before = images.clone()
    matrices = [turned(17, 9), turned(17, 9, 0.1)]
    shift = torch.full((1, 1, 1), 0.5)
    for result in (
        geometry.warp(images, matrices, torch.tensor([0, 1, 0, 1])),
        geometry.mean_of_warps(images, matrices),
        geometry.displace(images, shift, shift),
        geometry.pixelate(images, 4, 4),
    ):
        assert result.is_contiguous()
        assert (result.shape, result.dtype) == (images.shape, torch.uint8)
        assert torch.equal(images, before)


@pytest.mark.parametrize("size", [(20, 31), (40, 62), (90, 100)])
def test_resize_equals_that_of_arrays(size):
    images = smooth(3, 40, 62, 3)
    result = geometry.resize(torch.from_numpy(images), *size).numpy()
    assert np.abs(result.astype(int) - ops.resize(images, *size)).max() <= 1
