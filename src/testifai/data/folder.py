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
from testifai.data.contents import MOST_BYTES, MOST_FILES, Contents, Hashes, Rows, as_numbers, hashed, sampled
from testifai.data.files import FileDigests, stat_of
from testifai.data.lazy import Digests, LazyInputs
from testifai.data.listing import Images, Listed, images, images_elsewhere
from testifai.data.naming import ClassNames, numbered
from testifai.errors import InputError
from testifai.support import checks, image_sizes
from testifai.support.fields import File
from testifai.support.libraries import cv2
from testifai.support.remote import RemoteFolder

Color = Literal["rgb", "grey"]
MOST_PIXELS = 100_000_000  # 300 MB in colour
HEAD = 1 << 20  # bytes in which a file says how large its image is; photographs begin with a preview


class ImageFiles(LazyInputs):
    """Image files as a stack (N, H, W, 3) of RGB or (N, H, W) of grey images, uint8."""

    def __init__(self, files: Listed, size: tuple[int, int] | None, color: str) -> None:
        self.files, self.size, self.color = files, size, color
        first = _decode(self.files[0], _bytes(self.files[0]), color)
        height, width = size or first.shape[:2]
        self.shape = (len(self.files), height, width, *first.shape[2:])
        self.dtype = np.dtype(np.uint8)
        self._digests = FileDigests()
        self.contents = Contents(len(self)) if self._are_many() else None
        self._identity: bytes | None = None

    def read(self, rows: Rows) -> NDArray[np.uint8]:
        batch = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        found = []
        self.files.make_ready(rows.tolist())
        for position, row in enumerate(rows.tolist()):
            file = self.files[row]
            content = self._content(file)
            batch[position] = self._fit(file, content[0])
            found.append(content[1])
        if self.contents is not None:
            self.note(rows, as_numbers(found))
        return batch

    def identity(self) -> bytes:
        """Names and contents of the files, in hashes: decoding every image to start a run would take far longer.

        Of very many files, all names and some contents.
        """
        if self._identity is None:
            self._identity = self.whole_identity() if self.contents is None else self._partly()
        return self._identity

    def whole_identity(self) -> bytes:
        self.files.make_ready(range(len(self)))
        return self._told("image contents", (digest.hex() for digest in self._digests.of(self.files)))

    def former_identity(self) -> bytes:
        return self._told("images", map(str, self.files.sizes()))

    def recall(self, digests: Digests) -> None:
        self._digests.recall(digests)

    def digests(self) -> Digests | None:
        if self._identity is None:
            return None
        looked_at: Sequence[Path] = self.files
        if self.contents is not None:
            rows = np.union1d(self.contents.rows(), sampled(len(self)))
            looked_at = [self.files[row] for row in rows.tolist()]
        return self._digests.table(looked_at)

    def hashes(self, rows: Rows) -> Hashes:
        return as_numbers(self._digests.of([self.files[row] for row in rows.tolist()]))

    def called(self, row: int) -> str:
        return str(self.files[row])

    def _are_many(self) -> bool:
        """Whether reading all files would take long."""
        if len(self) > MOST_FILES:
            return True
        return sum(self.files.sizes()) > MOST_BYTES

    def _begun(self, what: str, more: bytes = b"") -> hashlib.blake2b:
        return hashlib.blake2b(f"{what} {self.shape} {self.size} {self.color}\n".encode() + more)

    def _partly(self) -> bytes:
        names = "\0".join(self.files.names).encode(errors="surrogateescape")
        return self._begun("some image contents", names + self.sample()).digest()

    def _told(self, what: str, each: Iterable[str]) -> bytes:
        digest = self._begun(what)
        for name, text in zip(self.files.names, each, strict=True):
            digest.update(f"{name} {text}\n".encode(errors="surrogateescape"))
        return digest.digest()

    def _content(self, file: Path) -> tuple[NDArray[np.uint8], bytes]:
        """What is in a file, and its hash where that is not known yet."""
        if self.contents is None:
            return _bytes(file), b""
        stat = stat_of(file)
        content = _bytes(file)
        digest = hashed(content.data)
        self._digests.learn(stat, digest)
        return content, digest

    def _fit(self, file: Path, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
        image = _decode(file, content, self.color)
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
    classes: ClassNames | None = None

    FILES: ClassVar = ("folder",)
    FOLDERS: ClassVar = ("folder",)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        classes = options.pop("classes", None)
        return numbered(load_folder(options.pop("folder"), **options), classes)


def load_folder(path: Path | RemoteFolder, size: Sequence[int] | None = None, color: str | None = None) -> Data:
    """Images below `path`, one folder per class (sorted by name); without such folders, without labels.

    `size` = [height, width] resizes; it is needed where images differ in size. `color` is "rgb" or "grey"; by
    default what the first image is.
    """
    listing = images_elsewhere(path) if isinstance(path, RemoteFolder) else images(_folder(path))
    names, labels, classes = _arranged(path, listing)
    listed = listing.files(names)
    if color is None:
        color = "grey" if _is_grey(listed[0]) else "rgb"
    checks.choice("data: color", color, get_args(Color))
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
    # OpenCV 5 has the level of its log in a module of its own.
    set_level = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel
    level = set_level(0)  # what is wrong with a file is said once, by us
    try:
        return cv2.imdecode(data, flag) if data.size else None
    except cv2.error:
        return None
    finally:
        set_level(level)


def _is_grey(file: Path) -> bool:
    image = _imdecode(_bytes(file), cv2.IMREAD_UNCHANGED)
    return image is not None and (image.ndim == 2 or image.shape[2] == 1)


def _decode(file: Path, content: NDArray[np.uint8], color: str) -> NDArray[np.uint8]:
    image = _imdecode(content, cv2.IMREAD_COLOR if color == "rgb" else cv2.IMREAD_GRAYSCALE)
    if image is None:
        what = "is not a readable image" if content.size else "is empty, not a readable image"
        raise InputError(f"data: {file} {what}; put a readable one in its place, or remove it and start a new run")
    if color == "rgb":
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    pixels: NDArray[np.uint8] = np.asarray(image, dtype=np.uint8)
    return pixels[..., 0] if color == "grey" and pixels.ndim == 3 else pixels
