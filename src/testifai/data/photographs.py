"""Photographs in files, each of its own size, decoded when a batch asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.contents import Rows
from testifai.data.image_files import ImageFiles, decoded, read_bytes
from testifai.errors import InputError
from testifai.support import image_sizes

HEAD = 1 << 16  # bytes in which most files say how large their image is
TURNED = b"Exif\0\0"  # what may follow says that the image is to be turned, so that it is not as large as it says


class Photographs(ImageFiles):
    """Image files as images of any size: a batch is a list of arrays (H, W, 3), RGB, uint8."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        super().__init__(folder, names, None, "rgb")
        self.shape = (len(self.files),)
        self._sizes = np.array([_size(file) for file in self.files], np.intp).reshape(-1, 2)

    def sizes(self, rows: Rows) -> NDArray[np.intp]:
        return self._sizes[rows]

    def _stacked(self, images: list[NDArray[np.uint8]]) -> Any:
        return images

    def _fit(self, file: Path, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return image


def photographs(folder: Path, names: Sequence[str]) -> ImageFiles:
    """Images in colour as they are: a stack where all are of one size, else a list."""
    own = Photographs(folder, names)
    alike = (own.sizes(np.arange(len(own))) == own.sizes(np.arange(1))).all()
    return ImageFiles(folder, names, None, "rgb") if alike else own


def _size(file: Path) -> tuple[int, int]:
    """Height and width as it is decoded."""
    try:
        with file.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    said = image_sizes.size(head)
    if said is not None and TURNED not in head:
        return said
    height, width = decoded(file, read_bytes(file), "rgb").shape[:2]
    return height, width
