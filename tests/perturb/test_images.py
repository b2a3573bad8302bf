"""What reaches a formula and what comes back: kinds of arrays, slabs, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai import InputError
from testifai.perturb import registry
from testifai.perturb.images import SLAB, image_perturbation
from testifai.testing import example_images


@pytest.fixture(autouse=True)
def _forget_names():
    yield
    for name in [name for name in registry._registered if name.startswith("test.")]:
        del registry._registered[name]


def negative(seen=None, slab=SLAB):
    """Inverts images, and writes down the shapes it was given."""

    @image_perturbation("test.negative", [0, 1], slab=slab)
    def formula(ops, images, parameter, rng):
        """Invert."""
        if seen is not None:
            seen.append((images.shape, images.dtype, images.flags.c_contiguous))
        return 255 - images

    return formula


def noisy(slab):
    @image_perturbation("test.noisy", [0, 1], slab=slab)
    def formula(ops, images, parameter, rng):
        """Add noise: two fields and a few numbers per image."""
        first, few = rng.field(ops.image_shape(images)), rng.uniform(low=0.0, high=30.0)
        second = rng.field(ops.image_shape(images))
        return ops.levels(ops.floats(images) + ops.uniform(first, -40, 40) * ops.uniform(second) + ops.per_image(few))

    return formula


@pytest.mark.parametrize("form", [(28, 28), (28, 28, 1), (9, 12, 3)])
def test_the_formula_sees_four_axes_and_the_caller_gets_his_own_shape_back(form):
    seen = []
    images = example_images(3, form)
    result = negative(seen).apply(images, 1)
    assert result.shape == images.shape
    assert result.dtype == np.uint8
    assert np.array_equal(result, 255 - images)
    assert seen == [((3, *form[:2], form[2] if len(form) == 3 else 1), np.uint8, True)]


@pytest.mark.parametrize("view", [np.s_[:, ::-1], np.s_[:, :, ::2], np.s_[::-2]], ids=str)
def test_views_reach_the_formula_contiguous_whole_or_in_slabs(view):
    images = example_images(6, (16, 12, 3))[view]
    for slab in (1, SLAB):
        seen = []
        assert np.array_equal(negative(seen, slab).apply(images, 1), 255 - images)
        assert all(contiguous for _, _, contiguous in seen)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 9), st.integers(1, 3000), st.sampled_from([(8, 8), (5, 11, 1), (4, 6, 3)]))
def test_slabs_change_nothing(count, slab, form):
    images = example_images(count, form)
    whole, sliced = noisy(SLAB).apply(images, 1, seed=5), noisy(slab).apply(images, 1, seed=5)
    assert np.array_equal(whole, sliced)


def test_a_slab_holds_no_more_numbers_than_it_may_but_at_least_an_image():
    images = example_images(7, (10, 10, 3))
    for slab, sizes in ((1, [1] * 7), (600, [2, 2, 2, 1]), (700, [2, 2, 2, 1]), (2100, [7]), (2099, [6, 1])):
        seen = []
        negative(seen, slab).apply(images, 1)
        assert [shape[0] for shape, _, _ in seen] == sizes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("form", [(28, 28), (8, 8, 3)])
def test_floats_from_0_to_1_come_back_as_floats(dtype, form):
    levels = example_images(4, form)
    given_images = (levels / 255).astype(dtype)
    result = negative().apply(given_images, 1)
    assert result.dtype == dtype
    assert result.shape == given_images.shape
    assert np.allclose(result, 1 - given_images.astype(np.float64), atol=1e-3 if dtype is np.float16 else 1e-6)
    assert np.array_equal(np.rint(result.astype(np.float64) * 255), 255 - levels.astype(int))


def test_every_grey_level_survives_the_way_to_floats_and_back():
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    for dtype in (np.float16, np.float32, np.float64):
        twice = negative().apply(negative().apply((levels / 255).astype(dtype), 1), 1)
        assert np.array_equal(np.rint(twice.astype(np.float64) * 255), levels)


@pytest.mark.parametrize("wrong", [-0.01, 1.01, 255.0, np.nan, np.inf, -np.inf])
def test_floats_outside_0_to_1_are_refused_in_one_line(wrong):
    images = np.full((3, 8, 8), 0.5, np.float32)
    images[1, 2, 3] = wrong
    with pytest.raises(
        InputError, match=r"^perturbation 'test\.negative': float images must lie in 0\.\.1, got"
    ) as caught:
        negative().apply(images, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "batch",
    [
        np.zeros((2, 8, 8), np.int64),
        np.zeros((2, 8, 8), bool),
        np.zeros((2, 8), np.uint8),
        np.zeros((2, 8), np.float32),
        np.zeros((2, 8, 8, 4), np.uint8),
        np.zeros((2, 3, 8, 8), np.float64),
        ["text"],
    ],
    ids=lambda batch: f"{getattr(batch, 'dtype', 'text')}{getattr(batch, 'shape', '')}",
)
def test_what_is_no_image_is_refused_in_one_line(batch):
    with pytest.raises(InputError, match=r"^perturbation 'test\.negative': images must") as caught:
        negative().apply(batch, 1)
    assert "\n" not in str(caught.value)


def test_a_formula_that_writes_to_its_images_is_caught_and_the_batch_stays():
    @image_perturbation("test.vandal", [0, 1])
    def formula(ops, images, parameter, rng):
        """Write."""
        images[:] = 0
        return images

    images = example_images(2)
    kept = images.copy()
    with pytest.raises(InputError, match="must not change its argument"):
        formula.apply(images, 1)
    assert np.array_equal(images, kept)


def test_the_perturbation_is_described_by_the_formula_and_its_options():
    def boxes(rows, parameter, rng, size):
        return rows

    @image_perturbation("test.documented", [0, 1, 2], boxes=boxes, growing=False, levels=(0, 2))
    def formula(ops, images, parameter, rng):
        """Do nothing much.

        And more about it.
        """
        return images.copy()

    assert formula.summary == "Do nothing much."
    assert (formula.boxes, formula.growing, formula.levels) == (boxes, False, (0.0, 2.0))
    assert formula.severities == (0, 1, 2)
    assert registry.get("test.documented") is formula


def test_tensors_are_treated_like_arrays():
    torch = pytest.importorskip("torch")
    images = example_images(3, (8, 8, 3))
    assert np.array_equal(negative().function(torch.from_numpy(images), 1, None).numpy(), 255 - images)
    floats = torch.from_numpy(images).float() / 255
    result = negative().function(floats, 1, None)
    assert result.dtype == floats.dtype
    assert torch.allclose(result, 1 - floats, atol=1e-6)
    with pytest.raises(InputError, match=r"float images must lie in 0\.\.1"):
        negative().function(floats * 255, 1, None)
