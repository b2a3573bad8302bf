"""A folder of class folders of images, decoded when a batch asks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.data.arrays import Data, from_arrays
from testifai.data.base import DataPart
from testifai.data.detect import is_image
from testifai.data.files import FileDigests
from testifai.data.lazy import Digests, LazyInputs
from testifai.errors import InputError
from testifai.support import checks, image_sizes
from testifai.support.fields import File
from testifai.support.libraries import cv2

Color = Literal["rgb", "grey"]
MOST_PIXELS = 100_000_000  # 300 MB in colour
HEAD = 1 << 20  # bytes in which a file says how large its image is; photographs begin with a preview


class ImageFiles(LazyInputs):
    """Image files as a stack (N, H, W, 3) of RGB or (N, H, W) of grey images, uint8."""

    def __init__(self, folder: Path, files: Sequence[Path], size: tuple[int, int] | None, color: str) -> None:
        self.folder, self.files, self.size, self.color = folder, tuple(files), size, color
        first = _decode(self.files[0], color)
        height, width = size or first.shape[:2]
        self.shape = (len(self.files), height, width, *first.shape[2:])
        self.dtype = np.dtype(np.uint8)
        self._digests = FileDigests()
        self._identity: bytes | None = None

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        batch = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        for position, row in enumerate(rows):
            batch[position] = self._fit(self.files[row])
        return batch

    def identity(self) -> bytes:
        """Names and contents of the files, in hashes: decoding every image to start a run would take far longer."""
        if self._identity is None:
            told = (digest.hex() for digest in self._digests.of(self.files))
            self._identity = self._told("image contents", told)
        return self._identity

    def former_identity(self) -> bytes:
        return self._told("images", (str(file.stat().st_size) for file in self.files))

    def recall(self, digests: Digests) -> None:
        self._digests.recall(digests)

    def digests(self) -> Digests | None:
        return None if self._identity is None else self._digests.table(self.files)

    def _told(self, what: str, each: Iterable[str]) -> bytes:
        digest = hashlib.blake2b(f"{what} {self.shape} {self.size} {self.color}\n".encode())
        for file, text in zip(self.files, each, strict=True):
            digest.update(f"{file.relative_to(self.folder).as_posix()} {text}\n".encode())
        return digest.digest()

    def _fit(self, file: Path) -> NDArray[np.uint8]:
        image = _decode(file, self.color)
        height, width = self.shape[1:3]
        if image.shape[:2] == (height, width):
            return image
        if self.size is None:
            raise InputError(
                f"data: {file} is {image.shape[0]}×{image.shape[1]}, the first image is {height}×{width}; "
                "for images of different size set size = [height, width]"
            )
        shrinks = image.shape[0] * image.shape[1] > height * width
        resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return np.asarray(resized, dtype=np.uint8)


class FolderPart(DataPart):
    """A folder of images, and how they are read."""

    folder: File
    size: list[int] | None = None
    color: Color | None = None

    FILES: ClassVar = ("folder",)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return load_folder(options.pop("folder"), **options)


def load_folder(path: Path, size: Sequence[int] | None = None, color: str | None = None) -> Data:
    """Images below `path`, one folder per class (sorted by name); without such folders, without labels.

    `size` = [height, width] resizes; it is needed where images differ in size. `color` is "rgb" or "grey"; by
    default what the first image is.
    """
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"data: {path} is not a folder" if path.exists() else f"data: {path} does not exist")
    files, labels, classes = _list(path)
    if color is None:
        color = "grey" if _is_grey(files[0]) else "rgb"
    checks.choice("data: color", color, get_args(Color))
    images = ImageFiles(path, files, _check_size(size), color)
    if labels is not None:  # images of one class are often alike: a look at one of each finds a missing size early
        images.read(np.unique(labels, return_index=True)[1].astype(np.intp))
    return from_arrays(images, labels, classes, name=path.name)


def _list(path: Path) -> tuple[list[Path], NDArray[np.int64] | None, tuple[str, ...] | None]:
    loose = sorted(file for file in path.iterdir() if is_image(file))
    folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    by_class = {folder.name: sorted(filter(is_image, folder.rglob("*"))) for folder in folders}
    by_class = {name: files for name, files in by_class.items() if files}
    if loose and by_class:
        raise InputError(f"data: {path} holds images beside class folders ({loose[0].name}); move or remove them")
    if loose:
        return loose, None, None
    if not by_class:
        raise InputError(f"data: {path} holds no images; a folder of class folders of images is accepted")
    labels = np.repeat(np.arange(len(by_class)), [len(files) for files in by_class.values()])
    return [file for files in by_class.values() for file in files], labels, tuple(by_class)


def _check_size(size: Sequence[int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    numbers: list[Any] = list(size) if isinstance(size, list | tuple) else []
    if len(numbers) != 2 or not all(isinstance(one, int) and one > 0 for one in numbers):
        raise InputError(f"data: size = {size!r} is not accepted; [height, width] in pixels is")
    return numbers[0], numbers[1]


def _bytes(file: Path) -> NDArray[np.uint8]:
    """An image as it lies in its file, if it is not too large to be decoded."""
    try:
        data = np.fromfile(file, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    sides = image_sizes.size(data[:HEAD].tobytes())
    if sides is not None and sides[0] * sides[1] > MOST_PIXELS:
        raise InputError(
            f"data: {file} is {sides[0]}×{sides[1]}, and at most {MOST_PIXELS:,} pixels are accepted; make it smaller"
        )
    return data


def _imdecode(data: NDArray[np.uint8], flag: int) -> Any:
    """What OpenCV makes of an image; None where it is none."""
    try:
        return cv2.imdecode(data, flag) if data.size else None
    except cv2.error:
        return None


def _is_grey(file: Path) -> bool:
    image = _imdecode(_bytes(file), cv2.IMREAD_UNCHANGED)
    return image is not None and (image.ndim == 2 or image.shape[2] == 1)


def _decode(file: Path, color: str) -> NDArray[np.uint8]:
    image = _imdecode(_bytes(file), cv2.IMREAD_COLOR if color == "rgb" else cv2.IMREAD_GRAYSCALE)
    if image is None:
        raise InputError(f"data: {file} is not a readable image")
    if color == "rgb":
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    pixels: NDArray[np.uint8] = np.asarray(image, dtype=np.uint8)
    return pixels[..., 0] if color == "grey" and pixels.ndim == 3 else pixels
