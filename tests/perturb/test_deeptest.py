"""The suite against OpenCV, with which the published transformations are written (Tian et al. 2018)."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy.ndimage import correlate1d

from testifai.perturb import get, names
from testifai.testing import example_images

COLOUR = np.random.default_rng(0).integers(0, 256, (3, 40, 52, 3)).astype(np.uint8)
PHOTOGRAPHS = np.array([cv2.GaussianBlur(image, (0, 0), 2) for image in COLOUR])


def levels(*table):
    return [*enumerate(table, start=1)]


def test_the_suite_is_whole():
    plain = ["brightness", "contrast", "rotate", "scale", "shear", "translate"]
    blurs = [f"blur_{kind}" for kind in ("average", "bilateral", "gaussian", "median")]
    assert names("deeptest") == sorted(f"deeptest.{name}" for name in plain + blurs)


@pytest.mark.parametrize(("severity", "gain"), levels(1.2, 1.6, 2.1, 2.5, 3.0))
def test_contrast_is_a_gain(severity, gain):
    expected = np.minimum(np.arange(256) * gain, 255)
    ramp = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    assert np.abs(get("deeptest.contrast").apply(ramp, severity).ravel() - expected).max() <= 0.5001
    assert np.array_equal(
        get("deeptest.contrast").apply_level(ramp, gain), get("deeptest.contrast").apply(ramp, severity)
    )


@pytest.mark.parametrize(("severity", "bias"), levels(20, 40, 60, 80, 100))
def test_brightness_is_a_bias_on_every_channel(severity, bias):
    expected = np.minimum(COLOUR.astype(int) + bias, 255)
    assert np.array_equal(get("deeptest.brightness").apply(COLOUR, severity), expected)
    assert np.array_equal(get("deeptest.brightness").apply_level(COLOUR, bias), expected)


@pytest.mark.parametrize(("severity", "pixels"), levels(20, 40, 60, 80, 100))
@pytest.mark.parametrize("size", [(480, 640), (600, 500)])
def test_translate_moves_right_and_down_by_the_published_pixels(severity, pixels, size):
    image = np.zeros((1, *size), np.uint8)
    image[0, 200, 300] = 255
    moved = get("deeptest.translate").apply(image, severity)[0]
    assert np.argwhere(moved).tolist() == [[200 + pixels, 300 + pixels]]
    assert moved[200 + pixels, 300 + pixels] == 255


@pytest.mark.parametrize("size", [(32, 32), (48, 96), (96, 48)])
def test_translate_shrinks_with_images_below_480_rows(size):
    image = np.full((1, *size), 255, np.uint8)
    for severity in range(1, 6):
        moved = get("deeptest.translate").apply(image, severity)[0] / 255
        distance = 20 * severity * min(size) / 480
        assert moved[-1].sum() == pytest.approx(size[1] - distance, abs=0.02)
        assert moved[:, -1].sum() == pytest.approx(size[0] - distance, abs=0.02)


@pytest.mark.parametrize(("severity", "factor"), levels(1.5, 2.6, 3.7, 4.8, 6.0))
def test_scale_enlarges_about_the_centre(severity, factor):
    # A ramp is the ramp about its middle, less steep.
    ramp = np.tile(np.arange(100, 180, dtype=np.uint8), (80, 1))
    for image, axis in ((ramp, 1), (ramp.T, 0)):
        scaled = get("deeptest.scale").apply(image[None], severity)[0].astype(float)
        expected = 139.5 + (np.arange(80) - 39.5) / factor
        assert np.abs(scaled - (expected[None] if axis == 1 else expected[:, None])).max() <= 0.6


@pytest.mark.parametrize(("severity", "factor"), levels(0.2, 0.4, 0.6, 0.8, 1.0))
def test_shear_is_the_published_one(severity, factor):
    for image in PHOTOGRAPHS:
        expected = cv2.warpAffine(image, np.array([[1, -factor, 0], [0, 1, 0]]), (52, 40))
        assert np.abs(get("deeptest.shear").apply(image[None], severity)[0] - expected.astype(int)).max() <= 4


@pytest.mark.parametrize(("severity", "degrees"), levels(6, 12, 18, 24, 30))
def test_rotate_is_the_published_one_about_the_very_centre(severity, degrees):
    for image in PHOTOGRAPHS:
        matrix = cv2.getRotationMatrix2D((25.5, 19.5), degrees, 1)
        expected = cv2.warpAffine(image, matrix, (52, 40))
        assert np.abs(get("deeptest.rotate").apply(image[None], severity)[0] - expected.astype(int)).max() <= 4


@pytest.mark.parametrize(("severity", "size"), levels(3, 4, 5, 6, 7))
def test_blur_average(severity, size):
    expected = np.array([cv2.blur(image, (size, size)) for image in COLOUR])
    assert np.abs(get("deeptest.blur_average").apply(COLOUR, severity) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize(("severity", "size"), levels(3, 5, 7, 9, 11))
def test_blur_gaussian(severity, size):
    weights = cv2.getGaussianKernel(size, 0.3 * ((size - 1) * 0.5 - 1) + 0.8).ravel()
    expected = COLOUR.astype(float)
    for axis in (1, 2):
        expected = correlate1d(expected, weights, axis=axis, mode="nearest")
    assert len(weights) == size
    assert np.abs(get("deeptest.blur_gaussian").apply(COLOUR, severity) - expected).max() <= 0.6


@pytest.mark.parametrize(("severity", "size"), levels(3, 5, 7, 9, 11))
def test_blur_median(severity, size):
    expected = np.array([cv2.medianBlur(image, size) for image in COLOUR])
    assert np.array_equal(get("deeptest.blur_median").apply(COLOUR, severity), expected)


@pytest.mark.parametrize(("severity", "sigma"), levels(25, 50, 75, 100, 150))
def test_blur_bilateral(severity, sigma):
    expected = np.array([cv2.bilateralFilter(image, 9, sigma, sigma) for image in COLOUR])
    assert np.abs(get("deeptest.blur_bilateral").apply(COLOUR, severity) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize("name", names("deeptest"))
def test_nothing_is_left_to_chance(name):
    images = example_images(4, (32, 32, 3))
    for severity in (1, 5):
        one, other = (get(name).apply(images, severity, seed=seed) for seed in (0, 1))
        assert np.array_equal(one, other)


def test_the_strongest_levels_leave_something_of_small_images():
    images = example_images(8, (32, 32, 3), seed=3)
    for name in names("deeptest"):
        assert get(name).apply(images, 5).std(axis=(1, 2, 3)).max() > 5, name
