"""How people come to their own model: look at a model and a data set, check that they fit, write a spec that runs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models, oracles
from testifai.errors import InputError
from testifai.export import write_bytes
from testifai.intervals import wilson
from testifai.models.outputs import check_outputs
from testifai.outcomes import visiting_order

TRIED_INPUTS = 500
SCALES = ("unit", "signed", "raw")

STARTER = '''"""Your own perturbations: f(batch, parameter, rng) -> batch of the same shape and dtype."""

import testifai as ta

{function}
'''
TABLE_STARTER = '''
@ta.perturbation("jitter", severities=[0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def jitter(batch, share, rng):
    """Change every number by a random share of itself."""
    return (batch * (1 + share * rng.normal(batch.shape[1:]))).astype(batch.dtype)
'''
TEXT_STARTER = '''
@ta.perturbation("drop_letters", severities=[0, 1, 2, 3])
def drop_letters(batch, letters, rng):
    """Leave out some letters of every text."""
    texts = list(batch)
    for _ in range(letters):
        places = rng.uniform()
        texts = [t[: int(p * len(t))] + t[int(p * len(t)) + 1 :] for t, p in zip(texts, places, strict=True)]
    return texts
'''

# Colour images up to this side are like those of CIFAR-10, larger ones like those of ImageNet.
_SMALL_PHOTOGRAPH = 64


@dataclass
class Found:
    """What was seen of a model and a data set."""

    model: dict[str, Any]
    data: dict[str, Any]
    inputs: int
    kind: str  # "images" | "table" | "texts"
    shape: tuple[int, ...]
    classes: int | None
    outputs: str
    oracle: str
    accuracy: float | None
    tried: int
    spec: str
    notes: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The findings in words."""
        what = {"images": "images", "table": "rows", "texts": "texts"}[self.kind]
        size = "" if self.kind == "texts" else f" of {' x '.join(map(str, self.shape))}"
        classes = f", {self.classes} classes" if self.classes else ""
        lines = [f"Data: {self.inputs:,} {what}{size}{classes}. Model: returns {self.outputs}."]
        if self.accuracy is not None:
            low, high = wilson(round(self.accuracy * self.tried), self.tried)
            lines.append(
                f"Clean accuracy on {self.tried} inputs: {self.accuracy:.3f} (95 % interval {low:.3f} … {high:.3f})."
            )
        return lines + self.notes

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "inputs": self.inputs, "kind": self.kind, "shape": list(self.shape), "classes": self.classes,
            "outputs": self.outputs, "oracle": self.oracle, "accuracy": self.accuracy, "tried": self.tried,
            "model": self.model, "data": self.data, "notes": self.notes, "spec": self.spec,
        }  # fmt: skip


def write_spec(model: str, data: str, out: Path) -> Found:
    """Look at both, try one batch, and write the spec; an existing file is left alone."""
    if out.exists():
        raise InputError(f"init: {out} exists; choose another name with -o, or delete it")
    if not out.parent.is_dir():
        raise InputError(f"init: the folder {out.parent} does not exist")
    folder = out.resolve().parent
    kind = datasets.detect(data)
    loaded = datasets.load(kind, data)
    found = _look(model, loaded, folder)
    found.data = {kind: _relative(data, folder)}
    found.spec = str(out)
    files = {out: _spec_text(found)}
    if found.kind != "images":
        starter = folder / "perturbations.py"
        if not starter.exists():
            function = TEXT_STARTER if found.kind == "texts" else TABLE_STARTER
            files[starter] = STARTER.format(function=function)
            found.notes.append(f"Wrote {starter.name} with a first perturbation of your own to edit.")
    for path, text in files.items():
        write_bytes(path, text.encode())
    return found


def _look(model: str, data: datasets.Data, folder: Path) -> Found:
    places = visiting_order(len(data), 0)[:TRIED_INPUTS]
    batch = [data.inputs[i] for i in places] if isinstance(data.inputs, list) else data.inputs[places]
    kind = "texts" if isinstance(batch, list) else "images" if np.asarray(batch).ndim >= 3 else "table"
    if kind == "images" and np.asarray(batch).dtype != np.uint8:
        raise InputError(f"data: images must be uint8 (0 to 255), got {np.asarray(batch).dtype}")
    labels = None if data.labels is None else data.labels[places]
    best: tuple[float, dict[str, Any], Any, Any] | None = None
    problem: InputError | None = None
    tried: list[str] = []
    for options in _candidates(model, kind):
        try:
            adapter = _load(model, folder, options)
            outputs = check_outputs(adapter(batch), len(batch), Path(model).name)
            score = -1.0 if labels is None else _accuracy(adapter, outputs, labels, data.classes)
        except InputError as error:
            problem = problem or error
            continue
        if "scale" in options:
            tried.append(f"{options['scale']} {score:.3f}")
        # The first candidate is the likeliest; another has to be clearly better.
        if best is None or score > best[0] + 0.02:
            best = (score, options, adapter, outputs)
    if best is None:
        raise problem or InputError(f"model: {model} cannot be used with these data")
    score, options, adapter, outputs = best
    accuracy = None if labels is None else score
    entry = {"python" if ":" in model else "onnx": model if ":" in model else _relative(model, folder), **options}
    found = Found(
        model=entry,
        data={},
        inputs=len(data),
        kind=kind,
        shape=() if isinstance(batch, list) else tuple(np.asarray(batch).shape[1:]),
        classes=_classes(adapter, data),
        outputs="scores" if outputs.ndim == 2 else "one number or label per input",
        oracle="consistency" if labels is None else "label",
        accuracy=accuracy,
        tried=len(batch),
        spec="",
    )
    if len(tried) > 1 and accuracy is not None:
        found.notes.append(f"Scales tried (accuracy): {', '.join(tried)}; took {options['scale']}.")
    if labels is None:
        found.notes.append("The data have no labels: the oracle is consistency with the clean output.")
    elif found.classes and score < 1 / found.classes + 0.1:
        found.notes.append(
            "Warning: that is near chance; check layout, scale, mean and std, and how the classes are numbered."
        )
    return found


def _candidates(model: str, kind: str) -> list[dict[str, Any]]:
    if ":" in model or kind != "images":
        return [{}]
    return [{"scale": scale} for scale in SCALES]


def _load(model: str, folder: Path, options: dict[str, Any]) -> Any:
    if ":" in model and not Path(model).exists():
        return models.load("python", model, folder=folder)
    if Path(model).suffix.lower() != ".onnx":
        raise InputError(
            f"model: {model} is neither an .onnx file nor package.module:name; export it to ONNX, or write a spec "
            "with torch = 'package.module:factory' and weights = 'file.safetensors'"
        )
    return models.load("onnx", Path(model).resolve(), **options)


def _accuracy(adapter: Any, outputs: Any, labels: Any, names: Any) -> float:
    aligned = models.align_labels(labels, names, getattr(adapter, "class_values", None))
    oracle = oracles.resolve("label")
    oracle.check(aligned, getattr(adapter, "classes", None))
    return float(oracle.judge(outputs, aligned, None).passed.mean())


def _classes(adapter: Any, data: datasets.Data) -> int | None:
    known = getattr(adapter, "classes", None)
    if known or data.labels is None or data.labels.ndim != 1:
        return known
    return len(data.classes) if data.classes else int(data.labels.max()) + 1


def _relative(path: str, folder: Path) -> str:
    return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()


def _suite(shape: tuple[int, ...]) -> tuple[str, str]:
    """The suite made for images of this shape, and one of its perturbations beside brightness and motion blur."""
    if len(shape) == 2 or shape[2] == 1:
        return "mnist_c", "zoom"
    return "cifar_c" if max(shape[:2]) <= _SMALL_PHOTOGRAPH else "imagenet_c", "contrast"


def _spec_text(found: Found) -> str:
    """The commented spec."""
    model = "\n".join(f"{key} = {_toml(value)}" for key, value in found.model.items())
    data = "\n".join(f"{key} = {_toml(value)}" for key, value in found.data.items())
    if found.kind == "images":
        suite, second = _suite(found.shape)
        axes = (
            f'brightness = "{suite}.brightness"   # all severities; see: testifai perturbations {suite}\n'
            f'{second} = {{ use = "{suite}.{second}", severities = [0, 1, 3, 5] }}\n'
            f'blur = {{ use = "{suite}.motion_blur", severities = {{ low = 1, high = 4 }} }}'
        )
        gate = f"brightness <= 2 and {second} <= 1 and order <= 2"
    else:
        function = "drop_letters" if found.kind == "texts" else "jitter"
        axes = f'{function} = {{ python = "perturbations:{function}" }}   # in perturbations.py beside this file'
        gate = f"{function} <= 2"
    # What was seen on a few inputs, with room for chance: a first run should not fail over it.
    floor = "1.0" if found.accuracy is None else f"{max(0.0, found.accuracy - 0.05):.2f}"
    oracle = f'oracle = "{found.oracle}"' if found.oracle != "label" else '# oracle = "consistency"   # needs no labels'
    return f"""# Check it: testifai check {Path(found.spec).name}    Run it: testifai run {Path(found.spec).name}

[model]
{model}
# layout = "NCHW"   scale = "unit" (x/255) | "raw" | "signed"   mean = [...]   std = [...]

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


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
