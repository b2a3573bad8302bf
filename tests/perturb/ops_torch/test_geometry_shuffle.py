"""Swaps of pixels of tensors against the same swaps one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.perturb import ops

torch = pytest.importorskip("torch")

from testifai.perturb.ops_torch.geometry import shuffle  # noqa: E402


def shuffled_by_hand(image, radius, words):
    result = image.copy()
    height, width = image.shape[:2]
    side = 2 * radius
    for h in range(height - radius, radius, -1):
        for w in range(width - radius, radius, -1):
            drawn = int(words[h, w]) * side * side >> 16
            y, x = h + drawn // side - radius, w + drawn % side - radius
            result[h, w], result[y, x] = result[y, x].copy(), result[h, w].copy()
    return result


@given(st.integers(0, 10**6), st.integers(1, 13), st.integers(1, 13), st.integers(1, 4), st.sampled_from([1, 3]))
@settings(max_examples=24, deadline=None)
def test_shuffle_equals_swaps_one_by_one(seed, height, width, radius, channels):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (3, height, width, channels)).astype(np.uint8)
    words = rng.integers(0, 65536, (3, height, width)).astype(np.int32)
    result = shuffle(torch.from_numpy(images), radius, torch.from_numpy(words)).numpy()
    for image, drawn, one in zip(images, words, result, strict=True):
        assert np.array_equal(one, shuffled_by_hand(image, radius, drawn))


@pytest.mark.parametrize("swap", [True, False])
@pytest.mark.parametrize(("shape", "radius"), [((20, 32, 32, 3), 1), ((20, 28, 40, 1), 2), ((3, 80, 96, 3), 4)])
def test_shuffle_equals_that_of_arrays_and_keeps_the_argument(shape, radius, swap):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, shape).astype(np.uint8)
    words = rng.integers(0, 65536, shape[:3]).astype(np.uint16)
    tensor = torch.from_numpy(images.copy())
    result = shuffle(tensor, radius, torch.from_numpy(words.astype(np.int32)), swap)
    assert np.array_equal(result.numpy(), ops.shuffle(images, radius, words, swap))
    assert np.array_equal(tensor.numpy(), images)
    assert result.is_contiguous()


def test_views_and_all_ones_words():
    images = torch.randint(0, 256, (4, 3, 20, 22), dtype=torch.uint8).permute(0, 2, 3, 1)
    words = torch.full((4, 20, 22), 65535, dtype=torch.int32)
    expected = [shuffled_by_hand(image, 3, words[0].numpy()) for image in images.numpy()]
    assert np.array_equal(shuffle(images, 3, words).numpy(), expected)
