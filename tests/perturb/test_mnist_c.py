"""The suite against independent statements of the published perturbations (Mu & Gilmer 2019)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from testifai.perturb import get
from testifai.testing import example_images

IMAGES = example_images(40)


def shown(image, linear, move=(0.0, 0.0)):
    """What a map about the centre (13.5, 13.5) from the result to the image shows."""
    y, x = np.indices((28, 28)) - 13.5
    (a, b), (c, d) = linear
    places = [c * x + d * y + 13.5 + move[1], a * x + b * y + 13.5 + move[0]]
    return map_coordinates(image.astype(float), places, order=1, mode="grid-constant")


def assert_every_image_is_one_of(name, severity, variants):
    """Each result equals one of the variants, and every variant occurs."""
    results = get(name).apply(IMAGES, severity)
    seen = set()
    for image, result in zip(IMAGES, results, strict=True):
        errors = [np.abs(result - shown(image, *variant)).max() for variant in variants]
        assert min(errors) <= 0.52
        seen.add(int(np.argmin(errors)))
    assert seen == set(range(len(variants)))


@pytest.mark.parametrize(("severity", "amount"), [*enumerate([0.1, 0.2, 0.3, 0.4, 0.5], start=1)])
def test_brightness(severity, amount):
    expected = np.clip(IMAGES / 255 + amount, 0, 1) * 255
    assert np.abs(get("mnist_c.brightness").apply(IMAGES, severity) - expected).max() <= 0.5001


@pytest.mark.parametrize(("severity", "share"), [*enumerate([0.9, 0.8, 0.7, 0.6, 0.5], start=1)])
def test_zoom(severity, share):
    assert_every_image_is_one_of("mnist_c.zoom", severity, [([[1 / share, 0], [0, 1 / share]],)])


@pytest.mark.parametrize(("severity", "angle"), [*enumerate([0.2, 0.4, 0.6, 0.8, 1.0], start=1)])
def test_shear(severity, angle):
    slants = [([[1, -math.sin(turn)], [0, math.cos(turn)]],) for turn in (angle, -angle)]
    assert_every_image_is_one_of("mnist_c.shear", severity, slants)


@pytest.mark.parametrize(("severity", "angle"), [*enumerate([0.2, 0.4, 0.6, 0.8, 1.0], start=1)])
def test_rotate(severity, angle):
    turns = [([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]],) for t in (angle, -angle)]
    assert_every_image_is_one_of("mnist_c.rotate", severity, turns)


@pytest.mark.parametrize("severity", range(1, 6))
def test_translate(severity):
    moves = [([[1, 0], [0, 1]], (x, y)) for x in (-severity, severity) for y in (-severity, severity)]
    assert_every_image_is_one_of("mnist_c.translate", severity, moves)


def test_pixel_lengths_grow_with_the_image():
    dot = np.zeros((1, 56, 84), np.uint8)
    dot[0, 20, 30] = 255
    moved = np.argwhere(get("mnist_c.translate").apply(dot, 2)[0])
    assert np.abs(moved - [[20, 30]]).tolist() == [[4, 6]]


@pytest.mark.parametrize(
    ("severity", "parameters"), [*enumerate([(10, 3), (15, 5), (15, 8), (15, 12), (20, 15)], start=1)]
)
def test_motion_blur_smears_a_line_of_the_published_length_and_weights(severity, parameters):
    radius, sigma = parameters
    # A vertical edge becomes the running sum of the weights, whose steps are 1 / cos(angle) long.
    edge = np.zeros((30, 28, 80), np.uint8)
    edge[:, :, 60:] = 255
    profiles = get("mnist_c.motion_blur").apply(edge, severity)[:, 14]
    assert (profiles[:, 60:] == 255).all()
    expected = []
    for cosine in np.cos(np.radians(np.arange(46))):
        steps = np.arange(math.floor(2 * radius * cosine + 1e-9) + 1)
        weights = np.exp(-((steps / cosine) ** 2) / (2 * sigma**2))
        expected.append([255 * weights[distance:].sum() / weights.sum() for distance in range(1, 40)])
    seen = profiles[:, 59:20:-1]
    errors = np.abs(seen[:, None] - np.array(expected)).max(axis=-1)
    assert (errors.min(axis=1) < 0.6).all()
    assert len(set(errors.argmin(axis=1).tolist())) > 5


def test_motion_blur_angles_fill_the_range_from_minus_45_to_45_degrees():
    dots = np.zeros((300, 28, 28), np.uint8)
    dots[:, 13, 20] = 255
    blurred = get("mnist_c.motion_blur").apply(dots, 2).astype(float)
    y, x = np.indices((28, 28))
    away = 20.0 - x
    # The dot is seen from pixels to its left, above or below.
    rise = np.degrees(np.arctan2((blurred * (13 - y)).sum((1, 2)), (blurred * away).sum((1, 2))))
    assert -50 < rise.min() < -40
    assert 40 < rise.max() < 50
    assert abs(rise.mean()) < 5 * 26 / math.sqrt(300)


@pytest.mark.parametrize(("severity", "photons"), [*enumerate([60, 25, 12, 5, 3], start=1)])
def test_shot_noise_counts_photons(severity, photons):
    level = 51  # a fifth of white: counts above the number that means white are rare, and known
    noisy = get("mnist_c.shot_noise").apply(np.full((20, 28, 28), level, np.uint8), severity)
    rate = photons * level / 255
    counts = noisy / 255 * photons
    assert np.abs(counts - np.rint(counts)).max() < 0.5 * photons / 255 + 1e-9
    chances = [math.exp(-rate) * rate**k / math.factorial(k) for k in range(photons)]
    chances.append(1 - sum(chances))
    observed = np.bincount(np.rint(counts).astype(int).ravel(), minlength=photons + 1) / counts.size
    tolerance = 5 * np.sqrt(np.maximum(chances, 1e-5) / counts.size)
    assert (np.abs(observed - chances) < tolerance).all()


def test_shot_noise_leaves_black_alone_and_differs_between_inputs():
    assert get("mnist_c.shot_noise").apply(np.zeros((2, 28, 28), np.uint8), 5).max() == 0
    grey = get("mnist_c.shot_noise").apply(np.full((2, 28, 28), 128, np.uint8), 5)
    assert (grey[0] != grey[1]).mean() > 0.5
