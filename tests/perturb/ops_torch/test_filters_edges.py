"""Edges of tensors against OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from testifai.perturb.ops_torch import filters  # noqa: E402


def blobs(count, height, width, seed=0, sigma=1.5):
    drawn = np.random.default_rng(seed).normal(size=(count, height, width)).astype(np.float32)
    smooth = np.stack([cv2.GaussianBlur(one, (0, 0), sigma) for one in drawn])
    return np.clip(127 + 60 * smooth / smooth.std(), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("images", [blobs(40, 32, 32), blobs(10, 45, 70, 1, 0.8), blobs(10, 64, 30, 2, 3.0)], ids=str)
@pytest.mark.parametrize(("low", "high"), [(50, 150), (20, 60), (150.7, 50.2), (0, 400), (100, 100)])
def test_canny_equals_opencvs(images, low, high):
    result = filters.canny(torch.from_numpy(images), low, high).numpy()
    expected = [cv2.Canny(image, low, high) // 255 for image in images]
    assert np.array_equal(result, expected)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9), st.sampled_from([2, 3, 256]))
@settings(max_examples=40, deadline=None)
def test_canny_breaks_ties_as_opencv_does(seed, height, width, levels):
    """Few levels: gradients are often equal, or exactly along an axis or a diagonal."""
    rng = np.random.default_rng(seed)
    images = (rng.integers(0, levels, (4, height, width)) * (255 // (levels - 1))).astype(np.uint8)
    low, high = sorted(rng.integers(0, 900, 2).tolist())
    expected = [cv2.Canny(image, low, high) // 255 for image in images]
    assert np.array_equal(filters.canny(torch.from_numpy(images), low, high).numpy(), expected)


def test_canny_follows_a_weak_edge_for_longer_than_the_sides_of_the_image():
    """A wall that winds through nine rows; its edge is strong only where it begins."""
    wall = np.zeros((80, 80), np.uint8)
    for number, row in enumerate(range(4, 69, 8)):
        wall[row : row + 3, 4:76] = 100
        column = 4 if number % 2 else 73
        wall[row : row + 11 if row < 68 else row, column : column + 3] = 100
    wall[4:6, 8:16] = 250
    expected = cv2.Canny(wall, 120, 600) // 255
    assert np.array_equal(filters.canny(torch.from_numpy(wall[None]), 120, 600).numpy()[0], expected)
    assert expected[66:].any()
    assert not cv2.Canny(np.minimum(wall, 100), 120, 600).any()


@pytest.mark.parametrize("most", [20, 7.5, 300])
@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.2])
@pytest.mark.parametrize("shape", [(8, 32, 32), (4, 40, 90), (8, 3, 17)])
def test_distance_equals_opencvs(most, share, shape):
    marks = (np.random.default_rng(3).random(shape) < share).astype(np.uint8)
    result = filters.distance(torch.from_numpy(marks), most).numpy()
    expected = [np.minimum(cv2.distanceTransform(1 - image, cv2.DIST_L2, 5), most) for image in marks]
    assert result.dtype == np.float32
    # OpenCV counts in steps of 2⁻¹⁶.
    assert np.abs(result - expected).max() < 1e-4 * max(1, most / 20)


def test_distance_to_one_pixel_is_the_shortest_way_of_moves():
    """The three kinds of moves, as many of each as are shortest, for every place by brute force."""
    marks = torch.zeros((1, 25, 25), dtype=torch.uint8)
    marks[0, 12, 12] = 1
    y, x = np.abs(np.indices((25, 25)) - 12)
    long, short = np.maximum(x, y), np.minimum(x, y)
    # n knight's moves reach (2n, n); what is left goes by straight and diagonal moves.
    ways = [
        n * 2.1969 + np.minimum(left := abs(long - 2 * n), rest := abs(short - n)) * 1.4 + abs(left - rest)
        for n in range(7)
    ]
    assert np.abs(filters.distance(marks, 30)[0].numpy() - np.min(ways, axis=0)).max() < 1e-5


@pytest.mark.parametrize(
    "images",
    [blobs(20, 32, 32), blobs(3, 200, 150, 1) // 9 + 80, np.random.default_rng(0).integers(0, 2, (6, 5, 7), np.uint8)],
    ids=["blobs", "flat", "two"],
)
def test_equalise_equals_opencvs(images):
    expected = [cv2.equalizeHist(image) for image in images]
    assert np.array_equal(filters.equalise(torch.from_numpy(images)).numpy(), expected)


def test_equalise_leaves_images_of_one_level():
    images = torch.tensor([0, 93, 255], dtype=torch.uint8)[:, None, None].expand(3, 8, 9)
    assert torch.equal(filters.equalise(images), images)


def test_results_do_not_depend_on_the_batch_and_arguments_stay():
    grey = torch.from_numpy(blobs(23, 30, 33))
    before = grey.clone()

    def results(images):
        found = filters.canny(images, 50, 150)
        return found, filters.distance(found, 20), filters.equalise(images)

    whole = results(grey)
    for one, others in zip(whole, zip(*map(results, grey.split(4)), strict=True), strict=True):
        assert torch.equal(torch.cat(others), one)
    assert torch.equal(grey, before)
