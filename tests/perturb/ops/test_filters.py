"""Blurs against brute force, SciPy and OpenCV."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import convolve, gaussian_filter

from testifai.errors import InputError
from testifai.perturb import ops
from testifai.perturb.ops import filters
from testifai.testing import example_images

MODES = {"nearest": "nearest", "mirror": "reflect"}


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


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


@given(
    st.tuples(st.floats(0, 12), st.floats(0, 12)),
    st.sampled_from([2.0, 3.0, 4.0]),
    st.sampled_from(["nearest", "mirror"]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=16, deadline=None)
def test_gaussian_equals_scipy(sigmas, truncate, border, channels):
    images = noise(2, 17, 23, channels)
    expected = gaussian_filter(images.astype(float), (0, *sigmas, 0), truncate=truncate, mode=MODES[border])
    # Half a level for rounding, and a little where sums are made exact.
    assert np.abs(ops.gaussian(images, sigmas, truncate, border) - expected).max() < 0.65
    layers = images[..., 0].astype(np.float32)
    blurred = ops.gaussian(layers, sigmas, truncate, border)
    assert blurred.dtype == np.float32
    assert np.abs(blurred - expected[..., 0]).max() < 1e-3


@pytest.mark.parametrize("border", ["nearest", "mirror"])
@pytest.mark.parametrize("sigma", [0.7, 3, 30])
def test_gaussian_of_large_images_equals_scipy(sigma, border):
    images = noise(2, 70, 91, 3)
    expected = gaussian_filter(images.astype(float), (0, sigma, sigma, 0), mode=MODES[border])
    assert np.abs(ops.gaussian(images, sigma, border=border) - expected).max() < 0.501
    layers = images[..., 0].astype(np.float32)
    assert np.abs(ops.gaussian(layers, sigma, border=border) - expected[..., 0]).max() < 1e-3


def test_gaussian_keeps_a_constant_image():
    for level in (1, 128, 255):
        flat = np.full((2, 16, 20, 3), level, np.uint8)
        assert np.array_equal(ops.gaussian(flat, 2.3), flat)


def test_gaussian_refuses_an_unknown_border():
    with pytest.raises(InputError, match="border: must be one of nearest, mirror, got 'wrap'"):
        ops.gaussian(noise(1, 16, 16, 1), 1, border="wrap")


def blurred_by_a_disc(image, radius, alias_blur):
    """A kernel in the open and a convolution over it, one channel at a time."""
    reach, rim = math.floor(radius), 2 if radius > 8 else 1
    y, x = np.indices((2 * reach + 1, 2 * reach + 1)) - reach
    disc = (x**2 + y**2 <= radius**2).astype(float)
    taps = np.exp(-0.5 * (np.arange(-rim, rim + 1) / alias_blur) ** 2)
    kernel = convolve(np.pad(disc / disc.sum(), rim), np.outer(taps, taps) / taps.sum() ** 2, mode="constant")
    return np.stack([convolve(plane, kernel, mode="mirror") for plane in image.transpose(2, 0, 1).astype(float)], -1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("radius", "alias_blur"), [(0.3, 0.4), (1, 0.2), (1.5, 0.1), (3, 0.1), (6, 0.5), (8, 0.5), (10, 0.5), (17, 1)]
)
def test_disc_blur_is_a_convolution(radius, alias_blur, channels):
    # The largest disc is wider than the image.
    images = noise(3, 21, 16, channels)
    blurred = ops.disc_blur(images, radius, alias_blur)
    for image, result in zip(images, blurred, strict=True):
        assert np.abs(result - blurred_by_a_disc(image, radius, alias_blur)).max() < 0.501


@pytest.mark.parametrize(("radius", "alias_blur"), [(0.5, 0.6), (1, 0.2), (3, 0.1), (6, 0.5)])
def test_disc_blur_of_a_large_image_equals_the_published_kernel(radius, alias_blur):
    # The kernel of the ImageNet-C code; for radii that fill its frame, that one weighs its rim too much.
    y, x = np.indices((17, 17)) - 8
    disc = (x**2 + y**2 <= radius**2).astype(np.float32)
    kernel = cv2.GaussianBlur(disc / disc.sum(), (3, 3), alias_blur)
    image = noise(1, 80, 70, 3)
    expected = cv2.filter2D(image[0].astype(np.float32), -1, kernel)
    assert np.abs(ops.disc_blur(image, radius, alias_blur)[0] - expected).max() < 0.51


def test_disc_blur_keeps_a_constant_image():
    for radius in (0.4, 7, 40, 128):
        white = np.full((1, 20, 16, 1), 255, np.uint8)
        assert np.array_equal(ops.disc_blur(white, radius, 0.5), white)


@pytest.mark.parametrize("radius", [-1, 129])
def test_disc_blur_refuses_an_impossible_radius(radius):
    with pytest.raises(InputError, match=f"radius: must be a number, at least 0 and at most 128, got {radius}"):
        ops.disc_blur(noise(1, 16, 16, 1), radius, 0.5)


def windows(image, size, mode):
    reach = size // 2
    padded = np.pad(image, reach, mode=mode)
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size))


@pytest.mark.parametrize("size", [3, 5, 7])
def test_box_and_median_blur_are_mean_and_median_of_windows(size):
    images = noise(2, 16, 19, 3)
    for change, statistic, mode in [(ops.box_blur, np.mean, "reflect"), (ops.median_blur, np.median, "edge")]:
        for colour, grey in [(change(images, size), False), (change(images[..., :1], size), True)]:
            assert colour.shape == (images[..., :1] if grey else images).shape
            expected = statistic(windows(images[1, :, :, 0], size, mode), axis=(2, 3))
            assert np.abs(colour[1, :, :, 0] - expected).max() <= 0.5


def test_bilateral_blur_is_a_mean_weighted_by_place_and_colour():
    image = noise(16, 18, 1) // 4 + 90
    padded = np.pad(image[..., 0], 4, mode="reflect").astype(float)
    total, weight_sum = np.zeros((16, 18)), np.zeros((16, 18))
    for dy in range(-4, 5):
        for dx in range(-4, 5):
            if dx * dx + dy * dy > 16:
                continue
            other = padded[4 + dy : 20 + dy, 4 + dx : 22 + dx]
            near = math.exp(-(dx * dx + dy * dy) / (2 * 5.0**2))
            weight = near * np.exp(-((other - image[..., 0]) ** 2) / (2 * 30.0**2))
            total += weight * other
            weight_sum += weight
    result = ops.bilateral_blur(image[None], 9, 30, 5)[0, :, :, 0]
    assert np.abs(result - total / weight_sum).max() < 0.6


@pytest.mark.parametrize("channels", [1, 3])
def test_both_ways_to_blur_agree(monkeypatch, channels):
    images = example_images(5, (28, 30, 3))[..., :channels]
    degrees = [-45, -10, 0, 33, 45]

    def both():
        return ops.line_blur(images, degrees, 30, 8), ops.gaussian(images, 1.5)

    small = both()
    monkeypatch.setattr(filters, "SMALL", 0)
    for one, other, most in zip(small, both(), (8, 1), strict=True):
        difference = np.abs(one.astype(int) - other)
        assert difference.mean() < 0.5
        assert difference.max() <= most


def test_images_may_come_without_channels_and_out_of_order_in_memory():
    images = noise(3, 16, 20, 3)[:, :, ::-1]
    for blur in (lambda x: ops.gaussian(x, 1.3), lambda x: ops.disc_blur(x, 2, 0.5), lambda x: ops.box_blur(x, 3)):
        assert np.array_equal(blur(images), blur(np.ascontiguousarray(images)))
        assert np.array_equal(blur(np.ascontiguousarray(images[..., 0])), blur(images[..., :1])[..., 0])


def test_line_blur_does_not_depend_on_the_batch_to_the_last_bit():
    images = noise(301, 28, 28)
    degrees = np.random.default_rng(1).integers(-45, 46, 301)
    blurred = ops.line_blur(images, degrees, 30, 8)
    for step in (1, 7, 100):
        parts = [slice(start, start + step) for start in range(0, 301, step)]
        again = [ops.line_blur(images[part], degrees[part], 30, 8) for part in parts]
        assert np.array_equal(np.concatenate(again), blurred)


@pytest.mark.parametrize("size", [(19, 23), (66, 70)])
@pytest.mark.parametrize(
    "blur",
    [
        lambda images: ops.gaussian(images, 1.2),
        lambda images: ops.gaussian(images, (9, 4.4), border="mirror"),
        lambda images: ops.gaussian(images[..., 1] * np.float32(0.37), 2.1),
        lambda images: ops.gaussian(images[..., 1] * np.float32(0.37), 25.0),
        lambda images: ops.disc_blur(images, 1.5, 0.1),
        lambda images: ops.disc_blur(images, 10, 0.5),
        lambda images: ops.box_blur(images, 5),
        lambda images: ops.median_blur(images, 5),
        lambda images: ops.bilateral_blur(images, 5, 75, 75),
    ],
)
def test_results_do_not_depend_on_the_batch_to_the_last_bit(blur, size):
    images = noise(50, *size, 3)
    images.flags.writeable = False
    together = blur(images)
    for place in (0, 17, 49):
        assert np.array_equal(blur(images[place : place + 1]), together[place : place + 1])
    assert np.array_equal(blur(images[10:17]), together[10:17])
