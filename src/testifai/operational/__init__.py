"""Operational testing: a trustworthy accuracy from few labels, and as many failures as possible."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from testifai.errors import InputError
from testifai.operational.base import Estimate, Flags, Frame, Indices, Sample, Technique, conclude, draw, warn_of_doubts
from testifai.operational.surprise import combined, dsa, lsa
from testifai.support import validation
from testifai.support.registry import Registry
from testifai.support.types import Array

OURS = {
    "balanced": "testifai.operational.balanced:BalancedSampling",
    "ces": "testifai.operational.ces:CrossEntropy",
    "combined": "testifai.operational.deepest:Combined",
    "confidence": "testifai.operational.deepest:Confidence",
    "css": "testifai.operational.random_sampling:Stratified",
    "dsa": "testifai.operational.deepest:DistanceSurprise",
    "lsa": "testifai.operational.deepest:LikelihoodSurprise",
    "srs": "testifai.operational.random_sampling:SimpleRandom",
}
TECHNIQUES = Registry("technique", "testifai.techniques", OURS)

__all__ = [
    "TECHNIQUES", "Estimate", "Frame", "Sample", "Technique", "combined", "conclude", "draw", "dsa", "estimate",
    "frame", "lsa", "resolve",
]  # fmt: skip


def estimate(
    technique: str | Technique,
    *,
    failed: ArrayLike | Callable[[int], Any],
    risk: ArrayLike | None = None,
    features: ArrayLike | None = None,
    predicted: ArrayLike | None = None,
    size: int | None = None,
    tests: int = 200,
    threshold: float | str | None = None,
    seed: int = 0,
    **options: Any,
) -> Estimate:
    """Choose examples, have them labelled, and estimate the accuracy on all examples.

    Args:
        technique: a name ("balanced", "srs", …) or an object
        failed: whether the model is wrong on each example: an array, or a function called with each chosen example
        risk: a value per example, higher where more suspicious: 1 - confidence for "balanced", "confidence" and
            "css", surprise for "dsa" and "lsa", `combined(...)` for "combined"; "srs" needs none
        features: activations of each example, for "ces"
        predicted: the class the model answered, where a technique uses it
        size: how many examples there are, where nothing else tells
        tests: how many labels to ask for
        threshold: a risk or quantile ("q0.9") above which examples are suspicious; None: the technique's own rule
        seed: of all that is drawn
        options: those of the technique, such as balance=0.3

    >>> confidence = np.linspace(0.4, 1, 1000)
    >>> answer = estimate("confidence", risk=1 - confidence, failed=confidence < 0.5, tests=100)
    >>> answer.failures, round(answer.accuracy, 2), answer.low < 0.833 < answer.high
    (32, 0.84, True)
    """
    chosen = resolve(technique, threshold=threshold, **options)
    known = None if callable(failed) else _outcomes(failed)
    if known is not None and size not in (None, len(known)):
        raise InputError(f"size: {size}, but failed has {len(known)} examples")
    whole = frame(risk=risk, features=features, predicted=predicted, size=size if known is None else len(known))
    check_tests(tests, whole.size)
    validation.whole("seed", seed, least=0)
    warn_of_doubts(chosen, whole)
    ask = functools.cache(lambda example: bool(cast(Callable[[int], Any], failed)(example)))

    def label(batch: Indices) -> Flags:
        return np.array([ask(one) for one in batch.tolist()], bool) if known is None else known[batch]

    return conclude(chosen, whole, draw(chosen, whole, tests, np.random.default_rng(seed), label))


def resolve(technique: str | Technique, **options: Any) -> Technique:
    """A technique by name, with its options (None means its default), or as an object.

    Args:
        technique: a name or an object
        options: those of the technique

    >>> resolve("confidence", threshold=0.5).threshold
    0.5
    """
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(technique, str):
        if not isinstance(technique, Technique):
            raise InputError(f"technique: expected one of {', '.join(TECHNIQUES)} or an object with plan and estimate")
        if given:
            raise InputError(f"{next(iter(given))}: is set on the technique itself when that is given as an object")
        return technique
    return cast(Technique, TECHNIQUES.make({"use": technique, **given}))


def frame(
    *,
    risk: ArrayLike | None = None,
    features: ArrayLike | None = None,
    predicted: ArrayLike | None = None,
    size: int | None = None,
) -> Frame:
    """Return what is known of all examples, checked.

    Args:
        risk: a value per example, higher where more suspicious
        features: activations, a row per example
        predicted: the class the model answered
        size: how many examples, where nothing else tells

    >>> frame(risk=[0.1, 0.9]).size
    2
    """
    columns = {
        "risk": _numbers("risk", risk),
        "features": _numbers("features", features),
        "predicted": None if predicted is None else np.asarray(predicted),
    }
    lengths = {name: len(values) for name, values in columns.items() if values is not None}
    examples = size if size is not None else next(iter(lengths.values()), 0)
    for name, length in lengths.items():
        if length != examples:
            raise InputError(f"{name}: {length} rows, but there are {examples} examples; give one per example")
    if examples < 1:
        raise InputError("size: no examples; give risk, features, an array of outcomes, or the number of examples")
    if columns["risk"] is not None and columns["risk"].ndim != 1:
        raise InputError(f"risk: shape {columns['risk'].shape}; expected one value per example")
    return Frame(examples, columns["risk"], columns["features"], columns["predicted"])


def check_tests(tests: int, size: int) -> None:
    validation.whole("tests", tests, least=1)
    if tests > size:
        raise InputError(f"tests: {tests} is more than the {size} examples there are; give at most {size}")


def _numbers(name: str, values: ArrayLike | None) -> Array | None:
    if values is None:
        return None
    try:
        numbers = np.asarray(values, np.float64 if name == "risk" else None)
        finite = np.isfinite(numbers)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected numbers, one row per example") from None
    if numbers.ndim == 0:
        raise InputError(f"{name}: a single number; expected one row per example")
    if not finite.all():
        where = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
        raise InputError(f"{name}: not a finite number at example {where}; give it a value or leave it out")
    return numbers


def _outcomes(failed: ArrayLike) -> Flags:
    values = np.asarray(failed)
    if values.ndim != 1:
        raise InputError(f"failed: shape {values.shape}; expected True or False for each example, or a function")
    if values.dtype != bool:
        if not np.isin(values, (0, 1)).all():
            raise InputError("failed: expected True or False (1 or 0) for each example")
        values = values.astype(bool)
    return values
