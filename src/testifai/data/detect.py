"""What kind of data set lies at a path, told from its name and its first bytes."""

from __future__ import annotations

from pathlib import Path

from testifai.data.coco import coco_files, is_coco
from testifai.data.image_files import has_images
from testifai.data.tabular import is_table
from testifai.data.yolo import is_yolo
from testifai.errors import InputError
from testifai.support.remote import RemoteFolder, is_address, place

_SUFFIXES = {".npz": "npz", ".bin": "cifar", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
             ".parquet": "table"}  # fmt: skip
_ACCEPTED = (
    ".npz, MNIST IDX (also .gz), CIFAR .bin, a folder of class folders of images, of images with boxes (COCO's .json, "
    "or images/ and labels/ as YOLO has them), texts in .csv, .tsv or .jsonl, or a table in .csv, .tsv or .parquet"
)


def detect(path: str | Path) -> str:
    """The loader's name for a file or folder; of folders elsewhere, those of images are read.

    Args:
        path: a file or folder, here or at an address
    """
    found = place(path) if isinstance(path, str) and is_address(path) else Path(path)
    if isinstance(found, RemoteFolder):
        return "folder"
    path = found
    if not path.exists():
        raise InputError(f"data: {path} does not exist")
    kind = _detect_folder(path) if path.is_dir() else _detect_file(path)
    if kind is None:
        raise InputError(f"data: cannot tell what {path} is; accepted: {_ACCEPTED}")
    return kind


def _detect_file(path: Path) -> str | None:
    known = "coco" if is_coco(path) else _SUFFIXES.get(path.suffix.lower())
    if known in ("csv", "tsv") and is_table(path):
        return "table"
    return known or ("idx" if is_idx(path) else None)


def _detect_folder(folder: Path) -> str | None:
    if coco_files(folder):
        return "coco"
    if is_yolo(folder):
        return "yolo"
    if has_images(folder):
        return "folder"
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    if any(entry.suffix == ".bin" for entry in entries):
        return "cifar"
    if any(entry.is_file() and is_idx(entry) for entry in entries):
        return "idx"
    return None


def is_idx(path: Path) -> bool:
    """Whether a file is in MNIST's IDX format: by its name, or by the bytes it starts with."""
    if "idx" in path.name and "ubyte" in path.name:
        return True
    with path.open("rb") as file:
        head = file.read(4)
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in (8, 9, 11, 12, 13, 14) and 1 <= head[3] <= 4
