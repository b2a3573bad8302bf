"""Photographs in files, each of its own size, decoded when a batch asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data import image_io
from testifai.data.annotations import CONFIDENCE, Boxes, areas, pack
from testifai.data.dataset import Data
from testifai.data.image_files import ImageFiles, Listed, decoded, read_bytes
from testifai.errors import InputError
from testifai.support.fingerprints import Rows

HEAD = 1 << 16  # bytes in which most files say how large their image is
TURNED = b"Exif\0\0"  # what may follow says that the image is to be turned, so that it is not as large as it says


class Photographs(ImageFiles):
    """Image files as images of any size: a batch is a list of arrays (H, W, 3), RGB, uint8."""

    def __init__(self, files: Listed) -> None:
        super().__init__(files, None, "rgb")
        self.shape = (len(self.files),)
        files.make_ready(range(len(files)))
        self._sizes = np.array([_size(file) for file in self.files], np.intp).reshape(-1, 2)

    def sizes(self, rows: Rows) -> NDArray[np.intp]:
        return self._sizes[rows]

    def _stacked(self, images: list[NDArray[np.uint8]]) -> Any:
        return images

    def _fit(self, file: Path, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return image


def photographs(files: Listed) -> ImageFiles:
    """Images in colour as they are: a stack where all are of one size, else a list."""
    own = Photographs(files)
    alike = (own.sizes(np.arange(len(own))) == own.sizes(np.arange(1))).all()
    return ImageFiles(files, None, "rgb") if alike else own


def _size(file: Path) -> tuple[int, int]:
    """Height and width as it is decoded."""
    try:
        with file.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    said = image_io.size(head)
    if said is not None and TURNED not in head:
        return said
    height, width = decoded(file, read_bytes(file), "rgb").shape[:2]
    return height, width


BESIDE = 2.0  # pixels that a box may reach over the edge: people round


def boxed_photographs(
    folder: Path, names: Sequence[str], boxes: Sequence[Boxes], classes: Sequence[str] | None, name: str
) -> Data:
    """The data set of these images; boxes that reach a little over the edge are cut off there."""
    files = photographs(Listed(folder, names))
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
