"""The contracts of oracles and of quality measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.models import wrap
from testifai.oracles import ORACLES, Oracle, Outcome, resolve
from testifai.quality import Measure, Reference, Score
from testifai.quality import resolve as resolve_measure
from testifai.support.batches import Batch, take
from testifai.support.types import Array
from testifai.testing.assertions import (
    maker_of,
    require,
    require_described,
    require_flags,
    require_name,
    same,
    unchanged,
)
from testifai.testing.perturbations import example_photographs

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


DRAWN: dict[str, Callable[[int], Array]] = {
    "boxes": _boxes,
    "masks": lambda seed: np.random.default_rng(seed).integers(0, CLASSES, (INPUTS, 4, 5)).astype(np.int16),
}


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


SCORED = 60
ROUNDING = 1e-9


def check_measure(
    measure: Any, clean: Batch | None = None, perturb: Callable[[Batch], Batch] | None = None, model: Any = None
) -> None:
    """Raise AssertionError if a quality measure breaks its contract.

    The sample must depend only on the seed and the number of inputs. Scores must be finite, deterministic and change no
    argument, and perturbed inputs must not score better than the clean ones. Inferences of the model must be declared
    and counted.

    Args:
        measure: by name or as an object
        clean: inputs to score; None: images
        perturb: degrades the inputs; None: darkens them
        model: for a measure that uses the model under test

    >>> check_measure("ssim")
    """
    clean = example_photographs(SCORED, (28, 28)) if clean is None else clean
    perturb = _darker if perturb is None else perturb
    model = None if model is None else wrap(model)
    named = isinstance(measure, str | dict) or (callable(measure) and not isinstance(measure, type))
    make: Callable[[], Any] = (lambda: measure) if named else maker_of(measure, "reference")
    first = resolve_measure(make())
    who = f"quality {require_name(first.name, 'quality')}"
    require_flags(first, who, "higher_is_better", "uses_model")
    require(first.sample >= 2, who, f"its sample is {first.sample!r}; at least 2 are needed")
    for name, share in (("share", first.share), ("clean_share", first.clean_share)):
        require(0 < share <= 1, who, f"{name} is {share!r}; a part of the sample is accepted")
    described = require_described(first.describe(), who)
    require(described == resolve_measure(make()).describe(), who, "two of a kind describe themselves differently")
    reference = _measure_reference(first, clean, model, who)
    chosen = take(clean, reference.rows)
    best, worse = _score(reference, chosen, who), _score(reference, perturb(chosen), who)
    better = best.value >= worse.value - ROUNDING if first.higher_is_better else best.value <= worse.value + ROUNDING
    require(better, who, f"perturbed inputs score {worse.value:g}, better than clean ones with {best.value:g}")
    require(abs(best.value - worse.value) > ROUNDING, who, "cannot tell perturbed inputs from clean ones")
    require(same(_score(reference, perturb(chosen), who), worse), who, "does not repeat itself")
    other = _measure_reference(resolve_measure(make()), clean, model, who)
    require(same(other.rows, reference.rows), who, "two with the same seed look at different inputs")
    require(same(_score(other, perturb(chosen), who), worse), who, "a score depends on those before it")
    require((reference.inferences > 0) == first.uses_model, who, "uses_model and what it hands to the model contradict")


def _measure_reference(measure: Measure, clean: Batch, model: Any, who: str) -> Reference:
    with unchanged(who, "reference", clean):
        made = measure.reference(clean, model, seed=1)
    rows = np.asarray(made.rows)
    require(0 < len(rows) <= measure.sample, who, f"looks at {len(rows)} inputs; its sample is {measure.sample}")
    require(((rows >= 0) & (rows < len(clean))).all(), who, "looks at inputs that do not exist")
    require(len(np.unique(rows)) == len(rows), who, "looks at an input twice")
    turned = take(clean, np.arange(len(clean))[::-1])
    again = measure.reference(turned, model, seed=1)
    require(same(again.rows, made.rows), who, "its sample depends on what the inputs are")
    return made


def _score(reference: Reference, perturbed: Batch, who: str) -> Score:
    with unchanged(who, "score", perturbed):
        score = reference.score(perturbed)
    require(np.isfinite(score.value), who, f"scores {score.value}; finite numbers are needed")
    require(np.isfinite(score.error) and score.error >= 0, who, f"its standard error is {score.error}")
    return score


def _darker(batch: Batch) -> Batch:
    return (np.asarray(batch) * 0.5).astype(np.asarray(batch).dtype)
