"""Arrays in files: NumPy's npz archives, MNIST's IDX files and CIFAR's binary files, memory-mapped where possible.

CIFAR's format is the "binary version" of https://www.cs.toronto.edu/~kriz/cifar.html: per image one label byte
(CIFAR-100: coarse, then fine), then 1,024 bytes each of red, green and blue.
"""

from __future__ import annotations

import gzip
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.data.dataset import Classes, ClassNames, Data, FilePart, from_arrays, numbered, visible_files
from testifai.data.lazy import LazyInputs, MappedInputs
from testifai.errors import InputError, suggest
from testifai.support.files import check_inside, check_room, existing, leads_out
from testifai.support.options_base import Count, File
from testifai.support.types import Array


def _with_classes(inputs: Any, labels: Any, classes: Classes, name: str) -> Data:
    if isinstance(classes, Mapping):
        return numbered(from_arrays(inputs, labels, name=name), classes)
    return from_arrays(inputs, labels, classes, name=name)


_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: the lengths of its name and of its extra field


class NpzPart(FilePart):
    """An npz file, and which of its arrays are meant."""

    npz: File
    """The file."""
    x: str | None = None
    """The array of inputs; default: `x`, or the one that can be meant."""
    y: str | None = None
    """The array of labels; default: `y`, or the one that can be meant."""
    classes: ClassNames | None = None
    """Names of the classes in their order, or their numbers by name."""
    max_bytes: Count | None = None
    """Memory that a packed array may take; default: 100 times the size of the file, at least 256 MiB."""

    FILES: ClassVar = ("npz",)
    suffixes: ClassVar = (".npz",)

    @staticmethod
    def read(
        path: Path,
        x: str | None = None,
        y: str | None = None,
        classes: Classes = None,
        max_bytes: int | None = None,
    ) -> Data:
        path = existing(path)
        try:
            with zipfile.ZipFile(path) as archive:
                members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
                if not members:
                    raise InputError(f"data: {path} holds no arrays")
                for info in archive.infolist():
                    if info.compress_type != zipfile.ZIP_STORED and info.filename.endswith(".npy"):
                        check_room(path, info.file_size, max_bytes)
                x, y = _choose_keys(path, archive, members, x, y)
                inputs = read_member(path, archive, members[x])
                labels = read_member(path, archive, members[y])[:] if y is not None else None
        except InputError:
            raise
        except Exception as error:  # zip, zlib and NumPy raise many types of errors for a damaged file
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"data: {path} is not a readable npz file ({reason})") from None
        return _with_classes(inputs, labels, classes, path.name)


def read_member(path: Path, archive: zipfile.ZipFile, member: str) -> Array | MappedInputs:
    """One array: mapped from the file if it is stored uncompressed, else decompressed into memory."""
    info = archive.getinfo(member)
    with archive.open(info) as stream:
        shape, fortran, dtype = _read_header(stream)
        if dtype.hasobject:
            raise InputError(f"data: {path}: {member} holds Python objects, which are never read")
        header = stream.tell()
        promised = header + math.prod(shape) * dtype.itemsize
        if promised > info.file_size:
            raise ValueError(f"{member} is cut short: {info.file_size} bytes where its header promises {promised}")
        # Texts are split when they are loaded; numbers may stay in the file.
        if info.compress_type != zipfile.ZIP_STORED or 0 in shape or not shape or dtype.kind not in "biuf":
            stream.seek(0)
            array: Array = np.lib.format.read_array(stream, allow_pickle=False)
            return array
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    offset = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length + header
    return MappedInputs(path, dtype, offset, shape, fortran=fortran)


def _read_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        header = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"npy format {version[0]}.{version[1]} is for structured arrays")
    if any(side < 0 for side in header[0]):
        raise ValueError(f"an array of shape {str(header[0])[:80]}")
    return header


def _choose_keys(
    path: Path, archive: zipfile.ZipFile, members: dict[str, str], x: str | None, y: str | None
) -> tuple[str, str | None]:
    for field, key in (("x", x), ("y", y)):
        if key is not None and key not in members:
            raise InputError(f"data: {path} has no array {key!r} for {field}; {suggest(key, members)}")
    x = x or ("x" if "x" in members else None)
    y = y or ("y" if "y" in members else None)
    if x is not None and (y is not None or len(members) == 1):
        return x, y
    shapes = {}
    for key, member in members.items():
        with archive.open(member) as stream:
            shape, _, dtype = _read_header(stream)
        shapes[key] = (shape, dtype.kind)
    pairs = [
        (one, other)
        for one, (shape, _) in shapes.items()
        for other, (label_shape, kind) in shapes.items()
        if one != other and x in (None, one) and y in (None, other)
        if len(shape) >= 2 and len(label_shape) == 1 and kind in "biuUS" and shape[0] == label_shape[0]
    ]
    if len(pairs) == 1:
        return pairs[0]
    if len(members) == 1:
        return next(iter(members)), None
    if x is not None and not pairs:
        return x, None
    found = ", ".join(f"{key} {shape}" for key, (shape, _) in sorted(shapes.items()))
    raise InputError(f"data: {path}: which arrays are inputs and labels is not clear; set x and y (found: {found})")


_IDX_HEAD = 260  # bytes that hold any header
_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class IdxPart(FilePart):
    """A file of images or a folder with one, and the file of their labels."""

    idx: File
    """The file of images, or a folder with one."""
    labels: File | None = None
    """The file of labels; default: the one beside it that is named alike."""
    classes: ClassNames | None = None
    """Names of the classes in their order, or their numbers by name."""
    max_bytes: Count | None = None
    """Memory that a file packed with gzip may take; default: 100 times its size, at least 256 MiB."""

    FILES: ClassVar = ("idx", "labels")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any(map(is_idx, visible_files(path))) if path.is_dir() else is_idx(path)

    @staticmethod
    def read(path: Path, labels: Path | None = None, classes: Classes = None, max_bytes: int | None = None) -> Data:
        images = path
        if path.is_dir():  # the only file of images, or the test images of MNIST
            found = [file for file in sorted(path.iterdir()) if "images" in file.name and is_idx(file)]
            test = [file for file in found if file.name.startswith(("t10k", "test"))]
            if len(test or found) != 1:
                names = ", ".join(file.name for file in found) or "none"
                raise InputError(f"data: {path}: name one images file (IDX images files found: {names})")
            images = check_inside(path, (test or found)[0].name)
        beside = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
        if labels is None and beside != images and beside.is_file():
            labels = beside
        targets = None if labels is None else _read_idx(labels, max_bytes)[:]
        return _with_classes(_read_idx(images, max_bytes), targets, classes, images.name)


def is_idx(path: Path) -> bool:
    """Return True if a file is in MNIST's IDX format, judging by its name or its first four bytes."""
    if "idx" in path.name and "ubyte" in path.name:
        return True
    with path.open("rb") as file:
        head = file.read(4)
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in _DTYPES and 1 <= head[3] <= 4


def _read_idx(path: Path, max_bytes: int | None) -> Array | MappedInputs:
    with existing(path).open("rb") as file:
        head = file.read(_IDX_HEAD)
    packed = head.startswith(b"\x1f\x8b")
    if packed:
        head = _unpacked(path, _IDX_HEAD)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _DTYPES or len(head) < 4 + 4 * head[3]:
        raise InputError(f"data: {path} is not an IDX file")
    shape = struct.unpack(f">{head[3]}I", head[4 : 4 + 4 * head[3]])
    dtype, offset = np.dtype(_DTYPES[head[2]]), 4 + 4 * head[3]
    expected = offset + math.prod(shape) * dtype.itemsize
    data = b""
    if packed:
        check_room(path, expected, max_bytes)
        data = _unpacked(path, expected)
    size = len(data) if packed else path.stat().st_size
    if size < expected:
        raise InputError(f"data: {path} is cut short: {size} bytes where its header promises {expected}")
    if packed or 0 in shape:
        return np.frombuffer(data or bytes(expected), dtype, math.prod(shape), offset).reshape(shape)
    return MappedInputs(path, dtype, offset, shape)


def _unpacked(path: Path, most: int) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"data: {path} cannot be unpacked ({error})") from None


_PIXELS = 3 * 32 * 32
_LABEL_BYTES = {10: 1, 100: 2}


class CifarImages(LazyInputs):
    """The images of several CIFAR files, converted from planes to (N, 32, 32, 3) as they are read."""

    def __init__(self, records: Sequence[MappedInputs]) -> None:
        self.records = tuple(records)
        self.ends = np.cumsum([len(part) for part in self.records])
        self.shape = (int(self.ends[-1]), 32, 32, 3)
        self.dtype = np.dtype(np.uint8)

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        pixels = np.empty((len(rows), _PIXELS), dtype=np.uint8)
        which = np.searchsorted(self.ends, rows, side="right")
        for number, part in enumerate(self.records):
            here = which == number
            pixels[here] = part[rows[here] - self.ends[number] + len(part)][:, -_PIXELS:]
        return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


class CifarPart(FilePart):
    """One or several .bin files, or a folder of them."""

    cifar: File | list[File]
    """The `.bin` file, several of them, or a folder."""
    split: Literal["test", "train", "all"] | None = None
    """Which files of a folder; default: test."""
    classes: Count | None = None
    """10 or 100; default: what the files' size tells."""
    coarse: bool | None = None
    """Whether to take the 20 superclasses of CIFAR-100."""

    FILES: ClassVar = ("cifar",)
    suffixes: ClassVar = (".bin",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any(file.suffix == ".bin" for file in visible_files(path)) or super().recognises(path)

    @staticmethod
    def read(
        path: Path | list[Path], split: str | None = None, classes: int | None = None, coarse: bool = False
    ) -> Data:
        files = _cifar_files(path, split)
        classes = classes or _count_classes(files)
        if classes not in _LABEL_BYTES:
            raise InputError(f"data: classes = {classes} is not a CIFAR data set; accepted: 10, 100")
        if coarse and classes != 100:
            raise InputError("data: coarse labels exist in CIFAR-100 only")
        size, records = _LABEL_BYTES[classes] + _PIXELS, []
        for file in files:
            count, rest = divmod(file.stat().st_size, size)
            if rest:
                held = f"{count * size + rest} bytes"
                raise InputError(f"data: {file.name} is cut short: {held} are not a whole number of {size}-byte images")
            records.append(MappedInputs(file, np.dtype(np.uint8), 0, (count, size)))
        column, limit = (0, 20) if coarse else (_LABEL_BYTES[classes] - 1, classes)
        labels = np.concatenate([part[:, column] for part in records]).astype(np.int64)
        if labels.max() >= limit:
            row = int(np.argmax(labels >= limit))
            raise InputError(
                f"data: {files[0].name}: label {labels[row]} of image {row} is not one of CIFAR's 0 … {limit - 1}"
            )
        kind = "batches.meta.txt" if classes == 10 else f"{'coarse' if coarse else 'fine'}_label_names.txt"
        listed = files[0].with_name(kind)
        there = listed.is_file() and not leads_out(listed.parent, listed)
        lines = listed.read_text("utf-8", "replace").splitlines() if there else []
        names = [line.strip() for line in lines if line.strip()]
        classes_named = names if len(names) == limit else None
        return from_arrays(CifarImages(records), labels, classes_named, name=files[0].name)


def _cifar_files(path: Path | list[Path], split: str | None) -> list[Path]:
    files = path if isinstance(path, list) else [path]
    if isinstance(path, Path) and path.is_dir():
        found = sorted(path.glob("*.bin"))
        test = [file for file in found if file.name.startswith("test")]
        train = [file for file in found if file not in test]
        files = {"test": test, "train": train, "all": found, None: test or found}[split]
        files = [check_inside(path, file.name) for file in files]
    if not files:
        raise InputError(f"data: {path} holds no CIFAR .bin files" + (f" of split {split}" if split else ""))
    for file in files:
        if existing(file).stat().st_size == 0:
            raise InputError(f"data: {file} is empty")
    return files


def _count_classes(files: Sequence[Path]) -> int:
    sizes = [file.stat().st_size for file in files]
    fitting = [count for count, extra in _LABEL_BYTES.items() if all(size % (extra + _PIXELS) == 0 for size in sizes)]
    if len(fitting) == 2:
        raise InputError(f"data: {files[0].name} could be CIFAR-10 or CIFAR-100; set classes to 10 or 100")
    if not fitting:
        raise InputError(
            f"data: {files[0].name} is not a whole number of CIFAR images "
            f"({sizes[0]} bytes; an image takes 3073 or 3074): cut short, or another format"
        )
    return fitting[0]
