"""What is expected moves along with the images, whoever runs the work and however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.data.annotations import ious, pack
from testifai.engine.subject import Movement, move_boxes
from testifai.errors import InputError
from testifai.perturb.geometric import affine_perturbation
from testifai.perturb.registry import _registered

SIZES = [(120, 160), (90, 130), (120, 160), (100, 100)] * 3
STRICT = {"use": "detection", "iou": 0.75}


def bright(images):
    """A detector of one thing: all that is bright."""
    found = []
    for image in images:
        rows, columns = (np.flatnonzero((image[..., 0] > 100).any(axis=axis)) for axis in (1, 0))
        box = [[columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]] if len(rows) else []
        found.append({"boxes": box, "labels": [0] * len(box), "scores": [0.9] * len(box)})
    return found


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    images, labels = [], []
    for height, width in SIZES:
        top, left = height // 2 - int(random.integers(10, 20)), width // 2 - int(random.integers(10, 20))
        box = [left, top, left + int(random.integers(20, 40)), top + int(random.integers(20, 40))]
        image = np.zeros((height, width, 3), np.uint8)
        image[box[1] : box[3], box[0] : box[2]] = 255
        images.append(image)
        labels.append({"boxes": [box], "labels": [0]})
    return images, labels


@pytest.mark.parametrize("labelled", [True, False])
def test_what_follows_its_pixels_passes_everywhere(data, labelled):
    axes = {
        "turn": ("deeptest.rotate", [0, 3]),
        "shift": ("mnist_c.translate", [0, 2, 5]),  # each image in a direction of its own
        "again": ("mnist_c.translate", [0, 5]),
        "dark": ("deeptest.brightness", [0, 1]),
    }
    tomogram = ta.scan(bright, data if labelled else data[0], ta.Space(axes), oracle=STRICT, strategy="full")
    assert tomogram.estimate.min() == 1


def test_what_stays_where_it_was_fails_where_images_move(data):
    images, labels = data
    shown = ([image for image in images if image.shape[:2] == (120, 160)], [labels[0]] * 6)

    def unmoved(batch):
        return [{**labels[0], "scores": [1]} for _ in batch]

    space = ta.Space({"shift": ("deeptest.translate", [0, 4]), "dark": ("deeptest.brightness", [0, 1])})
    tomogram = ta.scan(unmoved, shown, space, oracle="detection", strategy="full")
    assert tomogram.estimate.tolist() == [[1, 1], [0, 0]]


def test_neither_batches_nor_workers_nor_interruptions_matter(data, tmp_path):
    space = ta.Space({"shift": ("mnist_c.translate", [0, 2, 5]), "fog": ("imagenet_c.fog", [0, 5])})

    def run(**options):
        made = ta.scan(dimmed, data[0], space, oracle={**STRICT, "iou": 0.9}, seed=3, **options)
        return made.passes, made.trials

    whole = run(strategy="full", batch_size=1, workers=1)
    assert 0 < whole[0].sum() < whole[1].sum()
    for options in ({"batch_size": 5, "workers": 2}, {}):
        assert all(map(np.array_equal, whole, run(strategy="full", **options)))
    run(strategy="full", budget=30, store=tmp_path / "run.db")
    assert all(map(np.array_equal, whole, run(strategy="full", store=tmp_path / "run.db")))


def dimmed(images):
    """Finds what is bright a little too large where the image is foggy."""
    found = bright([np.where(image > 180, 255, 0) for image in images])
    for image, one in zip(images, found, strict=True):
        grown = float(np.median(image)) / 50
        one["boxes"] = [[x1 - grown, y1 - grown, x2 + grown, y2 + grown] for x1, y1, x2, y2 in one["boxes"]]
    return found


def test_a_box_of_which_less_than_half_is_left_may_be_found_or_not():
    class Right:
        def outlines(self, outlines, by, rng, size):
            return [[corners + np.array([by, 0]) for corners in image] for image in outlines]

    rightwards = ta.Perturbation(
        "right", lambda images, by, rng: np.roll(images, by, axis=2), [0, 40, 55], shows=Right()
    )
    boxes = pack([np.array([[80, 10, 120, 50, 1, 2], [60, 10, 80, 50, 1, 1], [130, 10, 150, 20, 1, 0]])], 4)

    def moved(*severities):
        steps = [Movement(rightwards, severity, seed=0) for severity in severities]
        return move_boxes(boxes, steps, np.array([[60, 150]]), np.array([7]))[0].tolist()

    gone = [0, 0, 0, 0, 0, -1]
    assert moved(1) == [[120, 10, 150, 50, 1, 2], [100, 10, 120, 50, 1, 1], gone, gone]
    assert moved(2) == [[135, 10, 150, 50, 0, 2], [115, 10, 135, 50, 1, 1], gone, gone]
    # What one step cut off does not come back with the next.
    assert moved(1, 1) == [gone, [140, 10, 150, 50, 1, 1], gone, gone]


def test_the_order_of_application_counts(data):
    try:

        @affine_perturbation("test.half", [0, 0.5])
        def half(share, rng, height, width):
            """Show everything at twice the distance from the first corner."""
            return [[share, 0, 0], [0, share, 0]], None

        images = [np.zeros((100, 100, 3), np.uint8) for _ in range(4)]
        for place, image in enumerate(images):
            image[10 : 20 + place, 10:25] = 255
        labels = [{"boxes": [[10, 10, 25, 20 + place]], "labels": [0]} for place in range(4)]
        space = ta.Space({"half": half, "shift": ("deeptest.rotate", [0, 1])}, order_sensitive=True)
        tomogram = ta.scan(bright, (images, labels), space, oracle=STRICT, strategy="full")
        assert tomogram.query("order == 2").robustness == 1
    finally:
        del _registered["test.half"]


def test_an_oracle_of_ones_own_may_have_its_boxes_moved(data):
    def overlaps(outputs, expected, clean):
        pairs = zip(outputs, expected, strict=True)
        return np.array([ious(found[:1], there[:1])[0, 0] >= 0.9 for found, there in pairs])

    space = ta.Space({"shift": ("deeptest.translate", [0, 4])})
    for moves, passes in (("boxes", [1, 1]), (None, [1, 0])):
        oracle = {"use": "function", "function": overlaps, "needs_labels": True, "moves": moves}
        assert ta.scan(bright, data, space, oracle=oracle, strategy="full").estimate.tolist() == passes
    with pytest.raises(InputError, match="moves 'points' is not known; accepted: boxes"):
        ta.scan(bright, data, space, oracle={**oracle, "moves": "points"})


def test_levels_of_a_sweep_move_boxes_too(data):
    found = ta.sweep_model(bright, data, "classic.rotation", oracle=STRICT, points=8, curvature=16)
    assert min(found.accuracies) == 1


def test_a_device_is_refused_in_one_line(data):
    pytest.importorskip("torch")
    for given, what in ((data, "boxes that move with their images"), (data[0], "boxes that move")):
        with pytest.raises(InputError, match=f"device: 'cpu' is not for {what}.*leave device out"):
            ta.scan(bright, given, ta.Space({"turn": "deeptest.rotate"}), oracle="detection", device="cpu")
