"""Noise, rotation and brightness: severities, and levels from off to strongest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import rotate

from testifai import InputError
from testifai.perturb import get, names
from testifai.testing import example_images

IMAGES = example_images(6, (28, 28))
COLOUR = example_images(4, (24, 36, 3))


def test_every_one_has_levels_from_the_first_to_the_last_severity():
    parts = ["brighten", "brightness", "gaussian_noise", "rotation", "rotation_clockwise"]
    assert names("classic") == [f"classic.{one}" for one in parts]
    assert get("classic.darken") is get("classic.brightness")
    for name in names("classic"):
        assert get(name).levels == (get(name).severities[0], get(name).severities[-1])


@pytest.mark.parametrize("name", names("classic"))
@pytest.mark.parametrize("images", [IMAGES, COLOUR], ids=["grey", "colour"])
def test_levels_begin_at_the_image_itself_and_lead_away_from_it(name, images):
    one = get(name)
    off, strongest = one.levels
    assert np.array_equal(one.apply_level(images, off), images)
    shares = np.array([0.001, 0.01, 0.1, 0.3, 0.6, 1])
    changed = [one.apply_level(images, (1 - share) * off + share * strongest, seed=1) for share in shares]
    distances = [np.abs(result - images.astype(int)).mean() for result in changed]
    assert distances[0] < 0.02 * distances[-1]
    assert (np.diff(distances) > 0).all()


@pytest.mark.parametrize("name", names("classic"))
def test_levels_outside_are_refused(name):
    off, strongest = get(name).levels
    low, high = min(off, strongest), max(off, strongest)
    for level in (low - 0.01, high + 0.01, math.nan, "much", None, True):
        with pytest.raises(
            InputError, match=rf"'{name}': level: must be a number, at least {low:g} and at most {high:g}, got"
        ):
            get(name).apply_level(IMAGES, level)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 1.0))
def test_brightness_is_a_factor(factor):
    changed = get("classic.brightness").apply_level(COLOUR, factor)
    assert np.abs(changed - COLOUR * factor).max() <= 0.5001


@settings(max_examples=12, deadline=None)
@given(st.floats(1.0, 10.0))
def test_brighter_is_a_factor_up_to_white(factor):
    changed = get("classic.brighten").apply_level(COLOUR, factor)
    assert np.abs(changed - np.minimum(COLOUR * factor, 255)).max() <= 0.5001


def test_the_two_directions_mirror_each_other():
    """A picture turned clockwise is its mirror image turned anticlockwise; factors are reciprocals."""
    for severity in range(1, 6):
        turned = get("classic.rotation_clockwise").apply(IMAGES, severity)
        mirrored = get("classic.rotation").apply(IMAGES[:, :, ::-1], severity)[:, :, ::-1]
        assert np.abs(turned.astype(int) - mirrored).max() <= 1
    products = np.multiply(get("classic.brighten").severities, get("classic.brightness").severities)
    assert np.allclose(products, 1)


@pytest.mark.parametrize(("severity", "degrees"), [*enumerate([9, 18, 27, 36, 45], start=1)])
def test_rotation_turns_anticlockwise(severity, degrees):
    turned = get("classic.rotation").apply(IMAGES, severity)
    expected = rotate(IMAGES.astype(float), degrees, axes=(1, 2), reshape=False, order=1, mode="grid-constant")
    assert np.abs(turned - expected).max() <= 0.6


@pytest.mark.parametrize(("severity", "sigma"), [*enumerate([0.1, 0.2, 0.3, 0.4, 0.5], start=1)])
def test_noise_is_normal_with_the_given_deviation(severity, sigma):
    grey = np.full((40, 28, 28), 128, np.uint8)
    noise = get("classic.gaussian_noise").apply(grey, severity).astype(float) - 128
    # Quantiles are not touched by the ends of the grey scale.
    for share in (0.25, 0.5, 0.75):
        expected = 255 * sigma * {0.25: -0.6745, 0.5: 0.0, 0.75: 0.6745}[share]
        assert abs(np.quantile(noise, share) - expected) < 1 + 5 * 255 * sigma * 1.4 / math.sqrt(noise.size)
    kept = noise.reshape(40, -1)
    assert np.abs(np.corrcoef(kept) - np.eye(40)).max() < 0.25


def test_noise_has_the_same_draws_at_every_level():
    grey = np.full((3, 28, 28), 128, np.uint8)
    noise = get("classic.gaussian_noise")
    weak, strong = (noise.apply_level(grey, level, seed=8).astype(float) - 128 for level in (0.04, 0.08))
    assert np.abs(strong - 2 * weak).max() <= 1.51
    assert not np.array_equal(noise.apply_level(grey, 0.1, seed=8), noise.apply_level(grey, 0.1, seed=9))
    alone = noise.apply_level(grey[:1], 0.04, seed=8, indices=[2])
    assert np.array_equal(alone[0] - 128.0, weak[2])
