"""Blurs of tensors against those of arrays, and against SciPy, OpenCV and taps one by one."""

from __future__ import annotations

import itertools
import math

import cv2
import numpy as np
import pytest
from scipy import ndimage

from testifai.errors import InputError
from testifai.perturb import ops
from testifai.testing import example_images

torch = pytest.importorskip("torch")

from testifai.perturb import ops_torch  # noqa: E402
from testifai.perturb.ops_torch.filters import _median_network  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)
with_channels = pytest.mark.parametrize("channels", [1, 3])
SIZES = [(32, 32), (17, 26), (70, 66)]
with_sizes = pytest.mark.parametrize("size", SIZES, ids=str)


BLURS = [
    ("gaussian", 1.7),
    ("disc_blur", 2.5, 0.5),
    ("box_blur", 3),
    ("median_blur", 3),
    ("bilateral_blur", 5, 60, 60),
]


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def pictures(height, width, channels):
    """Noise, its smoother self, and strokes on black."""
    rough = noise(4, height, width, channels)
    smooth = ndimage.gaussian_filter(rough.astype(np.float32), (0, 2, 2, 0))
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min()) * 255
    return np.concatenate([rough, smooth.astype(np.uint8), example_images(4, (height, width, channels))])


def close(found, expected, mean=0.05):
    assert found.dtype == torch.uint8
    difference = np.abs(found.cpu().numpy().astype(int) - expected)
    assert difference.max() <= 1
    assert difference.mean() < mean


def blurred(name, images, device, *arguments, **options):
    return getattr(ops_torch, name)(torch.from_numpy(images).to(device), *arguments, **options)


@on_devices
@with_sizes
@with_channels
@pytest.mark.parametrize("sigma", [0.4, 1, 3, 6.0, (0.5, 2)], ids=str)
@pytest.mark.parametrize("border", ["nearest", "mirror"])
def test_gaussian_of_images_is_that_of_scipy_and_of_arrays(device, size, channels, sigma, border):
    images = pictures(*size, channels)
    found = blurred("gaussian", images, device, sigma, border=border)
    down, across = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    mode = "reflect" if border == "mirror" else border
    exact = ndimage.gaussian_filter(images.astype(float), (0, down, across, 0), mode=mode)
    assert np.abs(found.cpu().numpy() - exact).max() < 0.501
    close(found, ops.gaussian(images, sigma, border=border))


@on_devices
@pytest.mark.parametrize(("sigma", "truncate"), [(1.5, 4.0), (4, 3.0), ((40.0, 0.7), 2.0)])
def test_gaussian_of_a_layer_is_that_of_scipy(device, sigma, truncate):
    layers = np.random.default_rng(0).standard_normal((3, 20, 33)).astype(np.float32)
    found = ops_torch.gaussian(torch.from_numpy(layers).to(device), sigma, truncate, border="mirror")
    down, across = sigma if isinstance(sigma, tuple) else (sigma, sigma)
    exact = ndimage.gaussian_filter(layers.astype(float), (0, down, across), mode="reflect", truncate=truncate)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.cpu(), exact, rtol=0, atol=2e-5)


def test_an_unknown_border_is_refused():
    with pytest.raises(InputError, match="border: must be one of nearest, mirror, got 'wrap'"):
        ops_torch.gaussian(torch.zeros((1, 5, 5)), 1.0, border="wrap")


@on_devices
@with_sizes
@pytest.mark.parametrize(("radius", "alias"), [(0.3, 0.4), (0.5, 0.6), (1, 0.2), (1.5, 0.1), (4, 0.5), (10, 0.5)])
def test_disc_blur_is_that_of_arrays(device, size, radius, alias):
    images = pictures(*size, 3)
    close(blurred("disc_blur", images, device, radius, alias), ops.disc_blur(images, radius, alias))


@pytest.mark.parametrize(("radius", "alias"), [(0.5, 0.6), (1.5, 0.1), (6, 0.5), (21, 0.5)])
def test_disc_blur_is_a_convolution_also_where_the_disc_is_wider_than_the_image(radius, alias):
    images = pictures(9, 14, 1)
    reach = math.floor(radius)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    disc = (x * x + y * y <= radius * radius).astype(float)
    soft = np.exp(-0.5 * (np.arange(-2, 3) / alias) ** 2)[slice(None) if radius > 8 else slice(1, -1)]
    padded = np.pad(disc, len(soft) // 2)
    kernel = ndimage.convolve(padded, np.outer(soft, soft) / soft.sum() ** 2, mode="constant") / disc.sum()
    exact = ndimage.convolve(images[..., 0].astype(float), kernel[None], mode="mirror")
    found = blurred("disc_blur", images, "cpu", radius, alias)[..., 0]
    assert np.abs(found.numpy() - exact).max() < 0.51


def test_a_radius_beyond_reason_is_refused():
    for radius in (-1, 1000):
        with pytest.raises(InputError, match=f"radius: must be a number, at least 0 and at most 128, got {radius}"):
            blurred("disc_blur", noise(1, 20, 20, 1), "cpu", radius, 0.5)


@on_devices
@with_channels
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 9])
def test_box_blur_is_that_of_opencv(device, channels, size):
    images = pictures(17, 26, channels)
    close(blurred("box_blur", images, device, size), ops.box_blur(images, size), mean=0.001)


@on_devices
@with_channels
@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_median_blur_is_that_of_opencv(device, channels, size):
    images = pictures(20, 27, channels)
    expected = np.stack([cv2.medianBlur(image, size).reshape(image.shape) for image in images])
    assert np.array_equal(blurred("median_blur", images, device, size).cpu(), expected)


@pytest.mark.parametrize("count", [1, 3, 5, 9])
def test_the_network_finds_the_median_of_all_zeros_and_ones(count):
    """A comparator network that is right for all inputs of zeros and ones is right for all inputs."""
    lanes = np.array(list(itertools.product([0, 1], repeat=count))).T
    expected = np.median(lanes, axis=0)
    for one, other, lower, higher in _median_network(count):
        low, high = np.minimum(lanes[one], lanes[other]), np.maximum(lanes[one], lanes[other])
        # What the network does not keep must not matter.
        lanes[one], lanes[other] = low if lower else -7, high if higher else 7
    assert np.array_equal(lanes[count // 2], expected)


@on_devices
@with_channels
@pytest.mark.parametrize("arguments", [(9, 75, 75), (7, 20, 2)])
def test_bilateral_blur_is_that_of_opencv(device, channels, arguments):
    images = pictures(20, 27, channels)
    close(blurred("bilateral_blur", images, device, *arguments), ops.bilateral_blur(images, *arguments), mean=0.002)


@pytest.mark.parametrize("diameter", [3, 5])
def test_bilateral_blur_with_a_small_disc_is_that_of_opencv(diameter):
    """On colour images: OpenCV 5 rounds down where discs are this small and images grey."""
    images = pictures(20, 27, 3)
    close(blurred("bilateral_blur", images, "cpu", diameter, 60, 2), ops.bilateral_blur(images, diameter, 60, 2), 0.002)


@on_devices
@with_sizes
@with_channels
@pytest.mark.parametrize(("length", "sigma"), [(20, 3), (40, 15), (3.3, 1)])
def test_line_blur_is_that_of_arrays(device, size, channels, length, sigma):
    images = pictures(*size, channels)
    degrees = np.array([-45, -44, -30, -11, -1, 0, 1, 9, 22, 37, 44, 45])
    expected = ops.line_blur(images, degrees, length, sigma)
    close(blurred("line_blur", images, device, torch.from_numpy(degrees).to(device), length, sigma), expected)


@pytest.mark.parametrize("degrees", [-45, -20, 0, 33])
def test_line_blur_equals_taps_one_by_one(degrees):
    images = noise(1, 12, 19, 1, seed=degrees % 7)
    length, sigma = 15, 5
    slope, cosine = math.tan(math.radians(degrees)), math.cos(math.radians(degrees))
    expected = np.zeros((12, 19))
    for y, x in np.ndindex(12, 19):
        total = weights = 0.0
        for tap in range(math.floor(length * cosine + 1e-9) + 1):
            row = y + round((x + tap) * slope) - round(x * slope)
            weight = math.exp(-((tap / cosine) ** 2) / (2 * sigma**2))
            total += weight * images[0, min(max(row, 0), 11), min(x + tap, 18), 0]
            weights += weight
        expected[y, x] = total / weights
    found = blurred("line_blur", images, "cpu", [degrees], length, sigma)
    assert np.abs(found[0, ..., 0].numpy() - expected).max() < 0.6


@pytest.mark.parametrize("level", [0, 1, 255])
def test_constant_images_stay_as_they_are(level):
    images = np.full((2, 18, 21, 3), level, dtype=np.uint8)
    for name, *arguments in BLURS:
        assert (blurred(name, images, "cpu", *arguments) == level).all(), name
    assert (blurred("line_blur", images, "cpu", [-45, 20], 20, 6) == level).all()


@on_devices
def test_results_do_not_depend_on_the_batch_to_the_last_bit(device):
    images = pictures(28, 28, 3)
    degrees = np.random.default_rng(1).integers(-45, 46, len(images))
    whole = [blurred(name, images, device, *arguments) for name, *arguments in BLURS]
    whole.append(blurred("line_blur", images, device, degrees, 30, 8))
    for step in (1, 5):
        parts = [slice(start, start + step) for start in range(0, len(images), step)]
        again = [[blurred(name, images[part], device, *rest) for part in parts] for name, *rest in BLURS]
        again.append([blurred("line_blur", images[part], device, degrees[part], 30, 8) for part in parts])
        assert all(torch.equal(one, torch.cat(other)) for one, other in zip(whole, again, strict=True))
