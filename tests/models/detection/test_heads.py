"""Outputs made from known boxes are read back as these boxes, in every form."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.models.detection.heads import HEADS, Head, cells, recognise
from testifai.models.detection.onnx import Letterbox, choose

CANVAS = (64, 96)
BOXES = np.array([[8, 4, 40, 36, 0.9, 2], [50, 10, 90, 60, 0.6, 0]], np.float32)
CLASSES = 3


def centred(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:4]) / 2, boxes[:, 2:4] - boxes[:, :2]], axis=1)


def scored() -> np.ndarray:
    scores = np.zeros((len(BOXES), CLASSES), np.float32)
    scores[np.arange(len(BOXES)), BOXES[:, 5].astype(int)] = BOXES[:, 4]
    return scores


def yolox() -> list[np.ndarray]:
    rows = np.zeros((1, cells(CANVAS), 5 + CLASSES), np.float32)
    for place, box, score in zip((3, 40), centred(BOXES), scored(), strict=True):
        # Both cells are of the finest grid, with steps of eight pixels.
        row, column = divmod(place, CANVAS[1] // 8)
        rows[0, place, :2] = box[:2] / 8 - (column, row)
        rows[0, place, 2:4] = np.log(box[2:] / 8)
        rows[0, place, 4], rows[0, place, 5:] = 0.5, 2 * score
    return [rows]


def yolov5() -> list[np.ndarray]:
    rows = np.zeros((1, 3 * cells(CANVAS), 5 + CLASSES), np.float32)
    rows[0, [5, 77], :4], rows[0, [5, 77], 4], rows[0, [5, 77], 5:] = centred(BOXES), 1, scored()
    return [rows]


def yolov8() -> list[np.ndarray]:
    rows = np.zeros((1, 4 + CLASSES, cells(CANVAS)), np.float32)
    rows[0, :4, [5, 77]], rows[0, 4:, [5, 77]] = centred(BOXES), scored()
    return [rows]


def detr() -> list[np.ndarray]:
    boxes = np.full((1, 10, 4), 0.5, np.float32)
    boxes[0, [1, 7]] = centred(BOXES) / [96, 64, 96, 64]
    chances = np.full((1, 10, CLASSES + 1), 1e-9)
    chances[..., -1] = 1
    chances[0, [1, 7], :CLASSES] += scored()
    chances[0, [1, 7], -1] = 1 - BOXES[:, 4]
    return [np.log(chances), boxes]


MADE = {"yolox": yolox, "yolov5": yolov5, "yolov8": yolov8, "detr": detr}


@pytest.mark.parametrize("name", HEADS)
def test_known_boxes_are_read_back(name: str) -> None:
    outputs = MADE[name]()
    shapes = [output.shape for output in outputs]
    head = recognise(shapes, CANVAS)
    assert isinstance(head, Head)
    assert head.name == name
    assert head.classes(shapes) == CLASSES
    corners, scores = head.decode(outputs, CANVAS)
    placed = Letterbox(CANVAS).placed(CANVAS)
    found = choose(corners[0], scores[0], placed, CANVAS, least=0.3, overlap=0.5)
    assert found == pytest.approx(BOXES, abs=1e-3)


def test_boxes_that_are_worked_out_already_stay_as_they_are() -> None:
    rows = yolox()[0]
    rows[..., :4] = 0
    rows[0, [3, 40], :4] = centred(BOXES)
    corners, _ = HEADS["yolox"].decode([rows], CANVAS)
    assert corners[0, [3, 40]] == pytest.approx(BOXES[:, :4], abs=1e-3)


@pytest.mark.parametrize("shapes", [[(1, 10)], [(1, 7, 85)], [(1, 10, 5), (1, 10, 6)], [(1, 3, 4, 5)], []])
def test_other_shapes_are_no_head_of_ours(shapes: list[tuple[int, ...]]) -> None:
    assert recognise(shapes, CANVAS) is None
