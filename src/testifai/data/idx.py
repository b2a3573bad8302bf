"""MNIST's IDX files: big-endian arrays with a short header, plain (memory-mapped) or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from testifai.data.class_names import ClassNames, numbered
from testifai.data.dataset import Data, DataPart, from_arrays, visible_files
from testifai.data.lazy import MappedInputs
from testifai.errors import InputError
from testifai.support.options_base import File
from testifai.support.types import Array

_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class IdxPart(DataPart):
    """A file of images or a folder with one, and the file of their labels."""

    idx: File
    """The file of images, or a folder with one."""
    labels: File | None = None
    """The file of labels; default: the one beside it that is named alike."""
    classes: ClassNames | None = None
    """Names of the classes in their order, or their numbers by name."""

    FILES: ClassVar = ("idx", "labels")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return any(map(is_idx, visible_files(path))) if path.is_dir() else is_idx(path)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        table = options.pop("classes") if isinstance(self.classes, dict) else None
        return numbered(load_idx(options.pop("idx"), **options), table)


def load_idx(path: Path, labels: str | Path | None = None, classes: Sequence[str] | None = None) -> Data:
    """Images and labels from IDX files.

    `path` is the images' file, or a folder with one pair or with MNIST's (then its test split). Without `labels`, the
    file named alike ("images" → "labels", "idx3" → "idx1") is taken if it lies beside.
    """
    images = _images_in(Path(path)) if Path(path).is_dir() else Path(path)
    labels_path = Path(labels) if labels is not None else _labels_beside(images)
    targets = read_idx(labels_path)[:] if labels_path is not None else None
    return from_arrays(read_idx(images), targets, classes, name=images.name)


def read_idx(path: Path) -> Array | MappedInputs:
    """The array in one IDX file."""
    if not path.is_file():
        raise InputError(f"data: {path} does not exist" if not path.exists() else f"data: {path} is not a file")
    packed = _is_gzip(path)
    data = _unpack(path) if packed else b""
    with path.open("rb") as file:
        head = data[:260] if packed else file.read(260)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _DTYPES or len(head) < 4 + 4 * head[3]:
        raise InputError(f"data: {path} is not an IDX file")
    shape = struct.unpack(f">{head[3]}I", head[4 : 4 + 4 * head[3]])
    dtype, offset = np.dtype(_DTYPES[head[2]]), 4 + 4 * head[3]
    size = len(data) if packed else path.stat().st_size
    expected = offset + math.prod(shape) * dtype.itemsize
    if size < expected:
        raise InputError(f"data: {path} is cut short: {size} bytes where its header promises {expected}")
    if packed or 0 in shape:
        count = math.prod(shape)
        return np.frombuffer(data or bytes(expected), dtype, count, offset).reshape(shape)
    return MappedInputs(path, dtype, offset, shape)


def is_idx(path: Path) -> bool:
    """Return True if a file is in MNIST's IDX format, judging by its name or its first four bytes."""
    if "idx" in path.name and "ubyte" in path.name:
        return True
    with path.open("rb") as file:
        head = file.read(4)
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in (8, 9, 11, 12, 13, 14) and 1 <= head[3] <= 4


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _unpack(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"data: {path} cannot be unpacked ({error})") from None


def _images_in(folder: Path) -> Path:
    found = [file for file in sorted(folder.iterdir()) if "images" in file.name and is_idx(file)]
    test = [file for file in found if file.name.startswith(("t10k", "test"))]
    if len(test or found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"data: {folder}: name one images file (IDX images files found: {names})")
    return (test or found)[0]


def _labels_beside(images: Path) -> Path | None:
    name = images.name.replace("images", "labels").replace("idx3", "idx1")
    path = images.with_name(name)
    return path if name != images.name and path.is_file() else None
