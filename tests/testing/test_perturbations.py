"""The contract check finds each way to break the contract, and passes what keeps it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation, perturbation, registry
from testifai.testing import check_perturbation, example_images, example_photographs

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
        # An input that is there twice, as where two conditions of it are perturbed together.
        (lambda rows, scale, rng: rows + scale * (rng.indices[:, None] == rng.indices).sum(1)[:, None], "depends on"),
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


def test_growth_can_be_waived_by_the_caller_or_by_the_perturbation():
    def shrink(rows, scale, rng):
        return rows + 3 - scale

    check_perturbation(subject(shrink), ROWS, growing=False)
    says_so = Perturbation("mine", shrink, (0.0, 1.0, 2.0), growing=False)
    check_perturbation(says_so, ROWS)
    with pytest.raises(AssertionError, match="does not grow"):
        check_perturbation(says_so, ROWS, growing=True)


def test_a_perturbation_that_fails_on_plain_images_is_found():
    def stretch(images, share, rng):
        pixels = images.reshape(len(images), -1)
        span = np.ptp(pixels, axis=1, keepdims=True).astype(float)
        return (pixels / span).astype(np.uint8).reshape(images.shape)

    with np.errstate(all="raise"), pytest.raises(AssertionError, match="constant grey level 0"):
        check_perturbation(subject(stretch), growing=False)


def test_a_description_that_json_cannot_carry_back_is_found(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    drifted = {"name": "own", "severities": [(0, 0)]}
    monkeypatch.setattr("testifai.testing.perturbations.describe", lambda one: {**drifted, "name": one.name})
    made = perturbation("own", severities=[(0, 0), (1, 1)])(lambda rows, pair, rng: rows + pair[0])
    with pytest.raises(InputError, match="severities were"):
        check_perturbation(made, ROWS)


def shift(images, pixels, rng):
    return np.roll(images, pixels, axis=2)


def moved_boxes(boxes, pixels):
    return [rows + np.array([pixels, 0, pixels, 0]) for rows in boxes]


def shifted_boxes(boxes, pixels, rng, size):
    return [np.clip(rows, 0, [size[1], size[0]] * 2) for rows in moved_boxes(boxes, pixels)]


def with_boxes(boxes):
    return Perturbation("mine", shift, (0, 2, 5, 9), boxes=boxes, growing=False)


def test_boxes_that_follow_the_image_pass():
    check_perturbation(with_boxes(shifted_boxes))


def test_boxes_of_what_has_left_the_image_must_be_thin():
    def blank(images, pixels, rng):
        return np.zeros_like(images)

    def corners(boxes, pixels, rng, size):
        return [rows[:, [0, 1, 0, 1]] for rows in boxes]

    gone = Perturbation("mine", blank, (0, 1), boxes=corners, growing=False)
    check_perturbation(gone)
    with pytest.raises(AssertionError, match="surrounds is nowhere"):
        check_perturbation(Perturbation("mine", blank, (0, 1), boxes=lambda boxes, *_: boxes, growing=False))


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        (lambda boxes, pixels, rng, size: boxes, r"moves a box to .* and what it surrounds is at \[25, 16, 47, 34\]"),
        (lambda boxes, pixels, rng, size: shifted_boxes(boxes, -pixels, rng, size), "what it surrounds"),
        (lambda boxes, pixels, rng, size: moved_boxes(boxes, pixels), "out of the image"),
        (lambda boxes, pixels, rng, size: [rows[:, [2, 3, 0, 1]] for rows in boxes], "inside out"),
        (lambda boxes, pixels, rng, size: [rows + len(boxes) / 8 for rows in boxes], "depends on the batch"),
        (lambda boxes, pixels, rng, size: boxes[:1], "boxes of another number"),
        (lambda boxes, pixels, rng, size: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_boxes_that_do_not_are_found(boxes, words):
    with pytest.raises(AssertionError, match=words):
        check_perturbation(with_boxes(boxes))


def darker(change):
    return Perturbation(
        "mine",
        lambda images, level, rng: np.rint(images * change(level)).astype(np.uint8),
        (0.0, 0.5, 1.0),
        levels=(0.0, 1.0),
        growing=False,
    )


@pytest.mark.parametrize(
    "change", [lambda level: 1 - level, lambda level: 1 - level**4, lambda level: (1 - level) ** 8]
)
def test_continuous_levels_pass(change):
    check_perturbation(darker(change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda level: 1 - round(5 * level) / 5, "levels jump"),
        (lambda level: 0.9 - 0.9 * level, "levels jump"),
        (lambda level: 1, "changes nothing at its strongest level"),
        (lambda level: 1 / 0 if 0.1 < level < 0.4 else 1, "fails at level"),
    ],
)
def test_levels_that_jump_are_found(change, words):
    with pytest.raises(AssertionError, match=words):
        check_perturbation(darker(change))


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


@pytest.mark.parametrize("form", [(28, 28), (16, 40, 1), (33, 47, 3)])
def test_example_photographs_are_smooth_with_edges_and_do_not_change(form):
    images = example_photographs(8, form)
    assert images.shape == (8, *form)
    assert images.dtype == np.uint8
    assert np.array_equal(images, example_photographs(8, form))
    assert 90 < images.mean() < 140
    assert 40 < images.std() < 75
    pixels = images.reshape(8, *form[:2], -1).astype(float)
    neighbours = np.corrcoef(pixels[:, :, 1:].ravel(), pixels[:, :, :-1].ravel())[0, 1]
    assert neighbours > 0.85
    if form[2:] == (3,):
        red, green, blue = pixels.reshape(-1, 3).T
        assert 0.3 < np.corrcoef(red, blue)[0, 1] < 0.95
        assert 0.3 < np.corrcoef(red, green)[0, 1] < 0.95


def test_a_smooth_formula_must_be_the_perturbation():
    def fade(images, share, rng):
        return np.floor(images * share + 0.5).astype(np.uint8)

    def fades(smooth):
        return Perturbation("mine", fade, (1.0, 0.8, 0.5), smooth=smooth)

    check_perturbation(fades(lambda ops, images, share: images * share))
    with pytest.raises(AssertionError, match=r"smooth formula is off by .* grey levels"):
        check_perturbation(fades(lambda ops, images, share: images * share + 1))
