"""Files of lines: opened, read as UTF-8, or one line that says why not."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from testifai.errors import InputError

_LONGEST_CELL = 2**31 - 1
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}  # what files in other encodings may begin with
_FIRST_BYTES = 2


def existing(path: Path) -> Path:
    """The path of a file, or an InputError where there is none."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"data: {path} does not exist" if not path.exists() else f"data: {path} is not a file")
    return path


@contextmanager
def reading(path: Path) -> Iterator[TextIO]:
    """The lines of a file, one after the other; cells may be of any length."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        # A byte order mark is no part of the first column's name; line ends inside quotes stay as they are.
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield lines
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except OSError as error:
        raise InputError(f"data: {path} cannot be read ({error.strerror})") from None
    finally:
        csv.field_size_limit(limit)


def _not_utf8(path: Path) -> InputError:
    """Where the trouble is; what read the lines knows only the place in its buffer."""
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
