"""The contract that every built-in perturbation keeps."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import get, names
from testifai.testing import check_perturbation, example_images

built_in = pytest.mark.parametrize("name", names("mnist_c"))


@built_in
def test_contract(name):
    check_perturbation(name)


@built_in
def test_batch_size_and_position_do_not_matter(name):
    subject = get(name)
    images = np.random.default_rng(0).integers(0, 256, (107, 28, 28)).astype(np.uint8)
    indices = np.random.default_rng(1).permutation(1000)[:107]
    whole = subject.apply(images, 3, seed=4, indices=indices)
    for size in (1, 7, 100):
        parts = [slice(start, start + size) for start in range(0, 107, size)]
        results = [subject.apply(images[part], 3, seed=4, indices=indices[part]) for part in parts]
        assert np.array_equal(np.concatenate(results), whole)


@built_in
def test_grey_comes_out_the_same_with_a_channel_axis(name):
    images = example_images(4)
    plain = get(name).apply(images, 4)
    assert np.array_equal(get(name).apply(images[..., None], 4)[..., 0], plain)


@built_in
def test_images_above_the_small_size(name):
    check_perturbation(name, example_images(3, (70, 90, 3)), growing=False)


@built_in
@pytest.mark.parametrize("view", [np.s_[:, ::-1], np.s_[:, :, ::2], np.s_[::2]], ids=str)
def test_views_of_images_come_out_like_their_copies(name, view):
    images = example_images(6, (32, 48))[view]
    assert np.array_equal(get(name).apply(images, 2), get(name).apply(images.copy(), 2))


@built_in
def test_what_is_no_image_is_refused_by_name(name):
    for batch in (np.zeros((2, 28, 28), np.float32), np.zeros((2, 5), np.uint8), ["text"]):
        with pytest.raises(InputError, match=f"^perturbation '{name}': images must"):
            get(name).apply(batch, 1)


@built_in
def test_every_perturbation_has_six_severities_and_a_summary(name):
    assert len(get(name).severities) == 6
    assert get(name).summary.endswith(".")
