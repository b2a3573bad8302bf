"""What readers of boxes have in common: photographs with boxes, none of them outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from testifai.data.arrays import Data
from testifai.data.photographs import photographs
from testifai.errors import InputError
from testifai.support.boxes import CONFIDENCE, Boxes, areas, pack

BESIDE = 2.0  # pixels that a box may reach over the edge: people round


def boxed_photographs(
    folder: Path, names: Sequence[str], boxes: Sequence[Boxes], classes: Sequence[str] | None, name: str
) -> Data:
    """The data set of these images; boxes that reach a little over the edge are cut off there."""
    files = photographs(folder, names)
    sizes = files.sizes(np.arange(len(names)))
    for image, rows, (height, width) in zip(names, boxes, sizes.tolist(), strict=True):
        _check_within(rows, height, width, image)
        np.clip(rows[:, [0, 2]], 0, width, out=rows[:, 0:4:2])
        np.clip(rows[:, [1, 3]], 0, height, out=rows[:, 1:4:2])
        rows[areas(rows) <= 0, CONFIDENCE] = 0  # nobody can find it
    return Data(files, pack(boxes), None if classes is None else tuple(classes), name)


def _check_within(rows: Boxes, height: int, width: int, image: str) -> None:
    corners = rows[:, :CONFIDENCE]
    inside = (corners >= -BESIDE) & (corners <= np.array([width, height, width, height]) + BESIDE)
    right = inside.all(axis=1) & (corners[:, :2] <= corners[:, 2:]).all(axis=1)
    if not right.all():
        box = ", ".join(f"{side:g}" for side in corners[int(np.argmin(right))].tolist())
        raise InputError(
            f"data: {image} is {height}×{width}, and its box ({box}) is not within; (x1, y1, x2, y2) with "
            f"0 ≤ x1 ≤ x2 ≤ {width} and 0 ≤ y1 ≤ y2 ≤ {height} is accepted"
        )
