"""What was seen of a model and a data set, in words and as the spec it makes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testifai.scans.regression import Chosen
from testifai.statistics.intervals import wilson

WORDS = {"images": "images", "table": "rows", "texts": "texts", "pairs": "pairs of texts"}
# Colour images up to this side are like those of CIFAR-10, larger ones like those of ImageNet.
_SMALL_PHOTOGRAPH = 64
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
class Found:
    """What was seen of a model and a data set."""

    model: dict[str, Any]
    data: dict[str, Any]
    inputs: int
    kind: str  # "images" | "table" | "texts" | "pairs"
    shape: tuple[int, ...]
    classes: int | None
    outputs: str
    oracle: str
    accuracy: float | None
    tried: int
    spec: str
    notes: list[str] = field(default_factory=list)
    axes: tuple[str, ...] = ()  # of texts and tables, suggested
    tolerance: Chosen | None = None  # of answers that are numbers

    def lines(self) -> list[str]:
        """The findings in words."""
        size = f" of {' x '.join(map(str, self.shape))}" if self.shape else ""
        classes = f", {self.classes} classes" if self.classes else ""
        lines = [f"Data: {self.inputs:,} {WORDS[self.kind]}{size}{classes}. Model: returns {self.outputs}."]
        if self.accuracy is not None:
            low, high = wilson(round(self.accuracy * self.tried), self.tried)
            what = "Clean accuracy" if self.tolerance is None else "Clean answers within the tolerance"
            lines.append(f"{what} on {self.tried} inputs: {self.accuracy:.3f} (95 % interval {low:.3f} … {high:.3f}).")
        return lines + self.notes

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "inputs": self.inputs, "kind": self.kind, "shape": list(self.shape), "classes": self.classes,
            "outputs": self.outputs, "oracle": self.oracle, "accuracy": self.accuracy, "tried": self.tried,
            "model": self.model, "data": self.data, "notes": self.notes, "spec": self.spec,
        }  # fmt: skip


def _suite(shape: tuple[int, ...]) -> tuple[str, str]:
    """The suite made for images of this shape, and one of its perturbations beside brightness and motion blur."""
    if len(shape) == 2 or shape[2] == 1:
        return "mnist_c", "zoom"
    return "cifar_c" if max(shape[:2]) <= _SMALL_PHOTOGRAPH else "imagenet_c", "contrast"


def _space_text(found: Found) -> tuple[str, str]:
    """The axes, and a query of mild conditions on them."""
    if found.axes:
        suite, uses = "tabular" if found.kind == "table" else "text", {name: name for name in found.axes}
        all_of_them = "all severities" if found.kind == "table" else "0 to 5 edits in each text"
    elif found.outputs == BOXES:
        suite, uses = "deeptest", {name: name for name in ("brightness", "translate", "contrast")}
        all_of_them = "all severities"
    else:
        suite, second = _suite(found.shape)
        uses = {"brightness": "brightness", second: second, "blur": "motion_blur"}
        all_of_them = "all severities"
    chosen = (None, "[0, 1, 3, 5]", "{ low = 1, high = 4 }")
    lines = []
    for (name, use), severities in zip(uses.items(), chosen, strict=False):
        if severities is None:
            lines.append(f'{name} = "{suite}.{use}"   # {all_of_them}; see: testifai perturbations {suite}')
        else:
            lines.append(f'{name} = {{ use = "{suite}.{use}", severities = {severities} }}')
    mild = " and ".join(f"{name} <= {most}" for name, most in zip(uses, (2, 1), strict=False))
    return "\n".join(lines), f"{mild} and order <= 2" if len(uses) > 1 else mild


def spec_text(found: Found) -> str:
    """The commented spec."""
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
    axes, gate = _space_text(found)
    if found.kind == "table":
        axes += '\n# columns = ["…"] inside the braces changes these columns alone; by default all that fit'
    # What was seen on a few inputs, with room for chance: a first run should not fail over it.
    oracle = _oracle_text(found)
    floor = "1.0" if found.accuracy is None else f"{max(0.0, found.accuracy - 0.05):.2f}"
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

[[gate]]                    # testifai run exits with 1 when a gate does not hold
name = "clean inputs"
query = "order == 0"
at_least = {floor}

# [[gate]]
# name = "mild conditions"
# query = "{gate}"
# at_least = 0.90
# basis = "estimate"        # instead of "bound", the default: the lower end of the interval must hold
"""


def _oracle_text(found: Found) -> str:
    if found.tolerance is not None:
        told = ", ".join(f"{key} = {_toml(value)}" for key, value in found.tolerance.oracle.describe().items())
        return f"oracle = {{ {told} }}   # how far an answer may be off; with relative = true, as a share"
    return ORACLES[found.oracle].replace("%s", "clean" if found.accuracy is None else "labels")


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
