"""Detectors in files: graphs that emit known boxes, and one that finds white tiles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.detection.graphs import SIDE, boxes, constant, tiled, tiles
from tests.models.detection.test_heads import BOXES, CANVAS, CLASSES, MADE

from testifai import models
from testifai.data.annotations import ious, unpack
from testifai.errors import InputError
from testifai.models.detection.heads import HEADS, cells
from testifai.models.detection.onnx import OnnxDetector, suppress
from testifai.models.onnx import OnnxModel
from testifai.testing import check_model

PLACES = [[(0, 1), (2, 2)], [(1, 1)], [], [(0, 0), (0, 3), (3, 3)], [(2, 0)]]


@pytest.fixture
def finder(tmp_path):
    return OnnxDetector(tiles(tmp_path / "tiles.onnx"), nms=0.5)


@pytest.mark.parametrize("name", HEADS)
def test_a_graph_is_recognised_and_its_boxes_are_those_it_emits(name, tmp_path):
    path = constant(tmp_path / "net.onnx", MADE[name](), CANVAS)
    detector = models.wrap(path)
    assert isinstance(detector, OnnxDetector)
    assert (detector.head.name, detector.classes, detector.canvas) == (name, CLASSES, CANVAS)
    found = list(unpack(models.load("onnx", path, head=name, confidence=0.3)(np.zeros((2, *CANVAS, 3), np.uint8))))
    assert [one.tolist() for one in found] == [pytest.approx(BOXES, abs=1e-2)] * 2
    # On an image twice as large they are twice as large.
    (larger,) = unpack(OnnxDetector(path, confidence=0.3)([np.zeros((128, 192, 3), np.uint8)]))
    assert larger[:, :4] == pytest.approx(2 * BOXES[:, :4], abs=2e-2)


@pytest.mark.parametrize("name", HEADS)
def test_images_of_other_proportions_are_fitted_as_their_head_is_fed(name, tmp_path):
    path = constant(tmp_path / "net.onnx", MADE[name](), CANVAS)
    (found,) = unpack(OnnxDetector(path, confidence=0.3)([np.zeros((64, 192, 3), np.uint8)]))
    across, down, above = (2, 1, 0) if HEADS[name].stretch else (2, 2, 16 if HEADS[name].centred else 0)
    expected = (BOXES[:, :4] - [0, above, 0, above]) * [across, down, across, down]
    assert found[:, :4] == pytest.approx(np.clip(expected, 0, [192, 64, 192, 64]), abs=2e-2)


def test_a_graph_for_one_image_takes_many_of_any_size(finder):
    scales = [1, 3, 2, 1, 3]
    images = [tiled(places, (SIDE * scale, SIDE * scale)) for places, scale in zip(PLACES, scales, strict=True)]
    together = finder(images)
    assert together.shape == (5, 100, 6)
    for image, places, scale, found in zip(images, PLACES, scales, unpack(together), strict=True):
        assert sorted(found[:, :4].tolist()) == sorted(boxes(places, scale)["boxes"])
        assert np.array_equal(found, next(unpack(finder([image]))))
    check_model(finder, images)
    check_model(finder, np.stack([tiled(places) for places in PLACES]))


def test_grey_images_are_shown_as_grey(finder):
    grey = tiled(PLACES[0])[..., 0]
    assert np.array_equal(finder(grey[None]), finder(tiled(PLACES[0])[None]))


def test_it_goes_to_other_processes(finder):
    again = pickle.loads(pickle.dumps(finder))
    assert np.array_equal(again(tiled(PLACES[3])[None]), finder(tiled(PLACES[3])[None]))
    assert (again.nms, again.fingerprint) == (0.5, finder.fingerprint)


def test_a_size_that_the_graph_leaves_open_is_told(tmp_path):
    path = constant(tmp_path / "net.onnx", MADE["yolov8"](), CANVAS, open_sizes=True)
    with pytest.raises(InputError, match=r"takes images of any size; say which it was made for.*size = \[640, 640\]"):
        models.wrap(path)
    detector = models.load("onnx", path, head="yolov8", size=list(CANVAS))
    assert detector.canvas == CANVAS


def test_classes_have_names_where_they_are_told(tmp_path):
    path = constant(tmp_path / "net.onnx", MADE["detr"](), CANVAS)
    detector = models.load("onnx", path, head="detr", classes=["a", "b", "c"])
    assert detector.class_values == ["a", "b", "c"]
    labels = np.array([[[0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, -1]]], np.float32)
    assert models.align_labels(labels, ["C"], detector.class_values)[0, :, 5].tolist() == [2, -1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "yolo9"}, "head 'yolo9' is not known; did you mean"),
        ({"head": "yolov8"}, rf"fit not the head 'yolov8': out0 \(1, {cells(CANVAS)}, 8\); accepted .* 4 \+ classes"),
        ({"head": "yolox", "classes": ["a"]}, "classes names 1 classes; net.onnx tells 3 apart"),
        ({"head": "yolox", "size": [64, 64]}, r"size = \[64, 64\] is not what net.onnx takes, \(64, 96\)"),
        ({"head": "yolox", "size": [64]}, r"size = \[64\] is not accepted; \[height, width\]"),
        ({"head": "yolox", "fit": "left"}, "fit: should be 'centre', 'corner' or 'stretch'"),
        ({"head": "yolox", "nms": 2}, "model: nms: must be"),
        ({"nms": 0.5}, "onnx takes nms with a head only"),
        ({"head": "yolox", "layout": "NCHW"}, "onnx takes layout without a head only"),
        ({"layout": "NCHW"}, "has no output"),
    ],
)
def test_mistakes_are_one_line(options, message, tmp_path):
    path = constant(tmp_path / "net.onnx", MADE["yolox"](), CANVAS)
    with pytest.raises(InputError, match=message) as told:
        models.load("onnx", path, **options)
    assert "\n" not in str(told.value)


def test_an_unknown_head_is_told_with_what_is_accepted(tmp_path):
    path = constant(tmp_path / "net.onnx", [np.zeros((1, 7, 85))], CANVAS)
    with pytest.raises(InputError) as told:
        models.wrap(path)
    assert "fit no head that is known: out0 (1, 7, 85); accepted" in str(told.value)
    for head in HEADS.values():
        assert f"{head.name} {head.form(CANVAS)}" in str(told.value)


def test_inputs_that_are_no_images_are_refused(finder):
    for batch, found in (
        (np.zeros((2, 4)), "float64"),
        (["a", "b"], "a str"),
        (np.zeros((1, 8, 8, 4), np.uint8), "4 ch"),
    ):
        with pytest.raises(InputError, match=found):
            finder(batch)


def test_a_model_for_one_size_says_so(tmp_path):
    from tests.wizard.test_init import brightness_model

    model = OnnxModel(brightness_model(tmp_path / "net.onnx", 0.5))
    with pytest.raises(InputError, match=r"of different sizes \(8×8, 9×8\) and the model takes one; resize them with"):
        model([np.zeros((8, 8), np.uint8), np.zeros((9, 8), np.uint8)])


def plainly(boxes: np.ndarray, overlap: float) -> list[list[float]]:
    """One after the other, the surest first: kept unless a kept box of its class overlaps it."""
    kept: list[np.ndarray] = []
    for box in sorted(boxes, key=lambda one: -one[4]):
        if all(other[5] != box[5] or ious(box[None], other[None])[0, 0] <= overlap for other in kept):
            kept.append(box)
    return [box.tolist() for box in kept]


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 0.65]))
def test_what_stays_is_what_the_definition_says(seed: int, overlap: float) -> None:
    generator = np.random.default_rng(seed)
    corner = generator.integers(0, 20, (25, 2))
    boxes = np.column_stack(
        [
            corner,
            corner + generator.integers(1, 20, (25, 2)),
            generator.permutation(25) / 25,
            generator.integers(0, 3, 25),
        ]
    ).astype(np.float32)
    assert suppress(boxes, overlap, most=100).tolist() == plainly(boxes, overlap)


def test_no_boxes_and_too_many() -> None:
    assert suppress(np.zeros((0, 6), np.float32), 0.5, 5).shape == (0, 6)
    apart = np.array([[10 * i, 0, 10 * i + 5, 5, 1 - i / 10, 0] for i in range(8)], np.float32)
    assert len(suppress(apart, 0.5, 3)) == 3
