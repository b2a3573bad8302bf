"""Which perturbed inputs are plausible: what a limit on quality leaves in, and sheets of inputs to choose it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.present.contact_sheets import GAP, LINE, Image, cell_size, place, text_width, write_text
from testifai.quality.scores import Scores
from testifai.support.files import write_bytes
from testifai.support.images import as_image, write_picture
from testifai.tomogram import Answer, Tomogram

SHOWN = 8  # inputs in a row of a sheet
VALUES = 6  # limits to look at where none are named
LONGEST = 160  # characters of a text in a sheet


@dataclass(frozen=True)
class Limit:
    """A limit on quality and what it makes of the run; `inside` is None where it leaves no test in."""

    value: float
    inside: Answer | None


@dataclass(frozen=True)
class Row:
    """A test to look at: one whose quality is nearest to a value."""

    value: float
    configuration: int
    quality: float
    measured: bool


def scores_of(tomogram: Tomogram) -> Scores:
    """The run's scores, or an InputError where it has none."""
    if tomogram.quality is None or not len(tomogram.quality.measured):
        raise InputError(
            'quality: this run did not measure any; add quality = "kid" (texts: "edit_similarity") to the spec\'s '
            "[scan], and run it again: what is tested already stays"
        )
    return tomogram.quality


def usual_values(scores: Scores, count: int = VALUES) -> list[float]:
    """Round numbers, evenly between the best quality of a test and the worst."""
    ends = np.nanmin(scores.estimate), np.nanmax(scores.estimate)
    wanted = np.linspace(*(ends[::-1] if scores.higher_is_better else ends), count + 2)[1:-1]
    return list(dict.fromkeys(float(f"{value:.2g}") for value in wanted))


def limits(tomogram: Tomogram, values: Sequence[float] = ()) -> list[Limit]:
    """Robustness inside and outside the plausible region, for each value as the limit."""
    scores = scores_of(tomogram)
    estimate, found = scores.estimate, []
    for value in values or usual_values(scores):
        inside = estimate >= value if scores.higher_is_better else estimate <= value
        asked = f"quality {scores.sign} {value!r}"
        found.append(Limit(value, tomogram.query(asked) if inside.any() else None))
    return found


def rows(scores: Scores, values: Sequence[float]) -> list[Row]:
    """Two tests for each value, both near to it: the mildest by the sum of severities, and the severest.

    Equal scores can come from one strong perturbation or from many weak ones; the two look different.
    """
    space = scores.space
    estimate = scores.estimate.reshape(-1)
    total = np.broadcast_to(space.columns()["severity"], space.shape).reshape(-1)
    measured = np.isin(np.arange(space.size), scores.measured)
    found = []
    for value in values:
        apart = np.where(np.isnan(estimate), np.inf, np.abs(estimate - value))
        apart[0] = np.inf  # the originals are shown above
        near = np.argsort(apart, kind="stable")[: max(2, space.size // 50)]
        ends = dict.fromkeys((near[np.argmin(total[near])], near[np.argmax(total[near])]))
        found += [Row(value, int(one), float(estimate[one]), bool(measured[one])) for one in ends]
    return found


def write_examples(subject: Subject, scores: Scores, values: Sequence[float], path: Path, seed: int = 0) -> None:
    """A sheet of some inputs at each value: .png or .jpg for images, .md or .txt for texts."""
    chosen = rows(scores, values)
    places = np.sort(np.random.default_rng(seed).permutation(len(subject.order))[:SHOWN])
    originals = subject.batch(places)
    if isinstance(originals, list):
        if path.suffix not in {".md", ".txt"}:
            raise InputError(f"examples: {path.name!r} is not a text file; use a name that ends in .md or .txt")
        write_bytes(path, _text(subject, scores, chosen, places, originals).encode())
        return
    if as_image(np.asarray(originals)[0]) is None:
        raise InputError(f"examples: inputs of shape {np.shape(originals)[1:]} are neither images nor texts")
    write_picture(path, lambda: _sheet(subject, scores, chosen, places, np.asarray(originals)), field="preview")


def _title(scores: Scores, row: Row) -> str:
    source = "" if row.measured else ", predicted"
    sigma = scores.space.configuration(row.configuration)
    return f"{scores.name} {row.quality:.3g}{source}: {scores.space.words(sigma)}"


def _sheet(
    subject: Subject, scores: Scores, chosen: Sequence[Row], places: NDArray[np.intp], originals: NDArray[Any]
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
    subject: Subject, scores: Scores, chosen: Sequence[Row], places: NDArray[np.intp], originals: list[Any]
) -> str:
    lines = ["original", *_texts(originals)]
    for row in chosen:
        batch = subject.composite(scores.space.configuration(row.configuration), places)
        lines += ["", _title(scores, row), *_texts(list(batch))]
    return "\n".join(lines) + "\n"


def _texts(batch: list[Any]) -> list[str]:
    joined = [one if isinstance(one, str) else " | ".join(one) for one in batch]
    flat = [" ".join(one.split()) for one in joined]
    return [f"- {one if len(one) <= LONGEST else one[: LONGEST - 1] + '…'}" for one in flat]
