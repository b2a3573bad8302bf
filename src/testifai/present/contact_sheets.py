"""Contact sheets: every perturbation at every severity, or composites step by step, on one image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.image_io import as_image, write_picture
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.perturb.base import Perturbation
from testifai.perturb.registry import get, suite_of
from testifai.quality.predict import Scores
from testifai.support.batches import are_images
from testifai.support.files import write_bytes
from testifai.support.formatting import in_markdown, printable
from testifai.support.optional_imports import cv2
from testifai.support.types import Array
from testifai.tomogram.limits import Plausible, nearest_tests

Image = NDArray[np.uint8]
Composite = Sequence[tuple[Perturbation, int]]

# Sides in pixels: a cell for images up to SMALLEST, and the most that a larger image is given.
SMALLEST, LARGEST = 96, 192
GAP, HEAD, LINE = 6, 28, 18
_FONT_SCALE = 0.42
_INK = (40, 40, 40)


def draw(perturbations: Sequence[Perturbation], path: Path, image: Image | None = None) -> None:
    """Write a sheet as .png or .jpg: a row per perturbation, a column per severity."""
    write_picture(path, lambda: compose(perturbations, image), field="preview")


def draw_composites(composites: Sequence[Composite], path: Path, image: Image | None = None) -> None:
    """Write a sheet as .png or .jpg: a row per composite, the original and the result of each step."""
    write_picture(path, lambda: compose_steps(composites, image), field="preview")


def compose(perturbations: Sequence[Perturbation], image: Image | None = None) -> Image:
    """The sheet of perturbations as an RGB image."""
    columns = max(len(one.severities) for one in perturbations)
    originals = [example(one.name) if image is None else image for one in perturbations]
    cell = cell_size(originals)
    down, across, names = cell[0] + GAP, cell[1] + GAP, text_width([one.name for one in perturbations])
    sheet = np.full((HEAD + len(perturbations) * down, names + columns * across, 3), 255, np.uint8)
    for severity in range(columns):
        write_text(sheet, str(severity), names + severity * across + cell[1] // 2 - 4, HEAD - 10)
    for row, (one, original) in enumerate(zip(perturbations, originals, strict=True)):
        top = HEAD + row * down
        write_text(sheet, one.name, 8, top + cell[0] // 2 + 4)
        for severity in range(len(one.severities)):
            changed = np.asarray(one.apply(original[None], severity))[0]
            place(sheet, changed, top, names + severity * across, cell)
    return sheet


def compose_steps(composites: Sequence[Composite], image: Image | None = None) -> Image:
    """The sheet of composites as an RGB image: under each cell the step that was applied last."""
    rows = []
    for composite in composites:
        other = [step.name for step, _ in composite if suite_of(step.name) != "mnist_c"]
        shown = example(other[0] if other else composite[0][0].name) if image is None else image
        rows.append(_steps(composite, shown))
    cell = cell_size([row[0][1] for row in rows])
    down = cell[0] + LINE + GAP
    across = max(cell[1], text_width([label for row in rows for label, _ in row])) + GAP
    sheet = np.full((GAP + len(rows) * down, GAP + max(map(len, rows)) * across, 3), 255, np.uint8)
    for row, steps in enumerate(rows):
        for column, (label, changed) in enumerate(steps):
            top, left = GAP + row * down, GAP + column * across
            place(sheet, changed, top, left, cell)
            write_text(sheet, label, left, top + cell[0] + LINE - 5)
    return sheet


def parse_composite(text: str) -> list[tuple[Perturbation, int]]:
    """Parse a composite of the command line.

    >>> [(step.name, severity) for step, severity in parse_composite("mnist_c.zoom=3, mnist_c.rotate=2")]
    [('mnist_c.zoom', 3), ('mnist_c.rotate', 2)]
    """
    steps = []
    for part in text.split(","):
        name, _, severity = (word.strip() for word in part.partition("="))
        if not severity.isdecimal():
            raise InputError(f"sigma: {part.strip()!r} is not perturbation=severity, such as imagenet_c.fog=3")
        step = get(name)
        steps.append((step, step.check_severity(int(severity))))
    return steps


def example(name: str) -> Image:
    """The image on which a perturbation is shown: a digit for perturbations of digits, else a street."""
    if suite_of(name) != "mnist_c":
        return street()
    from testifai.data.sample import demo_data

    digit: Image = np.asarray(demo_data().inputs[np.array([0])])[0]
    return digit


def street() -> Image:
    """A small drawn scene with edges, colours, smooth areas and fine detail."""
    side = 96
    scene = np.empty((side, side, 3), np.uint8)
    down = np.linspace(0, 1, side)[:, None, None]
    scene[:] = np.rint((1 - down) * (90, 150, 220) + down * (225, 235, 240))  # the sky pales towards the horizon

    def shape(points: list[tuple[int, int]], colour: tuple[int, int, int]) -> None:
        cv2.fillPoly(scene, [np.array(points, np.int32)], colour, cv2.LINE_AA)

    cv2.circle(scene, (14, 13), 6, (250, 220, 110), -1, cv2.LINE_AA)
    shape([(0, 52), (26, 40), (52, 50), (74, 42), (96, 50), (96, 96), (0, 96)], (86, 140, 70))
    shape([(0, 60), (96, 58), (96, 96), (0, 96)], (112, 158, 78))
    shape([(43, 52), (49, 52), (82, 96), (4, 96)], (98, 98, 104))
    shape([(45, 55), (46, 55), (46, 59), (45, 59)], (240, 236, 220))
    shape([(44, 64), (46, 64), (46, 71), (44, 71)], (240, 236, 220))
    shape([(42, 79), (46, 79), (45, 92), (41, 92)], (240, 236, 220))
    for x, y, radius in ((10, 38, 9), (22, 42, 7), (54, 44, 5)):
        cv2.line(scene, (x, y), (x, y + radius + 8), (96, 66, 40), 2, cv2.LINE_AA)
        cv2.circle(scene, (x, y), radius, (44, 104, 50), -1, cv2.LINE_AA)
        cv2.circle(scene, (x - 2, y - 2), radius // 2, (84, 144, 70), -1, cv2.LINE_AA)
    cv2.line(scene, (76, 40), (76, 76), (120, 122, 126), 3, cv2.LINE_AA)
    cv2.circle(scene, (76, 29), 17, (200, 30, 36), -1, cv2.LINE_AA)
    cv2.circle(scene, (76, 29), 12, (250, 250, 246), -1, cv2.LINE_AA)
    cv2.putText(scene, "5", (70, 36), cv2.FONT_HERSHEY_SIMPLEX, 0.65, (20, 20, 24), 2, cv2.LINE_AA)
    return scene


def cell_size(images: Sequence[Image]) -> tuple[int, int]:
    """Height and width of the cells for some images."""
    sizes = [_fitted(image) for image in images]
    return max(height for height, _ in sizes), max(width for _, width in sizes)


def _fitted(image: Image) -> tuple[int, int]:
    """Height and width at which an image is shown: its longer side between SMALLEST and LARGEST."""
    height, width = image.shape[:2]
    scale = np.clip(max(height, width), SMALLEST, LARGEST) / max(height, width)
    return max(1, round(height * scale)), max(1, round(width * scale))


def _steps(composite: Composite, image: Image) -> list[tuple[str, Image]]:
    found = [("original", image)]
    uses: Counter[str] = Counter()
    batch: Any = image[None]
    for step, severity in composite:
        batch = step.apply(batch, severity, occurrence=uses[step.name])
        uses[step.name] += 1
        plus = "+ " if len(found) > 1 else ""
        found.append((f"{plus}{step.name}={severity}", np.asarray(batch)[0]))
    return found


def place(sheet: Image, image: Image, top: int, left: int, cell: tuple[int, int]) -> None:
    """Place an image in the middle of a cell: enlarged without smoothing, or shrunk to means of its pixels."""
    height, width = _fitted(image)
    method = cv2.INTER_NEAREST if height >= image.shape[0] else cv2.INTER_AREA
    shown = np.asarray(cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=method))
    top, left = top + (cell[0] - height) // 2, left + (cell[1] - width) // 2
    sheet[top : top + height, left : left + width] = shown.reshape(height, width, -1)


def text_width(texts: Sequence[str]) -> int:
    """Width in pixels of the longest label."""
    widths = (cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, _FONT_SCALE, 1)[0][0] for text in texts)
    return 16 + int(max(widths))


def write_text(sheet: Image, text: str, x: int, y: int) -> None:
    cv2.putText(sheet, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, _FONT_SCALE, _INK, 1, cv2.LINE_AA)


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
    subject: Subject, scores: Scores, chosen: Sequence[Plausible], places: NDArray[np.intp], originals: Array
) -> Image:
    strips = [("original", originals)]
    for row in chosen:
        batch = np.asarray(subject.composite(scores.space.configuration(row.configuration), places))
        strips.append((_title(scores, row), batch))
    pictures = [[image for one in batch if (image := as_image(one)) is not None] for _, batch in strips]
    cell = cell_size(pictures[0])
    down, across = LINE + cell[0] + GAP, cell[1] + GAP
    width = max(GAP + len(places) * across, text_width([title for title, _ in strips]))
    sheet: Image = np.full((GAP + len(strips) * down, width, 3), 255, np.uint8)
    for number, ((title, _), images) in enumerate(zip(strips, pictures, strict=True)):
        top = GAP + number * down
        write_text(sheet, title, GAP, top + LINE - 6)
        for column, image in enumerate(images):
            place(sheet, image, top + LINE, GAP + column * across, cell)
    return sheet


def _text(
    subject: Subject, scores: Scores, chosen: Sequence[Plausible], places: NDArray[np.intp], originals: list[Any],
    show: Callable[[str], str],
) -> str:  # fmt: skip
    def listed(batch: list[Any]) -> list[str]:
        flat = [" ".join((one if isinstance(one, str) else " | ".join(one)).split()) for one in batch]
        return [f"- {show(one if len(one) <= LONGEST else one[: LONGEST - 1] + '…')}" for one in flat]

    lines = ["original", *listed(originals)]
    for row in chosen:
        batch = subject.composite(scores.space.configuration(row.configuration), places)
        lines += ["", show(_title(scores, row)), *listed(list(batch))]
    return "\n".join(lines) + "\n"
