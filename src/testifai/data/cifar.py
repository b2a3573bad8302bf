"""CIFAR-10 and CIFAR-100 in their binary version (no pickles), memory-mapped.

Format: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version": per image one label byte (CIFAR-100:
coarse, then fine), then 1,024 bytes each of red, green and blue.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.data.dataset import Data, DataPart, from_arrays, visible_files
from testifai.data.lazy import LazyInputs, MappedFile
from testifai.errors import InputError
from testifai.support import validation
from testifai.support.options_base import Count, File

_PIXELS = 3 * 32 * 32
_LABEL_BYTES = {10: 1, 100: 2}
Split = Literal["test", "train", "all"]


class CifarImages(LazyInputs):
    """The images of several CIFAR files, turned from planes to (N, 32, 32, 3) as they are read."""

    def __init__(self, planes: Sequence[NDArray[np.uint8]], files: Sequence[MappedFile] = ()) -> None:
        self.planes = tuple(planes)
        self.files = tuple(files)
        self.ends = np.cumsum([len(part) for part in self.planes])
        self.shape = (int(self.ends[-1]), 32, 32, 3)
        self.dtype = np.dtype(np.uint8)

    def read(self, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        for file in self.files:
            file.check()
        pixels = np.empty((len(rows), _PIXELS), dtype=np.uint8)
        part = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(part):
            here = part == number
            start = self.ends[number] - len(self.planes[number])
            pixels[here] = self.planes[number][rows[here] - start]
        return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


class CifarPart(DataPart):
    """One or several .bin files, or a folder of them."""

    cifar: File | list[File]
    """The `.bin` file, several of them, or a folder."""
    split: Split | None = None
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

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return load_cifar(options.pop("cifar"), **options)


def load_cifar(
    path: Path | Sequence[Path], split: str | None = None, classes: int | None = None, coarse: bool = False
) -> Data:
    """CIFAR images and labels from a .bin file, several, or a folder of them.

    `split` ("test", "train" or "all") picks files of a folder, the test files by default. `classes` (10 or
    100) is told from the files' size; `coarse` takes CIFAR-100's 20 superclasses.
    """
    files = _files(path, split)
    classes = classes or _count_classes(files)
    if classes not in _LABEL_BYTES:
        raise InputError(f"data: classes = {classes} is not a CIFAR data set; accepted: 10, 100")
    if coarse and classes != 100:
        raise InputError("data: coarse labels exist in CIFAR-100 only")
    label_bytes = _LABEL_BYTES[classes]
    records = [_map(file, label_bytes + _PIXELS) for file in files]
    column, limit = (0, 20) if coarse else (label_bytes - 1, classes)
    labels = np.concatenate([np.asarray(part[:, column]) for part in records]).astype(np.int64)
    if labels.max() >= limit:
        row = int(np.argmax(labels >= limit))
        raise InputError(
            f"data: {files[0].name}: label {labels[row]} of image {row} is not one of CIFAR's 0 … {limit - 1}"
        )
    mapped = [MappedFile(file, part.nbytes) for file, part in zip(files, records, strict=True)]
    images = CifarImages([part[:, label_bytes:] for part in records], mapped)
    return from_arrays(images, labels, _class_names(files[0].parent, classes, coarse), name=files[0].name)


def _files(path: Path | Sequence[Path], split: str | None) -> list[Path]:
    if split is not None:
        validation.choice("data: split", split, get_args(Split))
    if not isinstance(path, str | Path):
        files = [Path(one) for one in path]
    elif Path(path).is_dir():
        found = sorted(Path(path).glob("*.bin"))
        test = [file for file in found if file.name.startswith("test")]
        train = [file for file in found if file not in test]
        files = {"test": test, "train": train, "all": found, None: test or found}[split]
    else:
        files = [Path(path)]
    if not files:
        raise InputError(f"data: {path} holds no CIFAR .bin files" + (f" of split {split}" if split else ""))
    for file in files:
        if not file.is_file():
            raise InputError(f"data: {file} does not exist" if not file.exists() else f"data: {file} is not a file")
        if file.stat().st_size == 0:
            raise InputError(f"data: {file} is empty")
    return files


def _count_classes(files: Sequence[Path]) -> int:
    fitting = [
        count
        for count, extra in _LABEL_BYTES.items()
        if all(file.stat().st_size % (extra + _PIXELS) == 0 for file in files)
    ]
    if len(fitting) == 2:
        raise InputError(f"data: {files[0].name} could be CIFAR-10 or CIFAR-100; set classes to 10 or 100")
    if not fitting:
        raise InputError(
            f"data: {files[0].name} is not a whole number of CIFAR images "
            f"({files[0].stat().st_size} bytes; an image takes 3073 or 3074): cut short, or another format"
        )
    return fitting[0]


def _map(file: Path, record: int) -> NDArray[np.uint8]:
    size = file.stat().st_size
    if size % record:
        raise InputError(f"data: {file.name} is cut short: {size} bytes are not a whole number of {record}-byte images")
    return np.memmap(file, np.uint8, "r", 0, (size // record, record))


def _class_names(folder: Path, classes: int, coarse: bool) -> tuple[str, ...] | None:
    kind = "coarse_label_names.txt" if coarse else "fine_label_names.txt"
    file = folder / ("batches.meta.txt" if classes == 10 else kind)
    if not file.is_file():
        return None
    names = tuple(line.strip() for line in file.read_text("utf-8").splitlines() if line.strip())
    return names if len(names) == (20 if coarse else classes) else None
