"""The suite against independent statements of the published perturbations (Mu & Gilmer 2019)."""

from __future__ import annotations

import itertools
import math

import cv2
import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, label, map_coordinates

from testifai.perturb import Rng, get, names
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


def test_the_suite_is_whole():
    published = "shot_noise impulse_noise glass_blur motion_blur shear rotate brightness translate stripe fog"
    published += " spatter dotted_line zigzag canny_edges"
    # The suite's scale is called zoom here.
    assert names("mnist_c") == sorted(f"mnist_c.{name}" for name in [*published.split(), "zoom"])


@pytest.mark.parametrize(("severity", "share"), [*enumerate([0.03, 0.06, 0.09, 0.17, 0.27], start=1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_impulse_noise_sets_a_share_of_values_to_black_or_white(severity, share, channels):
    noisy = get("mnist_c.impulse_noise").apply(np.full((30, 28, 28, channels), 100, np.uint8), severity)
    assert set(np.unique(noisy)) == {0, 100, 255}
    for level in (0, 255):
        error = 5 * math.sqrt(share / 2 / noisy.size)
        assert abs((noisy == level).mean() - share / 2) < error
    if channels == 3:
        # Each channel by itself: hit together as often as independent draws are.
        hit = noisy != 100
        both = (hit[..., 0] & hit[..., 1]).mean()
        assert abs(both - share**2) < 5 * share / math.sqrt(hit[..., 0].size)


@pytest.mark.parametrize(
    ("severity", "parameters"),
    [*enumerate([(0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)], start=1)],
)
def test_glass_blur_swaps_half_of_the_pixels_one_after_the_other(severity, parameters):
    sigma, reach, rounds = parameters
    image = IMAGES[7]
    expected = np.floor(gaussian_filter(image.astype(float), sigma, mode="nearest") + 0.5)
    rng = Rng(2, "mnist_c.glass_blur", severity, np.array([31]))
    swaps = 0
    for _ in range(rounds):
        words = rng.field((28, 28))[0].astype(int)
        for row in range(28 - reach, reach, -1):
            for column in range(28 - reach, reach, -1):
                word = words[row, column]
                if word < 2**15:
                    down, right = divmod(word * (2 * reach) ** 2 // 2**15, 2 * reach)
                    one, other = (row, column), (row + down - reach, column + right - reach)
                    expected[one], expected[other] = expected[other], expected[one]
                    swaps += 1
    expected = gaussian_filter(expected, sigma, mode="nearest")
    result = get("mnist_c.glass_blur").apply(image[None], severity, seed=2, indices=[31])[0]
    # A level that the first blur rounds the other way may be one off.
    assert np.abs(result - expected).max() <= 1.6
    places = rounds * (28 - 2 * reach) ** 2
    assert abs(swaps - places / 2) < 5 * math.sqrt(places / 4)


@pytest.mark.parametrize("form", [(40, 56), (9, 9, 3), (6, 30)])
def test_glass_blur_of_other_sizes_keeps_what_is_plain(form):
    plain = np.full((2, *form), 90, np.uint8)
    for severity in range(1, 6):
        assert np.array_equal(get("mnist_c.glass_blur").apply(plain, severity), plain)


@pytest.mark.parametrize(("severity", "columns"), [*enumerate([3, 5, 7, 9, 11], start=1)])
def test_stripe_inverts_the_first_and_the_last_columns(severity, columns):
    expected = IMAGES.copy()
    expected[:, :, :columns] = 255 - expected[:, :, :columns]
    expected[:, :, 28 - columns :] = 255 - expected[:, :, 28 - columns :]
    assert np.array_equal(get("mnist_c.stripe").apply(IMAGES, severity), expected)
    wide = get("mnist_c.stripe").apply(np.zeros((1, 5, 84, 3), np.uint8), severity)[0, 0, :, 0]
    assert np.flatnonzero(wide == 0).tolist() == list(range(3 * columns, 84 - 3 * columns))


@pytest.mark.parametrize(("severity", "amount"), [*enumerate([1.5, 2.0, 2.5, 2.5, 3.0], start=1)])
def test_fog_adds_a_cloud_and_scales_back_to_the_white_of_the_image(severity, amount):
    bright, dim = np.zeros((2, 20, 28, 28), np.uint8)
    bright[:, 0, 0], dim[:, 0, 0], dim[:, 5] = 255, 120, 60
    clouds = get("mnist_c.fog").apply(bright, severity) * ((1 + amount) / amount / 255)
    clouds[:, 0, 0] -= 1 / amount
    assert clouds.min() >= -0.01
    assert clouds.max() <= 1.01
    # The same images' clouds, over an image of another white.
    white = 120 / 255
    expected = (dim / 255 + amount * clouds) * white / (white + amount) * 255
    assert np.abs(get("mnist_c.fog").apply(dim, severity) - expected).max() <= 1.01
    # A corner of a cloud of 256×256 is smooth, differs from image to image, and is as often light as dark.
    steps = np.abs(np.diff(clouds[:, 1:], axis=2))
    assert steps.mean() < 0.05
    assert clouds.mean(axis=(1, 2)).std() > 0.03
    assert 0.3 < clouds.mean() < 0.7


def test_fog_leaves_black_images_black():
    black = np.zeros((2, 28, 28, 3), np.uint8)
    assert np.array_equal(get("mnist_c.fog").apply(black, 5), black)


SPATTER = [
    (0.65, 0.3, 4, 0.69, 0.6),
    (0.65, 0.3, 3, 0.68, 0.6),
    (0.65, 0.3, 2, 0.68, 0.5),
    (0.65, 0.3, 1, 0.65, 1.5),
    (0.67, 0.4, 1, 0.65, 1.5),
]


@pytest.mark.parametrize(("severity", "parameters"), [*enumerate(SPATTER, start=1)])
def test_spatter_lays_mud_of_grey_63_over_the_image(severity, parameters):
    mean, deviation, smoothing, threshold, softness = parameters
    spatter = get("mnist_c.spatter")
    black, white = (spatter.apply(np.full((300, 28, 28), level, np.uint8), severity) for level in (0, 255))
    mud = black / 63
    assert np.abs(white - (255 * (1 - mud) + 63 * mud)).max() <= 3
    assert (mud[mud > 0] > 0.79).all()
    noise = np.random.default_rng(severity).normal(mean, deviation, (300, 28, 28))
    splashes = gaussian_filter(noise, (0, smoothing, smoothing), mode="nearest") > threshold
    expected = gaussian_filter(splashes.astype(float), (0, softness, softness), mode="nearest")
    expected[expected < 0.8] = 0
    shares = mud.mean(axis=(1, 2)), expected.mean(axis=(1, 2))
    assert abs(shares[0].mean() - shares[1].mean()) < 5 * math.hypot(*(one.std() / math.sqrt(300) for one in shares))
    # On images of twice the size the splashes are twice as large: the share of mud stays.
    large = spatter.apply(np.zeros((100, 56, 56), np.uint8), severity) / 63
    spread = math.hypot(large.mean(axis=(1, 2)).std() / 10, shares[1].std() / math.sqrt(300))
    assert abs(large.mean() - shares[1].mean()) < 5 * spread + 0.02


def ink(distance, thickness):
    """The published fading of a line, at a distance along the column."""
    return 255 * np.clip(np.log(np.maximum(1 - np.abs(distance) / thickness, 1e-9)) + 1, 0, 1)


THICKNESSES = [*enumerate([1.2, 1.7, 2.3, 3.2, 4.6], start=1)]


@pytest.mark.parametrize(("severity", "thickness"), THICKNESSES)
def test_dotted_line_is_one_of_the_published_lines(severity, thickness):
    count = 25
    row, column = np.indices((28, 28))
    ends = np.indices((27, 27)).reshape(2, -1, 1, 1)
    lines = ink(row - (ends[0] + (ends[1] - ends[0]) * column / 27), thickness)
    lines[..., (column[0] // 2 % 2 == 0) | (column[0] == 27)] = 0
    drawn = get("mnist_c.dotted_line").apply(np.zeros((count, 28, 28), np.uint8), severity)
    nearest = [int(np.abs(lines - one).max(axis=(1, 2)).argmin()) for one in drawn]
    assert np.abs(lines[nearest] - drawn).max() <= 1.5
    starts = ends[0].ravel()[nearest]
    assert len(set(starts.tolist())) > 8
    assert abs(starts.mean() - 13) < 5 * 27 / math.sqrt(12 * count)


def published_zigzag(start, rise, thickness):
    """A polyline whose corners lie 2 pixels to either side of a straight line, drawn piece by piece."""
    angle = math.atan(rise / 23)
    length = 23 / math.cos(angle)
    corners = [(0.0, 0.0), *((4 * k + 2.0, 2.0 * (-1) ** k) for k in range(int((length - 2) // 4) + 1))]
    corners.append((length, corners[-1][1] + math.copysign(length - corners[-1][0], -corners[-1][1])))
    turned = [
        (2 + x * math.cos(angle) - y * math.sin(angle), start + x * math.sin(angle) + y * math.cos(angle))
        for x, y in corners
    ]
    picture = np.zeros((28, 28))
    row, column = np.indices((28, 28))
    for (left, first), (right, last) in itertools.pairwise(turned):
        piece = ink(row - (first + (column - left) * (last - first) / (right - left)), thickness)
        here = (column >= max(left, 2)) & (column < (right if right < 24 else 25))
        picture = np.where(here, piece, picture)
    return picture


@pytest.mark.parametrize(("severity", "thickness"), THICKNESSES)
def test_zigzag_is_one_of_the_published_zigzags(severity, thickness):
    zigzags = [(start, rise) for start in range(27) for rise in range(-5, 5)]
    pictures = np.array([published_zigzag(start, rise, thickness) for start, rise in zigzags])
    drawn = get("mnist_c.zigzag").apply(np.zeros((60, 28, 28), np.uint8), severity)
    found = [int(np.abs(pictures - one).mean(axis=(1, 2)).argmin()) for one in drawn]
    assert np.abs(pictures[found] - drawn).max() <= 1.6
    assert len({zigzags[place][0] for place in found}) > 15
    assert {zigzags[place][1] for place in found} == set(range(-5, 5))


def test_lines_are_added_to_the_image_and_grow_with_it():
    for name in ("mnist_c.dotted_line", "mnist_c.zigzag"):
        line = get(name).apply(np.zeros((6, 28, 28), np.uint8), 3)
        added = get(name).apply(np.full((6, 28, 28), 100, np.uint8), 3)
        assert np.array_equal(added, np.minimum(line.astype(int) + 100, 255))
        large = get(name).apply(np.zeros((6, 84, 84), np.uint8), 3)
        # Every third pixel of the large image lies where a pixel of the small one does.
        assert np.abs(large[:, 1::3, 1::3] - line.astype(int)).max() <= 2


def test_canny_edges_of_a_disc_are_its_outline():
    y, x = np.indices((28, 28)) - 13.5
    radius = np.hypot(x, y)
    disc = np.clip((9.5 - radius) * 255, 0, 255).astype(np.uint8)[None]
    edges = get("mnist_c.canny_edges").apply(disc, 5)[0]
    assert set(np.unique(edges)) == {0, 255}
    assert np.abs(radius[edges > 0] - 9.5).max() < 1.5
    # A closed outline, a pixel wide: inside and outside are apart.
    assert label(edges == 0)[1] == 2
    assert 50 < (edges > 0).sum() < 90


def test_canny_edges_follow_the_published_smoothing_and_thresholds():
    expected = []
    for image in IMAGES:
        smooth = np.floor(gaussian_filter(image.astype(float), 1, mode="nearest") + 0.5).astype(np.uint8)
        expected.append(cv2.Canny(smooth, 25, 51))
    edges = get("mnist_c.canny_edges").apply(IMAGES, 5)
    # A level that is rounded the other way may move an edge.
    assert (edges != expected).mean() < 0.002


@pytest.mark.parametrize(("severity", "share"), [*enumerate([0.2, 0.4, 0.6, 0.8, 1.0], start=1)])
def test_canny_edges_are_mixed_in_by_a_share(severity, share):
    edges = get("mnist_c.canny_edges").apply(IMAGES, 5).astype(float)
    mixed = get("mnist_c.canny_edges").apply(IMAGES, severity)
    assert np.abs(mixed - (IMAGES * (1 - share) + edges * share)).max() <= 0.51


@pytest.mark.parametrize("name", sorted(set(names("mnist_c")) - {"mnist_c.shot_noise", "mnist_c.impulse_noise"}))
def test_grey_images_of_three_channels_change_like_grey_ones(name):
    # Noise is left out: it has draws of its own for every channel.
    grey = IMAGES[:6]
    colour = get(name).apply(np.repeat(grey[..., None], 3, axis=-1), 4)
    assert (np.abs(colour - get(name).apply(grey, 4)[..., None].astype(int)) > 1).mean() < 0.001
