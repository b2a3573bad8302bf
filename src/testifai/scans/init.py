"""How people come to their own model: look at a model and a data set, check that they fit, write a spec that runs."""

from __future__ import annotations

import os
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
from testifai.scans.detectors import look_at_detector, opened
from testifai.scans.found import WORDS, Found, spec_text
from testifai.support.batches import Batch, are_pairs
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
# Edits of texts, the most usual first; an axis is suggested where at least this share of the inputs has a place for it.
_TEXT_AXES = ("typo", "synonym", "punctuation", "whitespace", "case")
_WITH_PLACE = 0.5


def write_spec(model: str, data: str, out: Path) -> Found:
    """Look at both, try one batch, and write the spec; an existing file is left alone."""
    if out.exists():
        raise InputError(f"init: {out} exists; choose another name with -o")
    if not out.parent.is_dir():
        raise InputError(f"init: the folder {out.parent} does not exist")
    folder = out.resolve().parent
    kind = datasets.detect(data)
    if (detector := opened(model, kind, folder)) is not None:
        found = look_at_detector(*detector, kind, data)
        if "onnx" in found.model:
            found.model |= {"onnx": _relative(model, folder)}
        found.data = {kind: _relative(data, folder), **found.data}
    else:
        found = _look(model, datasets.load(kind, data), folder)
        found.data = {kind: _relative(data, folder), **_columns(kind, data)}
    found.spec = str(out)
    files = {out: spec_text(found)}
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
    batch = datasets.rows(data.inputs, places)
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
            outputs = call(adapter, batch, WORDS[kind])
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
    found = columns(kind, Path(data))
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
    return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()
