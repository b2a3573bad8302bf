"""What `init` sees of a detector and photographs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models
from testifai.data.yolo import without_boxes
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models.detection.onnx import AnySizeError, OnnxDetector
from testifai.models.onnx import OnnxPart
from testifai.oracles.detection import Detection
from testifai.runs.outcomes import visiting_order
from testifai.scans.found import BOXES, Found
from testifai.support.boxes import CLASS, CONFIDENCE, NONE, are_boxes

TRIED_IMAGES = 100
COUNTED = 5  # images whose boxes are counted, to be told
USUAL_SIZE = [640, 640]  # of the canvas, where a graph takes any
BOXED = ("coco", "yolo")  # kinds of data with boxes


def opened(model: str, kind: str, folder: Path) -> tuple[models.Model, dict[str, Any]] | None:
    """The detector in a file, or in code for data with boxes, and what a spec says of it; None for other models."""
    path = Path(model)
    if kind in BOXED and ":" in model and not path.exists():
        return models.load("python", model, folder=folder), {"python": model}
    if kind not in (*BOXED, "folder") or path.suffix.lower() != ".onnx" or not path.is_file():
        return None
    options: dict[str, Any] = {}
    try:
        found = OnnxPart(onnx=model).load(Path())
    except AnySizeError:
        options = {"size": USUAL_SIZE}
        found = OnnxDetector(path, size=USUAL_SIZE)
    if not isinstance(found, OnnxDetector):
        return None
    return found, {"onnx": model, "head": found.head.name, **options}


def look_at_detector(detector: models.Model, entry: dict[str, Any], kind: str, path: str) -> Found:
    """Try it on some photographs, against their boxes if they have any."""
    options: dict[str, Any] = {"size": "own"} if kind == "folder" else {}
    empty = without_boxes(path) if kind == "yolo" else 0
    if empty:
        options["background"] = True
    data = datasets.load(kind, path, **options)
    labels = data.labels if are_boxes(data.labels) else None
    oracle = Detection().fitted(labels)
    oracle.check(labels, detector.classes)
    rows = visiting_order(len(data), 0)[:TRIED_IMAGES]
    outputs = call(detector, datasets.rows(data.inputs, rows), "images")
    if not are_boxes(outputs):
        raise InputError(
            f"model: {detector.name} returned outputs of shape {outputs.shape}, and the data have boxes; a detector "
            "returns {'boxes': …, 'labels': …, 'scores': …} for each image"
        )
    oracle_says = None if labels is None else oracle.judge(outputs, labels[rows], None)
    sure = (outputs[..., CLASS] != NONE) & (outputs[..., CONFIDENCE] >= Detection().confidence)
    counted = sure[:COUNTED].sum(axis=1)
    each = ", ".join(map(str, counted.tolist()))
    notes = [
        f"{_read_as(detector)}: {int(counted.sum())} boxes on {len(counted)} images ({each}) from a confidence of "
        f"{Detection().confidence:g} on."
    ]
    if empty:
        notes.append(f"{empty} images have an empty label file, or none: background = true, nothing is on them.")
    if not sure.any():
        notes.append("Warning: not one box was found; check fit, bgr, scale and head under [model].")
    if oracle_says is None:
        notes.append("The data have no boxes: what is expected are those found on the clean image, where it has moved.")
    else:
        assert oracle_says.value is not None
        notes.append(f"Mean F1 on them: {oracle_says.value.mean():.3f}; passed is an F1 of {Detection().f1:g}.")
    if data.classes is not None and labels is not None and detector.classes not in (None, len(data.classes)):
        notes.append(
            f"Warning: the model tells {detector.classes} classes apart, the data {len(data.classes)}: where they are "
            "numbered otherwise, name the model's with classes = [...] under [model]."
        )
    sizes = np.unique(data.sizes(np.arange(len(data))), axis=0)
    return Found(
        model=entry,
        data=options,
        inputs=len(data),
        kind="images",
        shape=(*sizes[0].tolist(), 3) if len(sizes) == 1 else (),
        classes=detector.classes,
        outputs=BOXES,
        oracle="detection",
        accuracy=None if oracle_says is None else float(oracle_says.passed.mean()),
        tried=len(rows),
        spec="",
        notes=notes,
    )


def _read_as(detector: models.Model) -> str:
    if isinstance(detector, OnnxDetector):
        return f"Outputs {detector.shown_outputs} read as {detector.head.name}"
    return "Returned"
