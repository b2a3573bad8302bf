"""The contracts of models and of data sets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from testifai import data as datasets
from testifai.data import Data
from testifai.data.annotations import CLASS, are_boxes
from testifai.errors import InputError
from testifai.models import Outputs, check_outputs, wrap
from testifai.support.batches import Batch, take
from testifai.support.types import Array
from testifai.testing.assertions import maker_of, require, require_flags, require_name, same, unchanged

PART = 3
# What another batch may change in a score: sums are made in another order.
SLACK = 1e-4


def check_model(model: Any, batch: Batch) -> None:
    """Raise AssertionError if a model breaks its contract on a batch of its inputs.

    Each input must have an output, the same in every batch and every call up to rounding (in threads too, if the model
    declares itself thread-safe), and the batch must not change. The number of classes must be right, and two loads must
    have the same fingerprint.

    Args:
        model: what `ta.scan` takes as a model, or a class of adapters
        batch: at least four inputs

    >>> check_model(lambda rows: rows.sum(axis=1), np.arange(12.0).reshape(6, 2))
    """
    make = maker_of(model) if isinstance(model, type) else lambda: model
    first: Any = wrap(make())
    who = require_name(first.name, "model")
    if len(batch) < PART + 1:
        raise InputError(f"batch: it holds {len(batch)} inputs; give at least {PART + 1}")
    require_flags(first, who, "thread_safe")
    whole = _outputs(first, batch, who)
    require(_near(whole, _outputs(first, batch, who), 0), who, "does not repeat itself")
    for rows in (np.arange(PART), np.arange(len(batch) - 1, -1, -1), np.array([len(batch) - 1])):
        part = _outputs(first, take(batch, rows), who)
        require(_near(part, whole[rows], SLACK), who, "an input's output depends on the batch it is in")
    _check_declared(first, whole, who)
    if first.thread_safe:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda _: _outputs(first, batch, who), range(8)))
        require(all(_near(whole, one, SLACK) for one in together), who, "calls itself thread_safe and is not")
    known, again = first.fingerprint, wrap(make()).fingerprint
    require(isinstance(known, str) and bool(known), who, f"its fingerprint is {known!r}; a text is accepted")
    require(known == first.fingerprint == again, who, "the fingerprint changes from one load to the next")


def _outputs(model: Any, batch: Batch, who: str) -> Array:
    with unchanged(who, "calling it", batch):
        raw = model(batch)
    try:
        return check_outputs(raw, len(batch), who)
    except InputError as error:
        raise AssertionError(str(error)) from error


def _check_declared(model: Any, outputs: Array, who: str) -> None:
    kinds = (None, *get_args(Outputs))
    require(model.outputs in kinds, who, f"its outputs are {model.outputs!r}; {', '.join(kinds[1:])} are accepted")
    fits = {
        "labels": outputs.ndim == 1,
        "scores": outputs.ndim == 2,
        "boxes": are_boxes(outputs),
        "maps": outputs.ndim in (3, 4),
    }
    require(fits.get(model.outputs, True), who, f"announces {model.outputs} and returns shape {outputs.shape}")
    if model.classes is not None:
        decided = outputs[..., CLASS] if are_boxes(outputs) else outputs
        wide = outputs.shape[1] if outputs.ndim == 2 else int(decided.max()) + 1
        right = wide == model.classes if outputs.ndim == 2 else wide <= model.classes
        require(right, who, f"announces {model.classes} classes and returns {wide}")


def _near(one: Array, other: Array, slack: float) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind == "f":
        return bool(np.allclose(one, other, rtol=slack, atol=slack))
    return bool(np.array_equal(one, other))


MOST = 50  # inputs checked individually


def check_data(data: Any) -> None:
    """Raise AssertionError if a data set breaks its contract.

    Inputs can be counted and selected by an array of indices, with the same result each time. Each label belongs to
    one input, and has a class name if there are names. The fingerprint is the same for two loads and changes with
    inputs and labels.

    Args:
        data: what `ta.scan` takes as data, or a function that loads it

    >>> check_data(lambda: (np.zeros((5, 2)), [0, 1, 0, 1, 0]))
    """
    make = (lambda: data) if isinstance(data, Data | str | tuple) else maker_of(data, "inputs", "__array__")
    found = datasets.wrap(make())
    who = found.name
    require(len(found) == len(found.inputs) > 0, who, f"{len(found)} inputs are announced, {len(found.inputs)} found")
    _check_picking(found, who)
    labels = found.labels
    if labels is not None:
        require(len(labels) == len(found), who, f"{len(labels)} labels for {len(found)} inputs")
        if found.classes is not None and labels.ndim == 1 and labels.dtype.kind in "iu":
            named = (labels >= 0) & (labels < len(found.classes))
            require(named.all(), who, f"labels without a name: {np.unique(labels[~named]).tolist()}")
    _check_fingerprint(found, datasets.wrap(make()), who)


def _check_picking(data: Data, who: str) -> None:
    count = min(len(data), MOST)
    rows = np.arange(count)
    with unchanged(who, "picking inputs", rows):
        whole = _pick(data, rows)
    require(len(whole) == count, who, f"{len(whole)} inputs come back where {count} are picked")
    require(same(whole, _pick(data, rows)), who, "picking the same inputs again gives others")
    for part, complaint in (
        (rows[::-1], "an input depends on those picked with it"),
        (rows[-1:], "an input picked alone is another than in a batch"),
    ):
        require(same(take(whole, part), _pick(data, part)), who, complaint)


def _pick(data: Data, rows: Any) -> Batch:
    inputs = data.inputs
    picked: Batch = take(inputs, rows) if isinstance(inputs, list) else inputs[rows]
    return picked


def _check_fingerprint(data: Data, again: Data, who: str) -> None:
    known = data.fingerprint
    require(isinstance(known, str) and bool(known), who, f"its fingerprint is {known!r}; a text is accepted")
    require(again.fingerprint == known, who, "the fingerprint changes from one load to the next")
    if data.labels is not None and len(np.unique(data.labels)) > 1:
        moved = np.roll(data.labels, 1, axis=0)
        told = replace(data, labels=moved).fingerprint != known or np.array_equal(moved, data.labels)
        require(told, who, "other labels have the same fingerprint")
    if len(data) > 1:
        rows = np.arange(min(len(data) - 1, MOST))
        labels = None if data.labels is None else data.labels[rows]
        fewer = replace(data, inputs=_pick(data, rows), labels=labels)
        require(fewer.fingerprint != known, who, "fewer inputs have the same fingerprint")
