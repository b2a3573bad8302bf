"""Sheets of inputs at several values of quality, to choose a limit by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.present.contact_sheets import GAP, LINE, Image, cell_size, place, text_width, write_text
from testifai.quality.scores import Scores
from testifai.support.batches import are_images
from testifai.support.files import write_bytes
from testifai.support.images import as_image, write_picture
from testifai.support.printable import in_markdown, printable
from testifai.tomogram.limits import Plausible, nearest_tests

SHOWN = 8  # inputs in a row of a sheet
LONGEST = 160  # characters of a text in a sheet


def write_examples(subject: Subject, scores: Scores, values: Sequence[float], path: Path, seed: int = 0) -> None:
    """A sheet of some inputs at each value: .png or .jpg for images, .md or .txt for texts."""
    chosen = nearest_tests(scores, values)
    places = np.sort(np.random.default_rng(seed).permutation(len(subject.order))[:SHOWN])
    originals = subject.batch(places)
    if are_images(originals):
        raise InputError("examples: the images are of different sizes; a sheet shows those of one size")
    if isinstance(originals, list):
        if path.suffix not in {".md", ".txt"}:
            raise InputError(f"examples: {path.name!r} is not a text file; use a name that ends in .md or .txt")
        show = in_markdown if path.suffix == ".md" else printable
        write_bytes(path, _text(subject, scores, chosen, places, originals, show).encode())
        return
    if as_image(np.asarray(originals)[0]) is None:
        raise InputError(f"examples: inputs of shape {np.shape(originals)[1:]} are neither images nor texts")
    write_picture(path, lambda: _sheet(subject, scores, chosen, places, np.asarray(originals)), field="preview")


def _title(scores: Scores, row: Plausible) -> str:
    source = "" if row.measured else ", predicted"
    sigma = scores.space.configuration(row.configuration)
    return f"{scores.name} {row.quality:.3g}{source}: {scores.space.words(sigma)}"


def _sheet(
    subject: Subject, scores: Scores, chosen: Sequence[Plausible], places: NDArray[np.intp], originals: NDArray[Any]
) -> Image:
    strips = [("original", _images(originals))]
    for row in chosen:
        batch = np.asarray(subject.composite(scores.space.configuration(row.configuration), places))
        strips.append((_title(scores, row), _images(batch)))
    cell = cell_size(strips[0][1])
    down, across = LINE + cell[0] + GAP, cell[1] + GAP
    width = max(GAP + len(places) * across, text_width([title for title, _ in strips]))
    sheet: Image = np.full((GAP + len(strips) * down, width, 3), 255, np.uint8)
    for number, (title, images) in enumerate(strips):
        top = GAP + number * down
        write_text(sheet, title, GAP, top + LINE - 6)
        for column, image in enumerate(images):
            place(sheet, image, top + LINE, GAP + column * across, cell)
    return sheet


def _images(batch: NDArray[Any]) -> list[Image]:
    made = [as_image(one) for one in batch]
    return [image for image in made if image is not None]


def _text(
    subject: Subject,
    scores: Scores,
    chosen: Sequence[Plausible],
    places: NDArray[np.intp],
    originals: list[Any],
    show: Callable[[str], str],
) -> str:
    lines = ["original", *_texts(originals, show)]
    for row in chosen:
        batch = subject.composite(scores.space.configuration(row.configuration), places)
        lines += ["", show(_title(scores, row)), *_texts(list(batch), show)]
    return "\n".join(lines) + "\n"


def _texts(batch: list[Any], show: Callable[[str], str]) -> list[str]:
    joined = [one if isinstance(one, str) else " | ".join(one) for one in batch]
    flat = [" ".join(one.split()) for one in joined]
    return [f"- {show(one if len(one) <= LONGEST else one[: LONGEST - 1] + '…')}" for one in flat]
