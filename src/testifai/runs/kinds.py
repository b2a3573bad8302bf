"""What a file is that should be a run file: told by how it begins, and by what it is called."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from testifai.errors import InputError

MAGIC = b"SQLite format 3\0"
APPLICATION_ID = 0x7E57FA1  # in the header of every run file
_ID_AT = 68  # bytes into the header
RUN, DATABASE, SPEC = "a run file", "an SQLite file", "a spec"
KINDS = {
    ".toml": SPEC,
    ".csv": "a table", ".tsv": "a table", ".parquet": "a table", ".xlsx": "a table", ".json": "a JSON file",
    ".jsonl": "a JSON file", ".ndjson": "a JSON file", ".npz": "a file of NumPy arrays",
    ".npy": "a file of NumPy arrays", ".bin": "a data file", ".gz": "a packed file", ".zip": "a packed file",
    ".onnx": "an ONNX model", ".pt": "a torch model", ".pth": "a torch model", ".safetensors": "a file of weights",
    ".py": "Python code", ".ipynb": "a notebook", ".html": "a page", ".md": "a text", ".txt": "a text",
    ".xml": "an XML file", ".pdf": "a PDF file", ".png": "an image", ".jpg": "an image", ".jpeg": "an image",
    ".svg": "an image",
}  # fmt: skip


def kind_of(path: Path) -> str | None:
    """What a file or folder is, in words; None where that cannot be told."""
    if path.is_dir():
        return "a folder"
    if _beginning(path, len(MAGIC)) == MAGIC:
        return RUN if is_ours(path) else DATABASE
    return KINDS.get(path.suffix.lower())


def refuse_others(path: Path, advice: str) -> None:
    """Refuse what is of another kind, named for what it is; a file that is empty may become a run."""
    kind = kind_of(path)
    empty = not path.exists() or (path.is_file() and not path.stat().st_size)
    if empty or kind in (None, RUN, DATABASE):
        return
    if kind == SPEC:
        run_file = path.with_suffix(".db")
        made = "" if run_file.is_file() else f": testifai run {path} makes it"
        advice = f"its run file is {run_file}{made}"
    raise InputError(f"run file: {path} is {kind}, not a run file; {advice}")


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether the header says that testifai made the file, whatever became of the rest."""
    begin = _beginning(path, _ID_AT + 4)
    return begin[: len(MAGIC)] == MAGIC and begin[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _beginning(path: str | os.PathLike[str], length: int) -> bytes:
    """The first bytes of a file; none where it cannot be read, which whoever opens it will say."""
    if not os.path.isfile(path):  # a pipe would be waited for
        return b""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(length)
    return b""
