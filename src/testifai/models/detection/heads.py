"""Output formats of detectors: one class and one line in `HEADS` each.

YOLOX (Ge et al., 2021) returns offsets within the cells of three grids and logarithms of sizes; YOLOv5 decoded boxes
with an objectness; YOLOv8 and later boxes without one, classes along another axis; DETR (Carion et al., 2020) boxes as
shares of the image and, separately, logits of classes and of "nothing".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from testifai.support.types import Array

Size = tuple[int, int]  # height, width
Shapes = Sequence[Sequence[int | None]]
Decoded = tuple[Array, Array]  # corners (images, boxes, 4) in pixels of the canvas, scores (images, boxes, classes)

STRIDES = (8, 16, 32)


class Head(ABC):
    """The format of a detector's outputs, and the usual preprocessing of such detectors."""

    name: str
    scale: str = "unit"
    bgr = False  # blue first
    centred = True
    stretch = False  # resized without keeping proportions
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    overlapping = True  # needs non-maximum suppression

    @abstractmethod
    def fits(self, shapes: Shapes, canvas: Size) -> bool:
        """Return True if outputs of these shapes, in the order of the graph, have this format."""

    @abstractmethod
    def form(self, canvas: Size) -> str:
        """Return the shapes of its outputs, in words."""

    @abstractmethod
    def decode(self, outputs: Sequence[Array], canvas: Size) -> Decoded: ...

    @abstractmethod
    def classes(self, shapes: Shapes) -> int | None:
        """Return the number of classes in outputs of these shapes, None if they leave it open."""


class _Rows(Head):
    """One output (images, boxes, columns): centre, size, perhaps objectness, a score per class."""

    anchors = 1  # boxes for each cell
    objectness = True
    transposed = False  # (images, columns, boxes)

    def fits(self, shapes: Shapes, canvas: Size) -> bool:
        boxes = 2 if self.transposed else 1
        return len(shapes) == 1 and len(shapes[0]) == 3 and shapes[0][boxes] == self.anchors * cells(canvas)

    def form(self, canvas: Size) -> str:
        boxes, columns = str(self.anchors * cells(canvas)), f"{5 if self.objectness else 4} + classes"
        return f"(N, {columns}, {boxes})" if self.transposed else f"(N, {boxes}, {columns})"

    def decode(self, outputs: Sequence[Array], canvas: Size) -> Decoded:
        rows = np.asarray(outputs[0], np.float32)
        rows = rows.transpose(0, 2, 1) if self.transposed else rows
        scores = rows[..., 4:5] * rows[..., 5:] if self.objectness else rows[..., 4:]
        return corners(self._centred(rows[..., :4], canvas)), scores

    def _centred(self, boxes: Array, canvas: Size) -> Array:
        return boxes

    def classes(self, shapes: Shapes) -> int | None:
        columns = shapes[0][1 if self.transposed else 2]
        return None if columns is None else columns - (5 if self.objectness else 4)


class YoloX(_Rows):
    """One box for each cell of three grids; inputs are integers, blue first, in the first corner of the canvas."""

    name = "yolox"
    scale = "raw"
    bgr = True
    centred = False

    def _centred(self, boxes: Array, canvas: Size) -> Array:
        # Some are exported with decoded boxes: no logarithm of a size is as large as a size in pixels.
        if boxes.size and boxes[..., 2:].max() > np.log(4 * max(canvas)):
            return boxes
        cell = [(x, y, s) for s in STRIDES for y in range(canvas[0] // s) for x in range(canvas[1] // s)]
        grid, stride = np.split(np.array(cell, np.float32), [2], axis=1)
        centre = (boxes[..., :2] + grid) * stride
        return np.concatenate([centre, np.exp(boxes[..., 2:]) * stride], axis=-1)


class YoloV5(_Rows):
    name = "yolov5"
    anchors = 3


class YoloV8(_Rows):
    """One decoded box for each cell, without an objectness, classes along another axis."""

    name = "yolov8"
    objectness = False
    transposed = True


class Detr(Head):
    """Boxes (images, queries, 4) as shares of the image, and logits (images, queries, classes + 1), "nothing" last."""

    name = "detr"
    stretch = True
    mean = (0.485, 0.456, 0.406)
    std = (0.229, 0.224, 0.225)
    overlapping = False

    def fits(self, shapes: Shapes, canvas: Size) -> bool:
        return len(shapes) == 2 and all(len(shape) == 3 for shape in shapes) and self._boxes(shapes) is not None

    def form(self, canvas: Size) -> str:
        return "(N, queries, 4) and (N, queries, classes + 1)"

    def decode(self, outputs: Sequence[Array], canvas: Size) -> Decoded:
        place = self._boxes([output.shape for output in outputs])
        assert place is not None, "outputs have the shapes that fitted"
        boxes, logits = outputs[place], np.asarray(outputs[1 - place], np.float64)
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        scores = (odds / odds.sum(axis=-1, keepdims=True))[..., :-1]
        return corners(boxes * np.array([canvas[1], canvas[0]] * 2, np.float32)), scores.astype(np.float32)

    def classes(self, shapes: Shapes) -> int | None:
        logits = shapes[1 - (self._boxes(shapes) or 0)][2]
        return None if logits is None else logits - 1

    @staticmethod
    def _boxes(shapes: Shapes) -> int | None:
        """Return which of the two outputs contains boxes: the one of four columns; of two such, the second."""
        four = [place for place, shape in enumerate(shapes) if shape[2] == 4]
        return four[-1] if four else None


HEADS: dict[str, Head] = {head.name: head for head in (YoloX(), YoloV5(), YoloV8(), Detr())}


def recognise(shapes: Shapes, canvas: Size) -> Head | None:
    return next((head for head in HEADS.values() if head.fits(shapes, canvas)), None)


def cells(canvas: Size) -> int:
    return sum((canvas[0] // stride) * (canvas[1] // stride) for stride in STRIDES)


def corners(boxes: Array) -> Array:
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return np.concatenate([centre - half, centre + half], axis=-1)
