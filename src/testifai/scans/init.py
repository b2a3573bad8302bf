"""How people come to their own model: look at a model and a data set, check that they fit, write a spec that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models, oracles
from testifai.data.tables import columns
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.runs.outcomes import visiting_order
from testifai.scans import init_tables, regression
from testifai.scans.chance import near_chance
from testifai.scans.init_tables import Columns
from testifai.scans.regression import Chosen
from testifai.statistics.intervals import wilson
from testifai.support.batches import Batch, are_pairs, take
from testifai.support.files import write_bytes

TRIED_INPUTS = 500
SCALES = ("unit", "signed", "raw")

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
    axes: tuple[str, ...] = ()  # of texts and tables, suggested
    tolerance: Chosen | None = None  # of answers that are numbers

    def lines(self) -> list[str]:
        """The findings in words."""
        size = f" of {' x '.join(map(str, self.shape))}" if self.shape else ""
        classes = f", {self.classes} classes" if self.classes else ""
        lines = [f"Data: {self.inputs:,} {_WORDS[self.kind]}{size}{classes}. Model: returns {self.outputs}."]
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


def write_spec(model: str, data: str, out: Path, target: str | None = None, trusted: tuple[str, ...] = ()) -> Found:
    """Look at both, try one batch, and write the spec; an existing file is left alone.

    `target` is the column of a table that the model is to predict, where its name does not say so; `trusted` are
    types to load from a file of skops.
    """
    if out.exists():
        raise InputError(f"init: {out} exists; choose another name with -o")
    if not out.parent.is_dir():
        raise InputError(f"init: the folder {out.parent} does not exist")
    folder = out.resolve().parent
    kind = datasets.detect(data)
    loaded, (told, notes) = _loaded(kind, data, partial(_entry, model, folder, trusted), folder, target)
    found = _look(model, loaded, folder, trusted)
    found.data = {kind: _relative(data, folder), **told}
    found.notes = [*notes, *found.notes]
    found.spec = str(out)
    write_bytes(out, _spec_text(found).encode())
    return found


def _loaded(
    kind: str, data: str, entry: Callable[[str], dict[str, Any]], folder: Path, target: str | None
) -> tuple[datasets.Data, Columns]:
    """The data and, of a table, what is said of its columns."""
    if kind != "table":
        if target is not None:
            raise InputError(f"--target: is for tables; {data} is none")
        return datasets.load(kind, data), (_columns(kind, data), [])
    told = init_tables.columns(_load(entry("table"), folder), Path(data), target)
    return datasets.load(kind, data, **told[0]), told


def _look(model: str, data: datasets.Data, folder: Path, trusted: tuple[str, ...]) -> Found:
    places = visiting_order(len(data), 0)[:TRIED_INPUTS]
    batch = take(data.inputs, places) if isinstance(data.inputs, list) else data.inputs[places]
    kind = _kind(batch)
    if kind == "images" and np.asarray(batch).dtype != np.uint8:
        raise InputError(f"data: images must be uint8 (0 to 255), got {np.asarray(batch).dtype}")
    entry = _entry(model, folder, trusted, kind)
    labels = None if data.labels is None else data.labels[places]
    best: tuple[float, dict[str, Any], Any, Any, Chosen | None] | None = None
    problem: InputError | None = None
    tried: list[str] = []
    for options in [{"scale": scale} for scale in SCALES] if kind == "images" and "onnx" in entry else [{}]:
        try:
            adapter = models.wrap(_load({**entry, **options}, folder), data.schema)
            outputs = call(adapter, batch, _WORDS[kind])
            tolerance = regression.fitting(adapter, data, outputs)
            score = -1.0 if labels is None else _accuracy(adapter, outputs, labels, data.classes, tolerance)
        except InputError as error:
            problem = problem or error
            continue
        if "scale" in options:
            tried.append(f"{options['scale']} {score:.3f}")
        # The first candidate is the likeliest; another has to be clearly better.
        if best is None or score > best[0] + 0.02:
            best = (score, options, adapter, outputs, tolerance)
    if best is None:
        raise problem or InputError(f"model: {model} cannot be used with these data")
    score, options, adapter, outputs, tolerance = best
    accuracy = None if labels is None else score
    found = Found(
        model={**entry, **options},
        data={},
        inputs=len(data),
        kind=kind,
        shape=() if isinstance(batch, list) else tuple(np.asarray(batch).shape[1:]),
        classes=_classes(adapter, data) if tolerance is None else None,
        outputs=_outputs_in_words(outputs, tolerance),
        oracle="tolerance" if tolerance is not None else "consistency" if labels is None else "label",
        accuracy=accuracy,
        tried=len(batch),
        spec="",
        tolerance=tolerance,
    )
    if isinstance(batch, list):
        found.axes = _text_axes(batch)
    elif kind == "table":
        found.axes = init_tables.axes(adapter, data, places)
    if isinstance(batch, list) and not found.axes:
        found.axes = _TEXT_AXES[:1]
        found.notes.append("Warning: most of these inputs have no place for an edit, of whichever kind.")
    if len(tried) > 1 and accuracy is not None:
        found.notes.append(f"Scales tried (accuracy): {', '.join(tried)}; took {options['scale']}.")
    if tolerance is not None:
        found.notes += tolerance.notes(outputs, labels)
    elif labels is None:
        found.notes.append("The data have no labels: the oracle is consistency with the clean output.")
    else:
        aligned = models.align_labels(labels, data.classes, adapter.class_values)
        line = near_chance(round(score * len(batch)), len(batch), aligned, found.classes, texts=isinstance(batch, list))
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
    found = columns(kind, Path(data))
    entry: dict[str, Any] = {"text": found.text[0] if len(found.text) == 1 else list(found.text)}
    return entry if found.label is None else {**entry, "label": found.label}


def _entry(model: str, folder: Path, trusted: tuple[str, ...], kind: str) -> dict[str, Any]:
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
    of_table = models.kind_of_file(path)
    if of_table not in (None, "onnx"):
        return {of_table: here, **({"trusted": list(trusted)} if trusted else {})}
    if of_table is None:
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


def _accuracy(adapter: models.Model, outputs: Any, labels: Any, names: Any, tolerance: Chosen | None) -> float:
    if tolerance is not None:
        return float(tolerance.oracle.judge(outputs, labels, None).passed.mean())
    aligned = models.align_labels(labels, names, adapter.class_values)
    oracle = oracles.resolve("label")
    oracle.check(aligned, adapter.classes)
    return float(oracle.judge(outputs, aligned, None).passed.mean())


def _outputs_in_words(outputs: Any, tolerance: Chosen | None) -> str:
    if tolerance is not None:
        return "one number per input"
    return "scores" if outputs.ndim == 2 else "one number or label per input"


def _classes(adapter: models.Model, data: datasets.Data) -> int | None:
    known = adapter.classes
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


def _space_text(found: Found) -> tuple[str, str]:
    """The axes, and a query of mild conditions on them."""
    if found.axes:
        suite, uses = "tabular" if found.kind == "table" else "text", {name: name for name in found.axes}
        all_of_them = "all severities" if found.kind == "table" else "0 to 5 edits in each text"
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
    if found.kind == "images" or (found.kind == "table" and not found.data.get("table")):
        model += '\n# layout = "NCHW"   scale = "unit" (x/255) | "raw" | "signed"   mean = [...]   std = [...]'
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
    floor = "1.0" if found.accuracy is None else f"{max(0.0, found.accuracy - 0.05):.2f}"
    oracle = _oracle_text(found)
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
    return f'oracle = "{found.oracle}"' if found.oracle != "label" else '# oracle = "consistency"   # needs no labels'


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
