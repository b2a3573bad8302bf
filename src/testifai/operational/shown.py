"""Inputs as people see them while they label, kept in one file beside each round.

Whoever labels needs neither the data nor the spec, and sees no name of a file, which often is the answer.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from testifai.data import Data
from testifai.data import rows as rows_of
from testifai.data.image_files import ImageFiles
from testifai.errors import InputError
from testifai.operational import sheet
from testifai.support import images
from testifai.support.batches import are_images, are_pairs

SUFFIX = ".inputs.zip"
LARGEST = 1024  # pixels on the longer side of a picture; larger ones are shrunk
LOSSLESS = 96  # pixels up to which every one is kept
MOST_BYTES = 64 << 20  # of one input; more is not ours
_TEXT_LIMIT = 30_000  # characters; a cell of a spreadsheet takes little more
_TABLE_LIMIT = 64  # columns; wider rows say nothing to a reader
_NUMBERS = 256  # of an input that is neither picture, text nor row

Shown = dict[str, Any]


def have_pictures(data: Data) -> bool:
    """Whether the inputs can be drawn."""
    return are_images(data.inputs) or sheet.is_image(data.inputs)


def pictures(data: Data, examples: Iterable[int]) -> Iterator[Any]:
    """The images as people should see them: files as they are, not in the size that the model takes."""
    for example in examples:
        if isinstance(data.inputs, ImageFiles):
            yield images.read_image(data.inputs.files[example])
        else:
            yield rows_of(data.inputs, np.array([example], np.intp))[0]


def shown(data: Data, examples: list[int]) -> Iterator[Shown]:
    """Each input as a `picture`, as one or two `texts`, or as `columns` with their values."""
    if have_pictures(data):
        for picture in pictures(data, examples):
            yield {"picture": images.data_uri(sheet.drawable(picture), LARGEST, LOSSLESS)}
        return
    for one in rows_of(data.inputs, np.array(examples, np.intp)):
        if isinstance(one, str | tuple):
            yield {"texts": [one] if isinstance(one, str) else list(one)}
        elif data.table is not None:
            columns = zip(data.table.columns, one.tolist(), strict=True)
            yield {"columns": [[column.name, column.word(value)] for column, value in columns]}
        else:
            numbers = np.ravel(one)
            more = ", …" if numbers.size > _NUMBERS else ""
            yield {"texts": [", ".join(f"{number:.4g}" for number in numbers[:_NUMBERS].tolist()) + more]}


def cells(data: Data, examples: list[int]) -> list[str]:
    """Inputs that can be read in a cell of a table: texts, and short rows; none where they are something else."""
    if have_pictures(data):
        return []
    inputs = rows_of(data.inputs, np.array(examples, np.intp))
    if isinstance(inputs, list):
        texts = cast(list[str], [" / ".join(pair) for pair in inputs] if are_pairs(inputs) else inputs)
        return [text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "…" for text in texts]
    if inputs.ndim > 2 or inputs[0].size > _TABLE_LIMIT:
        return []
    if data.schema is not None:
        return ["; ".join(f"{name} {value}" for name, value in one["columns"]) for one in shown(data, examples)]
    return ["[" + ", ".join(f"{value:.6g}" for value in np.ravel(row)) + "]" for row in inputs]


def inputs_path(path: Path) -> Path:
    """Where the inputs of a round are kept."""
    return path.with_name(path.stem + SUFFIX)


def packed(tag: str, data: Data, examples: list[int]) -> bytes:
    """The inputs of a round of a selection; the same ones always give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = tag.encode()
        for example, one in zip(examples, shown(data, examples), strict=True):
            entry = zipfile.ZipInfo(_member(example), date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, json.dumps(one))
    return buffer.getvalue()


class KeptInputs:
    """The inputs of a selection, found in what `select` wrote beside a file, whatever that is called now."""

    def __init__(self, path: Path, tag: str) -> None:
        self._path = path
        self._places: dict[str, Path] = {}
        for place in (*sorted(path.parent.glob("*" + SUFFIX)), inputs_path(path)):
            self._places |= dict.fromkeys(_members(place, tag), place)

    def check(self, examples: Iterable[int]) -> None:
        """Refuse to label what cannot be seen."""
        missing = [example for example in examples if _member(example) not in self._places]
        if missing:
            raise InputError(
                f"{self._path.name}: there is nothing to look at for id {missing[0]} ({len(missing)} in all); put "
                f"{inputs_path(self._path).name}, which testifai select writes, beside it"
            )

    def __getitem__(self, example: int) -> Shown:
        place = self._places[_member(example)]
        try:
            with zipfile.ZipFile(place) as archive:
                if archive.getinfo(_member(example)).file_size > MOST_BYTES:
                    raise InputError(f"{place.name}: id {example} is too large to be an input that select wrote")
                found = dict(json.loads(archive.read(_member(example))))
        except InputError:
            raise
        except Exception as error:  # whatever zip and JSON say of bytes that somebody changed
            raise InputError(f"{place.name}: id {example} cannot be read ({type(error).__name__})") from None
        return {key: found[key] for key in ("picture", "texts", "columns") if key in found}


def _member(example: int) -> str:
    return f"{example}.json"


def _members(place: Path, tag: str) -> set[str]:
    """The inputs in a file; none where it is not of this selection."""
    try:
        with zipfile.ZipFile(place) as archive:
            return set(archive.namelist()) if archive.comment == tag.encode() else set()
    except (OSError, zipfile.BadZipFile):
        return set()
