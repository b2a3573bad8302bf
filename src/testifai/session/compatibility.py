"""Models that answer with one number: how they are told, and how far from the truth an answer may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai import oracles
from testifai.data import Data, rows
from testifai.data.table_columns import spread
from testifai.data.tabular import as_values
from testifai.engine.base import BatchOutcome
from testifai.engine.inference import call
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle, Tolerance
from testifai.runs.outcomes import DETECTIONS, VALUE
from testifai.space import Space
from testifai.support.types import Array

PROBED = 8  # inputs on which a model is asked about missing values
MISSING = "tabular.missing"


def check_tables(model: Model, data: Data, space: Space, seed: int) -> None:
    """Refuse perturbations of columns that are not there or of another kind, and holes where the model takes none."""
    for axis in space.axes:
        chosen = axis.perturbation
        if not chosen.table:
            continue
        chosen.check_table(data.table)
        few = np.arange(min(PROBED, len(data)))
        changed = chosen.apply(
            np.asarray(data.inputs[few]), max(axis.severities), seed=seed, indices=few, table=data.table
        )
        if chosen.name == MISSING:
            call(model, changed, f"{axis.name}, to see whether it takes missing values")


def kept(asked: Sequence[str] | None, oracle: Oracle, *, scores: bool) -> tuple[str, ...]:
    """Return what is stored of every trial: what is asked for, and the values that oracle or surrogate need."""
    if asked is not None:
        keep = tuple(asked)
    else:  # of answers that are compared with the truth, how far they are from it
        keep = (VALUE,) if scores or (isinstance(oracle, Tolerance) and oracle.needs_labels) else ()
    if DETECTIONS in keep and oracle.moves != "boxes":
        raise InputError(f"keep: detections are what the oracle detection judges; the oracle is {oracle.name}")
    return keep if oracle.score is None or VALUE in keep else (*keep, VALUE)


def check(asked: str | None, oracle: Oracle) -> None:
    """Refuse a score that the oracle does not have."""
    if oracle.score is not None and not (isinstance(oracle.score, str) and oracle.score.isidentifier()):
        raise InputError(
            f"oracle {oracle.name}: its score is {oracle.score!r}; accepted: a name of letters and digits, such as f1"
        )
    if asked is not None and asked != oracle.score:
        has = "has none" if oracle.score is None else f"has {oracle.score}"
        raise InputError(f"score: {asked!r} is not a score of the oracle {oracle.name}, which {has}")


def refuse(measured: BatchOutcome, oracle: Oracle, subject: Subject) -> None:
    """Refuse values that are no scores, where the oracle says that they are."""
    if oracle.score is None:
        return
    values = measured.kept.get(VALUE)
    if values is None:
        raise InputError(f"oracle {oracle.name}: it has the score {oracle.score!r}, and gave no values")
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        at = int(np.argmax(wrong))
        test = subject.space.words(subject.space.configuration(measured.configuration))
        raise InputError(
            f"oracle {oracle.name}: its score {oracle.score!r} is {values[at]:.9g} for input "
            f"{int(subject.order[measured.places[at]])} under {test}; accepted: 0 to 1"
        )


MANY_VALUES = 20  # different whole numbers from which on they may be no classes
PROBED_REGRESSION = 16  # inputs that show what a model answers
SHARE = 0.5  # of the spread of the values that an answer may be off by
RELATIVE = 0.25  # of a value that an answer may be off by,
RELATIVE_FROM = 10.0  # where high values are so many times low ones


@dataclass(frozen=True)
class ToleranceChoice:
    """A tolerance for answers, and why this one."""

    oracle: Tolerance
    reason: str

    def notes(self, outputs: Array, labels: Array | None) -> list[str]:
        """What to know about it, and how far answers on clean inputs are from the truth."""
        notes = [f"The answers are numbers: the oracle is tolerance, {self.reason}."]
        if labels is None:
            return [*notes, "The data have no target: answers are compared with those on clean inputs."]
        off = np.abs(np.asarray(outputs, np.float64).reshape(-1) - labels)
        squared = float((off**2).mean())
        return [*notes, f"Clean mean absolute error {off.mean():.4g}, root mean squared error {squared**0.5:.4g}."]


def judged(model: Model, data: Data, told: object) -> tuple[Data, Oracle]:
    """The oracle that is told, and the data as it takes the labels.

    The plain name "label", the default, stands for a tolerance where the model answers with one number.
    """
    oracle = oracles.resolve(told).fitted(data.labels)
    if told == "label" and data.labels is not None and is_regression(model, data):
        oracle = tolerance(data.labels).oracle
    elif oracle.name == "label" and model.outputs == "values":
        raise InputError(
            f"oracle label: {model.name} answers with numbers, not with classes; use the oracle tolerance, such as "
            "oracle = { use = 'tolerance', eps = 1.0, against = 'truth' }, or 'clean' where the truth is not known"
        )
    return (as_values(data), oracle) if isinstance(oracle, Tolerance) and oracle.needs_labels else (data, oracle)


def fitting(model: Model, data: Data, outputs: Array) -> ToleranceChoice | None:
    """How far answers may be off where they are numbers, as these outputs show; None where they are classes."""
    if data.labels is not None:
        return tolerance(data.labels) if is_regression(model, data) else None
    numbers = model.outputs == "values" or (model.outputs is None and are_numbers(outputs))
    return clean_tolerance(outputs) if numbers else None


def is_regression(model: Model, data: Data) -> bool:
    """Whether a model answers with one number for each input, and the labels are what that should be."""
    labels = data.labels
    if labels is None or labels.ndim != 1 or (model.outputs in ("scores", "labels") and model.classes != 1):
        return False
    if data.classes is not None:
        if model.outputs == "values":
            raise InputError(
                f"data: {data.name}: the target holds words ({', '.join(data.classes[:3])}, …), and {model.name} "
                'answers with numbers; name a column of numbers as target, or none (target = "") to compare with the '
                "clean answer"
            )
        return False
    if model.outputs == "values" or labels.dtype.kind == "f":
        return True
    different = np.unique(labels)
    if len(different) <= MANY_VALUES or np.array_equal(different, np.arange(len(different))):
        return False
    few = np.arange(min(PROBED_REGRESSION, len(data)))
    return model.classes == 1 or are_numbers(call(model, rows(data.inputs, few), "to see what it answers"))


def tolerance(labels: Array) -> ToleranceChoice:
    """How far from these values an answer may be: half their spread, or a share of each where they span magnitudes.

    >>> tolerance(np.array([10.0, 20.0, 30.0, 40.0])).oracle.describe()
    {'use': 'tolerance', 'eps': 5.6, 'against': 'truth'}
    """
    low, high = np.quantile(labels, (0.05, 0.95))
    if low > 0 and high >= RELATIVE_FROM * low:
        reason = f"{RELATIVE:.0%} of the true value, as these go from {low:.3g} to {high:.3g} (5 % and 95 % quantiles)"
        return ToleranceChoice(Tolerance(RELATIVE, "truth", True), reason)
    eps = _half_spread(labels)
    always = float(np.mean(np.abs(labels - np.median(labels)) <= eps))
    reason = f"{eps:g}, half of the spread of the true values; always answering their median would pass {always:.2f}"
    return ToleranceChoice(Tolerance(eps, "truth"), reason)


def clean_tolerance(outputs: Array) -> ToleranceChoice:
    """How far from its clean answers a model's answers may be, where no truth is known: half of their spread."""
    eps = _half_spread(outputs)
    return ToleranceChoice(Tolerance(eps), f"{eps:g}, half of the spread of the answers on clean inputs")


def are_numbers(outputs: Array) -> bool:
    """Whether outputs are one number for each input, and not all of them whole."""
    one = outputs.ndim == 1 or outputs.shape[1] == 1
    return one and outputs.dtype.kind == "f" and not bool((outputs == np.floor(outputs)).all())


def _half_spread(values: Array) -> float:
    return float(f"{SHARE * spread(np.asarray(values, np.float64).reshape(-1)):.2g}") or SHARE
