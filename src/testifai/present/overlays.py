"""Images with expected and predicted boxes or label maps, errors marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import CLASS, CONFIDENCE, UNSEEN, Boxes, ious, unpack
from testifai.data.image_io import Image, as_image
from testifai.engine.subject import Subject
from testifai.oracles import Oracle
from testifai.oracles.detection import Detection, match
from testifai.oracles.segmentation import Segmentation, label_maps, mean_iou
from testifai.support.optional_imports import cv2
from testifai.support.types import Array

LARGEST = 320  # pixels of a photograph's longer side
LINE, TEXT = 2, 0.38  # widths of lines, in pixels, and size of letters
DASH = 6
TAGGED = 8  # boxes with words at them: more would hide the image
INK = (255, 255, 255)

RIGHT, MISSED, FALSE, OTHER = "right", "missed", "false", "of another class"
# After Okabe and Ito, as other figures: told apart with any kind of colour blindness; what was missed is dashed, too.
COLOURS = {RIGHT: (0, 114, 178), MISSED: (230, 159, 0), FALSE: (213, 94, 0), OTHER: (204, 121, 167)}
LEGEND = "Blue: found as expected. Orange dashes: missed. Red: found where nothing is. Pink: of another class."
MAP_LEGEND = "Each colour is a class. Red stripes: pixels of another class than expected. Plain: not judged."

# For label maps, class by class and then again from the first
PALETTE = (
    (0, 114, 178), (0, 158, 115), (240, 228, 66), (86, 180, 233), (204, 121, 167), (230, 159, 0), (138, 111, 201),
    (122, 130, 136),
)  # fmt: skip
STRIPE = 8  # pixels from one to the next

Name = Callable[[int], str]


@dataclass(frozen=True)
class Mark:
    """A box to draw, its kind, and the words at it."""

    box: NDArray[np.floating[Any]]
    kind: str
    words: str


def marks(found: Boxes, expected: Boxes, iou: float, confidence: float, name: Name) -> list[Mark]:
    """The boxes to draw on an image, right ones first, so that the others are drawn above them.

    A predicted box where one of another class was expected is one mark, though two errors in the score.
    """
    matched = match(found, expected, iou, confidence)
    drawn = [Mark(found[row], RIGHT, _sure(found[row], name)) for row, _ in matched.pairs]
    missed = list(matched.missed)
    for row in matched.wrong:
        overlap = ious(found[[row]], expected[missed])[0]
        if len(missed) and overlap.max() >= iou:
            instead = missed.pop(int(np.argmax(overlap)))
            words = f"{_sure(found[row], name)}, not {name(int(expected[instead, CLASS]))}"
            drawn.append(Mark(found[row], OTHER, words))
        else:
            drawn.append(Mark(found[row], FALSE, _sure(found[row], name)))
    drawn += [Mark(expected[row], MISSED, f"no {name(int(expected[row, CLASS]))}") for row in missed]
    return drawn


def wanted(expected: Boxes, name: Name) -> list[Mark]:
    """Expected boxes alone, without optional ones."""
    return [Mark(box, RIGHT, name(int(box[CLASS]))) for box in expected if box[CONFIDENCE] > 0]


def in_words(drawn: Sequence[Mark]) -> str:
    counts = Counter(mark.kind for mark in drawn)
    return ", ".join(f"{counts[kind]} {kind}" for kind in COLOURS if counts[kind]) or "nothing expected, nothing found"


def with_boxes(image: Image, drawn: Sequence[Mark], largest: int = LARGEST) -> Image:
    """The picture in RGB with boxes, and words at the first of them, wrong and large ones first."""
    picture, scale = _fitted(image, largest)
    limits = np.array([picture.shape[1], picture.shape[0]] * 2) - 1
    corners = [np.clip(np.rint(np.asarray(mark.box[:4]) * scale).astype(int), 0, limits).tolist() for mark in drawn]
    for mark, box in zip(drawn, corners, strict=True):
        _outline(picture, box, COLOURS[mark.kind], dashed=mark.kind == MISSED)

    def rank(one: int) -> tuple[bool, float]:
        left, top, right, bottom = drawn[one].box[:4]
        return drawn[one].kind == RIGHT, float((left - right) * (bottom - top))

    for one in sorted(range(len(drawn)), key=rank)[:TAGGED][::-1]:
        left, top, *_ = corners[one]
        _tag(picture, drawn[one].words, left, top, COLOURS[drawn[one].kind])
    return picture


def with_map(image: Image, labels: Array, expected: Array | None, void: int, largest: int = LARGEST) -> Image:
    """The picture in RGB below a label map, with stripes where another label was expected."""
    picture, _ = _fitted(image, largest)
    size = (picture.shape[1], picture.shape[0])

    def shown(layer: Array) -> Array:
        return np.asarray(cv2.resize(layer.astype(np.int32), size, interpolation=cv2.INTER_NEAREST))

    own, judged = shown(labels), np.ones(size[::-1], bool)
    wrong = np.zeros_like(judged)
    if expected is not None:
        other = shown(expected)
        judged = (other != void) & (other != UNSEEN)
        wrong = judged & (other != own)
    coloured = np.array(PALETTE, np.uint8)[own % len(PALETTE)]
    judged &= (own != void) & (own != UNSEEN)
    picture[judged] = (picture[judged].astype(np.uint16) + coloured[judged]) // 2
    down, across = np.indices(wrong.shape)
    picture[wrong & ((down + across) % STRIPE < STRIPE // 2)] = COLOURS[FALSE]
    return picture


def _fitted(image: Image, largest: int) -> tuple[Image, float]:
    colour = np.stack([image] * 3, axis=-1) if image.ndim == 2 else image
    scale = largest / max(colour.shape[:2])
    scale = max(1, int(scale)) if scale >= 1 else scale
    size = tuple(max(1, round(side * scale)) for side in colour.shape[1::-1])
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    return np.array(cv2.resize(np.ascontiguousarray(colour), size, interpolation=way), np.uint8), scale


def _outline(picture: Image, box: Sequence[int], colour: tuple[int, ...], *, dashed: bool) -> None:
    left, top, right, bottom = box
    if not dashed:
        cv2.rectangle(picture, (left, top), (right, bottom), colour, LINE)
        return
    for x in range(left, right, 2 * DASH):
        for y in (top, bottom):
            cv2.line(picture, (x, y), (min(x + DASH, right), y), colour, LINE)
    for y in range(top, bottom, 2 * DASH):
        for x in (left, right):
            cv2.line(picture, (x, y), (x, min(y + DASH, bottom)), colour, LINE)


def _tag(picture: Image, words: str, left: int, top: int, colour: tuple[int, ...]) -> None:
    text, font = words.encode("ascii", "replace").decode(), cv2.FONT_HERSHEY_SIMPLEX  # OpenCV's letters are those
    (width, height), below = cv2.getTextSize(text, font, TEXT, 1)
    left = max(0, min(left, picture.shape[1] - width - 4))
    base = top - below if top - height - 2 * below >= 0 else top + height + below
    cv2.rectangle(picture, (left, base - height - 2), (left + width + 3, base + below - 1), colour, -1)
    cv2.putText(picture, text, (left + 2, base), font, TEXT, INK, 1, cv2.LINE_AA)


def _sure(box: Array, name: Name) -> str:
    return f"{name(int(box[CLASS]))} {float(box[CONFIDENCE]):.2f}"


@dataclass(frozen=True)
class Drawn:
    """Both versions of an image with their marks, and in words what the model found."""

    original: Image
    changed: Image
    note: str


def drawn(
    subject: Subject, test: int, places: NDArray[np.intp], originals: Any, changed: Any, name: Name
) -> list[Drawn] | None:
    """Images at some places of the visiting order; None if the oracle evaluates neither boxes nor label maps."""
    draw = DRAWINGS.get(type(subject.oracle))
    images = [[as_image(np.asarray(one)) for one in batch] for batch in (originals, changed)]
    if draw is None or any(image is None for batch in images for image in batch):
        return None
    expected = _expected(subject, places, originals)
    moved = subject.moved(expected, np.full(len(places), test), places)
    outputs = subject.infer(changed, test)
    return draw(subject.oracle, outputs, expected, moved, list(zip(*images, strict=True)), name)


def _expected(subject: Subject, places: NDArray[np.intp], originals: Any) -> Array:
    """The expectation for clean images: their labels, or the model's prediction."""
    if subject.oracle.needs_clean or subject.labels is None:
        return subject.reference(subject.infer(originals, 0))
    labels: Array = subject.labels[subject.order[places]]
    return labels


def _boxes(oracle: Any, outputs: Any, expected: Any, moved: Any, pictures: Any, name: Name) -> list[Drawn]:
    found = []
    rows = zip(pictures, unpack(outputs), unpack(expected), unpack(moved), strict=True)
    for (original, changed), seen, there, still_there in rows:
        marked = marks(seen, still_there, oracle.iou, oracle.confidence, name)
        clean = with_boxes(original, wanted(there, name))
        found.append(Drawn(clean, with_boxes(changed, marked), in_words(marked)))
    return found


def _maps(oracle: Any, outputs: Any, expected: Any, moved: Any, pictures: Any, name: Name) -> list[Drawn]:
    void, rows = oracle.void, zip(pictures, label_maps(outputs), expected, moved, strict=True)
    return [
        Drawn(
            with_map(original, there, None, void),
            with_map(changed, seen, still_there, void),
            f"mean IoU {mean_iou(seen, still_there, void):.2f}",
        )
        for (original, changed), seen, there, still_there in rows
    ]


# f(oracle, outputs, expectation for originals and under the test, both versions, class names), by the exact class of
# the oracle: what a user's subclass accepts is not known.
DRAWINGS: dict[type[Oracle], Callable[[Any, Any, Any, Any, Any, Name], list[Drawn]]] = {
    Detection: _boxes,
    Segmentation: _maps,
}
LEGENDS: dict[type[Oracle], str] = {Detection: LEGEND, Segmentation: MAP_LEGEND}
