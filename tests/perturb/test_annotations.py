"""Label maps against a brute force: draw shapes, perturb the picture, see where they are."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import Perturbation, get, registry
from testifai.perturb.annotations import looked_up, through
from testifai.support.optional_imports import cv2

MOVING = [
    "cifar_c.elastic_transform",
    "classic.rotation",
    "classic.rotation_clockwise",
    "deeptest.rotate",
    "deeptest.scale",
    "deeptest.shear",
    "deeptest.translate",
    "imagenet_c.elastic_transform",
    "mnist_c.rotate",
    "mnist_c.shear",
    "mnist_c.translate",
    "mnist_c.zoom",
]
SIZE = (180, 240)
VOID = 255


def shapes():
    """A disc, a triangle and a bar on a ground, each with a label of its own."""
    mask = np.zeros(SIZE, np.uint8)
    cv2.circle(mask, (120, 80), 34, 1, -1)
    cv2.fillPoly(mask, [np.array([[70, 150], [110, 60], [40, 90]], np.int32)], 2)
    cv2.rectangle(mask, (100, 110), (190, 140), 3, -1)
    return mask


def painted(masks, label):
    """A picture that is white where a label is."""
    return np.where(masks == label, 255, 0).astype(np.uint8)


def agree(masks, pictures, label):
    """Intersection over union of a label with what the pictures show of it, where the label is known."""
    told, shown = masks == label, (pictures > 127) & (masks != VOID)
    union = np.count_nonzero(told | shown)
    return np.count_nonzero(told & shown) / union if union else 1.0


def moved(steps, seed=0, images=2):
    """Label maps after some steps, and pictures of each label after the same."""
    masks = np.stack([shapes()] * images)
    pictures = {label: painted(masks, label) for label in (1, 2, 3)}
    ways = []
    for occurrence, (name, severity) in enumerate(steps):
        key = {"seed": seed, "occurrence": occurrence, "indices": np.arange(5, 5 + images)}
        ways.append(get(name).places(severity, SIZE, **key))
        pictures = {label: get(name).apply(one, severity, **key) for label, one in pictures.items()}
    shown = [functools.reduce(through, places) for places in zip(*ways, strict=True)]
    return np.stack([looked_up(mask, one, VOID) for mask, one in zip(masks, shown, strict=True)]), pictures


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("severity", range(1, 6))
def test_labels_are_where_the_moved_picture_shows_them(name, severity):
    masks, pictures = moved([(name, severity)])
    alone = get(name).apply_masks(np.stack([shapes()] * 2), severity, void=VOID, indices=np.arange(5, 7))
    assert np.array_equal(alone, masks)
    assert masks.dtype == np.uint8
    assert all(agree(masks, pictures[label], label) >= 0.9 for label in (1, 2, 3))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(MOVING), st.integers(1, 5)), min_size=2, max_size=3), st.integers(0, 10**6))
def test_labels_go_through_composites_in_order(steps, seed):
    masks, pictures = moved(steps, seed, images=1)
    for label in (1, 2, 3):
        # Of a sliver, the blur of two or three resamplings is much.
        if np.count_nonzero(masks == label) >= 1500:
            assert agree(masks, pictures[label], label) >= 0.9


def test_what_comes_in_is_void_and_what_leaves_is_gone():
    (moved,) = get("deeptest.translate").apply_masks(np.ones((1, 480, 480), np.int64), 5, void=-1)
    assert (moved[:100] == -1).all()
    assert (moved[:, :100] == -1).all()
    assert (moved[100:, 100:] == 1).all()


def test_perturbations_that_move_nothing_leave_masks_alone():
    masks = np.stack([shapes()])
    assert get("deeptest.contrast").apply_masks(masks, 5, void=VOID) is masks
    assert get("deeptest.scale").apply_masks(masks, 0, void=VOID) is masks


def test_masks_that_cannot_be_moved_are_refused_in_one_line():
    scale = get("deeptest.scale")
    with pytest.raises(InputError, match=r"^masks: float64 of shape \(2, 3\) is not accepted; give whole numbers"):
        scale.apply_masks(np.zeros((2, 3)), 1, void=VOID)
    with pytest.raises(InputError, match="uint8 cannot hold the label -1"):
        scale.apply_masks(np.zeros((1, 8, 8), np.uint8), 1, void=-1)
    boxes_only = Perturbation("mine.flip", lambda x, _, rng: x[:, :, ::-1], [0, 1], boxes=lambda b, p, rng, size: b)
    with pytest.raises(InputError, match=r"'mine.flip': it moves boxes and does not say how masks move; give it `sho"):
        boxes_only.apply_masks(np.zeros((1, 8, 8), np.uint8), 1, void=VOID)


def test_a_perturbation_of_the_users_says_what_its_pixels_show():
    def mirrored(_, rng, size):
        across, down = np.meshgrid(np.arange(size[1])[::-1] + 0.5, np.arange(size[0]) + 0.5)
        return iter([(across, down)] * len(rng))

    flip = Perturbation("mine.flip", lambda x, _, rng: x[:, :, ::-1].copy(), [0, 1], shows=mirrored)
    masks = np.stack([shapes()])
    assert np.array_equal(flip.apply_masks(masks, 1, void=VOID), flip.apply(masks, 1))
    assert flip.apply_boxes([[[10, 20, 40, 50]]], 1, SIZE)[0].tolist() == [[200, 20, 230, 50]]


def test_every_perturbation_that_moves_boxes_moves_masks():
    every = [get(name) for suite in registry.SUITES for name in registry.names(suite)]
    assert sorted(one.name for one in every if one.shows is not None) == MOVING
    assert sorted(one.name for one in every if one.moves) == MOVING


def test_places_at_a_continuous_level():
    rotation = get("classic.rotation")
    (level,) = rotation.places(0, SIZE, level=18.0, indices=[4])
    (severity,) = rotation.places(2, SIZE, indices=[4])
    assert np.array_equal(level, severity)
    moved = looked_up(shapes(), level, VOID)
    picture = rotation.apply_level(painted(shapes(), 1)[None], 18.0, indices=[4])[0]
    assert agree(moved, picture, 1) >= 0.9
