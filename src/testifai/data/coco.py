"""Photographs with boxes as COCO describes them: one .json file, and the folder of the images it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from testifai.data.annotations import COLUMNS, Boxes
from testifai.data.dataset import Data, DataPart
from testifai.data.image_files import boxed_photographs
from testifai.errors import InputError
from testifai.support.options_base import File
from testifai.support.types import RecordLike

PARTS = ("images", "annotations", "categories")


class CocoPart(DataPart):
    """The .json file (or the folder it lies in) and the folder of its images."""

    coco: File
    """The `.json` file, or the folder it lies in."""
    images: File | None = None
    """The folder of the images; default: `images` beside the file, else beside the file itself."""

    FILES: ClassVar = ("coco", "images")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return bool(coco_files(path)) if path.is_dir() else is_coco(path)

    def load(self, folder: Path) -> Data:
        options = self.told(folder)
        return load_coco(options["coco"], options.get("images"))


def load_coco(path: str | Path, images: str | Path | None = None) -> Data:
    """The images that a COCO file names, with their boxes; classes are numbered from 0 in the order of their ids.

    Without `images` they are looked for in a folder of that name beside the file, then beside the file itself. What
    COCO calls a crowd may be found or not.
    """
    file = _file(Path(path))
    table = _read(file)
    categories = sorted(_rows(table, "categories", file), key=lambda one: int(one["id"]))
    number = {int(one["id"]): place for place, one in enumerate(categories)}
    listed = _rows(table, "images", file)
    places = {one["id"]: place for place, one in enumerate(listed)}
    found: list[list[list[float]]] = [[] for _ in listed]
    for one in _rows(table, "annotations", file):
        if one["image_id"] not in places:
            raise InputError(
                f"data: {file.name}: annotation {one.get('id')} is of an image that the file does not list"
            )
        if one["category_id"] not in number:
            raise InputError(
                f"data: {file.name}: annotation {one.get('id')} is of category {one['category_id']}, which the file "
                f"does not list; it lists {', '.join(map(str, list(number)[:12]))}{' …' if len(number) > 12 else ''}"
            )
        found[places[one["image_id"]]].append(_box(one, number[one["category_id"]], file))
    if not any(found):
        raise InputError(
            f"data: {file} holds no boxes; to compare with what is found on clean images, name their folder: "
            "folder = '…' with size = 'own'"
        )
    names = [str(one["file_name"]) for one in listed]
    folder = _folder(file, names, None if images is None else Path(images))
    boxes: list[Boxes] = [np.array(rows, np.float32).reshape(-1, COLUMNS) for rows in found]
    return boxed_photographs(folder, names, boxes, [str(one["name"]) for one in categories], file.name)


def coco_files(folder: Path) -> list[Path]:
    """The .json files of a folder, or of the folder `annotations` in it, that look like COCO's with boxes."""
    candidates = [*sorted(folder.glob("*.json")), *sorted(folder.glob("annotations/*.json"))]
    return [file for file in candidates if is_coco(file)]


def is_coco(file: Path) -> bool:
    """Whether a file begins as COCO's do: with a table that has one of their parts."""
    try:
        with file.open("rb") as stream:
            head = stream.read(1 << 12).lstrip()
    except OSError:
        return False
    named = any(f'"{part}"'.encode() in head for part in (*PARTS, "info", "licenses"))
    return file.suffix.lower() == ".json" and head.startswith(b"{") and named


def _file(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"data: {path} does not exist")
    if path.is_file():
        return path
    found = coco_files(path)
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"data: {path} holds {len(found)} files in COCO's format ({names}); name one: coco = '….json'")
    return found[0]


def _read(file: Path) -> RecordLike:
    try:
        text = file.read_text(encoding="utf-8")
        table = json.loads(text) if text.strip() else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"data: {file} is not JSON ({' '.join(str(error).split())[:120]})") from None
    if table is None:
        raise InputError(f"data: {file} is empty; a COCO file has {', '.join(PARTS)}")
    if not isinstance(table, dict):
        raise InputError(f"data: {file} holds a {type(table).__name__}; a COCO file has {', '.join(PARTS)}")
    return table


_NEEDED = {
    "images": ("id", "file_name"),
    "annotations": ("image_id", "category_id", "bbox"),
    "categories": ("id", "name"),
}


def _rows(table: RecordLike, part: str, file: Path) -> Sequence[RecordLike]:
    rows = table.get(part)
    if not isinstance(rows, list) or (not rows and part != "annotations"):
        found = ", ".join(map(str, list(table)[:8])) or "nothing"
        raise InputError(f"data: {file} has no list {part!r} (it has {found}); a COCO file has {', '.join(PARTS)}")
    for place, row in enumerate(rows):
        missing = [key for key in _NEEDED[part] if not isinstance(row, dict) or key not in row]
        if missing:
            raise InputError(f"data: {file.name}: {part}[{place}] has no {missing[0]!r}")
    return rows


def _box(one: RecordLike, label: int, file: Path) -> list[float]:
    """A row of boxes; COCO has corner, width and height."""
    try:
        left, top, width, height = map(float, one["bbox"])
    except (TypeError, ValueError):
        raise InputError(
            f"data: {file.name}: annotation {one.get('id')} has the bbox {one['bbox']!r}; [x, y, width, height] is "
            "accepted"
        ) from None
    return [left, top, left + width, top + height, float(not one.get("iscrowd")), label]


def _folder(file: Path, names: Sequence[str], told: Path | None) -> Path:
    """Where the images are."""
    beside = file.parent
    folders = [told] if told is not None else [beside / "images", beside, beside.parent / "images", beside.parent]
    for folder in folders:
        if (folder / names[0]).is_file():
            missing = [name for name in names if not (folder / name).is_file()]
            if missing:
                raise InputError(f"data: {len(missing)} of {len(names)} images of {file.name} are not in {folder}, "
                                 f"such as {missing[0]}")  # fmt: skip
            return folder
    raise InputError(
        f"data: {names[0]}, the first image of {file.name}, is not in {' nor '.join(map(str, folders[:2]))}; say where "
        "the images are with images = 'FOLDER'"
    )
