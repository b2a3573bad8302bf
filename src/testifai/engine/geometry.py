"""Where what is expected of images is once a configuration has moved them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, CONFIDENCE, NONE, UNSEEN, Boxes
from testifai.perturb import Perturbation
from testifai.perturb.annotations import Outline, Places, looked_up, through
from testifai.support.types import Array, Record

LEAST_LEFT = 0.5  # of a box on the image, for it to be expected still


@dataclass(frozen=True)
class Movement:
    """One step of a composite that moves pixels, with what its draws follow besides the images' numbers.

    It is at a severity or, in a sweep, at a continuous level.
    """

    perturbation: Perturbation
    severity: int
    seed: int
    occurrence: int = 0
    level: float | None = None

    def outlines(
        self, given: list[list[Outline]], size: tuple[int, int], numbers: NDArray[np.intp]
    ) -> list[list[Outline]]:
        """Where outlines on images of this size are after it."""
        key: Record = {"seed": self.seed, "indices": numbers, "occurrence": self.occurrence}
        return self.perturbation.apply_outlines(given, self.severity, size, level=self.level, **key)

    def places(self, size: tuple[int, int], numbers: NDArray[np.intp]) -> Iterator[Places]:
        """Of images of this size, one after the other, the place that each pixel shows after it."""
        key: Record = {"seed": self.seed, "indices": numbers, "occurrence": self.occurrence}
        return self.perturbation.places(self.severity, size, level=self.level, **key)


# What has been moved: f(rows, steps, sizes, numbers) -> rows; sizes and numbers are those of the images.
Mover = Callable[[Any, Sequence[Movement], NDArray[np.intp], NDArray[np.intp]], Any]


def move_boxes(boxes: Boxes, steps: Sequence[Movement], sizes: NDArray[np.intp], numbers: NDArray[np.intp]) -> Boxes:
    """Boxes where the steps, one after the other, have taken them.

    One of which less than half is left on the image may be found or not; one that has left it is gone.
    """
    moved = boxes.copy()
    for size in np.unique(sizes, axis=0):
        rows = np.flatnonzero((sizes == size).all(axis=1))
        places = [np.flatnonzero(boxes[row, :, CLASS] != NONE) for row in rows]
        outlines = [
            [Outline.of(box) for box in boxes[row, found, :CONFIDENCE]] for row, found in zip(rows, places, strict=True)
        ]
        for step in steps:
            outlines = step.outlines(outlines, (int(size[0]), int(size[1])), numbers[rows])
        for row, found, image in zip(rows, places, outlines, strict=True):
            for place, outline in zip(found, image, strict=True):
                _write(moved[row, place], outline)
    return moved


def move_masks(maps: Array, steps: Sequence[Movement], sizes: NDArray[np.intp], numbers: NDArray[np.intp]) -> Array:
    """Label maps where the steps, one after the other, have taken them; a pixel that nothing moved to is not seen."""
    size = (maps.shape[1], maps.shape[2])
    ways = [step.places(size, numbers) for step in steps]
    shown = (reduce(through, places) for places in zip(*ways, strict=True))
    return np.stack([looked_up(labels, places, UNSEEN) for labels, places in zip(maps, shown, strict=True)])


def _write(row: NDArray[np.float32], outline: Outline) -> None:
    row[:CONFIDENCE] = outline.box
    if outline.left < LEAST_LEFT:
        row[CONFIDENCE] = 0
    if not outline.left:
        row[CLASS] = NONE


MOVERS: dict[str, Mover] = {"boxes": move_boxes, "masks": move_masks}
