"""Images with boxes, as COCO and YOLO store them.

COCO has one .json file and the folder of the images it names. YOLO has a text file for each image with a line for each
box: a class number, then centre and size as shares of the image, such as "0 0.5 0.5 0.25 0.4".
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from testifai.data.annotations import COLUMNS, CONFIDENCE, Boxes, areas, pack
from testifai.data.dataset import Data, FilePart
from testifai.data.image_files import Listed, existing_folder, local_images, photographs
from testifai.data.labels import MOST_CLASSES
from testifai.errors import InputError
from testifai.support.files import check_inside, is_inside
from testifai.support.options_base import File, Words
from testifai.support.types import RecordLike

LARGEST = 1e9  # pixels; a box with a larger number is a mistake
OVERHANG = 2.0  # pixels that a box may reach over the edge of its image, as annotators round


def _boxed_images(
    folder: Path, names: Sequence[str], boxes: Sequence[Boxes], classes: Sequence[str] | None, name: str
) -> Data:
    files = photographs(Listed(folder, names))
    sizes = files.sizes(np.arange(len(names)))
    for image, rows, (height, width) in zip(names, boxes, sizes.tolist(), strict=True):
        corners = rows[:, :CONFIDENCE]
        inside = (corners >= -OVERHANG) & (corners <= np.array([width, height, width, height]) + OVERHANG)
        right = inside.all(axis=1) & (corners[:, :2] <= corners[:, 2:]).all(axis=1)
        if not right.all():
            box = ", ".join(f"{side:g}" for side in corners[int(np.argmin(right))].tolist())
            raise InputError(
                f"data: {image} is {height}×{width}, and its box ({box}) is not within; (x1, y1, x2, y2) with "
                f"0 ≤ x1 ≤ x2 ≤ {width} and 0 ≤ y1 ≤ y2 ≤ {height} is accepted"
            )
        np.clip(corners, 0, [width, height, width, height], out=corners)
        rows[areas(rows) <= 0, CONFIDENCE] = 0  # cannot be found
    return Data(files, pack(boxes), None if classes is None else tuple(classes), name)


_LISTS = {
    "images": ("id", "file_name"),
    "annotations": ("image_id", "category_id", "bbox"),
    "categories": ("id", "name"),
}


class CocoPart(FilePart):
    """The .json file (or the folder it lies in) and the folder of its images."""

    coco: File
    """The `.json` file, or the folder it lies in."""
    images: File | None = None
    """The folder of the images; default: `images` beside the file, else beside the file itself."""
    links: bool | None = None
    """Whether images may be links to files outside their folder; default: these are refused."""

    FILES: ClassVar = ("coco", "images")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return bool(_coco_files(path)) if path.is_dir() else _is_coco(path)

    @staticmethod
    def read(path: Path, images: Path | None = None, links: bool = False) -> Data:
        """Number classes from 0 in the order of their ids; finding a box that COCO marks as a crowd is optional."""
        file = _coco_file(path)
        table = _read_json(file)
        listed = _rows(table, "images", file)
        places = _places(listed, "images", file)
        categories = _rows(table, "categories", file)
        by_id = _places(categories, "categories", file)
        number = {one: place for place, one in enumerate(sorted(by_id, key=lambda one: (isinstance(one, str), one)))}
        found: list[list[list[float]]] = [[] for _ in listed]
        for place, one in enumerate(_rows(table, "annotations", file)):
            where = f"data: {file.name}: annotations[{place}]"
            image, category = _id(one, "image_id", where), _id(one, "category_id", where)
            if image not in places:
                raise InputError(
                    f"{where}.image_id: expected the id of an image that the file lists, got {image!r:.80}"
                )
            if category not in number:
                known = f"{', '.join(f'{one!r:.80}' for one in list(number)[:12])}{' …' if len(number) > 12 else ''}"
                raise InputError(f"{where}.category_id: expected one of {known}, got {category!r:.80}")
            left, top, width, height = _bbox(one["bbox"], where)
            counts, label = float(not one.get("iscrowd")), float(number[category])
            found[places[image]].append([left, top, left + width, top + height, counts, label])
        if not any(found):
            raise InputError(
                f"data: {file} holds no boxes; to compare with what is found on clean images, name their folder: "
                "folder = '…' with size = 'own'"
            )
        names = [_text(one["file_name"], f"data: {file.name}: images[{n}].file_name") for n, one in enumerate(listed)]
        outside = next((name for name in names if not is_inside(name)), None)
        if outside is not None:
            raise InputError(
                f"data: {file.name}: file_name: expected the name of a file in the folder of the images, got "
                f"{outside[:200]!r}; copy the image there, under a relative name without '..'"
            )
        boxes: list[Boxes] = [np.array(rows, np.float32).reshape(-1, COLUMNS) for rows in found]
        called = {one: categories[by_id[one]]["name"] for one in number}
        classes = [_text(name, f"data: {file.name}: category {one!r}: name") for one, name in called.items()]
        folder = _coco_images(file, names, images)
        for name in names:
            check_inside(folder, name, links=links)
        return _boxed_images(folder, names, boxes, classes, file.name)


def _id(row: RecordLike, key: str, where: str) -> int | str:
    value = row[key]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and abs(value) > 2**63):
        raise InputError(f"{where}.{key}: expected a whole number or a text, got {str(value)[:80]}")
    return value


def _places(rows: Sequence[RecordLike], name: str, file: Path) -> dict[int | str, int]:
    places: dict[int | str, int] = {}
    for place, row in enumerate(rows):
        one = _id(row, "id", f"data: {file.name}: {name}[{place}]")
        if one in places:
            raise InputError(
                f"data: {file.name}: {name}[{place}].id: expected an id of its own, got {str(one)[:80]}, which "
                f"{name}[{places[one]}] has too"
            )
        places[one] = place
    return places


def _bbox(value: object, where: str) -> list[float]:
    sides = value if isinstance(value, list) else []
    numbers = [one for one in sides if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(sides) != 4 or len(numbers) != 4 or not all(abs(one) <= LARGEST for one in numbers):  # NaN is not
        raise InputError(f"{where}.bbox: expected [x, y, width, height] in pixels, got {str(value)[:80]}")
    return [float(one) for one in numbers]


def _text(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where}: expected a text, got {str(value)[:80]}")
    try:
        text = str(value)
        text.encode()
    except UnicodeEncodeError:  # JSON can spell halves of characters
        raise InputError(f"{where}: expected a text, got half a character in {ascii(value)[:80]}") from None
    return text


def _coco_files(folder: Path) -> list[Path]:
    candidates = [*sorted(folder.glob("*.json")), *sorted(folder.glob("annotations/*.json"))]
    return [file for file in candidates if _is_coco(file)]


def _is_coco(file: Path) -> bool:
    """Return True if a file starts with a table that has one of COCO's keys."""
    try:
        with file.open("rb") as stream:
            head = stream.read(1 << 12).lstrip()
    except OSError:
        return False
    named = any(f'"{part}"'.encode() in head for part in (*_LISTS, "info", "licenses"))
    return file.suffix.lower() == ".json" and head.startswith(b"{") and named


def _coco_file(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"data: {path} does not exist")
    if path.is_file():
        return path
    found = _coco_files(path)
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"data: {path} holds {len(found)} files in COCO's format ({names}); name one: coco = '….json'")
    return check_inside(path, found[0].relative_to(path).as_posix())


def _read_json(file: Path) -> RecordLike:
    accepted = f"a COCO file has {', '.join(_LISTS)}"
    try:
        text = file.read_text(encoding="utf-8")
        table = json.loads(text) if text.strip() else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"data: {file} is not JSON ({' '.join(str(error).split())[:120]})") from None
    if table is None:
        raise InputError(f"data: {file} is empty; {accepted}")
    if not isinstance(table, dict):
        raise InputError(f"data: {file} holds a {type(table).__name__}; {accepted}")
    return table


def _rows(table: RecordLike, name: str, file: Path) -> Sequence[RecordLike]:
    rows = table.get(name)
    if not isinstance(rows, list) or (not rows and name != "annotations"):
        found = ", ".join(map(str, list(table)[:8])) or "nothing"
        raise InputError(f"data: {file} has no list {name!r} (it has {found}); a COCO file has {', '.join(_LISTS)}")
    for place, row in enumerate(rows):
        missing = [key for key in _LISTS[name] if not isinstance(row, dict) or key not in row]
        if missing:
            raise InputError(f"data: {file.name}: {name}[{place}] has no {missing[0]!r}")
    return rows


def _coco_images(file: Path, names: Sequence[str], given: Path | None) -> Path:
    beside = file.parent
    folders = [given] if given is not None else [beside / "images", beside, beside.parent / "images", beside.parent]
    for folder in folders:
        if os.path.isfile(folder / names[0]):  # False also for a name that no file can have
            missing = [name for name in names if not os.path.isfile(folder / name)]
            if missing:
                raise InputError(f"data: {len(missing)} of {len(names)} images of {file.name} are not in {folder}, "
                                 f"such as {missing[0]}")  # fmt: skip
            return folder
    raise InputError(
        f"data: {names[0]}, the first image of {file.name}, is not in {' nor '.join(map(str, folders[:2]))}; say where "
        "the images are with images = 'FOLDER'"
    )


class YoloPart(FilePart):
    """The folder that holds images/ and labels/ (or one folder of both), and what the classes are called."""

    yolo: File
    """The folder that holds `images` and `labels`, or one folder of both."""
    classes: Words | None = None
    """Names of the classes in their order; default: those of `classes.txt`."""
    background: bool | None = None
    """Whether an image without boxes is one with nothing on it; default: a mistake."""
    links: bool | None = None
    """Whether files may be links to files outside the folder; default: these are refused."""

    FILES: ClassVar = ("yolo",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        labels = path / "labels"
        return (path / "images").is_dir() and labels.is_dir() and next(labels.rglob("*.txt"), None) is not None

    @staticmethod
    def read(path: Path, classes: list[str] | None = None, background: bool = False, links: bool = False) -> Data:
        folder, labels, names = _yolo_images(path, links=links)
        sizes = photographs(Listed(folder, names)).sizes(np.arange(len(names)))
        files = [check_inside(labels, Path(name).with_suffix(".txt").as_posix(), links=links) for name in names]
        lines = [_lines(file, background) for file in files]
        boxes = [_yolo_boxes(*given) for given in zip(lines, files, sizes.tolist(), strict=True)]
        if not any(map(len, boxes)):
            raise InputError(
                f"data: {labels} holds no boxes; name the folder of images instead: folder = '…', size = 'own'"
            )
        named = path / "classes.txt"
        if not classes and named.is_file():
            check_inside(path, named.name, links=links)
            classes = [line.strip() for line in _lines(named, background=True)]
        highest = max(int(rows[:, -1].max()) for rows in boxes if len(rows))
        if classes is not None and highest >= len(classes):
            raise InputError(
                f"data: {labels} has boxes of class {highest}; {len(classes)} classes are named, 0 … {len(classes) - 1}"
            )
        return _boxed_images(folder, names, boxes, classes, path.name)


def without_boxes(path: str | Path) -> int:
    """Return the number of images in a YOLO folder that have an empty text file, or none."""
    _, labels, names = _yolo_images(Path(path), links=False)
    return sum(not _lines((labels / name).with_suffix(".txt"), background=True) for name in names)


def _yolo_images(path: Path, *, links: bool) -> tuple[Path, Path, list[str]]:
    split = (existing_folder(path) / "images").is_dir()
    folder, labels = (path / "images", path / "labels") if split else (path, path)
    found = local_images(folder, links=links)
    names = [*found.loose, *(name for inside in found.by_class.values() for name in inside)]
    if not names:
        raise InputError(f"data: {folder} holds no images")
    return folder, labels, names


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


_MOST_SHARE = 100.0  # of a box that may reach over the edge; a larger one is a mistake


def _yolo_boxes(lines: list[str], file: Path, size: tuple[int, int]) -> Boxes:
    rows = np.zeros((len(lines), COLUMNS), np.float32)
    height, width = size
    for place, line in enumerate(lines):
        try:
            label, *shares = map(float, line.split())
            x, y, across, down = shares
        except ValueError:
            label, x, y, across, down = -1, 0, 0, 0, 0
        near = all(abs(one) <= _MOST_SHARE for one in (x, y, across, down))  # NaN is not
        if not (near and 0 <= label < MOST_CLASSES and label == int(label)):
            raise InputError(
                f"data: {file}: line {place + 1} is {line[:60]!r}; class x y width height, the last four as shares of "
                "the image, 0 … 1, is accepted"
            )
        left, right = (x - across / 2) * width, (x + across / 2) * width
        top, bottom = (y - down / 2) * height, (y + down / 2) * height
        rows[place] = left, top, right, bottom, 1, label
    return rows
