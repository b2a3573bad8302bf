"""Photographs of a test as they are shown: with what is expected on them, and with what the model found there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.oracles import Oracle
from testifai.oracles.detection import Detection
from testifai.oracles.segmentation import Segmentation, label_maps, mean_iou
from testifai.present import photographs
from testifai.present.photographs import Name
from testifai.support.boxes import unpack
from testifai.support.images import Image, as_image


@dataclass(frozen=True)
class Drawn:
    """Both versions of a photograph with what belongs on them, and in words what the model found."""

    original: Image
    changed: Image
    note: str


def drawn(
    subject: Subject, test: int, places: NDArray[np.intp], originals: Any, changed: Any, name: Name
) -> list[Drawn] | None:
    """Photographs at some places of the visiting order; None where no boxes or label maps are judged."""
    draw = DRAWINGS.get(type(subject.oracle))
    pictures = list(map(_pictures, originals, changed))
    if draw is None or None in pictures:
        return None
    expected = _expected(subject, places, originals)
    moved = subject.moved(expected, np.full(len(places), test), places)
    outputs = subject.infer(changed, test)
    return draw(subject.oracle, outputs, expected, moved, pictures, name)


def _pictures(original: Any, changed: Any) -> tuple[Image, Image] | None:
    one, two = as_image(np.asarray(original)), as_image(np.asarray(changed))
    return None if one is None or two is None else (one, two)


def _expected(subject: Subject, places: NDArray[np.intp], originals: Any) -> NDArray[Any]:
    """What is expected on photographs as they are: their labels, or what the model finds there."""
    if subject.oracle.needs_clean or subject.labels is None:
        return subject.reference(subject.infer(originals, 0))
    labels: NDArray[Any] = subject.labels[subject.order[places]]
    return labels


def _boxes(oracle: Any, outputs: Any, expected: Any, moved: Any, pictures: Any, name: Name) -> list[Drawn]:
    found = []
    rows = zip(pictures, unpack(outputs), unpack(expected), unpack(moved), strict=True)
    for (original, changed), seen, there, still_there in rows:
        marks = photographs.marks(seen, still_there, oracle.iou, oracle.confidence, name)
        found.append(
            Drawn(
                photographs.with_boxes(original, photographs.wanted(there, name)),
                photographs.with_boxes(changed, marks),
                photographs.in_words(marks),
            )
        )
    return found


def _maps(oracle: Any, outputs: Any, expected: Any, moved: Any, pictures: Any, name: Name) -> list[Drawn]:
    void, rows = oracle.void, zip(pictures, label_maps(outputs), expected, moved, strict=True)
    return [
        Drawn(
            photographs.with_map(original, there, None, void),
            photographs.with_map(changed, seen, still_there, void),
            f"mean IoU {mean_iou(seen, still_there, void):.2f}",
        )
        for (original, changed), seen, there, still_there in rows
    ]


# f(oracle, outputs, what is expected on originals and under the test, both versions, class names), by the very class of
# the oracle: what one of the user's takes for right is not known.
DRAWINGS: dict[type[Oracle], Callable[[Any, Any, Any, Any, Any, Name], list[Drawn]]] = {
    Detection: _boxes,
    Segmentation: _maps,
}
LEGENDS: dict[type[Oracle], str] = {Detection: photographs.LEGEND, Segmentation: photographs.MAP_LEGEND}
