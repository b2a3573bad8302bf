"""Writing a spec: inspect a model and a data set, and check that they fit together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import data as datasets
from testifai import models, oracles
from testifai.data import Data
from testifai.data.image_files import SizesDifferError
from testifai.data.table_columns import DISCRETE, NUMERIC, Kind, is_number
from testifai.data.tabular import NO_TARGET, guessed_target, read_columns
from testifai.data.text_tables import columns
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles.classes import predicted
from testifai.perturb import get
from testifai.runs.outcomes import visiting_order
from testifai.session import compatibility
from testifai.session.compatibility import ToleranceChoice
from testifai.session.observers import SURE, class_index_mismatch, near_chance
from testifai.support import remote, validation
from testifai.support.batches import Batch, are_pairs
from testifai.support.files import write_bytes
from testifai.support.types import Array, Record
from testifai.wizard.inspection import WORDS, Inspection, inspect_detector, open_detector, spec_text

Columns = tuple[Record, list[str]]  # options of a spec, and notes
CLASSIFICATION, REGRESSION, DETECTION = TASKS = ("classification", "regression", "detection")
TRIED_INPUTS = 500
SCALES = ("unit", "signed", "raw")
CLEARLY = 0.02  # by which the accuracy of another scale must be better than that of the first

# Edits of texts, the most common first; an axis needs this share of inputs with a place for it.
_TEXT_AXES = ("typo", "synonym", "punctuation", "whitespace", "case")
_WITH_PLACE = 0.5


@dataclass(frozen=True)
class UserHints:
    """Options of the user."""

    target: str | None = None  # of a table: the column that the model predicts
    trusted: tuple[str, ...] = ()  # types that a .skops file may load
    size: tuple[int, int] | None = None  # height and width of all images
    classes: tuple[str, ...] = ()  # names of the model's outputs
    task: str | None = None  # one of TASKS

    def check(self, kind: str, data: str) -> None:
        """Raise InputError if a hint does not fit data of this kind."""
        for field, given, kinds in (
            ("--target", self.target, ("table",)),
            ("--size", self.size, ("folder",)),
            ("--classes", self.classes or None, ("folder", "npz", "idx")),
        ):
            if given is not None and kind not in kinds:
                raise InputError(f"{field}: is for data of the kind {' or '.join(kinds)}; {data} is {kind}")
        validation.choice("--task", self.task, (None, *TASKS))


def write_spec(model: str, data: str, out: Path, hints: UserHints | None = None) -> Inspection:
    """Inspect a model and a data set, try one batch, and write the spec, which must not exist."""
    hints = hints or UserHints()
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
        entry = partial(_entry, model, folder, hints.trusted)
        loaded, (columns, notes) = _loaded(kind, data, entry, folder, hints)
        found = _inspect(model, loaded, entry, folder, hints)
        found.data = {kind: _relative(data, folder), **columns}
        found.notes = [*notes, *found.notes]
    found.spec = str(out)
    write_bytes(out, spec_text(found).encode())
    return found


def _loaded(
    kind: str, data: str, entry: Callable[[str], Record], folder: Path, hints: UserHints
) -> tuple[datasets.Data, Columns]:
    if kind == "table":
        told = table_columns(_load(entry("table"), folder), Path(data), hints.target)
        return datasets.load(kind, data, **told[0]), told
    options: Record = {}
    if kind in ("csv", "tsv", "jsonl"):
        file = remote.place(data) if remote.is_address(data) else Path(data)
        assert isinstance(file, Path), "a table is a file"
        named = columns(kind, file)
        options |= {"text": named.text[0] if len(named.text) == 1 else list(named.text)}
        options |= {} if named.label is None else {"label": named.label}
    options |= {} if hints.size is None else {"size": list(hints.size)}
    options |= {"classes": list(hints.classes)} if hints.classes else {}
    try:
        loaded = datasets.load(kind, data, **options)
        _tried(loaded)  # raises SizesDifferError
        return loaded, (options, [])
    except SizesDifferError:
        # Resize to the (batch, height, width, channels) or (batch, channels, height, width) of the model.
        shape: Any = getattr(_load(entry("images"), folder), "input_shape", None)
        if shape is None or len(shape) != 4:
            raise
        height, width = shape[1:3] if shape[3] in (1, 3) and shape[1] not in (1, 3) else shape[2:4]
        if not isinstance(height, int) or not isinstance(width, int):
            raise
        note = f"Images differ in size: all are brought to {height}×{width}, which the model takes."
        options |= {"size": [height, width]}
        return datasets.load(kind, data, **options), (options, [note])


def _tried(data: datasets.Data) -> tuple[NDArray[np.intp], Batch]:
    """Return the numbers and the inputs that the model is tried on."""
    places = visiting_order(len(data), 0)[:TRIED_INPUTS]
    return places, datasets.rows(data.inputs, places)


@dataclass(frozen=True)
class _Candidate:
    """A model with options of its spec, and its outputs."""

    options: Record
    adapter: models.Model
    outputs: Array
    tolerance: ToleranceChoice | None
    accuracy: float | None


def _try(
    entry: Record,
    options: Record,
    folder: Path,
    task: str | None,
    data: datasets.Data,
    labels: Array | None,
    batch: Batch,
) -> _Candidate:
    adapter = models.wrap(_load({**entry, **options}, folder), data.schema)
    outputs = call(adapter, batch, WORDS[_kind(batch)])
    tolerance: ToleranceChoice | None
    if task == REGRESSION:
        known = data.labels
        tolerance = compatibility.clean_tolerance(outputs) if known is None else compatibility.tolerance(known)
    else:
        tolerance = None if task == CLASSIFICATION else compatibility.fitting(adapter, data, outputs)
    if labels is None:
        return _Candidate(options, adapter, outputs, tolerance, None)
    oracle: oracles.Oracle = oracles.resolve("label") if tolerance is None else tolerance.oracle
    if tolerance is None:
        labels = models.align_labels(labels, data.classes, adapter.class_values)
        oracle.check(labels, adapter.classes)
    accuracy = float(oracle.judge(outputs, labels, None).passed.mean())
    return _Candidate(options, adapter, outputs, tolerance, accuracy)


def _inspect(
    model: str, data: datasets.Data, entry_of: Callable[[str], Record], folder: Path, hints: UserHints
) -> Inspection:
    places, batch = _tried(data)
    kind, texts = _kind(batch), isinstance(batch, list)
    if kind == "images" and np.asarray(batch).dtype != np.uint8:
        raise InputError(f"data: images must be uint8 (0 to 255), got {np.asarray(batch).dtype}")
    entry = entry_of(kind)
    labels = None if data.labels is None else data.labels[places]
    scaled = kind == "images" and "onnx" in entry
    candidates: list[_Candidate] = []
    problems: list[InputError] = []
    for options in [{"scale": scale} for scale in SCALES] if scaled else [{}]:
        try:
            candidates.append(_try(entry, options, folder, hints.task, data, labels, batch))
        except InputError as error:
            problems.append(error)
    if not candidates:
        raise problems[0]
    best = candidates[0]  # the most common one
    for other in candidates[1:]:
        if (other.accuracy or 0) > (best.accuracy or 0) + CLEARLY:
            best = other
    adapter, tolerance, accuracy = best.adapter, best.tolerance, best.accuracy
    classes = adapter.classes if tolerance is None else None
    if tolerance is None and not classes and data.labels is not None and data.labels.ndim == 1:
        classes = len(data.classes) if data.classes else int(data.labels.max()) + 1
    returned = "scores" if best.outputs.ndim == 2 else "one number or label per input"
    found = Inspection(
        model={**entry, **best.options},
        data={},
        inputs=len(data),
        kind=kind,
        shape=() if texts else tuple(np.asarray(batch).shape[1:]),
        classes=classes,
        outputs=returned if tolerance is None else "one number per input",
        oracle="tolerance" if tolerance is not None else "consistency" if labels is None else "label",
        accuracy=accuracy,
        tried=len(batch),
        tolerance=tolerance,
    )
    if texts:
        from testifai.perturb.text import edits

        reached = {name: 1 - edits(f"text.{name}", batch, 1).untouched / len(batch) for name in _TEXT_AXES}
        found.axes = tuple(name for name, share in reached.items() if share >= _WITH_PLACE)[:3]
        if not found.axes:
            found.axes = _TEXT_AXES[:1]
            found.notes.append("Warning: most of these inputs have no place for an edit, of whichever kind.")
    elif kind == "table":
        found.axes = table_axes(adapter, data, places)
    if len(candidates) > 1 and accuracy is not None:
        tried = ", ".join(f"{one.options['scale']} {one.accuracy:.3f}" for one in candidates)
        found.notes.append(f"Scales tried (accuracy): {tried}; took {best.options['scale']}.")
    if tolerance is not None:
        found.notes += tolerance.notes(best.outputs, labels)
    elif labels is None or accuracy is None:
        found.notes.append("The data have no labels: the oracle is consistency with the clean output.")
    else:
        aligned = models.align_labels(labels, data.classes, adapter.class_values)
        warning = near_chance(round(accuracy * len(batch)), len(batch), aligned, classes, texts=texts)
        if accuracy < SURE:
            mismatch = class_index_mismatch(aligned, predicted(best.outputs), data.classes, classes)
            warning = warning if mismatch is None else str(mismatch)
        found.notes += [f"Warning: {warning}."] if warning else []
    return found


def _kind(batch: Batch) -> str:
    if isinstance(batch, list):
        return "pairs" if are_pairs(batch) else "texts"
    return "images" if np.asarray(batch).ndim >= 3 else "table"


def _entry(model: str, folder: Path, trusted: tuple[str, ...], kind: str) -> Record:
    """Return the options of a spec's [model]: its kind and path, and companion files."""
    path, remotely = Path(model), remote.is_address(model)
    if ":" in model and not path.exists() and not remotely:
        return {"python": model}
    found = models.recognise(path)
    if found is None and not path.exists() and not remotely:
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
    (kind, source), *options = entry.items()
    return models.load(kind, source, folder=folder, **dict(options))


def _relative(path: str, folder: Path) -> str:
    return path if remote.is_address(path) else Path(os.path.relpath(Path(path).resolve(), folder)).as_posix()


def table_columns(model: Model, path: Path, target: str | None) -> Columns:
    """Return the target, by default guessed from names and the model's columns, and the columns for the model."""
    names = list(read_columns(path, 1))
    notes: list[str] = []
    if target is None:
        target, how = _target(names, getattr(model, "columns", None))
        notes += [f"Target: {target}, {how}." if target else "No target: the model takes all columns."]
    features = _features([name for name in names if name != target], model)
    told: Record = {"target": target}
    if features is None:
        return told, notes
    return {**told, "features": features}, [*notes, f"Columns for the model: {len(features)} of {len(names)}."]


def table_axes(model: Model, data: Data, places: Any) -> tuple[str, ...]:
    """Return perturbations of the suite tabular that have columns to change, and that the model supports."""
    assert data.table is not None
    kinds: set[Kind] = {column.kind for column in data.table.columns}
    wanted = [("noise", NUMERIC), ("swap", DISCRETE), ("outlier", NUMERIC), ("stale", (*NUMERIC, *DISCRETE))]
    fitting = [name for name, own in wanted if kinds & set(own)]
    missing = get("tabular.missing")
    batch = np.asarray(data.inputs[places[:8]], np.float64)
    try:
        holes = missing.apply(batch, len(missing.severities) - 1, table=data.table)
        call(model, holes, "to see whether it takes missing values")
    except InputError:
        return tuple(fitting[:3])
    return (*fitting[:1], "missing", *fitting[1:])[:3]


def _target(names: Sequence[str], own: Sequence[str] | None) -> tuple[str, str]:
    named = guessed_target(names)
    if named:
        return named, "by its name"
    # LightGBM writes _ for a space.
    known = {*(own or ()), *(name.replace("_", " ") for name in own or ())}
    left = [name for name in names if own is not None and name not in known and not is_number(name)]
    if own is not None and not left:
        return NO_TARGET, ""
    if len(left) == 1:
        return left[0], "the only column that the model does not take"
    return names[-1], 'the last column; change it with target = "…" or --target'


def _features(rest: Sequence[str], model: Model) -> list[str] | None:
    """Return the columns for the model; None if all are."""
    columns, width = getattr(model, "columns", None), getattr(model, "width", None)
    if columns is not None:
        known = {name: name for name in rest} | {name.replace(" ", "_"): name for name in rest}
        taken = [known[name] for name in columns if name in known]
        # If some are missing, all are passed on: the error of the model names the missing ones.
        return None if len(taken) < len(columns) or set(taken) == set(rest) else taken
    plain = [name for name in rest if not is_number(name)]
    return plain if len(plain) < len(rest) and len(plain) == width else None
