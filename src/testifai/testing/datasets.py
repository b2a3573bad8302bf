"""The contract of data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from testifai.data import Data, wrap
from testifai.support.batches import Batch, take
from testifai.testing.assertions import Untouched, maker_of, require, same

MOST = 50  # inputs looked at one by one


def check_data(data: Any) -> None:
    """Raise AssertionError where a data set breaks its contract.

    Inputs can be counted and picked by an array of numbers, the same again each time; labels stand for an input each
    and have a class name where there are names; the fingerprint stays the same for two loads and changes with inputs
    and labels. Hand over what `ta.scan` takes as data, or a function that loads it.

    Args:
        data: what `ta.scan` takes as data, or a function that loads it

    >>> check_data(lambda: (np.zeros((5, 2)), [0, 1, 0, 1, 0]))
    """
    make = (lambda: data) if isinstance(data, Data | str | tuple) else maker_of(data, "inputs", "__array__")
    found = wrap(make())
    who = found.name
    require(len(found) == len(found.inputs) > 0, who, f"{len(found)} inputs are announced, {len(found.inputs)} found")
    _check_picking(found, who)
    if found.labels is not None:
        _check_labels(found, who)
    _check_fingerprint(found, wrap(make()), who)


def _check_picking(data: Data, who: str) -> None:
    count = min(len(data), MOST)
    rows = np.arange(count)
    arguments = Untouched(rows)
    whole = _pick(data, rows)
    arguments.check(who, "picking inputs")
    require(len(whole) == count, who, f"{len(whole)} inputs come back where {count} are picked")
    require(same(whole, _pick(data, rows)), who, "picking the same inputs again gives others")
    backwards = _pick(data, rows[::-1])
    require(same(take(whole, rows[::-1]), backwards), who, "an input depends on those picked with it")
    last = _pick(data, rows[-1:])
    require(same(take(whole, rows[-1:]), last), who, "an input picked alone is another than in a batch")


def _pick(data: Data, rows: Any) -> Batch:
    inputs = data.inputs
    picked: Batch = take(inputs, rows) if isinstance(inputs, list) else inputs[rows]
    return picked


def _check_labels(data: Data, who: str) -> None:
    labels = data.labels
    assert labels is not None
    require(len(labels) == len(data), who, f"{len(labels)} labels for {len(data)} inputs")
    if data.classes is not None and labels.ndim == 1 and labels.dtype.kind in "iu":
        named = (labels >= 0) & (labels < len(data.classes))
        require(named.all(), who, f"labels without a name: {np.unique(labels[~named]).tolist()}")


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
