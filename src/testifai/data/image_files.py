"""Image files as inputs of one size or of their own sizes, decoded when a batch is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from testifai.data import image_io
from testifai.data.annotations import CONFIDENCE, Boxes, areas, pack
from testifai.data.dataset import Data
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError
from testifai.support.fingerprints import (
    MAX_BYTES,
    MAX_FILES,
    Contents,
    FileHashes,
    FileTable,
    Hashes,
    Rows,
    as_numbers,
    hash_bytes,
    sampled,
    stat_of,
)
from testifai.support.optional_imports import cv2
from testifai.support.remote import RemoteFolder, version_of

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_THREADS = 16  # that fetch: each waits most of the time


class Listed(Sequence[Path]):
    """Files of a folder by their names within it, parts joined by /; a path is made when it is asked for."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> Listed: ...
    def __getitem__(self, place: int | slice) -> Path | Listed:
        if isinstance(place, slice):
            return Listed(self.folder, self.names[place])
        return self.folder / self.names[place]

    def sizes(self) -> Iterator[int]:
        """How many bytes each has."""
        return (stat_of(file)[0] for file in self)

    def make_ready(self, places: Iterable[int]) -> None:
        """What is to be read soon; here all files are ready."""


class Fetched(Listed):
    """Files of a folder elsewhere: a path is that of a copy on this machine, fetched when it is asked for."""

    def __init__(self, folder: RemoteFolder, names: Sequence[str], about: Sequence[About]) -> None:
        self.remote, self.names, self._about = folder, names, about

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> Fetched: ...
    def __getitem__(self, place: int | slice) -> Path | Fetched:
        if isinstance(place, slice):
            return Fetched(self.remote, self.names[place], self._about[place])
        about = self._about[place]
        return self.remote.file(self.names[place], about.version, about.size)

    def sizes(self) -> Iterator[int]:
        return (about.size or 0 for about in self._about)

    def make_ready(self, places: Iterable[int]) -> None:
        missing = [place for place in places if not self._copy(place).exists()]
        if missing:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="testifai") as pool:
                list(pool.map(self.__getitem__, missing))

    def _copy(self, place: int) -> Path:
        return self.remote.copy_of(self.names[place], self._about[place].version)


class About(NamedTuple):
    """What tells a file elsewhere from an earlier one of its name."""

    version: str
    size: int | None


@dataclass(frozen=True)
class Images:
    """The images of a folder by name: those right in it, and by class folder those anywhere below it; all sorted."""

    loose: list[str]
    by_class: dict[str, list[str]]
    files: Callable[[list[str]], Listed]  # of these names


def images_elsewhere(folder: RemoteFolder) -> Images:
    """The images of a folder elsewhere."""
    found = folder.listed()
    loose: list[str] = []
    by_class: dict[str, list[str]] = {}
    for name in found:
        parts = name.split("/")
        if parts[-1].lower().endswith(IMAGE_SUFFIXES) and not (parts[0].startswith(".") or parts[-1].startswith(".")):
            (loose if len(parts) == 1 else by_class.setdefault(parts[0], [])).append(name)

    def files(names: list[str]) -> Listed:
        return Fetched(folder, names, [About(version_of(found[name]), found[name].get("size")) for name in names])

    ordered = {name: sorted(by_class[name], key=_by_part) for name in sorted(by_class)}
    return Images(sorted(loose), ordered, files)


def images(folder: Path) -> Images:
    """The images of a folder."""
    loose, classes = [], []
    with _entries(folder) as entries:
        for entry in entries:
            if is_image(entry):
                loose.append(entry.name)
            elif not entry.name.startswith(".") and _holds(entry.is_dir):
                classes.append(entry.name)
    found = {name: _below(folder, name) for name in sorted(classes)}
    by_class = {name: names for name, names in found.items() if names}
    return Images(sorted(loose), by_class, lambda names: Listed(folder, names))


def has_images(folder: Path) -> bool:
    """Whether there is an image in a folder or right in a folder of it."""
    below = []
    with _entries(folder) as entries:
        for entry in entries:
            if is_image(entry):
                return True
            if not entry.name.startswith(".") and _holds(entry.is_dir):
                below.append(entry.name)
    return any(_has_image(folder / name) for name in sorted(below))


def is_image(entry: os.DirEntry[str] | Path) -> bool:
    """Whether an entry of a folder is a file named like an image."""
    named = entry.name.lower().endswith(IMAGE_SUFFIXES) and not entry.name.startswith(".")
    return named and _holds(entry.is_file)


def _has_image(folder: Path) -> bool:
    with _entries(folder) as entries:
        return any(map(is_image, entries))


def _below(root: Path, name: str) -> list[str]:
    """The images of a class folder and of folders in it, but not of links in it, which may lead anywhere."""
    if (root / name).is_symlink() and root.resolve().is_relative_to((root / name).resolve()):
        raise InputError(f"data: {root / name} is a link to a folder that it lies in itself; remove it")
    found, waiting = [], [name]
    while waiting:
        inside = waiting.pop()
        with _entries(root / inside) as entries:
            for entry in entries:
                if is_image(entry):
                    found.append(f"{inside}/{entry.name}")
                elif _holds(lambda here=entry: here.is_dir(follow_symlinks=False)):  # type: ignore[misc]
                    waiting.append(f"{inside}/{entry.name}")
    return sorted(found, key=_by_part)


def _by_part(name: str) -> str:
    """For the order of paths, which compare part by part."""
    return name.replace("/", "\0")


def _holds(question: Callable[[], bool]) -> bool:
    """Whether an entry is a file or a folder; what leads nowhere, or round in circles, is neither."""
    try:
        return question()
    except OSError:
        return False


@contextmanager
def _entries(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as entries:
            yield entries
    except OSError as error:
        raise InputError(f"data: {folder} cannot be read ({error.strerror})") from None


MOST_PIXELS = 100_000_000  # 300 MB in colour
HEAD = 1 << 20  # bytes in which a file says how large its image is; photographs begin with a preview


class SizesDifferError(InputError):
    """Images of different sizes where all should have one."""


class ImageFiles(LazyInputs):
    """Image files as a stack (N, H, W, 3) of RGB or (N, H, W) of grey images, uint8."""

    def __init__(self, files: Listed, size: tuple[int, int] | None, color: str) -> None:
        self.files, self.size, self.color = files, size, color
        first = decoded(self.files[0], read_bytes(self.files[0]), color)
        height, width = size or first.shape[:2]
        self.shape = (len(self.files), height, width, *first.shape[2:])
        self.dtype = np.dtype(np.uint8)
        self._hashes = FileHashes()
        self.contents = Contents(len(self)) if self._are_many() else None
        self._identity: bytes | None = None

    def read(self, rows: Rows) -> Any:
        batch, found = [], []
        self.files.make_ready(rows.tolist())
        for row in rows.tolist():
            file = self.files[row]
            content = self._content(file)
            batch.append(self._fit(file, decoded(file, content[0], self.color)))
            found.append(content[1])
        if self.contents is not None:
            self.note(rows, as_numbers(found))
        return self._stacked(batch)

    def _stacked(self, images: list[NDArray[np.uint8]]) -> Any:
        return np.stack(images) if images else np.empty((0, *self.shape[1:]), np.uint8)

    def identity(self) -> bytes:
        """Names and contents of the files, in hashes: decoding every image to start a run would take far longer.

        Of very many files, all names and some contents.
        """
        if self._identity is None:
            self._identity = self.whole_identity() if self.contents is None else self._partly()
        return self._identity

    def whole_identity(self) -> bytes:
        self.files.make_ready(range(len(self)))
        return self._told("image contents", (digest.hex() for digest in self._hashes.of(self.files)))

    def recall(self, digests: FileTable) -> None:
        self._hashes.recall(digests)

    def file_table(self) -> FileTable | None:
        if self._identity is None:
            return None
        looked_at: Sequence[Path] = self.files
        if self.contents is not None:
            rows = np.union1d(np.flatnonzero(self.contents.hashes.any(axis=1)), sampled(len(self)))
            looked_at = [self.files[row] for row in rows.tolist()]
        return self._hashes.table(looked_at)

    def hashes(self, rows: Rows) -> Hashes:
        return as_numbers(self._hashes.of([self.files[row] for row in rows.tolist()]))

    def called(self, row: int) -> str:
        return str(self.files[row])

    def _are_many(self) -> bool:
        """Whether reading all files would take long."""
        if len(self) > MAX_FILES:
            return True
        return sum(self.files.sizes()) > MAX_BYTES

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
            return read_bytes(file), b""
        stat = stat_of(file)
        content = read_bytes(file)
        digest = hash_bytes(content.data)
        self._hashes.learn(stat, digest)
        return content, digest

    def _fit(self, file: Path, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        height, width = self.shape[1:3]
        if image.shape[:2] == (height, width):
            return image
        if self.size is None:
            raise SizesDifferError(
                f"data: {file} is {image.shape[0]}×{image.shape[1]}, the first image is {height}×{width}; "
                "for images of different size set size = [height, width] to resize them all, or size = 'own' for a "
                "model that takes images of any size"
            )
        shrinks = image.shape[0] * image.shape[1] > height * width
        resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return np.asarray(resized, dtype=np.uint8)


def is_grey(file: Path) -> bool:
    image = _imdecode(read_bytes(file), cv2.IMREAD_UNCHANGED)
    return image is not None and (image.ndim == 2 or image.shape[2] == 1)


def read_bytes(file: Path) -> NDArray[np.uint8]:
    """An image as it lies in its file, if it is not too large to be decoded."""
    try:
        data = np.fromfile(file, dtype=np.uint8)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    sides = image_io.size(data[:HEAD].tobytes())
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


def decoded(file: Path, content: NDArray[np.uint8], color: str) -> NDArray[np.uint8]:
    image = _imdecode(content, cv2.IMREAD_COLOR if color == "rgb" else cv2.IMREAD_GRAYSCALE)
    if image is None:
        what = "is not a readable image" if content.size else "is empty, not a readable image"
        raise InputError(f"data: {file} {what}; put a readable one in its place, or remove it and start a new run")
    if color == "rgb":
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    pixels: NDArray[np.uint8] = np.asarray(image, dtype=np.uint8)
    return pixels[..., 0] if color == "grey" and pixels.ndim == 3 else pixels


_SIZE_HEAD = 1 << 16  # bytes in which most files say how large their image is
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
            head = stream.read(_SIZE_HEAD)
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
