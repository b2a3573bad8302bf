"""Pixel values against brute force, colorsys and plain indexing."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from testifai.errors import InputError
from testifai.perturb import ops


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def words(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 65536, shape).astype(np.uint16)


def colours(count=2):
    """Random pixels, and the corners of the colour space, greys and near-greys."""
    images = noise(count, 16, 16, 3)
    special = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [1, 0, 0], [7, 7, 7], [128, 128, 127], [0, 255, 255]]
    images[0, 0, : len(special)] = special
    return images


@pytest.mark.parametrize("amount", [0.1, 0.5])
def test_brighten_raises_the_value_of_hsv(amount):
    images = colours()
    brightened = ops.brighten(images, amount)
    for pixel, result in zip(images.reshape(-1, 3), brightened.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(pixel / 255))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(value + amount, 1))
        assert np.abs(result - 255 * np.array(expected)).max() <= 0.501


def test_brighten_of_grey_is_the_same_with_and_without_channels():
    grey = noise(3, 16, 18)
    plain = ops.brighten(grey, 0.3)
    assert np.array_equal(plain, np.minimum(grey + 77.0, 255))
    assert np.array_equal(ops.brighten(grey[..., None], 0.3)[..., 0], plain)
    assert np.abs(ops.brighten(np.repeat(grey[..., None], 3, axis=3), 0.3)[..., 1] - plain.astype(int)).max() <= 1


@pytest.mark.parametrize(("factor", "offset"), [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2), (1, -0.3), (1, 2)])
def test_saturate_changes_the_saturation_of_hsv(factor, offset):
    images = colours()
    saturated = ops.saturate(images, factor, offset)
    for pixel, result in zip(images.reshape(-1, 3), saturated.reshape(-1, 3), strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*(pixel / 255))
        expected = colorsys.hsv_to_rgb(hue, min(max(saturation * factor + offset, 0), 1), value)
        assert np.abs(result - 255 * np.array(expected)).max() <= 0.501


def test_saturate_leaves_one_channel_alone():
    grey = noise(2, 16, 16, 1)
    assert np.array_equal(ops.saturate(grey, 5, 0.1), grey)


def test_lookup_is_indexing():
    table = noise(256)
    images = noise(3, 16, 20, 3)[:, ::2, ::-1]
    assert np.array_equal(ops.lookup(images, table), table[images])


@given(arrays(np.float32, (2, 3, 4, 1), elements=st.floats(-1e6, 1e6, width=32)))
@settings(max_examples=20, deadline=None)
def test_levels_are_rounded_and_clipped(values):
    expected = np.clip(np.floor(values + np.float32(0.5)), 0, 255)
    assert np.array_equal(ops.levels(values), expected)
    assert ops.levels(values).dtype == np.uint8


def test_levels_of_floats_are_the_images():
    images = noise(2, 16, 16, 3)
    assert ops.floats(images).dtype == np.float32
    assert np.array_equal(ops.levels(ops.floats(images)), images)
    assert ops.levels(np.array([0.49, 0.5, 254.5, -0.5, 300], np.float32)).tolist() == [0, 1, 255, 0, 255]


def test_take_and_draw_levels_are_indexing():
    field, images = words(2, 16, 16, 3), noise(2, 16, 16, 3)
    table = np.random.default_rng(1).normal(size=65536).astype(np.float32)
    taken = ops.take(table, field)
    assert taken.dtype == np.float32
    assert np.array_equal(taken, table[field])
    distributions = noise(256, 65536)
    assert np.array_equal(ops.draw_levels(images, field, distributions), distributions[images, field])


def test_uniform_spreads_words_evenly_between_two_ends():
    every = np.arange(65536, dtype=np.uint16)[None]
    spread = ops.uniform(every, -2, 3)
    assert spread.dtype == np.float32
    assert np.allclose(spread[0], -2 + 5 * (np.arange(65536) + 0.5) / 65536, atol=1e-6)
    assert spread.min() > -2
    assert spread.max() < 3


def test_numbers_per_image_broadcast_over_images():
    images = np.ones((3, 2, 4, 1), np.float32)
    scaled = images * ops.per_image([1, 2, 3])
    assert scaled.dtype == np.float32
    assert scaled.mean(axis=(1, 2, 3)).tolist() == [1, 2, 3]
    assert ops.per_image([1, 2, 3])[..., 0].shape == (3, 1, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_channel_means_and_largest_are_statistics_of_each_image(channels):
    images = noise(4, 70, 83, channels)
    means = ops.channel_means(images)
    assert means.shape == (4, 1, 1, channels)
    assert np.array_equal(means, images.mean(axis=(1, 2), keepdims=True).astype(np.float32))
    assert np.array_equal(ops.largest(images)[:, 0, 0, 0], images.reshape(4, -1).max(axis=1))
    layers = ops.floats(images)[..., 0]
    assert ops.largest(layers).shape == (4, 1, 1)
    assert ops.largest(layers).dtype == np.float32
    assert np.array_equal(ops.largest(layers)[:, 0, 0], layers.max(axis=(1, 2)))


def test_luma_weighs_the_channels():
    images = noise(2, 16, 16, 3)
    expected = images @ np.array([0.299, 0.587, 0.114])
    assert np.allclose(ops.luma(images)[..., 0], expected, atol=1e-4)
    assert np.array_equal(ops.luma(ops.floats(images)), ops.luma(images))
    assert np.array_equal(ops.luma(images[..., :1]), ops.floats(images[..., :1]))


def test_element_by_element_functions_keep_float32():
    a, b = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    for result, expected in [
        (ops.maximum(a, b), np.where(a > b, a, b)),
        (ops.minimum(a, 0.5), np.where(a < 0.5, a, 0.5)),
        (ops.where(a > b, a, 0.0), (a > b) * a),
        (ops.where(a > b, 1.0, 0.0), a > b),
        (ops.clip(a, -0.5, 0.5), np.minimum(np.maximum(a, -0.5), 0.5)),
        (ops.roll(a, 2, 1), np.concatenate([a[:, -2:], a[:, :-2]], axis=1)),
        (ops.zeros(a, (2, 7)), np.zeros((2, 7))),
    ]:
        assert result.dtype == np.float32
        assert np.array_equal(result, expected.astype(np.float32))


def test_crops_are_windows_of_the_chosen_texture():
    textures = noise(3, 20, 30, 3)
    cut = ops.crops(textures, [2, 0], np.array([0, 12]), np.array([22, 5]), 8, 7)
    assert np.array_equal(cut, np.stack([textures[2, 0:8, 22:29], textures[0, 12:20, 5:12]]))


@pytest.mark.parametrize(
    "change",
    [
        lambda images, field: ops.brighten(images, 0.2),
        lambda images, field: ops.saturate(images, 2, 0.1),
        lambda images, field: ops.channel_means(images),
        lambda images, field: ops.luma(images),
        lambda images, field: ops.uniform(field, -1, 2),
        lambda images, field: ops.levels(ops.floats(images) * 1.1 + 0.3),
        lambda images, field: ops.draw_levels(images, field, noise(256, 65536)),
    ],
)
def test_results_do_not_depend_on_the_batch_to_the_last_bit(change):
    images, field = noise(50, 19, 23, 3), words(50, 19, 23, 3)
    images.flags.writeable = False
    together = change(images, field)
    for place in (0, 17, 49):
        assert np.array_equal(change(images[place : place + 1], field[place : place + 1]), together[place : place + 1])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 28, 28)), "uint8.*float64.*convert"),
        (np.zeros((2, 28, 28), bool), "bool"),
        (np.zeros((28, 28), np.uint8), r"\(28, 28\)"),
        (np.zeros((2, 3, 28, 28), np.uint8), "channels first"),
        (["a"], "list"),
    ],
)
def test_what_is_no_batch_of_images_is_refused(images, words):
    with pytest.raises(InputError, match=words):
        ops.image_shape(images)


@pytest.mark.parametrize("channels", [1, 3])
def test_stretch_scales_levels_and_adds_an_offset_per_channel(channels):
    images = np.random.default_rng(0).integers(0, 256, (5, 9, 7, channels)).astype(np.uint8)
    offsets = np.random.default_rng(1).uniform(-40, 40, (5, 1, 1, channels)).astype(np.float32)
    expected = np.clip(np.floor(images * 1.5 + offsets + 0.5), 0, 255)
    assert np.array_equal(ops.stretch(images, 1.5, offsets), expected)
    assert np.array_equal(ops.stretch(images[3:4], 1.5, offsets[3:4])[0], expected[3])
