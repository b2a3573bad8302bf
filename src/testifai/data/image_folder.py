"""Folders of images, decoded when a batch is read: class folders of images, or images with a folder of label maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.data.dataset import Classes, ClassNames, Data, FilePart, from_arrays, numbered
from testifai.data.image_files import (
    ImageFiles,
    Images,
    Listed,
    existing_folder,
    has_images,
    is_grey,
    local_images,
    photographs,
    read_bytes,
    remote_images,
)
from testifai.errors import InputError
from testifai.support.optional_imports import cv2
from testifai.support.options_base import File, Words
from testifai.support.remote import RemoteFolder
from testifai.support.types import Array

OWN = "own"  # the size that each image has


class FolderPart(FilePart):
    """A folder of images, and how they are read."""

    folder: File
    """The folder; one folder in it per class, or none."""
    size: list[int] | Literal["own"] | None = None
    """[height, width] that all images are brought to, or `own`: each as it is."""
    color: Literal["rgb", "grey"] | None = None
    """Whether images are read in colour or in grey; default: what the first image is."""
    classes: ClassNames | None = None
    """Names of the classes in the order of the model's outputs, or their numbers by name."""

    FILES: ClassVar = ("folder",)
    FOLDERS: ClassVar = ("folder",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_dir() and has_images(path)

    @staticmethod
    def read(
        path: Path | RemoteFolder,
        size: list[int] | str | None = None,
        color: str | None = None,
        classes: Classes = None,
    ) -> Data:
        listing = remote_images(path) if isinstance(path, RemoteFolder) else local_images(existing_folder(path))
        names, labels, folders = _arranged(path, listing)
        listed = listing.files(names)
        color = color or ("grey" if is_grey(listed[0]) else "rgb")
        if size == OWN:
            inputs = photographs(listed)
        else:
            inputs = ImageFiles(listed, _check_size(size), color)
            if labels is not None:  # images of one class are often alike: reading one of each detects a missing size
                inputs.read(np.unique(labels, return_index=True)[1].astype(np.intp))
        return numbered(from_arrays(inputs, labels, folders, name=path.name), classes)


def _arranged(
    path: Path | RemoteFolder, found: Images
) -> tuple[list[str], NDArray[np.int64] | None, tuple[str, ...] | None]:
    loose, by_class = found.loose, found.by_class
    if loose and by_class:
        raise InputError(f"data: {path} holds images beside class folders ({loose[0]}); move or remove them")
    if loose:
        return loose, None, None
    if not by_class:
        raise InputError(f"data: {path} holds no images; a folder of class folders of images is accepted")
    labels = np.repeat(np.arange(len(by_class)), [len(files) for files in by_class.values()])
    return [file for files in by_class.values() for file in files], labels, tuple(by_class)


def _check_size(size: Sequence[int] | str | None) -> tuple[int, int] | None:
    if size is None:
        return None
    numbers: list[Any] = list(size) if isinstance(size, list | tuple) else []
    if len(numbers) != 2 or not all(isinstance(one, int) and one > 0 for one in numbers):
        raise InputError(f"data: size = {size!r} is not accepted; [height, width] in pixels or 'own' is")
    return numbers[0], numbers[1]


class MasksPart(FilePart):
    """The folder of the label maps, and that of the images (by default `images` beside it)."""

    masks: File
    """The folder of the label maps."""
    images: File | None = None
    """The folder of the images; default: `images` beside it."""
    classes: Words | None = None
    """Names of the classes in their order."""

    FILES: ClassVar = ("masks", "images")

    @staticmethod
    def read(path: Path, images: Path | None = None, classes: Sequence[str] | None = None) -> Data:
        """Return images of one size with the label maps of the same names, whose grey levels are classes."""
        masks = existing_folder(path)
        folder = existing_folder(masks.parent / "images" if images is None else images)
        names = local_images(folder).loose
        if not names:
            raise InputError(f"data: {folder} holds no images; those of the label maps in {masks} are looked for there")
        files = ImageFiles(Listed(folder, names), None, "grey" if is_grey(folder / names[0]) else "rgb")
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
