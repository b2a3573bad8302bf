"""NumPy's npz archives; members stored without compression are memory-mapped where they lie."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from testifai.data.class_names import ClassNames, numbered
from testifai.data.dataset import Data, DataPart, from_arrays
from testifai.data.lazy import MappedInputs
from testifai.errors import InputError, suggest
from testifai.support.options_base import File
from testifai.support.types import Array

_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip member: the lengths of its name and of its extra field


class NpzPart(DataPart):
    """An npz file, and which of its arrays are meant."""

    npz: File
    """The file."""
    x: str | None = None
    """The array of inputs; default: `x`, or the one that can be meant."""
    y: str | None = None
    """The array of labels; default: `y`, or the one that can be meant."""
    classes: ClassNames | None = None
    """Names of the classes in their order, or their numbers by name."""

    FILES: ClassVar = ("npz",)
    suffixes: ClassVar = (".npz",)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        table = options.pop("classes") if isinstance(self.classes, dict) else None
        return numbered(load_npz(options.pop("npz"), **options), table)


def load_npz(path: Path, x: str | None = None, y: str | None = None, classes: Sequence[str] | None = None) -> Data:
    """Inputs and labels from an npz file; the keys are x and y, or the only pair that can be meant."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"data: {path} does not exist" if not path.exists() else f"data: {path} is not a file")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
            if not members:
                raise InputError(f"data: {path} holds no arrays")
            x, y = _choose_keys(path, archive, members, x, y)
            inputs = read_member(path, archive, members[x])
            labels = read_member(path, archive, members[y])[:] if y is not None else None
    except InputError:
        raise
    except Exception as error:  # zip, zlib and NumPy have many words for a damaged file
        raise InputError(f"data: {path} is not a readable npz file ({_first_line(error)})") from None
    return from_arrays(inputs, labels, classes, name=path.name)


def read_member(path: Path, archive: zipfile.ZipFile, member: str) -> Array | MappedInputs:
    """One array: mapped from the file where it is stored as it is, else decompressed into memory."""
    info = archive.getinfo(member)
    with archive.open(info) as stream:
        shape, fortran, dtype = _read_header(stream)
        if dtype.hasobject:
            raise InputError(f"data: {path}: {member} holds Python objects, which are never read")
        header = stream.tell()
        promised = header + math.prod(shape) * dtype.itemsize
        if promised > info.file_size:
            raise ValueError(f"{member} is cut short: {info.file_size} bytes where its header promises {promised}")
        # Texts are taken apart at once; numbers may stay in the file.
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


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
