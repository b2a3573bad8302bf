"""The twelve conditions: what each may and may not do to an image."""

from __future__ import annotations

from itertools import pairwise
from math import erf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, zoom

from testifai.perturb import get, names
from testifai.testing import check_perturbation

CONDITIONS = [
    "codec_error",
    "darken",
    "decolorization",
    "dirty_lens",
    "exposure",
    "gaussian_blur",
    "haze",
    "lens_blur",
    "noise",
    "rain",
    "shadow",
    "snow",
]
SEVERITIES = range(1, 6)


def photographs(count, form=(32, 32, 3), seed=0):
    """Smooth colours with some detail, from dark to light."""
    rng = np.random.default_rng(seed)
    height, width = form[:2]
    channels = form[2] if len(form) == 3 else 1
    coarse = zoom(rng.uniform(0, 255, (count, 5, 5, channels)), (1, height / 5, width / 5, 1), order=1)
    fine = 40 * gaussian_filter(rng.standard_normal((count, height, width, channels)), (0, 0.7, 0.7, 0))
    return np.clip(coarse + fine, 0, 255).astype(np.uint8).reshape(count, *form)


def changed(condition, images, severity):
    return get(f"cure.{condition}").apply(images, severity)


def difference(condition, images, severity):
    return changed(condition, images, severity).astype(int) - images


PHOTOGRAPHS = photographs(60)


def test_the_suite_has_the_twelve_published_conditions_at_five_levels():
    assert names("cure") == [f"cure.{condition}" for condition in CONDITIONS]
    for name in names("cure"):
        assert len(get(name).severities) == 6
        assert get(name).summary.endswith(".")
        assert not get(name).moves


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_higher_level_is_further_from_the_original(condition):
    distances = [np.abs(difference(condition, PHOTOGRAPHS, severity)).mean() for severity in SEVERITIES]
    assert all(later > 1.02 * earlier for earlier, later in pairwise([0.5, *distances]))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("form", [(16, 16), (17, 40, 1), (40, 50, 3)])
def test_contract(condition, form):
    check_perturbation(f"cure.{condition}", photographs(3, form), growing=False)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_image_comes_out_the_same_in_any_batch(condition):
    whole = changed(condition, PHOTOGRAPHS, 4)
    parts = [
        get(f"cure.{condition}").apply(PHOTOGRAPHS[start : start + 7], 4, indices=np.arange(60)[start : start + 7])
        for start in range(0, 60, 7)
    ]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("condition", sorted({*CONDITIONS} - {"codec_error"}))
def test_grey_in_three_channels_stays_grey_unless_channels_have_noise_of_their_own(condition):
    grey = np.repeat(photographs(4, (32, 32, 1)), 3, axis=-1)
    spread = np.ptp(changed(condition, grey, 3).astype(int), axis=-1)
    assert (spread.max() > 0) == (condition == "noise")


@pytest.mark.parametrize("condition", sorted({*CONDITIONS} - {"codec_error", "noise"}))
def test_three_equal_channels_come_out_as_one_would(condition):
    grey = photographs(4, (24, 40, 1))
    three = changed(condition, np.repeat(grey, 3, axis=-1), 2)
    assert np.abs(three - changed(condition, grey, 2).astype(int)).max() <= 1


@given(st.integers(0, 2**32 - 1), st.sampled_from(SEVERITIES))
@settings(max_examples=8, deadline=None)
def test_some_conditions_only_darken_and_some_only_brighten(seed, severity):
    images = photographs(2, (20, 24, 3), seed)
    for condition in ("darken", "shadow"):
        assert (difference(condition, images, severity) <= 0).all()
    for condition in ("exposure", "rain", "snow"):
        assert (difference(condition, images, severity) >= 0).all()


def test_decolorization_keeps_the_luma_and_ends_in_grey():
    weights = [0.299, 0.587, 0.114]
    for severity in SEVERITIES:
        result = changed("decolorization", PHOTOGRAPHS, severity)
        assert np.abs(result @ weights - PHOTOGRAPHS @ weights).max() < 0.51
    assert (np.ptp(result, axis=-1) == 0).all()
    grey = photographs(3, (32, 32))
    assert np.array_equal(changed("decolorization", grey, 3), grey)


@pytest.mark.parametrize(("condition", "factors"), [("darken", (0.75, 0.17)), ("exposure", (1.4, 6.0))])
def test_light_is_multiplied(condition, factors):
    for severity, factor in zip((1, 5), factors, strict=True):
        expected = np.minimum(PHOTOGRAPHS * factor, 255)
        assert np.abs(changed(condition, PHOTOGRAPHS, severity) - expected).max() < 0.51


def test_haze_takes_contrast_and_is_denser_at_the_top():
    for severity in SEVERITIES:
        hazy = changed("haze", PHOTOGRAPHS, severity).astype(float)
        assert (hazy.std(axis=(1, 2, 3)) < PHOTOGRAPHS.std(axis=(1, 2, 3))).all()
    black = changed("haze", np.zeros((20, 32, 32), np.uint8), 3)
    assert black[:, :8].mean() > 1.1 * black[:, -8:].mean()
    assert black.max() < 0.6 * 215 + 1


def test_noise_is_normal_with_the_documented_standard_deviation():
    grey = np.full((20, 32, 32, 3), 128, np.uint8)
    for severity, sigma in ((1, 12), (3, 35)):
        noise = difference("noise", grey, severity)
        count = noise.size
        assert abs(noise.mean()) < 5 * sigma / count**0.5
        assert abs(noise.std() / sigma - 1) < 0.02
        assert abs((np.abs(noise) < sigma).mean() - erf((1 - 0.5 / sigma) / 2**0.5)) < 0.02
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.04


@pytest.mark.parametrize("condition", ["gaussian_blur", "lens_blur"])
def test_blurs_smooth_and_keep_plain_areas(condition):
    steps = [
        np.abs(np.diff(changed(condition, PHOTOGRAPHS, severity).astype(int), axis=2)).mean() for severity in range(6)
    ]
    assert all(later < earlier for earlier, later in pairwise(steps))
    plain = np.full((2, 32, 32, 3), 77, np.uint8)
    assert np.abs(difference(condition, plain, 5)).max() <= 1


def test_codec_error_shows_parts_of_the_image_in_blocks():
    plain = np.full((3, 32, 32), 90, np.uint8)
    assert np.abs(difference("codec_error", plain, 5)).max() <= 3
    # A slope comes through the compression nearly unchanged, so that a block's move can be read off.
    slope = np.tile(np.arange(64, 192, 4, dtype=np.uint8), (200, 32, 1))
    moves = difference("codec_error", slope, 1)[:, 4::8, 12:20:4] / 4
    broken = np.abs(moves) > 0.9
    assert 0.03 < broken.mean() < 0.12  # a tenth of the blocks, of which one in five moves up or down only
    assert np.abs(moves).max() < 2.6


def test_rain_falls_in_streaks_that_are_longer_than_wide():
    rain = changed("rain", np.zeros((40, 48, 48), np.uint8), 2).astype(float)
    rain -= rain.mean()
    upright, across = (np.mean(rain * np.roll(rain, 2, axis)) for axis in (1, 2))
    assert upright > 2 * across
    covered = [(changed("rain", np.zeros((40, 32, 32), np.uint8), severity) > 0).mean() for severity in SEVERITIES]
    assert all(later > 1.2 * earlier for earlier, later in pairwise(covered))
    assert covered[-1] < 0.7


def test_shadow_has_a_lit_and_a_dark_part_and_a_soft_edge():
    white = np.full((200, 40, 56), 255, np.uint8)
    shade = changed("shadow", white, 5)
    dark, lit = shade == round(255 * 0.1), shade == 255
    assert (dark.any(axis=(1, 2))).all()
    assert lit.any(axis=(1, 2)).mean() > 0.9
    assert 0.02 < 1 - dark.mean() - lit.mean() < 0.2
    assert np.abs(np.diff(shade.astype(int), axis=2)).max() < 120
    # All directions occur: the mean over many images has no direction.
    assert np.ptp(shade.mean(axis=(0, 2))) < 60


def test_snowflakes_are_white_and_differ_in_size():
    snow = changed("snow", np.zeros((40, 64, 64), np.uint8), 1)
    assert snow.min() == round(255 * 0.05)
    assert snow.max() == 255
    # The largest flakes are about 6 pixels wide at this size, the smallest 3.
    bright = snow > 128
    inner = bright & np.roll(bright, 1, 1) & np.roll(bright, -1, 1) & np.roll(bright, 1, 2) & np.roll(bright, -1, 2)
    assert 0.01 < bright.mean() < 0.2
    assert 0 < inner.mean() < 0.5 * bright.mean()


def test_dirt_covers_more_with_each_level_and_leaves_the_rest_alone():
    white = np.full((60, 32, 32), 255, np.uint8)
    covered = []
    for severity in SEVERITIES:
        dirty = changed("dirty_lens", white, severity)
        assert (dirty == 255).any()
        assert (dirty < 200).any(axis=(1, 2)).all()
        covered.append((dirty < 255).mean())
    assert all(later > 1.1 * earlier for earlier, later in pairwise(covered))


@pytest.mark.parametrize("condition", ["gaussian_blur", "lens_blur", "rain", "shadow", "haze", "dirty_lens"])
def test_larger_images_are_changed_about_as_much(condition):
    small = photographs(12)
    large = small.repeat(3, axis=1).repeat(3, axis=2)
    distances = [np.abs(difference(condition, images, 3)).mean() for images in (small, large)]
    assert 0.6 < distances[1] / distances[0] < 1.6
