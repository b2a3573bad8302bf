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
from testifai.data.tables import columns
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.oracles.classes import predicted
from testifai.runs.outcomes import visiting_order
from testifai.scans.assignment import misnumbered
from testifai.scans.chance import SURE, near_chance
from testifai.statistics.intervals import wilson
from testifai.support import remote
from testifai.support.batches import Batch, are_pairs, take
from testifai.support.files import write_bytes

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
# Colour images up to this side are like those of CIFAR-10, larger ones like those of ImageNet.
_SMALL_PHOTOGRAPH = 64
# Edits of texts, the most usual first; an axis is suggested where at least this share of the inputs has a place for it.
_TEXT_AXES = ("typo", "synonym", "punctuation", "whitespace", "case")
_WITH_PLACE = 0.5
_WORDS = {"images": "images", "table": "rows", "texts": "texts", "pairs": "pairs of texts"}


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
    axes: tuple[str, ...] = ()  # of texts, suggested

    def lines(self) -> list[str]:
        """The findings in words."""
        size = f" of {' x '.join(map(str, self.shape))}" if self.shape else ""
        classes = f", {self.classes} classes" if self.classes else ""
        lines = [f"Data: {self.inputs:,} {_WORDS[self.kind]}{size}{classes}. Model: returns {self.outputs}."]
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
        raise InputError(f"init: {out} exists; choose another name with -o")
    if not out.parent.is_dir():
        raise InputError(f"init: the folder {out.parent} does not exist")
    folder = out.resolve().parent
    kind = datasets.detect(data)
    loaded = datasets.load(kind, data)
    found = _look(model, loaded, folder)
    found.data = {kind: _relative(data, folder), **_columns(kind, data)}
    found.spec = str(out)
    files = {out: _spec_text(found)}
    if found.kind == "table":
        starter = folder / "perturbations.py"
        if not starter.exists():
            files[starter] = STARTER.format(function=TABLE_STARTER)
            found.notes.append(f"Wrote {starter.name} with a first perturbation of your own to edit.")
    for path, text in files.items():
        write_bytes(path, text.encode())
    return found


def _look(model: str, data: datasets.Data, folder: Path) -> Found:
    places = visiting_order(len(data), 0)[:TRIED_INPUTS]
    batch = take(data.inputs, places) if isinstance(data.inputs, list) else data.inputs[places]
    kind = _kind(batch)
    if kind == "images" and np.asarray(batch).dtype != np.uint8:
        raise InputError(f"data: images must be uint8 (0 to 255), got {np.asarray(batch).dtype}")
    entry = _entry(model, folder, kind)
    labels = None if data.labels is None else data.labels[places]
    best: tuple[float, dict[str, Any], Any, Any] | None = None
    problem: InputError | None = None
    tried: list[str] = []
    for options in [{"scale": scale} for scale in SCALES] if kind == "images" and "onnx" in entry else [{}]:
        try:
            adapter = _load({**entry, **options}, folder)
            outputs = call(adapter, batch, _WORDS[kind])
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
    found = Found(
        model={**entry, **options},
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
        axes=_text_axes(batch) if isinstance(batch, list) else (),
    )
    if isinstance(batch, list) and not found.axes:
        found.axes = _TEXT_AXES[:1]
        found.notes.append("Warning: most of these inputs have no place for an edit, of whichever kind.")
    if len(tried) > 1 and accuracy is not None:
        found.notes.append(f"Scales tried (accuracy): {', '.join(tried)}; took {options['scale']}.")
    if labels is None:
        found.notes.append("The data have no labels: the oracle is consistency with the clean output.")
    else:
        aligned = models.align_labels(labels, data.classes, adapter.class_values)
        line = near_chance(round(score * len(batch)), len(batch), aligned, found.classes, texts=bool(found.axes))
        otherwise = misnumbered(aligned, predicted(outputs), data.classes, found.classes) if score < SURE else None
        line = line if otherwise is None else str(otherwise)
        found.notes += [] if line is None else [f"Warning: {line}."]
    return found


def _kind(batch: Batch) -> str:
    if isinstance(batch, list):
        return "pairs" if are_pairs(batch) else "texts"
    return "images" if np.asarray(batch).ndim >= 3 else "table"


def _columns(kind: str, data: str) -> dict[str, Any]:
    """Which columns of a table of texts are read, said so that it can be changed."""
    if kind not in ("csv", "tsv", "jsonl"):
        return {}
    file = remote.place(data) if remote.is_address(data) else Path(data)
    assert isinstance(file, Path), "a table is a file"
    found = columns(kind, file)
    entry: dict[str, Any] = {"text": found.text[0] if len(found.text) == 1 else list(found.text)}
    return entry if found.label is None else {**entry, "label": found.label}


def _entry(model: str, folder: Path, kind: str) -> dict[str, Any]:
    """The spec's lines for the model: what it is, and the files beside it that it needs."""
    path = Path(model)
    if ":" in model and not path.exists():
        return {"python": model}
    here = _relative(model, folder)
    if path.is_dir() and (path / "modules.json").is_file():
        heads = [head for head in (path / "head.npz", path.parent / "head.npz") if head.is_file()]
        if not heads:
            raise InputError(f"model: {model} is a sentence encoder; put its head beside it as head.npz")
        return {"encoder": here, "head": _relative(str(heads[0]), folder)}
    if path.is_dir() and (path / "config.json").is_file():
        return {"transformers": here}
    if path.suffix.lower() != ".onnx":
        raise InputError(
            f"model: {model} is neither an .onnx file nor package.module:name nor a folder of a text model "
            "(config.json); export it to ONNX, or write a spec with torch = 'package.module:factory' and "
            "weights = 'file.safetensors'"
        )
    tokenizer = path.with_name("tokenizer.json")
    if kind in ("texts", "pairs") and path.is_file():
        if not tokenizer.is_file():
            raise InputError(f"model: {model} needs a tokenizer for texts; put its tokenizer.json beside it")
        return {"onnx": here, "tokenizer": _relative(str(tokenizer), folder)}
    return {"onnx": here}


def _load(entry: dict[str, Any], folder: Path) -> models.Model:
    options = dict(entry)
    kind = next(iter(options))
    return models.load(kind, options.pop(kind), folder=folder, **options)


def _text_axes(batch: Batch) -> tuple[str, ...]:
    """Up to three kinds of edits for which these texts have places."""
    from testifai.perturb.text import edits

    reached = {name: 1 - edits(f"text.{name}", batch, 1).untouched / len(batch) for name in _TEXT_AXES}
    return tuple(name for name, share in reached.items() if share >= _WITH_PLACE)[:3]


def _accuracy(adapter: models.Model, outputs: Any, labels: Any, names: Any) -> float:
    aligned = models.align_labels(labels, names, adapter.class_values)
    oracle = oracles.resolve("label")
    oracle.check(aligned, adapter.classes)
    return float(oracle.judge(outputs, aligned, None).passed.mean())


def _classes(adapter: models.Model, data: datasets.Data) -> int | None:
    known = adapter.classes
    if known or data.labels is None or data.labels.ndim != 1:
        return known
    return len(data.classes) if data.classes else int(data.labels.max()) + 1


def _relative(path: str, folder: Path) -> str:
    if remote.is_address(path):
        return path
    return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()


def _suite(shape: tuple[int, ...]) -> tuple[str, str]:
    """The suite made for images of this shape, and one of its perturbations beside brightness and motion blur."""
    if len(shape) == 2 or shape[2] == 1:
        return "mnist_c", "zoom"
    return "cifar_c" if max(shape[:2]) <= _SMALL_PHOTOGRAPH else "imagenet_c", "contrast"


def _space_text(found: Found) -> tuple[str, str]:
    """The axes, and a query of mild conditions on them."""
    if found.kind == "table":
        return 'jitter = { python = "perturbations:jitter" }   # in perturbations.py beside this file', "jitter <= 2"
    if found.axes:
        suite, uses = "text", {name: name for name in found.axes}
        all_of_them = "0 to 5 edits in each text"
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


def _spec_text(found: Found) -> str:
    """The commented spec."""
    model = "\n".join(f"{key} = {_toml(value)}" for key, value in found.model.items())
    if found.kind in ("images", "table"):
        model += '\n# layout = "NCHW"   scale = "unit" (x/255) | "raw" | "signed"   mean = [...]   std = [...]'
    data = "\n".join(f"{key} = {_toml(value)}" for key, value in found.data.items())
    if found.kind == "pairs":
        data += '\nside = "both"               # which text of a pair is perturbed: "first", "second" or "both"'
    axes, gate = _space_text(found)
    # What was seen on a few inputs, with room for chance: a first run should not fail over it.
    floor = "1.0" if found.accuracy is None else f"{max(0.0, found.accuracy - 0.05):.2f}"
    oracle = f'oracle = "{found.oracle}"' if found.oracle != "label" else '# oracle = "consistency"   # needs no labels'
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


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
