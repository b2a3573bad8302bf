"""Photographs with boxes as YOLO has them: a text file for each image, a line for each box.

A line is a class number, then centre and size as shares of the image: "0 0.5 0.5 0.25 0.4".
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from testifai.data.annotations import COLUMNS, Boxes
from testifai.data.dataset import Data, DataPart
from testifai.data.image_files import Listed, boxed_photographs, images, photographs
from testifai.errors import InputError
from testifai.support.options_base import File, Words

ACCEPTED = "class x y width height, the last four as shares of the image, 0 … 1"


class YoloPart(DataPart):
    """The folder that holds images/ and labels/ (or one folder of both), and what the classes are called."""

    yolo: File
    """The folder that holds `images` and `labels`, or one folder of both."""
    classes: Words | None = None
    """Names of the classes in their order; default: those of `classes.txt`."""
    background: bool | None = None
    """Whether an image without boxes is one with nothing on it; default: a mistake."""

    FILES: ClassVar = ("yolo",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Return True for a folder with images/ and labels/, and text files in the latter."""
        labels = path / "labels"
        return (path / "images").is_dir() and labels.is_dir() and next(labels.rglob("*.txt"), None) is not None

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return load_yolo(options.pop("yolo"), **options)


def load_yolo(path: str | Path, classes: list[str] | None = None, background: bool = False) -> Data:
    """The images of a folder with the boxes of the text files named like them, in labels/ beside images/.

    With `background`, an empty or missing text file says that nothing is on an image. Names of classes are read from
    classes.txt where there is one.
    """
    path = Path(path)
    pictures, labels = _folders(path)
    names = _names(pictures)
    sizes = photographs(Listed(pictures, names)).sizes(np.arange(len(names)))
    lines = [_lines((labels / name).with_suffix(".txt"), background) for name in names]
    boxes = [
        _boxes(rows, (labels / name).with_suffix(".txt"), tuple(size))
        for name, rows, size in zip(names, lines, sizes.tolist(), strict=True)
    ]
    if not any(map(len, boxes)):
        raise InputError(
            f"data: {labels} holds no boxes; name the folder of images instead: folder = '…', size = 'own'"
        )
    known = classes or _classes(path)
    highest = max(int(rows[:, -1].max()) for rows in boxes if len(rows))
    if known is not None and highest >= len(known):
        raise InputError(
            f"data: {labels} has boxes of class {highest}; {len(known)} classes are named, 0 … {len(known) - 1}"
        )
    return boxed_photographs(pictures, names, boxes, known, path.name)


def without_boxes(path: str | Path) -> int:
    """How many images of such a folder have an empty text file, or none."""
    pictures, labels = _folders(Path(path))
    return sum(not _lines((labels / name).with_suffix(".txt"), background=True) for name in _names(pictures))


def _folders(path: Path) -> tuple[Path, Path]:
    """Where the images are, and where their text files."""
    if not path.is_dir():
        raise InputError(f"data: {path} is not a folder" if path.exists() else f"data: {path} does not exist")
    return (path / "images", path / "labels") if (path / "images").is_dir() else (path, path)


def _names(folder: Path) -> list[str]:
    found = images(folder)
    loose, below = found.loose, found.by_class
    names = [*loose, *(name for inside in below.values() for name in inside)]
    if not names:
        raise InputError(f"data: {folder} holds no images")
    return names


def _lines(file: Path, background: bool) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"data: {file} cannot be read ({error})") from None
    lines = [line for line in (text or "").splitlines() if line.strip()]
    if not lines and not background:
        what = "does not exist" if text is None else "is empty"
        raise InputError(f"data: {file} {what}; where that means that nothing is on the image, set background = true")
    return lines


def _boxes(lines: list[str], file: Path, size: tuple[int, int]) -> Boxes:
    rows = np.zeros((len(lines), COLUMNS), np.float32)
    height, width = size
    for place, line in enumerate(lines):
        try:
            label, *shares = map(float, line.split())
            x, y, across, down = shares
        except ValueError:
            label, x, y, across, down = -1, 0, 0, 0, 0
        if label < 0 or label != int(label):
            raise InputError(f"data: {file}: line {place + 1} is {line[:60]!r}; {ACCEPTED}, is accepted")
        left, right = (x - across / 2) * width, (x + across / 2) * width
        top, bottom = (y - down / 2) * height, (y + down / 2) * height
        rows[place] = left, top, right, bottom, 1, label
    return rows


def _classes(path: Path) -> list[str] | None:
    file = path / "classes.txt"
    if not file.is_file():
        return None
    return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
