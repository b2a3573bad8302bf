"""A contact sheet: every perturbation at every severity on one image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.perturb.registry import Perturbation

CELL, GAP, NAMES, HEAD = 96, 6, 220, 28


def draw(perturbations: Sequence[Perturbation], path: Path, image: NDArray[np.uint8] | None = None) -> None:
    """Write the sheet as .png or .jpg: a row per perturbation, a column per severity."""
    import cv2

    if path.suffix.lower() not in {".png", ".jpg", ".jpeg"}:
        raise InputError(f"preview: {path.name!r} is not a picture; use a name that ends in .png or .jpg")
    if image is None:
        from testifai.data.sample import demo_data

        image = np.asarray(demo_data().inputs[np.array([0])])[0]
    sheet = compose(perturbations, image)
    written, encoded = cv2.imencode(path.suffix, sheet[..., ::-1])
    if not written:
        raise InputError(f"preview: could not draw {path}")
    try:
        path.write_bytes(encoded.tobytes())
    except OSError as error:
        raise InputError(f"preview: cannot write {path} ({error.strerror})") from error


def compose(perturbations: Sequence[Perturbation], image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The sheet as an RGB image."""
    columns = max(len(one.severities) for one in perturbations)
    height, width = HEAD + len(perturbations) * (CELL + GAP), NAMES + columns * (CELL + GAP)
    sheet = np.full((height, width, 3), 255, np.uint8)
    for severity in range(columns):
        _write(sheet, str(severity), NAMES + severity * (CELL + GAP) + CELL // 2 - 4, HEAD - 10)
    for row, one in enumerate(perturbations):
        top = HEAD + row * (CELL + GAP)
        _write(sheet, one.name, 8, top + CELL // 2)
        for severity in range(len(one.severities)):
            left = NAMES + severity * (CELL + GAP)
            sheet[top : top + CELL, left : left + CELL] = _cell(_apply(one, image, severity))
    return sheet


def _apply(one: Perturbation, image: NDArray[np.uint8], severity: int) -> Any:
    return one.apply(image[None], severity)[0]


def _cell(image: Any) -> NDArray[np.uint8]:
    import cv2

    grown = cv2.resize(np.ascontiguousarray(image), (CELL, CELL), interpolation=cv2.INTER_NEAREST)
    grown = grown if grown.ndim == 3 else grown[..., None]
    return np.broadcast_to(grown, (CELL, CELL, 3))


def _write(sheet: NDArray[np.uint8], text: str, x: int, y: int) -> None:
    import cv2

    cv2.putText(sheet, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (40, 40, 40), 1, cv2.LINE_AA)
