"""The suite against independent statements of the published corruptions (Hendrycks & Dietterich 2019)."""

from __future__ import annotations

import colorsys
import math
import runpy
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy import ndimage, stats

from testifai.perturb import get, names
from testifai.perturb.textures import frost

# Pieces of two photographs, 32×32.
_PHOTOS = runpy.run_path(str(Path(__file__).parent / "reference" / "record.py"))["sheet_rows"]()[0]
IMAGES = np.concatenate([_PHOTOS[:, top : top + 32, 32:64] for top in (0, 32, 50)])

LAYERED = ("elastic_transform", "fog", "frost", "glass_blur", "motion_blur", "snow", "spatter")


def apply(name, images, severity, **options):
    return get(f"cifar_c.{name}").apply(images, severity, **options)


def constant(level, count=20, channels=3):
    return np.full((count, 32, 32, channels), level, np.uint8)


def severities(*parameters):
    return pytest.mark.parametrize(("severity", "parameter"), [*enumerate(parameters, start=1)])


def test_the_suite_has_the_names_of_imagenet_c():
    ours, theirs = ([name.partition(".")[2] for name in names(suite)] for suite in ("cifar_c", "imagenet_c"))
    assert ours == theirs


@severities(0.04, 0.06, 0.08, 0.09, 0.10)
def test_gaussian_noise_is_normal(severity, parameter):
    noise = apply("gaussian_noise", constant(128), severity).astype(float) - 128
    step = stats.norm(scale=255 * parameter).cdf
    for level in (-40, -10, 0, 10, 40):
        chance = step(level + 0.5)
        assert abs((noise <= level).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / noise.size)
    first, second = noise[:10].ravel(), noise[10:].ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(first.size)


@severities(0.06, 0.1, 0.12, 0.16, 0.2)
def test_speckle_noise_grows_with_the_level(severity, parameter):
    for level in (0, 40, 120):
        noise = apply("speckle_noise", constant(level), severity).astype(float) - level
        # Rounding to whole levels adds a twelfth to the variance.
        assert noise.std() == pytest.approx(math.sqrt((parameter * level) ** 2 + (level > 0) / 12), rel=0.02)


@severities(500, 250, 100, 75, 50)
def test_shot_noise_counts_photons(severity, parameter):
    for level in (0, 3, 100, 250):
        made = apply("shot_noise", constant(level), severity)
        counts = np.arange(parameter + 1)
        chances = stats.poisson.pmf(counts, parameter * level / 255)
        chances[-1] = stats.poisson.sf(parameter - 1, parameter * level / 255)
        expected = np.bincount(np.floor(255 * counts / parameter + 0.5).astype(int), chances, minlength=256)
        # The table has 65,536 entries: a chance is off by up to one of them at either end.
        tolerance = 5 * np.sqrt(expected / made.size) + 2 / 65536 + 4 / made.size
        assert (np.abs(np.bincount(made.ravel(), minlength=256) / made.size - expected) < tolerance).all()


@severities(0.01, 0.02, 0.03, 0.05, 0.07)
def test_impulse_noise_makes_values_black_or_white(severity, parameter):
    made = apply("impulse_noise", constant(100), severity)
    assert set(np.unique(made)) == {0, 100, 255}
    for level in (0, 255):
        assert abs((made == level).mean() - parameter / 2) < 5 * math.sqrt(parameter / 2 / made.size)
    # Channels by themselves: two of a pixel are rarely hit at once.
    both = ((made[..., 0] != 100) & (made[..., 1] != 100)).mean()
    assert abs(both - parameter**2) < 5 * parameter / math.sqrt(20 * 32 * 32)


@severities(0.4, 0.6, 0.7, 0.8, 1)
def test_gaussian_blur(severity, parameter):
    expected = ndimage.gaussian_filter(IMAGES.astype(float), (0, parameter, parameter, 0), mode="nearest")
    assert np.abs(apply("gaussian_blur", IMAGES, severity) - expected).max() <= 0.6


@severities((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))
def test_defocus_blur(severity, parameter):
    radius, alias = parameter
    y, x = np.mgrid[-8:9, -8:9]
    disc = (x**2 + y**2 <= radius**2).astype(float)
    kernel = cv2.GaussianBlur(disc / disc.sum(), (3, 3), alias)
    expected = [cv2.filter2D(image.astype(float), -1, kernel) for image in IMAGES]
    assert np.abs(apply("defocus_blur", IMAGES, severity) - np.array(expected)).max() <= 0.6


@severities(1.06, 1.11, 1.16, 1.21, 1.26)
def test_zoom_blur(severity, parameter):
    total = IMAGES.astype(float)
    factors = np.arange(1, parameter, 0.01)
    for factor in factors:
        part = math.ceil(32 / factor)
        top = (32 - part) // 2
        window = IMAGES[:, top : top + part, top : top + part].astype(float)
        larger = ndimage.zoom(window, (1, factor, factor, 1), order=1)
        trim = (larger.shape[1] - 32) // 2
        total += larger[:, trim : trim + 32, trim : trim + 32]
    assert np.abs(apply("zoom_blur", IMAGES, severity) - total / (len(factors) + 1)).max() <= 0.6


@severities(0.75, 0.5, 0.4, 0.3, 0.15)
def test_contrast(severity, parameter):
    means = IMAGES.mean(axis=(1, 2), keepdims=True)
    assert np.abs(apply("contrast", IMAGES, severity) - (means + parameter * (IMAGES - means))).max() <= 0.501


def in_hsv(image, change):
    pixels = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in image.reshape(-1, 3) / 255]
    return 255 * np.array(pixels).reshape(image.shape)


@severities(0.05, 0.1, 0.15, 0.2, 0.3)
def test_brightness(severity, parameter):
    expected = in_hsv(IMAGES[0], lambda h, s, v: (h, s, min(v + parameter, 1)))
    assert np.abs(apply("brightness", IMAGES[:1], severity)[0] - expected).max() <= 0.501


@severities((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))
def test_saturate(severity, parameter):
    factor, offset = parameter
    expected = in_hsv(IMAGES[0], lambda h, s, v: (h, min(s * factor + offset, 1), v))
    assert np.abs(apply("saturate", IMAGES[:1], severity)[0] - expected).max() <= 0.51


@severities(80, 65, 58, 50, 40)
def test_jpeg_compression(severity, parameter):
    for image, made in zip(IMAGES, apply("jpeg_compression", IMAGES, severity), strict=True):
        code = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, parameter])[1]
        expected = cv2.imdecode(code, cv2.IMREAD_COLOR)[..., ::-1]
        assert np.abs(made.astype(float) - expected).mean() <= 1


@severities(0.95, 0.9, 0.85, 0.75, 0.65)
def test_pixelate(severity, parameter):
    boxes = int(32 * parameter)
    edges = [math.floor(box * 32 / boxes + 0.5) for box in range(boxes + 1)]
    box_of = [math.floor((pixel + 0.5) * boxes / 32) for pixel in range(32)]
    made = apply("pixelate", IMAGES, severity)
    for y, x in np.random.default_rng(0).integers(0, 32, (60, 2)):
        rows, columns = (slice(edges[box_of[at]], edges[box_of[at] + 1]) for at in (y, x))
        assert np.abs(made[:, y, x] - IMAGES[:, rows, columns].mean(axis=(1, 2))).max() <= 1


def test_glass_blur_only_shows_colours_of_neighbours_where_it_does_not_blur():
    made = apply("glass_blur", IMAGES, 1)
    for image, other in zip(IMAGES, made, strict=True):
        assert set(map(tuple, other.reshape(-1, 3).tolist())) <= set(map(tuple, image.reshape(-1, 3).tolist()))
    assert 0.5 < (made != IMAGES).any(axis=-1).mean() < 1
    # A neighbour is up to one pixel away, and what has been copied may be copied on.
    dot = np.zeros((200, 32, 32, 1), np.uint8)
    dot[:, 16, 16] = 255
    away = np.argwhere(apply("glass_blur", dot, 1))[:, 1:3] - 16
    assert 0.5 < np.sqrt((away**2).sum(axis=1).mean()) < 3


@severities((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))
def test_motion_blur_smears_by_half_a_gaussian(severity, parameter):
    radius, sigma = parameter
    dots = np.zeros((400, 32, 32, 1), np.uint8)
    dots[:, 16, 26] = 255
    made = apply("motion_blur", dots, severity)[..., 0].astype(float)
    assert made.sum(axis=(1, 2)).mean() == pytest.approx(255, rel=0.02)
    y, x = np.mgrid[-16:16, -26:6]
    distance = (made * np.hypot(x, y)).sum() / made.sum()
    weights = np.exp(-0.5 * (np.arange(2 * radius + 1) / sigma) ** 2)
    expected = (weights * np.arange(2 * radius + 1)).sum() / weights.sum()
    assert distance == pytest.approx(expected, rel=0.15)
    assert (made[:, x > 0] == 0).all()


@pytest.mark.parametrize("severity", range(1, 6))
def test_snow_falls_on_both_sides_of_a_half_turn(severity):
    whitened = get("cifar_c.snow").severities[severity][6]
    dark = apply("snow", constant(40, count=60), severity).astype(float)
    assert np.abs(dark - dark[:, ::-1, ::-1]).max() <= 1
    # Where no flake falls, the image is a mixture with 1.5 times its luma and half of white.
    assert dark.min() == math.floor(whitened * 40 + (1 - whitened) * (1.5 * 40 + 127.5) + 0.5)
    layer = dark[..., 0] - dark.min()
    down, across = (np.diff(layer, axis=axis).std() for axis in (1, 2))
    assert down < across


@severities((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
def test_frost_is_a_part_of_a_texture(severity, parameter):
    own, added = parameter
    made = apply("frost", constant(20, count=8), severity).astype(float)
    first_rows = sliding_window_view(frost(0.2)[..., 0].astype(float), 32, axis=2)
    for image in made:
        errors = np.abs(own * 20 + added * first_rows - image[0, :, 0]).max(axis=-1)
        texture, top, left = np.unravel_index(errors.argmin(), errors.shape)
        window = frost(0.2)[texture, top : top + 32, left : left + 32]
        assert np.abs(np.minimum(own * 20 + added * window, 255) - image).max() <= 0.501


@severities((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))
def test_fog_lifts_the_dark_and_keeps_the_brightest(severity, parameter):
    density, _ = parameter
    images = constant(255, count=10)
    images[:, :16] = 51
    made = apply("fog", images, severity).astype(float)
    # The cloud, from 0 to 1, as seen where the image is white and where it is dark.
    light, dark = made[:, 16:, :, 0], made[:, :16, :, 0]
    clouds = np.concatenate([dark * (1 + density) / 255 - 0.2, light * (1 + density) / 255 - 1], axis=1) / density
    step = (1 + density) / density / 255
    assert np.abs(clouds.min(axis=(1, 2))).max() <= step
    assert np.abs(clouds.max(axis=(1, 2)) - 1).max() <= step
    assert (apply("fog", constant(0), severity) == 0).all()


def test_elastic_transform_first_moves_the_image_as_a_whole():
    # A slope stays a slope where the map is affine; mirrored borders are left out.
    y, x = np.mgrid[0:32, 0:32]
    slopes = np.repeat(np.stack([7 * x, 7 * y], axis=0)[None, ..., None], 100, axis=0).astype(np.uint8)
    # The same index, the same draws: the two slopes show where x and where y are taken from.
    shown = [apply("elastic_transform", slopes[:, axis], 1)[:, 10:22, 10:22, 0] / 7 for axis in (0, 1)]
    inner = slice(10, 22)
    design = np.stack([np.ones(144), x[inner, inner].ravel(), y[inner, inner].ravel()], axis=1)
    points = np.array([[1, 26, 26], [1, 26, 6], [1, 6, 6]])
    moves = []
    for axis, places in enumerate(shown):
        fit, *_ = np.linalg.lstsq(design, places.reshape(100, -1).T)
        assert np.abs(design @ fit - places.reshape(100, -1).T).max() < 0.2
        moves.append(points @ fit - points[:, axis + 1 : axis + 2])
    # Three points are moved by up to 8 % of the side, evenly spread.
    assert 0.9 * 2.56 < np.abs(moves).max() < 1.1 * 2.56
    assert np.std(moves) == pytest.approx(2.56 / math.sqrt(3), rel=0.1)


@severities(0.5, 0.5, 0.5)
def test_spatter_begins_with_water(severity, parameter):
    made = apply("spatter", constant(0, count=40), severity).astype(float)
    wet = made.max(axis=(1, 2, 3)) > 0
    assert wet.mean() > 0.8
    # Pale turquoise, up to the given strength.
    assert np.abs(made[wet].max(axis=(1, 2)) - parameter * np.array([175, 238, 238])).max() <= 0.501
    assert np.abs(made[..., 0] * 238 / 175 - made[..., 1]).max() <= 1.2
    assert (made == 0).mean() > 0.5


@pytest.mark.parametrize("severity", [4, 5])
def test_spatter_ends_with_mud(severity):
    made = apply("spatter", constant(255, count=40), severity).astype(float)
    cover = (255 - made) / (255 - np.array([63, 42, 20]))
    covered = cover[..., 0] > 0
    assert 0.01 < covered.mean() < 0.6
    assert cover[covered].min() > 0.79
    assert np.abs(cover[..., 0] - cover[..., 2]).max() < 0.01


@pytest.mark.parametrize("name", LAYERED)
@pytest.mark.parametrize("suite", ["cifar_c", "imagenet_c"])
def test_a_grey_image_becomes_what_the_same_image_in_colour_becomes_as_luma(suite, name):
    # Dark enough for nothing to be cut off at white.
    grey = IMAGES[..., 1:2] // 5
    for severity in (1, 3, 4, 5):
        plain = get(f"{suite}.{name}").apply(grey, severity)[..., 0]
        colour = get(f"{suite}.{name}").apply(np.repeat(grey, 3, axis=-1), severity)
        unclipped = colour.max(axis=-1) < 255
        assert np.abs(colour @ [0.299, 0.587, 0.114] - plain)[unclipped].max() <= 1.5
