"""Images and their label maps: a folder of images, and one of grey .png files of the same names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from testifai.data.dataset import Data, DataPart, from_arrays
from testifai.data.image_files import ImageFiles, Listed, is_grey, read_bytes
from testifai.data.image_files import images as listed
from testifai.errors import InputError
from testifai.support.optional_imports import cv2
from testifai.support.options_base import File, Words
from testifai.support.types import Array


class MasksPart(DataPart):
    """The folder of the label maps, and that of the images (by default `images` beside it)."""

    masks: File
    """The folder of the label maps."""
    images: File | None = None
    """The folder of the images; default: `images` beside it."""
    classes: Words | None = None
    """Names of the classes in their order."""

    FILES: ClassVar = ("masks", "images")

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return load_masks(options.pop("masks"), **options)


def load_masks(path: str | Path, images: str | Path | None = None, classes: Sequence[str] | None = None) -> Data:
    """The images of a folder with the label maps of the same names, all of one size: a pixel's grey is its class."""
    masks = Path(path)
    folder = masks.parent / "images" if images is None else Path(images)
    for one in (masks, folder):
        if not one.is_dir():
            raise InputError(f"data: {one} is not a folder" if one.exists() else f"data: {one} does not exist")
    names = listed(folder).loose
    if not names:
        raise InputError(f"data: {folder} holds no images; those of the label maps in {masks} are looked for there")
    color = "grey" if is_grey(folder / names[0]) else "rgb"
    files = ImageFiles(Listed(folder, names), None, color)
    size = (files.shape[1], files.shape[2])
    maps = np.stack([_mask(masks / Path(name).with_suffix(".png"), name, size) for name in names])
    return from_arrays(files, maps, classes, name=folder.name)


def _mask(file: Path, image: str, size: tuple[int, int]) -> Array:
    if not file.is_file():
        raise InputError(f"data: {file} does not exist; the label map of {image} is looked for there")
    mask = cv2.imdecode(read_bytes(file), cv2.IMREAD_UNCHANGED)
    if mask is None:
        raise InputError(f"data: {file} is not a readable image; a label map is a grey .png file")
    if mask.ndim == 3 and mask.shape[2] > 1:
        raise InputError(
            f"data: {file} is in colour; a label map is grey, 8 or 16 bits, its greys the numbers of classes "
            "(of a .png with a palette save the numbers: Image.fromarray(numpy.array(Image.open(file))))"
        )
    pixels: Array = np.asarray(mask).reshape(mask.shape[:2])
    if pixels.shape != size:
        raise InputError(
            f"data: {file} is {pixels.shape[0]}×{pixels.shape[1]}, the first image {size[0]}×{size[1]}; "
            "images and label maps have to be of one size"
        )
    return pixels
