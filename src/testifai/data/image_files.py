"""Image files as inputs of one size or of their own sizes, decoded when a batch is read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data import image_io
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


class Listed:
    """Files of a folder by their names within it, parts joined by /; paths are created on demand."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: int) -> Path:
        return self.folder / self.names[place]

    def __iter__(self) -> Iterator[Path]:
        return map(self.__getitem__, range(len(self)))

    def sizes(self) -> Iterator[int]:
        """Bytes of each file."""
        return (stat_of(file)[0] for file in self)

    def make_ready(self, places: Iterable[int]) -> None:
        """Fetch files that will be read soon; local files are ready."""


class Fetched(Listed):
    """Files of a remote folder: a path is that of a local copy, which is fetched on demand.

    `about` has the version and the size of each file by name.
    """

    def __init__(self, folder: RemoteFolder, names: Sequence[str], about: Mapping[str, tuple[str, int | None]]) -> None:
        self.remote, self.names, self._about = folder, names, about

    def __getitem__(self, place: int) -> Path:
        name = self.names[place]
        return self.remote.file(name, *self._about[name])

    def sizes(self) -> Iterator[int]:
        return (self._about[name][1] or 0 for name in self.names)

    def make_ready(self, places: Iterable[int]) -> None:
        names = [(place, self.names[place]) for place in places]
        missing = [place for place, name in names if not self.remote.copy_of(name, self._about[name][0]).exists()]
        if missing:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="testifai") as pool:
                list(pool.map(self.__getitem__, missing))


@dataclass(frozen=True)
class Images:
    """Names of the images directly in a folder, and of those anywhere below each class folder; all sorted."""

    loose: list[str]
    by_class: dict[str, list[str]]
    files: Callable[[list[str]], Listed]  # of these names


def remote_images(folder: RemoteFolder) -> Images:
    """The images of a remote folder."""
    found = folder.listed()
    loose: list[str] = []
    by_class: dict[str, list[str]] = {}
    for name in found:
        parts = name.split("/")
        if parts[-1].lower().endswith(IMAGE_SUFFIXES) and not (parts[0].startswith(".") or parts[-1].startswith(".")):
            (loose if len(parts) == 1 else by_class.setdefault(parts[0], [])).append(name)

    def files(names: list[str]) -> Listed:
        return Fetched(folder, names, {name: (version_of(found[name]), found[name].get("size")) for name in names})

    ordered = {name: sorted(by_class[name], key=_by_part) for name in sorted(by_class)}
    return Images(sorted(loose), ordered, files)


def local_images(folder: Path) -> Images:
    """The images of a folder."""
    loose, classes = [], []
    for name, is_image in _entries(folder):
        if is_image:
            loose.append(name)
        elif not name.startswith("."):
            classes.append(name)
    found = {name: _below(folder, name) for name in sorted(classes)}
    by_class = {name: names for name, names in found.items() if names}
    return Images(sorted(loose), by_class, lambda names: Listed(folder, names))


def has_images(folder: Path) -> bool:
    """Return True if a folder, or a folder directly in it, has an image."""
    below = []
    for name, is_image in _entries(folder):
        if is_image:
            return True
        if not name.startswith("."):
            below.append(name)
    return any(is_image for name in sorted(below) for _, is_image in _entries(folder / name))


def existing_folder(path: Path) -> Path:
    """The path of a folder, or an InputError if there is none."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"data: {path} is not a folder" if path.exists() else f"data: {path} does not exist")
    return path


def _below(root: Path, name: str) -> list[str]:
    """The images of a class folder and of folders in it, but not of links in it, which may lead anywhere."""
    if (root / name).is_symlink() and root.resolve().is_relative_to((root / name).resolve()):
        raise InputError(f"data: {root / name} is a link to a folder that it lies in itself; remove it")
    found: list[str] = []
    waiting = [name]
    while waiting:
        inside = waiting.pop()
        for entry, is_image in _entries(root / inside, follow_links=False):
            (found if is_image else waiting).append(f"{inside}/{entry}")
    return sorted(found, key=_by_part)


def _by_part(name: str) -> str:
    """A sort key that orders names as paths, part by part."""
    return name.replace("/", "\0")


def _entries(folder: Path, *, follow_links: bool = True) -> Iterator[tuple[str, bool]]:
    """Yield the name of each image with True, and of each subfolder with False."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):  # a link in a circle
                    named = entry.name.lower().endswith(IMAGE_SUFFIXES) and not entry.name.startswith(".")
                    if named and entry.is_file():
                        yield entry.name, True
                    elif entry.is_dir(follow_symlinks=follow_links):
                        yield entry.name, False
    except OSError as error:
        raise InputError(f"data: {folder} cannot be read ({error.strerror})") from None


MOST_PIXELS = 100_000_000  # 300 MB in colour
HEAD = 1 << 20  # bytes that contain the size of an image; photographs start with a preview


class SizesDifferError(InputError):
    """Images of different sizes where all should have one."""


class ImageFiles(LazyInputs):
    """Image files as a stack (N, H, W, 3) of RGB or (N, H, W) of grey images, uint8.

    With `own_sizes`, a batch is a list of images (H, W, 3) of any size.
    """

    def __init__(self, files: Listed, size: tuple[int, int] | None, color: str, *, own_sizes: bool = False) -> None:
        self.files, self.size, self.color = files, size, color
        first = decoded(self.files[0], read_bytes(self.files[0]), color)
        height, width = size or first.shape[:2]
        self.shape = (len(self.files),) if own_sizes else (len(self.files), height, width, *first.shape[2:])
        self.dtype = np.dtype(np.uint8)
        self._hashes = FileHashes()
        many = len(self) > MAX_FILES or sum(self.files.sizes()) > MAX_BYTES
        self.contents = Contents(len(self)) if many else None
        self._identity: bytes | None = None
        self._sizes: NDArray[np.intp] | None = None
        if own_sizes:
            files.make_ready(range(len(files)))
            self._sizes = np.array([_size(file) for file in files], np.intp).reshape(-1, 2)

    def read(self, rows: Rows) -> Any:
        batch, found = [], []
        self.files.make_ready(rows.tolist())
        for row in rows.tolist():
            file = self.files[row]
            stat = None if self.contents is None else stat_of(file)
            content = read_bytes(file)
            batch.append(self._fit(file, decoded(file, content, self.color)))
            if stat is not None:
                found.append(hash_bytes(content.data))
                self._hashes.learn(stat, found[-1])
        if self.contents is not None:
            self.note(rows, as_numbers(found))
        if self._sizes is not None:
            return batch
        return np.stack(batch) if batch else np.empty((0, *self.shape[1:]), np.uint8)

    def sizes(self, rows: Rows) -> NDArray[np.intp]:
        return super().sizes(rows) if self._sizes is None else self._sizes[rows]

    def identity(self) -> bytes:
        """Return a hash of the files' names and contents, which are not decoded; of very many, of some contents."""
        if self._identity is None and self.contents is None:
            self._identity = self.whole_identity()
        elif self._identity is None:
            names = "\0".join(self.files.names).encode(errors="surrogateescape")
            self._identity = self._begun("some image contents", names + self.sample()).digest()
        return self._identity

    def whole_identity(self) -> bytes:
        self.files.make_ready(range(len(self)))
        digest = self._begun("image contents")
        for name, content in zip(self.files.names, self._hashes.of(list(self.files)), strict=True):
            digest.update(f"{name} {content.hex()}\n".encode(errors="surrogateescape"))
        return digest.digest()

    def recall(self, digests: FileTable) -> None:
        self._hashes.recall(digests)

    def file_table(self) -> FileTable | None:
        if self._identity is None:
            return None
        rows = np.arange(len(self))
        if self.contents is not None:
            rows = np.union1d(np.flatnonzero(self.contents.hashes.any(axis=1)), sampled(len(self)))
        return self._hashes.table([self.files[row] for row in rows.tolist()])

    def hashes(self, rows: Rows) -> Hashes:
        return as_numbers(self._hashes.of([self.files[row] for row in rows.tolist()]))

    def called(self, row: int) -> str:
        return str(self.files[row])

    def _begun(self, what: str, more: bytes = b"") -> hashlib.blake2b:
        return hashlib.blake2b(f"{what} {self.shape} {self.size} {self.color}\n".encode() + more)

    def _fit(self, file: Path, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self._sizes is not None or image.shape[:2] == self.shape[1:3]:
            return image
        height, width = self.shape[1:3]
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
    """The encoded image, or an InputError if it has too many pixels."""
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
    # OpenCV 5 has moved its log level to another module.
    set_level = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel
    level = set_level(0)  # the InputError reports a damaged file
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


_SIZE_HEAD = 1 << 16  # bytes that contain the size in most files
TURNED = b"Exif\0\0"  # may be followed by a rotation that exchanges height and width


def photographs(files: Listed) -> ImageFiles:
    """Images in colour at their own sizes: a stack if all are of one size, else a list."""
    own = ImageFiles(files, None, "rgb", own_sizes=True)
    alike = (own.sizes(np.arange(len(own))) == own.sizes(np.arange(1))).all()
    return ImageFiles(files, None, "rgb") if alike else own


def _size(file: Path) -> tuple[int, int]:
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
