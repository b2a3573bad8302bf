"""Local swaps against swaps made one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.perturb import ops


def draws(count, height, width, channels, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, height, width, channels)).astype(np.uint8)
    return images, rng.integers(0, 2**16, (count, height, width)).astype(np.uint16)


def shuffled_by_hand(image, radius, words, swap=True):
    """The published loop, whose ranges leave out the row and the column number `radius`."""
    image = image.copy()
    height, width = image.shape[:2]
    for h in range(height - radius, radius, -1):
        for w in range(width - radius, radius, -1):
            down, right = divmod(int(words[h, w]) * (2 * radius) ** 2 // 2**16, 2 * radius)
            other = h + down - radius, w + right - radius
            own, image[h, w] = image[h, w].copy(), image[other]
            if swap:
                image[other] = own
    return image


@given(
    st.integers(1, 24),
    st.integers(1, 24),
    st.integers(1, 5),
    st.sampled_from([1, 3]),
    st.integers(1, 3),
    st.integers(),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_shuffle_equals_swaps_or_copies_one_by_one(height, width, radius, channels, count, seed, swap):
    images, words = draws(count, height, width, channels, seed % 2**32)
    expected = [shuffled_by_hand(image, radius, word, swap) for image, word in zip(images, words, strict=True)]
    assert np.array_equal(ops.shuffle(images, radius, words, swap), expected)


@pytest.mark.parametrize("radius", [1, 4])
def test_shuffle_of_larger_images_equals_swaps_one_by_one(radius):
    images, words = draws(2, 70, 90, 3)
    expected = [shuffled_by_hand(image, radius, word) for image, word in zip(images, words, strict=True)]
    assert np.array_equal(ops.shuffle(images, radius, words), expected)


def test_partners_are_drawn_evenly_from_the_square_around():
    """The last pixel that moves stands alone where nothing else has moved: one swap shows every draw."""
    radius, height, width = 2, 6, 6
    images = np.arange(36, dtype=np.uint8).reshape(1, 6, 6, 1).repeat(4, axis=0)
    middle = 2**16 // 32
    # A word in the middle of its share stays put: dy = dx = 0 is number 2 * 4 + 2 of 16.
    stay = 10 * 2**12 + middle
    words = np.full((4, height, width), stay, np.uint16)
    words[:, 3, 3] = [0, 2**16 - 1, stay, 1 * 2**12]
    result = ops.shuffle(images, radius, words)[..., 0]
    partners = [(1, 1), (4, 4), (3, 3), (1, 2)]
    for image, partner in zip(result, partners, strict=True):
        expected = images[0, ..., 0].copy()
        expected[3, 3], expected[partner] = expected[partner], expected[3, 3]
        assert np.array_equal(image, expected)


def test_images_too_small_to_swap_stay_as_they_are():
    images, words = draws(2, 8, 9, 3)
    assert np.array_equal(ops.shuffle(images, 4, words), images)


def test_shuffle_keeps_all_pixels_and_its_arguments():
    images, words = draws(3, 32, 32, 3)
    before = images.copy(), words.copy()
    result = ops.shuffle(images, 3, words)
    assert np.array_equal(images, before[0])
    assert np.array_equal(words, before[1])
    for image, other in zip(images, result, strict=True):
        assert sorted(map(tuple, image.reshape(-1, 3))) == sorted(map(tuple, other.reshape(-1, 3)))


@pytest.mark.parametrize("channels", [1, 3])
def test_results_do_not_depend_on_the_batch_to_the_last_bit(channels):
    images, words = draws(50, 32, 30, channels)
    whole = ops.shuffle(images, 2, words)
    for one in (0, 23, 49):
        part = slice(one, one + 1)
        assert np.array_equal(ops.shuffle(images[part], 2, words[part]), whole[part])
