"""Image files as inputs, decoded when a batch is read: class folders of images, or images with label maps."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.data import image_io
from testifai.data.dataset import Classes, ClassNames, Data, FilePart, from_arrays, numbered
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError
from testifai.support.files import check_inside, check_room
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
from testifai.support.options_base import Count, File, Words
from testifai.support.remote import RemoteFolder, version_of
from testifai.support.types import Array

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
        return (stat_of(file)[0] for file in self)

    def make_ready(self, places: Iterable[int]) -> None:
        """Fetch files that will be read soon; local files are ready."""


class Fetched(Listed):
    """Files of a remote folder, fetched on demand; `about` has the version and the size of each by name."""

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


def local_images(folder: Path, *, links: bool = False) -> Images:
    """The images of a folder. Links out of it are refused, unless `links` allows them."""
    loose, classes = [], []
    for name, is_image in _entries(folder, None if links else folder):
        if is_image:
            loose.append(name)
        elif not name.startswith("."):
            classes.append(name)
    found = {name: _below(folder, name, links=links) for name in sorted(classes)}
    by_class = {name: names for name, names in found.items() if names}
    return Images(sorted(loose), by_class, lambda names: Listed(folder, names))


def has_images(folder: Path) -> bool:
    below = []
    for name, is_image in _entries(folder):
        if is_image:
            return True
        if not name.startswith("."):
            below.append(name)
    return any(is_image for name in sorted(below) for _, is_image in _entries(folder / name))


def existing_folder(path: Path) -> Path:
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"data: {path} is not a folder" if path.exists() else f"data: {path} does not exist")
    return path


def _below(root: Path, name: str, *, links: bool) -> list[str]:
    """The images of a class folder and of folders in it, but not of links in it, which may lead anywhere."""
    if (root / name).is_symlink() and root.resolve().is_relative_to((root / name).resolve()):
        raise InputError(f"data: {root / name} is a link to a folder that it lies in itself; remove it")
    found: list[str] = []
    waiting = [name]
    while waiting:
        inside = waiting.pop()
        for entry, is_image in _entries(root / inside, None if links else root, follow_links=False):
            (found if is_image else waiting).append(f"{inside}/{entry}")
    return sorted(found, key=_by_part)


def _by_part(name: str) -> str:
    """A sort key that orders names as paths, part by part."""
    return name.replace("/", "\0")


def _entries(folder: Path, root: Path | None = None, *, follow_links: bool = True) -> Iterator[tuple[str, bool]]:
    """Yield the name of each image with True, and of each subfolder with False; refuse links out of `root`."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):  # a link in a circle
                    named = entry.name.lower().endswith(IMAGE_SUFFIXES) and not entry.name.startswith(".")
                    image = named and entry.is_file()
                    if not image and not entry.is_dir(follow_symlinks=follow_links):
                        continue
                    if root is not None and entry.is_symlink() and not entry.name.startswith("."):
                        check_inside(root, Path(entry.path).relative_to(root).as_posix(), links=False)
                    yield entry.name, image
    except OSError as error:
        raise InputError(f"data: {folder} cannot be read ({error.strerror})") from None


MOST_PIXELS = 100_000_000  # 300 MB in colour
HEAD = 1 << 20  # bytes that contain the size of an image; photographs start with a preview


class SizesDifferError(InputError):
    """Images of different sizes where all should have one."""


class ImageFiles(LazyInputs):
    """Images as a stack (N, H, W, 3) of RGB or (N, H, W) of grey, uint8; with `own_sizes` as a list of any size."""

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
    links: bool | None = None
    """Whether images may be links to files outside the folder; default: these are refused."""

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
        links: bool = False,
    ) -> Data:
        if isinstance(path, RemoteFolder):
            listing = remote_images(path)
        else:
            listing = local_images(existing_folder(path), links=links)
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
    links: bool | None = None
    """Whether files may be links to files outside the two folders; default: these are refused."""
    max_bytes: Count | None = None
    """Memory that the label maps may take; default: 100 times the size of their files, at least 256 MiB."""

    FILES: ClassVar = ("masks", "images")

    @staticmethod
    def read(
        path: Path,
        images: Path | None = None,
        classes: Sequence[str] | None = None,
        links: bool = False,
        max_bytes: int | None = None,
    ) -> Data:
        """Return images of one size with the label maps of the same names, whose grey levels are classes."""
        masks = existing_folder(path)
        folder = existing_folder(masks.parent / "images" if images is None else images)
        names = local_images(folder, links=links).loose
        if not names:
            raise InputError(f"data: {folder} holds no images; those of the label maps in {masks} are looked for there")
        files = ImageFiles(Listed(folder, names), None, "grey" if is_grey(folder / names[0]) else "rgb")
        size = (files.shape[1], files.shape[2])
        maps_of = [check_inside(masks, Path(name).with_suffix(".png").name, links=links) for name in names]
        missing = [place for place, file in enumerate(maps_of) if not file.is_file()]
        if missing:
            place = missing[0]
            raise InputError(
                f"data: {maps_of[place]} does not exist; the label map of {names[place]} is looked for there"
            )
        check_room(masks, len(names) * size[0] * size[1] * _MAP_BYTES, max_bytes, maps_of)
        maps = np.stack([_mask(file, size) for file in maps_of])
        return from_arrays(files, maps, classes, name=folder.name)


_MAP_BYTES = 4  # of a pixel: up to two as read, and two as labels


def _mask(file: Path, size: tuple[int, int]) -> Array:
    mask = _imdecode(read_bytes(file), cv2.IMREAD_UNCHANGED)
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
