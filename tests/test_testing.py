"""The contract check finds each way to break the contract, and passes what keeps it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.testing import check_perturbation, example_images

ROWS = np.random.default_rng(0).normal(size=(8, 3))


def subject(function, severities=(0.0, 1.0, 2.0)):
    return Perturbation("mine", function, severities)


def test_good_ones_pass_on_tables_texts_and_images():
    check_perturbation(subject(lambda rows, scale, rng: rows + scale * rng.normal(3)), ROWS)
    check_perturbation(subject(lambda images, share, rng: images // 2**share, (0, 1, 2)))
    texts = ["one", "two and more", "three"]
    check_perturbation(subject(lambda texts, n, rng: [t + "!" * n for t in texts], (0, 1, 2)), texts)


counter = itertools.count()
outside = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda rows, scale, rng: rows + next(counter), "does not repeat itself"),
        (lambda rows, scale, rng: rows + scale * outside.normal(), "does not repeat itself"),
        (lambda rows, scale, rng: rows + scale * rows.mean(), "depends on the batch"),
        (lambda rows, scale, rng: rows + scale * np.arange(len(rows))[:, None], "depends on the batch"),
        (lambda rows, scale, rng: rows + scale * rows.strides[0], "memory layout|depends on the batch"),
        (lambda rows, scale, rng: rows / (scale - 1), "not finite"),
        (lambda rows, scale, rng: rows.astype(np.int32), "int32"),
        (lambda rows, scale, rng: rows + 3 - scale, "does not grow"),
        (lambda rows, scale, rng: rows, "does not grow"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_breach_is_named(function, words):
    with pytest.raises(AssertionError, match=words):
        check_perturbation(subject(function), ROWS)


def test_growth_can_be_waived():
    check_perturbation(subject(lambda rows, scale, rng: rows + 3 - scale), ROWS, growing=False)


def test_an_array_written_to_behind_the_back_is_noticed():
    def sly(rows, scale, rng):
        rows.base[0] += 1
        return rows * 2

    with pytest.raises(AssertionError, match="changes its argument"):
        check_perturbation(subject(sly), ROWS.copy())


def test_too_few_inputs_are_refused():
    with pytest.raises(InputError, match="at least three"):
        check_perturbation(subject(lambda rows, scale, rng: rows), ROWS[:2])


@pytest.mark.parametrize("form", [(28, 28), (16, 40, 1), (50, 20, 3)])
def test_example_images_are_light_strokes_on_black(form):
    images = example_images(5, form)
    assert images.shape == (5, *form)
    assert images.dtype == np.uint8
    assert (images.max(axis=tuple(range(1, images.ndim))) > 100).all()
    assert 0.02 < (images > 60).mean() < 0.5
