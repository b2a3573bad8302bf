"""Findings about a model and a data set, in words and as a spec; inspection of detectors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models
from testifai.data.annotations import CLASS, CONFIDENCE, NONE, are_boxes
from testifai.data.boxed_images import without_boxes
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models.detection.onnx import AnySizeError, OnnxDetector
from testifai.models.onnx import OnnxPart
from testifai.oracles.detection import Detection
from testifai.runs.outcomes import visiting_order
from testifai.session.compatibility import ToleranceChoice
from testifai.statistics.intervals import wilson
from testifai.support.types import Record

WORDS = {"images": "images", "table": "rows", "texts": "texts", "pairs": "pairs of texts"}
SHOWN = (
    "inputs", "kind", "shape", "classes", "outputs", "oracle", "accuracy", "tried", "model", "data", "notes", "spec",
)  # fmt: skip
_SMALL_PHOTOGRAPH = 64  # largest side of images that are like those of CIFAR-10, not of ImageNet
BOXES = "boxes"  # what a detector returns
FED = '# layout = "NCHW"   scale = "unit" (x/255) | "raw" | "signed"   mean = [...]   std = [...]'
FED_DETECTOR = """# fit = "centre" | "corner" | "stretch"   bgr = true   nms = 0.45 (overlap of two boxes of one thing)
# classes = ["person", ...]   # where the model numbers its classes otherwise than the data"""
ORACLES = {
    "label": '# oracle = "consistency"   # needs no labels',
    "consistency": 'oracle = "consistency"',
    "detection": 'oracle = { use = "detection", iou = 0.5, confidence = 0.25, f1 = 0.5, against = "%s" }',
}


@dataclass
class Inspection:
    """Properties of a model and a data set, and options of their spec."""

    model: Record
    data: Record
    inputs: int
    kind: str  # "images" | "table" | "texts" | "pairs"
    shape: tuple[int, ...]
    classes: int | None
    outputs: str
    oracle: str
    accuracy: float | None
    tried: int
    spec: str = ""
    notes: list[str] = field(default_factory=list)
    axes: tuple[str, ...] = ()  # suggested, of texts and tables
    tolerance: ToleranceChoice | None = None  # if outputs are numbers

    def lines(self) -> list[str]:
        """Return the findings in words."""
        size = f" of {' x '.join(map(str, self.shape))}" if self.shape else ""
        classes = f", {self.classes} classes" if self.classes else ""
        lines = [f"Data: {self.inputs:,} {WORDS[self.kind]}{size}{classes}. Model: returns {self.outputs}."]
        if self.accuracy is not None:
            low, high = wilson(round(self.accuracy * self.tried), self.tried)
            what = "Clean accuracy" if self.tolerance is None else "Clean answers within the tolerance"
            lines.append(f"{what} on {self.tried} inputs: {self.accuracy:.3f} (95 % interval {low:.3f} … {high:.3f}).")
        return lines + self.notes

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {name: getattr(self, name) for name in SHOWN} | {"shape": list(self.shape)}


def _axes(found: Inspection) -> tuple[str, str]:
    """Return the lines of the axes, and a query for mild conditions."""
    details = "all severities"
    if found.axes:
        suite, uses = "tabular" if found.kind == "table" else "text", {name: name for name in found.axes}
        details = details if found.kind == "table" else "0 to 5 edits in each text"
    elif found.outputs == BOXES:
        suite, uses = "deeptest", {name: name for name in ("brightness", "translate", "contrast")}
    else:
        grey = len(found.shape) == 2 or found.shape[2] == 1
        second = "zoom" if grey else "contrast"
        suite = "mnist_c" if grey else "cifar_c" if max(found.shape[:2]) <= _SMALL_PHOTOGRAPH else "imagenet_c"
        uses = {"brightness": "brightness", second: second, "blur": "motion_blur"}
    lines = []
    severities = ("", ", severities = [0, 1, 3, 5]", ", severities = { low = 1, high = 4 }")
    for (name, use), chosen in zip(uses.items(), severities, strict=False):
        lines.append(f'{name} = {{ use = "{suite}.{use}"{chosen} }}')
    first, use = next(iter(uses.items()))
    lines[0] = f'{first} = "{suite}.{use}"   # {details}; see: testifai list perturbations {suite}'
    mild = " and ".join(f"{name} <= {most}" for name, most in zip(uses, (2, 1), strict=False))
    return "\n".join(lines), f"{mild} and order <= 2" if len(uses) > 1 else mild


def spec_text(found: Inspection) -> str:
    model = "\n".join(f"{key} = {_toml(value)}" for key, value in found.model.items())
    if "onnx" in found.model and (found.kind == "images" or (found.kind == "table" and not found.data.get("table"))):
        model += f"\n{FED_DETECTOR if 'head' in found.model else FED}"
    data = "\n".join(f"{key} = {_toml(value)}" for key, value in found.data.items())
    if found.kind == "pairs":
        data += '\nside = "both"               # which text of a pair is perturbed: "first", "second" or "both"'
    if "table" in found.data:
        data += """
# categories = ["…"]        # columns whose numbers are names of something; texts are known as such
# missing = -999            # what stands for a missing value, in the file and for the model; by default NaN"""
    axes, gate = _axes(found)
    if found.kind == "table":
        axes += '\n# columns = ["…"] inside the braces changes these columns alone; by default all that fit'
    if found.tolerance is None:
        oracle = ORACLES[found.oracle].replace("%s", "clean" if found.accuracy is None else "labels")
    else:
        told = ", ".join(f"{key} = {_toml(value)}" for key, value in found.tolerance.oracle.describe().items())
        oracle = f"oracle = {{ {told} }}   # how far an answer may be off; with relative = true, as a share"
    return f"""# Check it: testifai check {Path(found.spec).name}    Run it: testifai run {Path(found.spec).name}

[model]
{model}

[data]
{data}

[space]   # applied in this order; severity 0 is off
{axes}

[scan]
strategy = "adaptive"       # a few inputs for every test, more where they are needed; or "ordered", "full", "random"
# target = 0.02             # wanted half-width of every 95 % interval; the default, but small runs are done whole
# budget = 100000           # most inferences to spend; with a target the run ends at the first of the two
{oracle}
seed = 0

# Gates are requirements: testifai run exits with 1 unless all of them hold. None is set here, as the choice is yours:
# which conditions will occur in use (query), how often the model must be right there (at_least), and why (because).
# Choose before you look at results: a gate just below what was measured holds by construction and requires nothing.
# Delete the signs "# " to set one; a gate on clean inputs alone requires no robustness.

# [[gate]]
# name = "mild conditions"
# query = "{gate}"
# at_least = 0.90           # the lower end of the interval must reach it; basis = "estimate": the estimate
# because = "…"             # such as the entry of a hazard analysis

# [[gate]]
# name = "clean inputs"
# query = "order == 0"
# at_least = 0.95
"""


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


TRIED_IMAGES = 100
COUNTED = 5  # images whose boxes are counted for a note
COMMON_SIZE = [640, 640]  # for graphs that accept any size
BOXED = ("coco", "yolo")  # kinds of data with boxes


def open_detector(model: str, kind: str, folder: Path) -> tuple[models.Model, Record] | None:
    """Load a detector from a file, or from code for data with boxes; return it and its options; None for others."""
    path = Path(model)
    if kind in BOXED and ":" in model and not path.exists():
        return models.load("python", model, folder=folder), {"python": model}
    adapter = models.recognise(path) if kind in (*BOXED, "folder") and path.exists() else None
    if adapter != "onnx":
        return None if adapter is None or kind not in BOXED else (models.load(adapter, path), {adapter: model})
    options: Record = {}
    try:
        found = OnnxPart(onnx=model).load(Path())
    except AnySizeError:
        options = {"size": COMMON_SIZE}
        found = OnnxDetector(path, size=COMMON_SIZE)
    if not isinstance(found, OnnxDetector):
        return None
    return found, {"onnx": model, "head": found.head.name, **options}


def inspect_detector(detector: models.Model, entry: Record, kind: str, path: str) -> Inspection:
    """Run a detector on some images, and compare with their boxes if they have any."""
    options: Record = {"size": "own"} if kind == "folder" else {}
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
    read = "Returned"
    if isinstance(detector, OnnxDetector):
        read = f"Outputs {detector.shown_outputs} read as {detector.head.name}"
    notes = [
        f"{read}: {int(counted.sum())} boxes on {len(counted)} images ({each}) from a confidence of "
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
    return Inspection(
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
        notes=notes,
    )
