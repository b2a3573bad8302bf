"""A folder of class folders of images, decoded when a batch asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.data.class_names import ClassNames, numbered
from testifai.data.dataset import Data, DataPart, from_arrays
from testifai.data.image_files import ImageFiles, Images, has_images, images, images_elsewhere, is_grey, photographs
from testifai.errors import InputError
from testifai.support import validation
from testifai.support.options_base import File
from testifai.support.remote import RemoteFolder

Color = Literal["rgb", "grey"]
OWN = "own"  # the size that each image has


class FolderPart(DataPart):
    """A folder of images, and how they are read."""

    folder: File
    """The folder; one folder in it per class, or none."""
    size: list[int] | Literal["own"] | None = None
    """[height, width] that all images are brought to, or `own`: each as it is."""
    color: Color | None = None
    """Whether images are read in colour or in grey; default: what the first image is."""
    classes: ClassNames | None = None
    """Names of the classes in the order of the model's outputs, or their numbers by name."""

    FILES: ClassVar = ("folder",)
    FOLDERS: ClassVar = ("folder",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return path.is_dir() and has_images(path)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        classes = options.pop("classes", None)
        return numbered(load_folder(options.pop("folder"), **options), classes)


def load_folder(path: Path | RemoteFolder, size: Sequence[int] | str | None = None, color: str | None = None) -> Data:
    """Images below `path`, one folder per class (sorted by name); without such folders, without labels.

    Where images differ in size, `size` = [height, width] resizes them all, and "own" leaves them, in colour, as they
    are. `color` is "rgb" or "grey"; by default what the first image is.
    """
    listing = images_elsewhere(path) if isinstance(path, RemoteFolder) else images(_folder(path))
    names, labels, classes = _arranged(path, listing)
    listed = listing.files(names)
    if color is None:
        color = "grey" if is_grey(listed[0]) else "rgb"
    validation.choice("data: color", color, get_args(Color))
    if size == OWN:
        return from_arrays(photographs(listed), labels, classes, name=path.name)
    files = ImageFiles(listed, _check_size(size), color)
    if labels is not None:  # images of one class are often alike: a look at one of each finds a missing size early
        files.read(np.unique(labels, return_index=True)[1].astype(np.intp))
    return from_arrays(files, labels, classes, name=path.name)


def _folder(path: Path) -> Path:
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"data: {path} is not a folder" if path.exists() else f"data: {path} does not exist")
    return path


def _arranged(
    path: Path | RemoteFolder, found: Images
) -> tuple[list[str], NDArray[np.int64] | None, tuple[str, ...] | None]:
    """The names of all images, their labels and the names of the classes."""
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
