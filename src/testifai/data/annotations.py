"""Boxes on images: rows (x1, y1, x2, y2, confidence, class) in pixels from the outer corner of the first pixel.

The boxes of many images are one array (images, rows, 6); rows that an image does not need have class -1 and come last.
An expected box has confidence 1, or 0 if finding it is optional, as for a crowd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.types import Floats, RecordLike

Boxes = NDArray[np.float32]

COLUMNS = 6
CONFIDENCE, CLASS = 4, 5  # columns after the four of the corners
NONE = -1  # the class of a row without a box
MOST = 100  # most confident boxes of an image that count, as in COCO


def pack(images: Sequence[Boxes], rows: int | None = None) -> Boxes:
    """Return the boxes of all images in one array, with the given number of rows for each, or as many as needed."""
    rows = max((len(image) for image in images), default=0) if rows is None else rows
    packed = np.zeros((len(images), rows, COLUMNS), np.float32)
    packed[..., CLASS] = NONE
    for row, image in zip(packed, images, strict=True):
        row[: len(image)] = image[:rows]
    return packed


def are_boxes(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim == 3 and array.shape[2] == COLUMNS and array.dtype.kind == "f"


def unpack(packed: Boxes) -> Iterable[Boxes]:
    return (image[image[:, CLASS] != NONE] for image in packed)


def areas(boxes: NDArray[np.floating]) -> Floats:
    corners = np.asarray(boxes, np.float64)
    return np.asarray((corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1]))


def intersections(one: NDArray[np.floating], other: NDArray[np.floating]) -> Floats:
    left, top, right, bottom = np.asarray(one, np.float64)[:, :4].T[:, :, None]
    other_left, other_top, other_right, other_bottom = np.asarray(other, np.float64)[:, :4].T[:, None, :]
    across = np.minimum(right, other_right) - np.maximum(left, other_left)
    down = np.minimum(bottom, other_bottom) - np.maximum(top, other_top)
    return np.asarray(np.maximum(across, 0) * np.maximum(down, 0))


def ious(one: NDArray[np.floating], other: NDArray[np.floating]) -> Floats:
    """Return the intersection over union of each box of `one` with each of `other`; 0 if neither has an area."""
    common = intersections(one, other)
    union = areas(one)[:, None] + areas(other)[None, :] - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


UNSEEN = -1  # the label of a pixel that shows nothing of the original image
MOST_CLASSES = 2**15 - 1  # the highest class of a pixel: maps have two bytes per pixel


def are_label_maps(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.ndim == 3 and array.dtype.kind in "iu"


ACCEPTED = "{'boxes': rows (x1, y1, x2, y2) in pixels, 'labels': class numbers from 0, 'scores': numbers 0 … 1}"


def are_records(given: Any) -> bool:
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(one, Mapping) for one in given)


def from_records(records: Sequence[RecordLike], name: str, most: int | None = None) -> Boxes:
    """Return the boxes of each image, most confident first, at most `most` each; default scores are 1."""
    return pack([_rows(record, f"{name}: image {place}") for place, record in enumerate(records)], most)


def _rows(record: RecordLike, where: str) -> Boxes:
    missing = {"boxes", "labels"} - record.keys()
    if missing:
        found = ", ".join(map(str, record)) or "nothing"
        raise InputError(f"{where} has {found}, and no {' or '.join(sorted(missing))}; {ACCEPTED} is accepted")
    corners, labels = _numbers(record["boxes"]), _numbers(record["labels"])
    scores = _numbers(record["scores"]) if "scores" in record else np.ones(labels.shape)
    corners = corners.reshape(0, 4) if corners.size == 0 else corners
    if corners.ndim != 2 or corners.shape[1] != 4 or not labels.shape == scores.shape == (len(corners),):
        raise InputError(
            f"{where} has boxes {corners.shape}, labels {labels.shape}, scores {scores.shape}; {ACCEPTED} is accepted"
        )
    if not (np.isfinite(corners).all() and (corners[:, :2] <= corners[:, 2:]).all()):
        raise InputError(f"{where} has a box that is none; (x1, y1, x2, y2) with x1 ≤ x2 and y1 ≤ y2 is accepted")
    if not (np.isfinite(scores).all() and (labels >= 0).all() and (labels == np.floor(labels)).all()):
        raise InputError(f"{where}: labels have to be whole numbers from 0 on, scores finite numbers")
    rows = np.empty((len(corners), COLUMNS), np.float32)
    rows[:, :CONFIDENCE], rows[:, CONFIDENCE:] = corners, np.column_stack([scores, labels])
    return rows[np.argsort(-scores, kind="stable")]


def _numbers(values: Any) -> Floats:
    """An array, also of a torch tensor on another device or in a gradient graph."""
    values = values.detach().cpu() if hasattr(values, "detach") else values
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return np.full((1, 1, 1), np.nan)  # a shape that is rejected
