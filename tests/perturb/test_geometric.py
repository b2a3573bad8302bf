"""Boxes against a brute force: draw them filled, perturb the picture, see where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.data.annotations import ious
from testifai.perturb import get, ops, registry
from testifai.perturb.annotations import Outline, area
from testifai.perturb.geometric import affine_perturbation, displacement_perturbation, turn

MOVING = [
    "classic.rotation",
    "classic.rotation_clockwise",
    "deeptest.rotate",
    "deeptest.scale",
    "deeptest.shear",
    "deeptest.translate",
    "mnist_c.rotate",
    "mnist_c.shear",
    "mnist_c.translate",
    "mnist_c.zoom",
]
DISPLACING = ["cifar_c.elastic_transform", "imagenet_c.elastic_transform"]
HEIGHT, WIDTH = 90, 120
# Around the centre, so that the strongest movements leave something of most of them.
BOXES = np.array([[50.0, 30, 72, 50], [40, 38, 66, 61], [58, 42, 63, 46], [30, 20, 90, 70]])


@pytest.fixture(autouse=True)
def _forget_names():
    yield
    for name in [name for name in registry._registered if name.startswith("test.")]:
        del registry._registered[name]


def drawn(boxes, size=(HEIGHT, WIDTH)):
    """A picture for each box: white where the box is."""
    pictures = np.zeros((len(boxes), *size), np.uint8)
    for picture, (left, top, right, bottom) in zip(pictures, np.asarray(boxes).astype(int), strict=True):
        picture[top:bottom, left:right] = 255
    return pictures


def found(picture, threshold=127):
    """The box around what is lighter than the threshold."""
    rows, columns = np.flatnonzero((picture > threshold).any(axis=1)), np.flatnonzero((picture > threshold).any(axis=0))
    return [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1] if len(columns) else None


def elastic(name="test.elastic", strength=6.0):
    @displacement_perturbation(name, [0.0, strength / 2, strength])
    def plan(ops, strength, rng, height, width):
        """Shift pixels smoothly."""
        words = [rng.field((height, width)) for _ in range(2)]
        return tuple(ops.gaussian(ops.uniform(one, -1, 1) * (strength * 20), 8.0) for one in words)

    return plan


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_boxes_are_where_the_moved_picture_shows_them(name, severity):
    move = get(name)
    moved = move.apply_boxes([[box] for box in BOXES], severity, (HEIGHT, WIDTH), seed=4)
    pictures = move.apply(drawn(BOXES), severity, seed=4)
    compared = 0
    for (box,), picture in zip(moved, pictures, strict=True):
        upright = name in {"deeptest.scale", "deeptest.translate", "mnist_c.translate", "mnist_c.zoom"}
        if (box[2:] > box[:2] + 1).all():
            # A slanted corner is faint: what counts as seen there begins earlier.
            assert np.abs(box - found(picture, 127 if upright else 20)).max() <= (1.1 if upright else 1.5)
            compared += 1
    assert compared >= 1


@pytest.mark.parametrize("name", MOVING)
def test_every_perturbation_that_moves_pixels_moves_boxes_and_no_other_does(name):
    assert get(name).moves
    suite = name.partition(".")[0]
    others = [other for other in registry.names(suite) if other not in MOVING]
    assert not any(get(other).moves for other in others)


@pytest.mark.parametrize("name", MOVING)
def test_several_boxes_of_one_image_move_together(name):
    together = get(name).apply_boxes([BOXES], 3, (HEIGHT, WIDTH))[0]
    alone = [get(name).apply_boxes([[box]], 3, (HEIGHT, WIDTH))[0][0] for box in BOXES]
    assert np.allclose(together, alone)


@pytest.mark.parametrize("name", ["mnist_c.rotate", "mnist_c.translate", "test.elastic"])
def test_boxes_replay_the_draws_of_their_image(name):
    elastic()
    move = get(name)
    box = [[50.0, 30, 72, 50]]
    many = move.apply_boxes([box] * 12, 2, (HEIGHT, WIDTH), seed=3, indices=np.arange(100, 112), occurrence=1)
    assert len({tuple(rows[0].round(6)) for rows in many}) > 1
    pictures = move.apply(drawn(box * 12), 2, seed=3, indices=np.arange(100, 112), occurrence=1)
    for rows, picture in zip(many, pictures, strict=True):
        assert np.abs(rows[0] - found(picture, 40)).max() <= 1.5
    order = [7, 2, 11]
    few = move.apply_boxes([box] * 3, 2, (HEIGHT, WIDTH), seed=3, indices=np.array(order) + 100, occurrence=1)
    assert all(np.array_equal(rows, many[place]) for rows, place in zip(few, order, strict=True))
    for other in ({"seed": 4}, {"occurrence": 2}, {"indices": np.arange(12)}):
        key = {"seed": 3, "occurrence": 1, "indices": np.arange(100, 112)} | other
        again = move.apply_boxes([box] * 12, 2, (HEIGHT, WIDTH), **key)
        assert any(not np.array_equal(one, two) for one, two in zip(again, many, strict=True))


@pytest.mark.parametrize("name", [*MOVING, "test.elastic"])
def test_images_without_boxes(name):
    elastic()
    moved = get(name).apply_boxes([[], [[10, 10, 20, 20]], np.zeros((0, 4))], 2, (64, 64))
    assert [rows.shape for rows in moved] == [(0, 4), (1, 4), (0, 4)]
    assert get(name).apply_boxes([], 2, (64, 64)) == []


def test_boxes_that_leave_the_image_have_no_area():
    right = get("deeptest.translate").apply_boxes([[[470.0, 100, 479, 120], [0, 0, 40, 40]]], 5, (480, 480))[0]
    assert right.tolist() == [[0, 0, 0, 0], [100, 100, 140, 140]]
    grown = get("deeptest.scale").apply_boxes([[[0.0, 0, 20, 20], [0, 0, 480, 480]]], 5, (480, 480))[0]
    assert grown.tolist() == [[0, 0, 0, 0], [0, 0, 480, 480]]


def test_boxes_of_a_displacement_that_shows_nothing_of_them_have_no_area():
    @displacement_perturbation("test.away", [0, 50])
    def plan(ops, by, rng, height, width):
        """Look far to the right."""
        words = rng.field((height, width))
        return ops.zeros(words, words.shape) + by, ops.zeros(words, words.shape)

    moved = plan.apply_boxes([[[10, 10, 30, 30], [60, 5, 70, 25]]], 1, (64, 100))[0]
    assert moved.tolist() == [[0, 0, 0, 0], [10, 5, 20, 25]]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 30), st.integers(5, 25), st.integers(40, 55), st.integers(30, 40))
def test_elastic_boxes_are_where_the_picture_shows_them(seed, width, height, left, top):
    # Far enough from the border for no mirror image of it to be seen.
    box = [left, top, left + width, top + height]
    plan = elastic()
    moved = plan.apply_boxes([[box]], 1, (HEIGHT, WIDTH), seed=seed)[0][0]
    seen = found(plan.apply(drawn([box]), 1, seed=seed)[0])
    assert np.abs(moved - seen).max() <= 1


def test_displacements_that_fold_the_image_still_hold_their_boxes():
    # Neighbouring pixels look many pixels apart: there is no inverse.
    @displacement_perturbation("test.folding", [0, 4.0])
    def plan(ops, strength, rng, height, width):
        """Shake pixels."""
        words = [rng.field((height, width)) for _ in range(2)]
        return tuple(ops.uniform(one, -strength, strength) for one in words)

    moved = plan.apply_boxes([[[40, 30, 70, 60]]], 1, (HEIGHT, WIDTH))[0][0]
    assert np.abs(moved - found(plan.apply(drawn([[40, 30, 70, 60]]), 1)[0])).max() <= 1
    assert np.abs(moved - [36, 26, 74, 64]).max() <= 1.5


def test_one_displacement_for_all_images_may_be_a_single_layer():
    @displacement_perturbation("test.slide", [0, 5])
    def plan(ops, by, rng, height, width):
        """Slide to the left."""
        x, y = ops.grid(rng.field(1), height, width)
        return 0 * x + by, 0 * y

    pictures = drawn(BOXES)
    assert np.array_equal(plan.apply(pictures, 1)[:, :, :-5], pictures[:, :, 5:])
    assert plan.apply_boxes([BOXES] * 2, 1, (HEIGHT, WIDTH))[1].tolist() == (BOXES - [5, 0, 5, 0]).tolist()


def test_outside_has_the_grey_level_of_the_border():
    @affine_perturbation("test.move", [0, 3], border=77)
    def plan(pixels, rng, height, width):
        """Move to the right."""
        return [[1, 0, -pixels], [0, 1, 0]], None

    moved = plan.apply(np.full((2, 20, 20, 3), 200, np.uint8), 1)
    assert (moved[:, :, :3] == 77).all()
    assert (moved[:, :, 3:] == 200).all()
    assert plan.summary == "Move to the right."


def test_affine_levels_are_continuous_and_off_changes_nothing():
    rotation = get("classic.rotation")
    images = drawn(BOXES)
    assert rotation.apply_level(images, 0) is images
    assert np.array_equal(rotation.apply_level(images, 18.0), rotation.apply(images, 2))


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_turn_by_quarters_is_a_rotation_of_the_array(quarters):
    image = np.random.default_rng(0).integers(0, 256, (1, 21, 21, 1)).astype(np.uint8)
    turned = ops.warp(image, turn(quarters * math.pi / 2, 21, 21))
    # Rounding may leave a pixel at the edge just outside.
    assert np.array_equal(turned[0, 1:-1, 1:-1], np.rot90(image[0], quarters)[1:-1, 1:-1])


@pytest.mark.parametrize("name", [*MOVING, *DISPLACING])
def test_boxes_are_on_the_rectangles_of_the_picture_at_all_severities(name):
    size, move = (180, 240), get(name)
    boxes = 2.0 * BOXES[[0, 1, 3]]
    compared = 0
    for severity in range(1, len(move.severities)):
        pictures = move.apply(drawn(boxes, size), severity, seed=5)
        moved = move.apply_outlines([[Outline.of(box)] for box in boxes], severity, size, seed=5)
        for (outline,), picture in zip(moved, pictures, strict=True):
            if outline.left >= 0.5:  # else it is not expected
                assert ious(np.array([found(picture)]), outline.box[None])[0, 0] >= 0.9, severity
                compared += 1
    assert compared >= 8


def test_no_other_perturbation_of_any_suite_moves_boxes():
    assert [name for name in registry.names() if get(name).moves] == sorted([*MOVING, *DISPLACING])


STEPS = st.tuples(st.sampled_from([*MOVING, "cifar_c.elastic_transform"]), st.integers(1, 5))


@settings(max_examples=16, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=3), st.integers(0, 10**6))
def test_outlines_through_composites_are_where_the_picture_shows_them(steps, seed):
    size = (180, 240)
    boxes = 2.0 * BOXES[[0, 3]]
    pictures, outlines = drawn(boxes, size), [[Outline.of(box)] for box in boxes]
    for occurrence, (name, severity) in enumerate(steps):
        key = {"seed": seed, "occurrence": occurrence}
        pictures = get(name).apply(pictures, severity, **key)
        outlines = get(name).apply_outlines(outlines, severity, size, **key)
    mirrors = any("elastic" in name for name, _ in steps)
    for (outline,), picture in zip(outlines, pictures, strict=True):
        seen = found(picture)
        # What is nearly gone has no box worth comparing: half a pixel is much of it.
        if outline.left < 0.5 or area(outline.corners) < 400:
            continue
        assert seen is not None
        at_edge = min(seen[:2]) == 0 or seen[2] == size[1] or seen[3] == size[0]
        if not (mirrors and at_edge):  # a mirror image at the edge is not the box
            assert ious(np.array([seen]), outline.box[None])[0, 0] >= 0.9
