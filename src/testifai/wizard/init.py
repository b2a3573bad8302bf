"""How people come to their own model: look at a model and a data set, check that they fit, write a spec that runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import data as datasets
from testifai import models, oracles
from testifai.data.image_files import SizesDifferError
from testifai.data.text_tables import columns
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.oracles.classes import predicted
from testifai.runs.outcomes import visiting_order
from testifai.session import compatibility
from testifai.session.compatibility import ToleranceChoice
from testifai.session.observers import SURE, class_index_mismatch, near_chance
from testifai.support import remote, validation
from testifai.support.batches import Batch, are_pairs
from testifai.support.files import write_bytes
from testifai.support.types import Record
from testifai.wizard import tables
from testifai.wizard.inspection import WORDS, Inspection, inspect_detector, open_detector, spec_text
from testifai.wizard.tables import Columns

CLASSIFICATION, REGRESSION, DETECTION = TASKS = ("classification", "regression", "detection")
TRIED_INPUTS = 500
SCALES = ("unit", "signed", "raw")

# Edits of texts, the most usual first; an axis is suggested where at least this share of the inputs has a place for it.
_TEXT_AXES = ("typo", "synonym", "punctuation", "whitespace", "case")
_WITH_PLACE = 0.5


@dataclass(frozen=True)
class UserHints:
    """What the user says beforehand, because it cannot be seen, or is seen wrongly."""

    target: str | None = None  # of a table: the column that the model is to predict
    trusted: tuple[str, ...] = ()  # of a file of skops: types to load
    size: tuple[int, int] | None = None  # of images: height and width to bring all to
    classes: tuple[str, ...] = ()  # what the model's outputs are called, in their order
    task: str | None = None  # one of TASKS

    def check(self, kind: str, data: str) -> None:
        """Refuse what does not fit data of this kind."""
        for field, given, kinds in (
            ("--target", self.target, ("table",)),
            ("--size", self.size, ("folder",)),
            ("--classes", self.classes or None, ("folder", "npz", "idx")),
        ):
            if given is not None and kind not in kinds:
                raise InputError(f"{field}: is for data of the kind {' or '.join(kinds)}; {data} is {kind}")
        validation.choice("--task", self.task, (None, *TASKS))


NO_HINTS = UserHints()


def write_spec(model: str, data: str, out: Path, hints: UserHints = NO_HINTS) -> Inspection:
    """Look at both, try one batch, and write the spec; an existing file is left alone."""
    if out.exists():
        raise InputError(f"init: {out} exists; choose another name with -o")
    if not out.parent.is_dir():
        raise InputError(f"init: the folder {out.parent} does not exist")
    folder = out.resolve().parent
    kind = datasets.recognise(data)
    hints.check(kind, data)
    detector = open_detector(model, kind, folder) if hints.task in (None, DETECTION) else None
    if detector is None and hints.task == DETECTION:
        raise InputError(f"--task: {model} with {data} is no detector with photographs; leave --task out to see why")
    if detector is not None:
        found = inspect_detector(*detector, kind, data)
        if "python" not in found.model:
            found.model |= {next(iter(found.model)): _relative(model, folder)}
        found.data = {kind: _relative(data, folder), **found.data}
    else:
        loaded, (columns, notes) = _loaded(kind, data, partial(_entry, model, folder, hints.trusted), folder, hints)
        found = _look(model, loaded, folder, hints)
        found.data = {kind: _relative(data, folder), **columns}
        found.notes = [*notes, *found.notes]
    found.spec = str(out)
    write_bytes(out, spec_text(found).encode())
    return found


def _loaded(
    kind: str, data: str, entry: Callable[[str], Record], folder: Path, hints: UserHints
) -> tuple[datasets.Data, Columns]:
    """The data, and what a spec says of them."""
    if kind == "table":
        columns = tables.columns(_load(entry("table"), folder), Path(data), hints.target)
        return datasets.load(kind, data, **columns[0]), columns
    options: Record = _columns(kind, data)
    options |= {} if hints.size is None else {"size": list(hints.size)}
    options |= {"classes": list(hints.classes)} if hints.classes else {}
    try:
        loaded = datasets.load(kind, data, **options)
        _tried(loaded)  # which finds images of another size
        return loaded, (options, [])
    except SizesDifferError:
        size = _size_of(_load(entry("images"), folder))
        if size is None:
            raise
        note = f"Images differ in size: all are brought to {size[0]}×{size[1]}, which the model takes."
        options |= {"size": list(size)}
        return datasets.load(kind, data, **options), (options, [note])


def _tried(data: datasets.Data) -> tuple[NDArray[np.intp], Batch]:
    """The inputs that the model is tried on, by number."""
    places = visiting_order(len(data), 0)[:TRIED_INPUTS]
    return places, datasets.rows(data.inputs, places)


def _size_of(adapter: models.Model) -> tuple[int, int] | None:
    """Height and width of the images that a model takes; None where it does not say."""
    shape: Any = getattr(adapter, "input_shape", None)
    if shape is None or len(shape) != 4:
        return None
    height, width = shape[1:3] if shape[3] in (1, 3) and shape[1] not in (1, 3) else shape[2:4]
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None


def _look(model: str, data: datasets.Data, folder: Path, hints: UserHints) -> Inspection:
    places, batch = _tried(data)
    kind = _kind(batch)
    if kind == "images" and np.asarray(batch).dtype != np.uint8:
        raise InputError(f"data: images must be uint8 (0 to 255), got {np.asarray(batch).dtype}")
    entry = _entry(model, folder, hints.trusted, kind)
    labels = None if data.labels is None else data.labels[places]
    best: tuple[float, Record, Any, Any, ToleranceChoice | None] | None = None
    problem: InputError | None = None
    tried: list[str] = []
    for options in [{"scale": scale} for scale in SCALES] if kind == "images" and "onnx" in entry else [{}]:
        try:
            adapter = models.wrap(_load({**entry, **options}, folder), data.schema)
            outputs = call(adapter, batch, WORDS[kind])
            tolerance = _tolerance(hints.task, adapter, data, outputs)
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
    found = Inspection(
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
        found.axes = tables.axes(adapter, data, places)
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
        texts = isinstance(batch, list)
        line = near_chance(round(score * len(batch)), len(batch), aligned, found.classes, texts=texts)
        otherwise = (
            class_index_mismatch(aligned, predicted(outputs), data.classes, found.classes) if score < SURE else None
        )
        line = line if otherwise is None else str(otherwise)
        found.notes += [f"Warning: {line}."] if line else []
    return found


def _kind(batch: Batch) -> str:
    if isinstance(batch, list):
        return "pairs" if are_pairs(batch) else "texts"
    return "images" if np.asarray(batch).ndim >= 3 else "table"


def _columns(kind: str, data: str) -> Record:
    """Which columns of a table of texts are read, said so that it can be changed."""
    if kind not in ("csv", "tsv", "jsonl"):
        return {}
    file = remote.place(data) if remote.is_address(data) else Path(data)
    assert isinstance(file, Path), "a table is a file"
    found = columns(kind, file)
    entry: Record = {"text": found.text[0] if len(found.text) == 1 else list(found.text)}
    return entry if found.label is None else {**entry, "label": found.label}


def _entry(model: str, folder: Path, trusted: tuple[str, ...], kind: str) -> Record:
    """The spec's lines for the model: what it is, and the files beside it that it needs."""
    path = Path(model)
    if ":" in model and not path.exists() and not remote.is_address(model):
        return {"python": model}
    found = models.recognise(path)
    if found is None and not path.exists() and not remote.is_address(model):
        raise InputError(f"model: {model} does not exist")
    if found is None:
        raise InputError(
            f"model: {model} is neither an .onnx file nor package.module:name nor a folder of transformers "
            "(config.json); export it to ONNX, or write a spec with torch = 'package.module:factory' and "
            "weights = 'file.safetensors'"
        )
    adapter = models.ADAPTERS[found]
    if trusted and "trusted" not in adapter.model_fields:
        raise InputError(f"--trusted: is for .skops files; {model} is of the kind {found}")
    beside = {name: _relative(str(file), folder) for name, file in adapter.companions(path, kind).items()}
    return {found: _relative(model, folder), **beside, **({"trusted": list(trusted)} if trusted else {})}


def _load(entry: Record, folder: Path) -> models.Model:
    options = dict(entry)
    kind = next(iter(options))
    return models.load(kind, options.pop(kind), folder=folder, **options)


def _text_axes(batch: Batch) -> tuple[str, ...]:
    """Up to three kinds of edits for which these texts have places."""
    from testifai.perturb.text import edits

    reached = {name: 1 - edits(f"text.{name}", batch, 1).untouched / len(batch) for name in _TEXT_AXES}
    return tuple(name for name, share in reached.items() if share >= _WITH_PLACE)[:3]


def _tolerance(task: str | None, adapter: models.Model, data: datasets.Data, outputs: Any) -> ToleranceChoice | None:
    """How far answers may be off, where they are numbers by the task that is told, or by what they look like."""
    if task == CLASSIFICATION:
        return None
    if task == REGRESSION:
        return compatibility.clean_tolerance(outputs) if data.labels is None else compatibility.tolerance(data.labels)
    return compatibility.fitting(adapter, data, outputs)


def _accuracy(adapter: models.Model, outputs: Any, labels: Any, names: Any, tolerance: ToleranceChoice | None) -> float:
    if tolerance is not None:
        return float(tolerance.oracle.judge(outputs, labels, None).passed.mean())
    aligned = models.align_labels(labels, names, adapter.class_values)
    oracle = oracles.resolve("label")
    oracle.check(aligned, adapter.classes)
    return float(oracle.judge(outputs, aligned, None).passed.mean())


def _outputs_in_words(outputs: Any, tolerance: ToleranceChoice | None) -> str:
    if tolerance is not None:
        return "one number per input"
    return "scores" if outputs.ndim == 2 else "one number or label per input"


def _classes(adapter: models.Model, data: datasets.Data) -> int | None:
    known = adapter.classes
    if known or data.labels is None or data.labels.ndim != 1:
        return known
    return len(data.classes) if data.classes else int(data.labels.max()) + 1


def _relative(path: str, folder: Path) -> str:
    if remote.is_address(path):
        return path
    return Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()
