"""Boxes as people hand them over: for each image a mapping of boxes, labels and, of those found, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.boxes import COLUMNS, CONFIDENCE, Boxes, pack

ACCEPTED = "{'boxes': rows (x1, y1, x2, y2) in pixels, 'labels': class numbers from 0, 'scores': numbers 0 … 1}"


def are_records(given: Any) -> bool:
    """Whether this is a list of what is on each image."""
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(one, Mapping) for one in given)


def from_records(records: Sequence[Mapping[str, Any]], name: str, most: int | None = None) -> Boxes:
    """The boxes of each image, the surest first; with `most`, so many rows for each image. Without scores they are 1.

    >>> found = [{"boxes": [[0, 0, 4, 4], [1, 1, 2, 2]], "labels": [7, 3], "scores": [0.2, 0.9]}]
    >>> from_records(found, "model", most=3)[0, :, 5].tolist()
    [3.0, 7.0, -1.0]
    """
    return pack([_rows(record, f"{name}: image {place}") for place, record in enumerate(records)], most)


def _rows(record: Mapping[str, Any], where: str) -> Boxes:
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


def _numbers(values: Any) -> NDArray[np.float64]:
    """As an array; a torch tensor may be on another device or part of a gradient graph."""
    values = values.detach().cpu() if hasattr(values, "detach") else values
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return np.full((1, 1, 1), np.nan)  # of no shape that is accepted
