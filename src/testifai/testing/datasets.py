"""The contract of data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from testifai.data import Data, wrap
from testifai.support.batches import Batch, take
from testifai.testing.assertions import maker_of, require, same, unchanged

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
    found = wrap(make())
    who = found.name
    require(len(found) == len(found.inputs) > 0, who, f"{len(found)} inputs are announced, {len(found.inputs)} found")
    _check_picking(found, who)
    labels = found.labels
    if labels is not None:
        require(len(labels) == len(found), who, f"{len(labels)} labels for {len(found)} inputs")
        if found.classes is not None and labels.ndim == 1 and labels.dtype.kind in "iu":
            named = (labels >= 0) & (labels < len(found.classes))
            require(named.all(), who, f"labels without a name: {np.unique(labels[~named]).tolist()}")
    _check_fingerprint(found, wrap(make()), who)


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
