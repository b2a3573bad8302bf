"""The contract of oracles."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.oracles import ORACLES, Oracle, Outcome, resolve
from testifai.support.types import Array
from testifai.testing.assertions import (
    maker_of,
    require,
    require_described,
    require_flags,
    require_name,
    same,
    unchanged,
)  # fmt: skip

INPUTS, CLASSES, PART = 23, 4, 5


def check_oracle(
    oracle: Any, outputs: Array | None = None, clean: Array | None = None, labels: Array | None = None
) -> None:
    """Raise AssertionError if an oracle breaks its contract.

    Each input must have an outcome, the same in every batch and every call, and no argument may change. An oracle that
    needs labels must reject data without labels, an oracle of classes labels outside the classes. A description must
    identify the oracle. An oracle with a score must return values in 0..1.

    Args:
        oracle: by name, as an object or a function
        outputs: outputs to judge; None: scores of four classes, boxes or label maps, depending on the oracle
        clean: outputs on clean inputs
        labels: the expected outputs

    >>> check_oracle("label")
    """
    is_function = callable(oracle) and not isinstance(oracle, type) and not hasattr(oracle, "judge")
    judge = resolve(oracle if is_function or isinstance(oracle, str | dict) else maker_of(oracle, "judge")())
    if judge.moves in DRAWN:
        draw = DRAWN[judge.moves]
        outputs, clean, labels = (
            draw(seed) if given is None else given for seed, given in enumerate((outputs, clean, labels))
        )
        judge = judge.fitted(labels)
    who = f"oracle {require_name(judge.name, 'oracle')}"
    require_flags(judge, who, "needs_labels", "needs_clean", "decides_classes")
    random = np.random.default_rng(0)
    outputs = random.normal(size=(INPUTS, CLASSES)).astype(np.float32) if outputs is None else outputs
    clean = random.normal(size=(INPUTS, CLASSES)).astype(np.float32) if clean is None else clean
    labels = random.integers(0, CLASSES, INPUTS) if labels is None else labels
    _check_labels(judge, labels, who)
    reference = _reference(judge, clean, who)
    whole = _judge(judge, outputs, labels, reference, who)
    require(same(whole, _judge(judge, outputs, labels, reference, who)), who, "does not repeat itself")
    _check_parts(judge, outputs, labels, reference, whole, who)
    described = require_described(judge.describe(), who)
    if described["use"] in ORACLES and described["use"] != "function":  # a function is only named
        rebuilt = resolve(described)
        require(rebuilt.score == judge.score, who, "its description does not lead back to its score")
        found = _judge(rebuilt, outputs, labels, _reference(rebuilt, clean, who), who)
        require(same(whole, found), who, "its description does not lead back to it")


def _boxes(seed: int) -> Array:
    """Return up to three boxes for each input, many of which overlap boxes of other seeds."""
    random = np.random.default_rng(seed)
    corners = random.integers(0, 3, (INPUTS, 3, 2)) * 8
    sizes, scores = random.integers(7, 9, (INPUTS, 3, 2)), random.random((INPUTS, 3, 1))
    classes = random.integers(-1, CLASSES, (INPUTS, 3, 1))
    return np.concatenate([corners, corners + sizes, scores, classes], axis=2).astype(np.float32)


def _maps(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, CLASSES, (INPUTS, 4, 5)).astype(np.int16)


DRAWN = {"boxes": _boxes, "masks": _maps}


def _reference(oracle: Oracle, clean: Array, who: str) -> Array | None:
    if not oracle.needs_clean:
        return None
    with unchanged(who, "reference", clean):
        kept = oracle.reference(clean)
    require(len(kept) == len(clean), who, f"remembers {len(kept)} rows of {len(clean)} clean outputs")
    return kept


def _judge(oracle: Oracle, outputs: Array, labels: Array, clean: Array | None, who: str) -> Outcome:
    with unchanged(who, "judge", outputs, labels, clean):
        outcome = oracle.judge(outputs, labels, clean)
    expected = (len(outputs),)
    require(np.shape(outcome.passed) == expected, who, f"{np.shape(outcome.passed)} outcomes for {len(outputs)} inputs")
    require(np.asarray(outcome.passed).dtype == bool, who, "outcomes that are neither true nor false")
    if oracle.score is not None:
        named = isinstance(oracle.score, str) and oracle.score.isidentifier()
        require(named, who, f"its score is {oracle.score!r}, and no name of letters and digits")
        require(outcome.value is not None, who, f"has the score {oracle.score} and gives no values")
        inside = (np.asarray(outcome.value) >= 0) & (np.asarray(outcome.value) <= 1)
        require(bool(inside.all()), who, f"values of its score {oracle.score} outside 0..1")
    if outcome.value is not None:
        require(np.shape(outcome.value) == expected, who, f"{np.shape(outcome.value)} values for {len(outputs)} inputs")
    return outcome


def _check_parts(oracle: Oracle, outputs: Array, labels: Array, clean: Array | None, whole: Outcome, who: str) -> None:
    parts = [slice(start, start + PART) for start in range(0, len(outputs), PART)]
    for rows in [*parts, slice(None, None, -1)]:
        part = _judge(oracle, outputs[rows], labels[rows], None if clean is None else clean[rows], who)
        expected = (whole.passed[rows], None if whole.value is None else whole.value[rows])
        require(same((part.passed, part.value), expected), who, "an input's outcome depends on the batch it is in")


def _check_labels(oracle: Oracle, labels: Array, who: str) -> None:
    oracle.check(labels, None)
    if oracle.needs_labels:
        require(_refuses(oracle, None, CLASSES), who, "needs labels and does not refuse data that have none")
    if oracle.needs_labels and oracle.decides_classes and labels.ndim == 1:
        beyond = np.full_like(labels, CLASSES)
        require(
            _refuses(oracle, beyond, CLASSES), who, f"does not refuse label {CLASSES} of a model of {CLASSES} classes"
        )


def _refuses(oracle: Oracle, labels: Array | None, classes: int) -> bool:
    try:
        oracle.check(labels, classes)
    except InputError:
        return True
    return False
