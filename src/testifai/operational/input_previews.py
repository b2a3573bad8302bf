"""Inputs as people see them while they label, kept in one file beside each round.

Whoever labels needs neither the data nor the spec, and sees no name of a file, which often is the answer.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from testifai.data import Data, image_io
from testifai.data import rows as rows_of
from testifai.data.image_files import ImageFiles
from testifai.errors import InputError
from testifai.support.batches import are_images, are_pairs
from testifai.support.formatting import in_html
from testifai.support.types import Array, Record

SUFFIX = ".inputs.zip"
LARGEST = 1024  # pixels on the longer side of a picture; larger ones are shrunk
LOSSLESS = 96  # pixels up to which every one is kept
MOST_BYTES = 64 << 20  # of one input; more is not ours
_TEXT_LIMIT = 30_000  # characters; a cell of a spreadsheet takes little more
_TABLE_LIMIT = 64  # columns; wider rows say nothing to a reader
_NUMBERS = 256  # of an input that is neither picture, text nor row


def have_pictures(data: Data) -> bool:
    return are_images(data.inputs) or is_image(data.inputs)


def pictures(data: Data, examples: Iterable[int]) -> Iterator[Any]:
    """The images as people should see them: files as they are, not in the size that the model takes."""
    for example in examples:
        if isinstance(data.inputs, ImageFiles):
            yield image_io.read_image(data.inputs.files[example])
        else:
            yield rows_of(data.inputs, np.array([example], np.intp))[0]


def shown(data: Data, examples: list[int]) -> Iterator[Record]:
    """Each input as a `picture`, as one or two `texts`, or as `columns` with their values."""
    if have_pictures(data):
        for picture in pictures(data, examples):
            yield {"picture": image_io.data_uri(drawable(picture), LARGEST, LOSSLESS)}
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
    return path.with_name(path.stem + SUFFIX)


def packed(tag: str, data: Data, examples: list[int]) -> bytes:
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
        self._unread = ""
        for place in (*sorted(path.parent.glob("*" + SUFFIX)), inputs_path(path)):
            try:
                with zipfile.ZipFile(place) as archive:
                    if archive.comment == tag.encode():
                        self._places |= dict.fromkeys(archive.namelist(), place)
            except Exception as error:  # zip raises many types of errors for a damaged file, or one of a later version
                if place == inputs_path(path) and place.exists():
                    self._unread = f" ({place.name} cannot be read: {str(error)[:120]})"

    def check(self, examples: Iterable[int]) -> None:
        missing = [example for example in examples if _member(example) not in self._places]
        if missing:
            raise InputError(
                f"{self._path.name}: there is nothing to look at for id {missing[0]} ({len(missing)} in all)"
                f"{self._unread}; put {inputs_path(self._path).name}, which testifai label select writes, beside it"
            )

    def __getitem__(self, example: int) -> Record:
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


LARGEST_THUMBNAIL = 192  # pixels on the longer side; larger images are shrunk, smaller ones drawn larger by the browser
_JPEG_ABOVE = 96  # photographs take less room as JPEG, small images lose too much by it

_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 24px; color: #222; background: #fff; }
figure { display: inline-block; vertical-align: top; margin: 0 10px 14px 0; padding: 8px; width: 144px;
  border: 1px solid #ccc; border-radius: 6px; break-inside: avoid; }
img { display: block; width: 144px; height: 144px; object-fit: contain; background: #eee; image-rendering: pixelated; }
img.large { image-rendering: auto; }
figcaption { margin-top: 6px; overflow-wrap: anywhere; }
small { color: #666; }
"""


@dataclass(frozen=True)
class Card:
    example: int
    image: Array
    predicted: str
    confidence: float | None
    where: str


def page(title: str, file_name: str, cards: Sequence[Card], classes: Sequence[str] = ()) -> bytes:
    accepted = f"<p>Classes: {in_html(', '.join(classes))}</p>" if classes else ""
    figures = "\n".join(_figure(row, card) for row, card in enumerate(cards, start=1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{in_html(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{in_html(title)}</h1>
<p>{len(cards)} examples in the order of the rows of <b>{in_html(file_name)}</b>. Write what each one is into the
column <b>label</b> there. Label from the top: what is filled without a gap can be used at once.</p>
{accepted}
<main>
{figures}
</main>
</body>
</html>
""".encode("utf-8", "replace")


def is_image(inputs: Any) -> bool:
    """Whether inputs can be drawn: (N, H, W) or (N, H, W, C) or (N, C, H, W) with 1, 3 or 4 channels."""
    shape: tuple[int, ...] = getattr(inputs, "shape", ())
    return len(shape) == 3 or (len(shape) == 4 and (shape[3] in (1, 3, 4) or shape[1] in (1, 3, 4)))


def data_uri(image: Array) -> str:
    return image_io.data_uri(drawable(image), LARGEST_THUMBNAIL, _JPEG_ABOVE)


def drawable(image: Array) -> NDArray[np.uint8]:
    """An image of any kind of numbers, channels first or last, as grey or RGB bytes."""
    if image.ndim == 3 and image.shape[2] not in (1, 3, 4):
        image = np.moveaxis(image, 0, 2)
    if image.ndim == 3:
        image = image[..., 0] if image.shape[2] == 1 else image[..., :3]
    if image.dtype == np.uint8:
        return image
    values = image.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 255:
        low, high = 0.0, 1.0 if high <= 1 else 255.0
    # Other values, such as normalised inputs, are stretched.
    return np.asarray(np.rint((values - low) / ((high - low) or 1) * 255), np.uint8)


def thumbnail(image: Array) -> NDArray[np.uint8]:
    """An image no larger than it is shown: all images of a round would not fit into memory."""
    return image_io.shrunk(drawable(image), LARGEST_THUMBNAIL)


def _figure(row: int, card: Card) -> str:
    large = ' class="large"' if max(card.image.shape[:2]) > _JPEG_ABOVE else ""
    sure = "" if card.confidence is None else f" ({card.confidence:.2f})"
    return (
        f'<figure><img{large} src="{data_uri(card.image)}" alt="example {card.example}">'
        f"<figcaption>{row}. <b>id {card.example}</b><br>predicted: {in_html(card.predicted)}{sure}<br>"
        f"<small>{in_html(card.where)}</small></figcaption></figure>"
    )
