"""The contract that every built-in perturbation keeps."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import get, names
from testifai.perturb.registry import SUITES
from testifai.testing import check_perturbation, example_images, example_photographs

# Texts and tables have tests of their own.
BUILT_IN = [name for suite in SUITES if suite not in ("text", "tabular") for name in names(suite)]

pytestmark = [
    pytest.mark.parametrize("name", BUILT_IN),
    # A number that is not finite becomes an arbitrary pixel.
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


SMALL = example_photographs(3, (20, 24, 3))


def strongest(name):
    return len(get(name).severities) - 1


@pytest.mark.parametrize(
    "whole",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["small images", "images of every kind"],
)
def test_contract(name, whole):
    """On images of every kind; in the usual tests all of them for every third perturbation, small ones for the rest."""
    if whole or BUILT_IN.index(name) % 3 == 0:
        check_perturbation(name)
    else:
        check_perturbation(name, SMALL, growing=False)


def test_batch_size_and_position_do_not_matter(name):
    images = np.random.default_rng(0).integers(0, 256, (23, 28, 28)).astype(np.uint8)
    indices = np.random.default_rng(1).permutation(1000)[:23]
    whole = get(name).apply(images, 3, seed=4, indices=indices)
    for size in (1, 7, 20):
        parts = [slice(start, start + size) for start in range(0, 23, size)]
        results = [get(name).apply(images[part], 3, seed=4, indices=indices[part]) for part in parts]
        assert np.array_equal(np.concatenate(results), whole)


def test_more_images_than_are_worked_on_at_once_come_out_as_they_do_alone(name):
    images = np.tile(example_photographs(5, (24, 24, 3)), (40, 1, 1, 1))
    whole = get(name).apply(images, 1)
    for row in (0, 150, 151, 199):
        assert np.array_equal(get(name).apply(images[[row]], 1, indices=[row])[0], whole[row])


def test_grey_comes_out_the_same_with_a_channel_axis(name):
    for images in (example_images(4), example_images(2, (70, 60))):
        plain = get(name).apply(images, strongest(name))
        assert np.array_equal(get(name).apply(images[..., None], strongest(name))[..., 0], plain)


def test_views_of_images_come_out_like_their_copies(name):
    images = example_photographs(6, (24, 36, 3))
    for view in (images[:, ::-1], images[:, :, ::2], images[::2], images[..., 1], images[..., ::-1]):
        assert np.array_equal(get(name).apply(view, 2), get(name).apply(view.copy(), 2))


def test_floats_in_0_to_1_come_out_as_their_bytes_do(name):
    images = example_photographs(3)
    for dtype in (np.float32, np.float64):
        changed = get(name).apply(images / dtype(255), 2)
        assert changed.dtype == dtype
        assert 0 <= changed.min() <= changed.max() <= 1
        np.testing.assert_allclose(changed, get(name).apply(images, 2) / 255, atol=1e-6)


def test_floats_outside_0_to_1_are_refused_by_name(name):
    for wrong in (-0.01, 1.01, 255.0, np.nan, np.inf):
        images = np.zeros((2, 12, 12), np.float32)
        images[1, 3, 3] = wrong
        with pytest.raises(InputError, match=rf"^perturbation '{name}': float images must lie in 0\.\.1"):
            get(name).apply(images, 1)


def test_what_is_no_image_is_refused(name):
    for batch in (np.zeros((2, 28, 28), np.int32), np.zeros((2, 5), np.uint8), np.zeros((2, 9, 9, 2), np.uint8), ["a"]):
        with pytest.raises(InputError, match=f"^perturbation '{name}': images must"):
            get(name).apply(batch, 1)
    for shape in ((0, 28, 28), (2, 0, 28), (2, 28, 0, 3)):
        with pytest.raises(InputError, match=r"^batch: it holds no inputs"):
            get(name).apply(np.zeros(shape, np.uint8), 1)


def test_images_of_one_pixel_and_of_one_row_survive(name):
    for shape in ((2, 1, 1), (2, 1, 9, 3), (2, 9, 1)):
        assert get(name).apply(np.full(shape, 130, np.uint8), strongest(name)).shape == shape


def test_there_are_six_severities_and_a_summary(name):
    assert len(get(name).severities) == 6
    assert get(name).summary[0].isupper()
    assert get(name).summary.endswith(".")
