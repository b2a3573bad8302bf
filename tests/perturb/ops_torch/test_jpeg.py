"""JPEG compression of tensors against libjpeg, through OpenCV, and against that of arrays."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from testifai.perturb import ops
from testifai.testing import example_images

torch = pytest.importorskip("torch")

from testifai.perturb import ops_torch  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)


def pictures(height, width, channels):
    """Coloured slopes with strokes on them, and some noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[: 1 : height * 1j, : 1 : width * 1j][..., None]
    start, right, down = rng.uniform(0, 110, (3, 6, 1, 1, channels))
    strokes = example_images(6, (height, width, channels)) * 0.4
    return np.clip(start + right * x + down * y + strokes + rng.normal(0, 4, strokes.shape), 0, 255).astype(np.uint8)


def stored(image, quality):
    """One image, written and read by libjpeg."""
    colour = image.shape[2] == 3
    _, code = cv2.imencode(".jpg", image[..., ::-1] if colour else image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(code, cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE)
    return decoded[..., ::-1] if colour else decoded[..., None]


@on_devices
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(32, 32), (28, 28), (29, 21), (17, 50), (96, 80)], ids=str)
@pytest.mark.parametrize("quality", [95, 80, 50, 25, 7])
def test_jpeg_is_close_to_libjpeg_and_to_that_of_arrays(device, channels, size, quality):
    images = pictures(*size, channels)
    found = ops_torch.jpeg(torch.from_numpy(images).to(device), quality).cpu().numpy()
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous
    expected = np.stack([stored(image, quality) for image in images])
    assert np.abs(found.astype(int) - expected).mean() < 0.25
    assert np.abs(found.astype(int) - ops.jpeg(images, quality)).mean() < 1


@pytest.mark.parametrize("quality", [90, 40, 10])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_one_colour_come_out_as_from_libjpeg(channels, quality):
    levels = np.random.default_rng(1).integers(0, 256, (200, 1, 1, channels)).astype(np.uint8)
    images = np.broadcast_to(levels, (200, 20, 20, channels)).copy()
    found = ops_torch.jpeg(torch.from_numpy(images), quality).numpy()
    assert np.array_equal(found, np.stack([stored(image, quality) for image in images]))


@on_devices
def test_results_do_not_depend_on_the_batch_to_the_last_bit(device):
    images = torch.from_numpy(np.concatenate([pictures(30, 28, 3)] * 4)).to(device)
    whole = ops_torch.jpeg(images, 30)
    for step in (1, 7):
        again = [ops_torch.jpeg(images[start : start + step], 30) for start in range(0, len(images), step)]
        assert torch.equal(torch.cat(again), whole)
