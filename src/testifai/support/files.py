"""Files that are written completely or not at all, and files that are read as text."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import TextIO

import numpy as np

from testifai.errors import InputError
from testifai.support.types import Array


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; an existing one keeps its permissions."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"cannot write {path} ({error.strerror or error})") from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as `sha256sum` prints it."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path} ({error.strerror or error})") from error


def refuse_others(folder: Path, names: Iterable[str], sign: str, begins: bytes) -> None:
    """Raise InputError if files would be overwritten and the file `sign` does not start with `begins`, as ours do."""
    try:
        ours = (folder / sign).read_bytes().startswith(begins)
    except OSError:
        ours = False
    there = [name for name in names if (folder / name).exists()]
    if there and not ours:
        raise InputError(f"--out: {folder} has a {there[0]} that was not written by this command; name another folder")


def write_npz(path: Path, arrays: dict[str, Array]) -> None:
    """Write a compressed npz whose bytes depend only on the arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, member.getvalue())
    write_bytes(path, buffer.getvalue())


_LONGEST_CELL = 2**31 - 1
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}  # what files in other encodings may begin with
_FIRST_BYTES = 2


def existing(path: Path) -> Path:
    """Return the path of an existing file, or raise InputError."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"data: {path} does not exist" if not path.exists() else f"data: {path} is not a file")
    return path


def is_inside(name: str) -> bool:
    """Return True for a name that stays in its folder: relative and without "..", whatever links there are.

    >>> is_inside("cats/1.png"), is_inside("../1.png"), is_inside("/1.png")
    (True, False, False)
    """
    told = PureWindowsPath(name)  # splits at both separators, and finds drives
    return not (told.root or told.drive or ".." in told.parts or "\0" in name)


def leads_out(folder: Path, file: Path) -> bool:
    """Return True if a file in a folder is a link, or in a link, to one that is not in the folder."""
    inner = [file, *file.parents][: len(file.relative_to(folder).parts)]
    try:
        linked = any(one.is_symlink() for one in inner)  # far cheaper than to resolve each of many files
        return linked and not file.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a link in a circle, a name that no file can have
        return True


def check_inside(folder: Path, name: str, *, links: bool | None = None) -> Path:
    """Return the file of that name in a folder of data, or raise InputError.

    With `links`, a link may lead anywhere; None: the reader has no such option.
    """
    if not is_inside(name):
        raise InputError(f"data: expected the name of a file in {folder}, got {name[:200]!r}; copy the file there")
    file = folder / name
    if not links and leads_out(folder, file):
        hint = "copy the file there" if links is None else "copy the file there, or set links = true"
        raise InputError(f"data: expected a file in {folder}, got a link out of it ({name[:200]}); {hint}")
    return file


_EXPANSION, _ROOM = 100, 256 << 20


def check_room(path: Path, needed: int, max_bytes: int | None, files: Iterable[Path] | None = None) -> None:
    """Raise InputError if a packed file, or the files of a folder, take more memory than `max_bytes`.

    The default is 100 times their size, and at least 256 MiB.
    """
    sizes = (file.stat().st_size for file in ([path] if files is None else files))
    most = max(_ROOM, _EXPANSION * sum(sizes)) if max_bytes is None else max_bytes
    if needed > most:
        raise InputError(
            f"data: {path}: expected at most {most:,} bytes when unpacked, got {needed:,}; if you trust the file, "
            f"set max_bytes = {needed}"
        )


@contextmanager
def reading(path: Path) -> Iterator[TextIO]:
    """Open a text file; CSV cells may have any length meanwhile."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        # Remove a byte order mark, which is not part of the first column's name; keep line ends inside quotes.
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield lines
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except OSError as error:
        raise InputError(f"data: {path} cannot be read ({error.strerror})") from None
    finally:
        csv.field_size_limit(limit)


def _not_utf8(path: Path) -> InputError:
    """Return an error with the line number; the decoder only knows the position in its buffer."""
    with path.open("rb") as file:
        encoding = _MARKS.get(file.read(_FIRST_BYTES), "latin1")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                place = f"line {number} (byte 0x{line[error.start]:02x})"
                break
        else:
            place = "the file"
    return InputError(
        f"data: {path.name}: {place} is not UTF-8; save the file as UTF-8, "
        f"such as with: iconv -f {encoding} -t utf-8 {path.name} > new{path.suffix}"
    )
