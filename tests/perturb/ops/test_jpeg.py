"""JPEG compression of small images against the real thing."""

from __future__ import annotations

import importlib

import cv2
import numpy as np
import pytest
from scipy.fft import dctn

from testifai.errors import InputError
from testifai.perturb import ops
from testifai.testing import example_images

# Its name in the package is that of the function.
module = importlib.import_module("testifai.perturb.ops.jpeg")


def photographs(count, height, width, channels=3):
    """Smooth colourful pictures with some noise, as photographs have it."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, 5, 5, 3)).astype(np.uint8)
    smooth = np.stack([cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC) for image in coarse])
    noisy = np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255)
    return noisy.astype(np.uint8)[..., :channels]


def stored_by_opencv(image, quality):
    _, code = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return cv2.imdecode(code, cv2.IMREAD_UNCHANGED).reshape(image.shape)[..., ::-1]


@pytest.mark.parametrize("quality", [7, 10, 18, 25, 50, 80])
@pytest.mark.parametrize("size", [(16, 16), (32, 32), (28, 28), (17, 23), (64, 48), (5, 9)])
@pytest.mark.parametrize("channels", [1, 3])
def test_small_images_come_out_as_from_libjpeg(quality, size, channels):
    images = photographs(20, *size, channels)
    expected = np.stack([stored_by_opencv(image, quality) for image in images]).astype(int)
    difference = np.abs(ops.jpeg(images, quality) - expected)
    # A frequency that lies between two steps may be rounded either way.
    assert difference.mean() < min(1, 0.25 * np.abs(images - expected).mean())
    assert (difference > 8).mean() < 0.03


def test_large_images_are_really_stored():
    for channels in (1, 3):
        images = photographs(2, 70, 90, channels)
        expected = np.stack([stored_by_opencv(image, 25) for image in images])
        assert np.array_equal(ops.jpeg(images, 25), expected)


@pytest.mark.parametrize("channels", [1, 3])
def test_both_ways_agree(monkeypatch, channels):
    images = example_images(5, (28, 30, 3))[..., :channels]
    small = ops.jpeg(images, 25).astype(int)
    monkeypatch.setattr(module, "SMALL", 0)
    assert np.abs(small - ops.jpeg(images, 25)).mean() < 1


def test_frequencies_of_grey_blocks_are_multiples_of_the_steps():
    # The first steps of the standard table at quality 50, as they are, and doubled at 25.
    blocks = ops.jpeg(photographs(30, 8, 8, 1) // 2 + 64, 25)[..., 0].astype(float) - 128
    frequencies = dctn(blocks, axes=(1, 2), norm="ortho")
    for (row, column), step in {(0, 0): 32, (0, 1): 22, (1, 0): 24, (2, 2): 32}.items():
        steps = frequencies[:, row, column] / step
        # Pixels are rounded once more.
        assert np.abs(steps - np.rint(steps)).max() < 1.5 / step


def test_a_flat_image_of_middle_grey_is_kept():
    for channels in (1, 3):
        flat = np.full((2, 20, 20, channels), 128, np.uint8)
        assert np.array_equal(ops.jpeg(flat, 10), flat)


def test_images_may_come_without_channels_and_out_of_order_in_memory():
    images = photographs(3, 28, 28, 1)
    assert np.array_equal(ops.jpeg(images[..., 0], 20), ops.jpeg(np.ascontiguousarray(images), 20)[..., 0])


@pytest.mark.parametrize("quality", [7, 25, 80])
def test_results_do_not_depend_on_the_batch_to_the_last_bit(quality):
    images = np.random.default_rng(0).integers(0, 256, (50, 28, 37, 3)).astype(np.uint8)
    images.flags.writeable = False
    for batch in (images, images[..., :1]):
        together = ops.jpeg(batch, quality)
        for place in (0, 17, 49):
            assert np.array_equal(ops.jpeg(batch[place : place + 1], quality), together[place : place + 1])


def test_an_impossible_quality_is_refused():
    with pytest.raises(InputError, match="quality: must be a number, at least 1 and at most 100, got 0"):
        ops.jpeg(photographs(1, 16, 16), 0)
