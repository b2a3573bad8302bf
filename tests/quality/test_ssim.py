"""Structural similarity: against torchmetrics, against sums written out, and on images of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from testifai.errors import InputError
from testifai.quality import resolve
from testifai.quality import ssim as module
from testifai.quality.ssim import ssim
from testifai.testing import example_images, example_photographs

RNG = np.random.default_rng(0)


def noisy(images, size=30):
    return np.clip(images + RNG.normal(0, size, images.shape), 0, 255).astype(np.uint8)


def by_hand(first, second, span):
    """Wang et al. 2004, Eq. 13, pixel by pixel with a window of 121 weights, for one plane."""
    first, second = (np.pad(plane.astype(float), 5, mode="reflect") for plane in (first, second))
    offset = np.arange(-5, 6)
    weights = np.exp(-(offset[:, None] ** 2 + offset**2) / (2 * 1.5**2))
    weights /= weights.sum()
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    values = []
    for i in range(first.shape[0] - 10):
        for j in range(first.shape[1] - 10):
            x, y = first[i : i + 11, j : j + 11], second[i : i + 11, j : j + 11]
            mx, my = (weights * x).sum(), (weights * y).sum()
            vx, vy = (weights * (x - mx) ** 2).sum(), (weights * (y - my) ** 2).sum()
            cov = (weights * (x - mx) * (y - my)).sum()
            values.append((2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2)))
    return np.mean(values)


@pytest.mark.parametrize("shape", [(28, 28), (32, 40, 3), (7, 9), (6, 6, 1), (70, 80), (100, 6, 3), (65, 64, 2)])
def test_it_equals_torchmetrics(shape):
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.image")
    images = example_photographs(3, (*shape[:2], 3))[..., : shape[2] if len(shape) == 3 else 1].reshape(3, *shape)
    for first, second, span in (
        (images, noisy(images), 255.0),
        (images / np.float32(255), noisy(images) / np.float32(255), 1.0),
    ):
        tensors = [torch.tensor(one.reshape(3, *shape[:2], -1)).permute(0, 3, 1, 2).double() for one in (second, first)]
        expected = functional.structural_similarity_index_measure(*tensors, data_range=span, reduction="none")
        np.testing.assert_allclose(ssim(first, second), expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("shape", [(9, 12), (1, 1), (3, 5), (2, 70)])
def test_it_is_the_formula_also_for_images_smaller_than_the_window(shape):
    first, second = RNG.integers(0, 256, (2, 2, *shape)).astype(np.uint8)
    expected = [by_hand(a, b, 255) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(ssim(first, second), expected, atol=1e-9)


def test_both_ways_of_filtering_agree(monkeypatch):
    images = example_photographs(4, (48, 33, 3))
    changed = noisy(images)
    small = ssim(images, changed)
    monkeypatch.setattr(module, "_LARGE", 0)
    np.testing.assert_allclose(ssim(images, changed), small, atol=1e-12)


images_of_any_kind = st.one_of(
    npst.arrays(np.uint8, st.tuples(st.just(3), st.integers(1, 20), st.integers(1, 20))),
    npst.arrays(
        np.float32,
        st.tuples(st.just(3), st.integers(1, 14), st.integers(1, 14), st.integers(1, 4)),
        elements=st.floats(0, 1, width=32),
    ),
)


@settings(max_examples=60, deadline=None)
@given(images_of_any_kind, st.integers(0, 99))
def test_it_is_symmetric_bounded_and_1_for_the_same(images, seed):
    other = np.random.default_rng(seed).permutation(images.ravel()).reshape(images.shape)
    values = ssim(images, other)
    assert values.shape == (3,)
    assert (np.abs(values) <= 1 + 1e-9).all()
    np.testing.assert_allclose(values, ssim(other, images), atol=1e-12)
    np.testing.assert_allclose(ssim(images, images), 1, atol=1e-12)


def test_it_falls_as_noise_grows_and_each_image_has_its_own_value():
    images = example_images(20)
    values = [ssim(images, noisy(images, size)).mean() for size in (5, 20, 60)]
    assert 1 > values[0] > values[1] > values[2]
    changed = noisy(images)
    alone = [ssim(images[[row]], changed[[row]])[0] for row in range(20)]
    np.testing.assert_allclose(ssim(images, changed), alone, atol=1e-12)


def test_the_range_comes_from_the_type_or_from_the_option():
    images = example_photographs(3)
    changed = noisy(images)
    expected = ssim(images, changed)
    wide = ssim(images.astype(np.uint16) * 257, changed.astype(np.uint16) * 257)
    np.testing.assert_allclose(wide, expected, atol=1e-9)
    np.testing.assert_allclose(ssim(images * 1.0, changed * 1.0, data_range=255), expected, atol=1e-12)
    np.testing.assert_allclose(ssim(images.astype(int), changed.astype(int), data_range=255), expected, atol=1e-12)
    measure = resolve({"use": "ssim", "data_range": 255})
    reference = measure.reference(images * 1.0, None, seed=0)
    assert reference.score(changed * 1.0).value == pytest.approx(expected.mean())


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (["a", "b", "c"], "these inputs are texts"),
        ([("a", "b")] * 3, "these inputs are texts"),
        (np.zeros((3, 5), np.uint8), r"not \(3, 5\)"),
        (np.zeros((3, 3, 28, 28), np.uint8), "1 to 4 channels"),
        (np.zeros((3, 0, 5), np.uint8), r"not \(3, 0, 5\)"),
        (np.zeros((3, 8, 8), bool), "not bool"),
        (np.zeros((3, 8, 8), np.int64), "not int64"),
        (np.full((3, 8, 8), 1.5), "from 1.5 to 1.5"),
        (np.full((3, 8, 8), np.nan), "NaN or infinity"),
    ],
)
def test_what_is_no_image_is_refused(batch, words):
    with pytest.raises(InputError, match=rf"^quality: ssim.*{words}"):
        resolve("ssim").reference(batch, None, seed=0)


def test_perturbed_images_must_have_the_form_of_the_clean_ones():
    reference = resolve("ssim").reference(np.zeros((3, 8, 8), np.uint8), None, seed=0)
    for wrong in (np.zeros((3, 8, 9), np.uint8), np.zeros((3, 8, 8))):
        with pytest.raises(InputError, match="images of one form"):
            reference.score(wrong)


@pytest.mark.parametrize("wrong", [0, -1, "wide", True, np.inf, np.nan])
def test_a_wrong_range_is_refused(wrong):
    with pytest.raises(InputError, match="data_range"):
        resolve({"use": "ssim", "data_range": wrong})
