"""Wide blurs of large images against the same blurs at full size."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.perturb import get, ops
from testifai.perturb.images import MOST, coarsely
from testifai.testing import example_photographs


@pytest.mark.parametrize("form", [(600, 720, 3), (900, 530, 1)])
def test_a_wide_blur_is_what_it_is_at_full_size(form):
    images = ops.resize(example_photographs(2, (120, 144, 3)), *form[:2])[..., : form[2]]
    shrink = min(form[:2]) / MOST
    coarse = coarsely(ops, images, lambda part: ops.gaussian(part, 9.0 if part is images else 9.0 / shrink))
    assert coarse.shape == images.shape
    assert np.abs(coarse.astype(float) - ops.gaussian(images, 9.0)).mean() < 0.5


@pytest.mark.parametrize("form", [(MOST, 2 * MOST, 1), (28, 28, 3)])
def test_images_that_are_not_large_are_left_to_the_blur(form):
    images = np.zeros((1, *form), np.uint8)
    assert coarsely(ops, images, lambda part: part) is images


@pytest.mark.parametrize("name", ["cure.gaussian_blur", "cure.lens_blur", "mnist_c.glass_blur", "mnist_c.motion_blur"])
def test_blurs_that_grow_with_the_image_change_it_alike_at_every_size(name):
    photographs = example_photographs(1, (256, 256, 3))
    small, large = (ops.resize(photographs, side, side) for side in (128, 640))
    changes = [np.abs(get(name).apply(one, 3).astype(float) - one).mean() for one in (small, large)]
    assert changes[1] == pytest.approx(changes[0], rel=0.1)
