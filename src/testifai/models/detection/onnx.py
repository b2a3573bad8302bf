"""Detectors in ONNX files: from images of any size to boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, CONFIDENCE, MOST, Boxes, ious, pack
from testifai.errors import InputError, suggest
from testifai.models.detection.heads import HEADS, Head, Shapes, Size, recognise
from testifai.models.onnx_session import OnnxFile, infer, sizes
from testifai.models.preprocess import PerChannel, Preprocess, Scale
from testifai.support import validation
from testifai.support.batches import Batch
from testifai.support.optional_imports import cv2
from testifai.support.types import Record

Fit = Literal["centre", "corner", "stretch"]
LEAST, OVERLAP = 0.01, 0.45  # usual least score, and overlap for non-maximum suppression
CANDIDATES = 300  # most confident boxes of an image that non-maximum suppression sees
GREY = 114  # of a canvas around an image
TOGETHER = 8  # images per inference; more are no quicker on a CPU


@dataclass(frozen=True)
class Letterbox:
    """Fits images to a grey canvas, in its middle or first corner; `stretch` ignores their proportions."""

    canvas: Size
    centred: bool = True
    stretch: bool = False

    def placed(self, size: Size) -> Placed:
        (height, width), (tall, wide) = size, self.canvas
        if self.stretch:
            return Placed((tall / height, wide / width), (0, 0), self.canvas)
        scale = min(tall / height, wide / width)
        fitted = min(tall, round(height * scale)), min(wide, round(width * scale))
        corner = ((tall - fitted[0]) // 2, (wide - fitted[1]) // 2) if self.centred else (0, 0)
        return Placed((scale, scale), corner, fitted)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        place = self.placed((images.shape[1], images.shape[2]))
        if place.size == images.shape[1:3] == self.canvas:
            return images
        (top, left), (height, width) = place.corner, place.size
        canvases = np.full((len(images), *self.canvas, *images.shape[3:]), GREY, np.uint8)
        for canvas, image in zip(canvases, images, strict=True):
            resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
            canvas[top : top + height, left : left + width] = resized.reshape(height, width, *canvas.shape[2:])
        return canvases


@dataclass(frozen=True)
class Placed:
    scale: tuple[float, float]  # down, across
    corner: tuple[int, int]  # top, left
    size: Size

    def back(self, corners: NDArray[np.floating], size: Size) -> NDArray[np.float32]:
        """Return boxes (…, 4) on the canvas as boxes on images of this size, clipped at their edges."""
        (down, across), (top, left), (height, width) = self.scale, self.corner, size
        moved = (corners - np.array([left, top, left, top])) / np.array([across, down, across, down])
        return np.asarray(np.clip(moved, 0, np.array([width, height, width, height])), np.float32)


class AnySizeError(InputError):
    """A graph that takes images of any size."""


class OnnxDetector(OnnxFile):
    """A detector in an ONNX file; `head` is the format of its outputs, by default inferred from their shapes.

    Images of any size are fitted to the `size` (height, width) that the graph takes. Boxes below the score `confidence`
    are dropped; of two boxes of a class with a larger overlap than `nms`, the less confident one is.
    """

    outputs = "boxes"

    def __init__(
        self,
        path: str | Path,
        *,
        head: str | None = None,
        size: Sequence[int] | None = None,
        confidence: float | None = None,
        nms: float | None = None,
        fit: str | None = None,
        bgr: bool | None = None,
        scale: Scale | None = None,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        classes: Sequence[str] | None = None,
        threads: int = 1,
        batch_size: int | None = None,
    ) -> None:
        told: Record = {
            "head": head, "size": size, "confidence": confidence, "nms": nms, "fit": fit, "bgr": bgr,
            "scale": scale, "mean": mean, "std": std, "classes": classes,
        }  # fmt: skip
        super().__init__(path, told, threads=threads, batch_size=batch_size)
        self._shape, self._channels_last = _image_shape(self.name, self.input_shape)
        self.canvas = _canvas(self.name, self._shape, size)
        self._names = [node.name for node in self._session.get_outputs()]
        self.head, self._names, shapes = self._read_head(head)
        if fit is None:
            self._fit = Letterbox(self.canvas, self.head.centred, self.head.stretch)
        else:
            validation.choice("model: fit", fit, get_args(Fit))
            self._fit = Letterbox(self.canvas, fit == "centre", fit == "stretch")
        self._bgr = self.head.bgr if bgr is None else bgr
        usual = {"scale": self.head.scale, "mean": self.head.mean, "std": self.head.std}
        given = {option: value for option, value in told.items() if option in usual and value is not None}
        layout = "NHWC" if self._channels_last else "NCHW"
        self._prepare = Preprocess(layout, dtype=self.input_dtype, **{**usual, **given})
        confidence = LEAST if confidence is None else confidence
        self.confidence = validation.number("model: confidence", confidence, least=0, most=1)
        overlap = OVERLAP if nms is None and self.head.overlapping else nms
        self.nms = None if overlap is None else validation.number("model: nms", overlap, above=0, most=1)
        self.classes = self.head.classes(shapes)
        self.shown_outputs = " and ".join(map(_shown, shapes))
        if classes is not None:
            self.class_values = [str(one) for one in classes]
            if self.classes is not None and len(self.class_values) != self.classes:
                raise InputError(
                    f"model: classes names {len(self.class_values)} classes; {self.name} tells {self.classes} apart"
                )
            self.classes = len(self.class_values)
        self.batch_size = batch_size

    def __call__(self, batch: Batch) -> Boxes:
        images = [_in_colour(self.name, image) for image in batch]
        found: list[Boxes] = []
        for start in range(0, len(images), TOGETHER):
            some = images[start : start + TOGETHER]
            canvases = np.concatenate([self._fit(image[None]) for image in some])
            ready = np.asarray(self._prepare(canvases[..., ::-1] if self._bgr else canvases))
            outputs = infer(self._session, self._names, ready, self.name)
            for box, score, image in zip(*self.head.decode(outputs, self.canvas), some, strict=True):
                size = image.shape[0], image.shape[1]
                placed = self._fit.placed(size)
                found.append(choose(box, score, placed, size, least=self.confidence, overlap=self.nms))
        return pack(found, MOST)

    def _read_head(self, told: str | None) -> tuple[Head, list[str], Shapes]:
        """Return the format of the outputs, the names of those that are needed, and their shapes."""
        shapes = [sizes(node) for node in self._session.get_outputs()]
        if not all(shapes) or any(size is None for shape in shapes for size in shape[1:]):
            layout = (1, *self.canvas, 3) if self._channels_last else (1, 3, *self.canvas)
            made = infer(self._session, self._names, np.zeros(layout, self.input_dtype), self.name)
            shapes = [output.shape for output in made]
        if told is not None and told not in HEADS:
            raise InputError(f"model: head {told!r} is not known; {suggest(told, HEADS)}")
        # Some graphs return more than the boxes, which then come first.
        for count in dict.fromkeys((len(shapes), 1)):
            some = shapes[:count]
            found = recognise(some, self.canvas) if told is None else HEADS[told]
            if found is not None and found.fits(some, self.canvas):
                return found, self._names[:count], some
        listed = ", ".join(f"{name} {_shown(shape)}" for name, shape in zip(self._names, shapes, strict=True))
        heads = HEADS.values() if told is None else [HEADS[told]]
        known = ", ".join(f"{one.name} {one.form(self.canvas)}" for one in heads)
        what = "no head that is known" if told is None else f"not the head {told!r}"
        raise InputError(
            f"model: the outputs of {self.name} fit {what}: {listed}; accepted for images of "
            f"{self.canvas[0]}×{self.canvas[1]}: {known}"
        )


def _image_shape(name: str, shape: tuple[int | None, ...]) -> tuple[tuple[int | None, int | None], bool]:
    if len(shape) == 4 and 3 in (shape[1], shape[3]):
        return ((shape[2], shape[3]), False) if shape[1] == 3 else ((shape[1], shape[2]), True)
    raise InputError(
        f"model: {name} takes inputs {_shown(shape)}; a detector takes (N, 3, height, width) or (N, height, width, 3)"
    )


def _canvas(name: str, taken: tuple[int | None, int | None], told: Sequence[int] | None) -> Size:
    if told is not None:
        sides = list(told) if isinstance(told, list | tuple) else []
        if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise InputError(f"model: size = {told!r} is not accepted; [height, width] in pixels is")
        if any(own not in (None, side) for own, side in zip(taken, sides, strict=True)):
            raise InputError(f"model: size = {list(told)} is not what {name} takes, {_shown(taken)}; leave it out")
        return sides[0], sides[1]
    if taken[0] is None or taken[1] is None:
        raise AnySizeError(
            f"model: {name} takes images of any size; say which it was made for, with its head: head = '…', "
            "size = [640, 640]"
        )
    return taken[0], taken[1]


def _in_colour(name: str, image: Any) -> NDArray[np.uint8]:
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim not in (2, 3):
        what = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else f"a {type(image).__name__}"
        raise InputError(f"{name}: the inputs are {what}; a detector takes images, uint8 (height, width, 3)")
    if image.ndim == 2 or image.shape[2] == 1:
        image = np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
    if image.shape[2] != 3:
        raise InputError(f"{name}: the images have {image.shape[2]} channels; a detector takes 3, RGB")
    return np.asarray(image, np.uint8)


def _shown(shape: Sequence[int | None]) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in shape)})"


def suppress(boxes: Boxes, overlap: float, most: int) -> Boxes:
    """Drop boxes that overlap (IoU) a more confident one of their class by more; return the best first."""
    ranked = boxes[np.argsort(-boxes[:, CONFIDENCE], kind="stable")[:CANDIDATES]]
    rivals = ious(ranked, ranked) > overlap
    rivals &= ranked[:, None, CLASS] == ranked[None, :, CLASS]
    # Most boxes have no rival, and stay.
    doubtful = np.flatnonzero(np.triu(rivals, 1).any(axis=1))
    gone = np.zeros(len(ranked), bool)
    for place in doubtful.tolist():
        if not gone[place]:
            gone[place + 1 :] |= rivals[place, place + 1 :]
    return ranked[~gone][:most]


def choose(
    corners: NDArray[np.floating],
    scores: NDArray[np.floating],
    placed: Placed,
    size: Size,
    *,
    least: float,
    overlap: float | None,
) -> Boxes:
    likely = np.flatnonzero(scores.max(axis=1) >= least)
    row, label = np.nonzero(scores[likely] >= least)
    row = likely[row]
    confidence = scores[row, label]
    surest = np.argsort(-confidence, kind="stable")[:CANDIDATES]
    row, label, confidence = row[surest], label[surest], confidence[surest]
    boxes = np.column_stack([placed.back(corners[row], size), confidence, label]).astype(np.float32)
    return boxes[:MOST] if overlap is None else suppress(boxes, overlap, MOST)
