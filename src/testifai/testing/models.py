"""The contract of models."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import numpy as np

from testifai.data.annotations import CLASS, are_boxes
from testifai.errors import InputError
from testifai.models import Outputs, check_outputs, wrap
from testifai.support.batches import Batch, take
from testifai.support.types import Array
from testifai.testing.assertions import maker_of, require, require_flags, require_name, unchanged

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
