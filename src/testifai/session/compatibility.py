"""Whether model, data, space and oracle fit together; tolerances for models that return one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai import oracles
from testifai.data import Data, rows
from testifai.data.table_columns import spread
from testifai.data.tabular import as_values
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle, Tolerance
from testifai.runs.outcomes import DETECTIONS, VALUE
from testifai.space import Space
from testifai.support.types import Array

PROBED = 8  # inputs with missing values that a model must accept
MISSING = "tabular.missing"


def check_tables(model: Model, data: Data, space: Space, seed: int) -> None:
    """Raise InputError for perturbations of unsuitable columns, or missing values that the model does not accept."""
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
    """Return the names of values to store: those requested, and those that oracle or surrogate need."""
    default = (VALUE,) if scores or (isinstance(oracle, Tolerance) and oracle.needs_labels) else ()
    keep = default if asked is None else tuple(asked)
    if DETECTIONS in keep and oracle.moves != "boxes":
        raise InputError(f"keep: detections are what the oracle detection judges; the oracle is {oracle.name}")
    return keep if oracle.score is None or VALUE in keep else (*keep, VALUE)


def check(asked: str | None, oracle: Oracle) -> None:
    """Raise InputError for a score that the oracle does not have."""
    if oracle.score is not None and not (isinstance(oracle.score, str) and oracle.score.isidentifier()):
        raise InputError(
            f"oracle {oracle.name}: its score is {oracle.score!r}; accepted: a name of letters and digits, such as f1"
        )
    if asked is not None and asked != oracle.score:
        has = "has none" if oracle.score is None else f"has {oracle.score}"
        raise InputError(f"score: {asked!r} is not a score of the oracle {oracle.name}, which {has}")


MANY_VALUES = 20  # more distinct integers may not be classes
PROBED_REGRESSION = 16  # inputs that show the kind of a model's outputs
SHARE = 0.5  # default tolerance as a share of the spread of the values
RELATIVE = 0.25  # default tolerance as a share of each value,
RELATIVE_FROM = 10.0  # if high values are at least this many times low ones


@dataclass(frozen=True)
class ToleranceChoice:
    """A tolerance, and the reason for it."""

    oracle: Tolerance
    reason: str

    def notes(self, outputs: Array, labels: Array | None) -> list[str]:
        """Return the reason, and the errors on clean inputs."""
        notes = [f"The answers are numbers: the oracle is tolerance, {self.reason}."]
        if labels is None:
            return [*notes, "The data have no target: answers are compared with those on clean inputs."]
        off = np.abs(np.asarray(outputs, np.float64).reshape(-1) - labels)
        squared = float((off**2).mean())
        return [*notes, f"Clean mean absolute error {off.mean():.4g}, root mean squared error {squared**0.5:.4g}."]


def judged(model: Model, data: Data, told: object) -> tuple[Data, Oracle]:
    """Return the data with the labels in the form for the oracle, and the oracle.

    The name "label", the default, means a tolerance if the model returns one number.
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
    """Return a tolerance for a model whose outputs are numbers; None if they are classes."""
    if data.labels is not None:
        return tolerance(data.labels) if is_regression(model, data) else None
    numbers = model.outputs == "values" or (model.outputs is None and are_numbers(outputs))
    return clean_tolerance(outputs) if numbers else None


def is_regression(model: Model, data: Data) -> bool:
    """Return True if a model returns one number for each input and the labels are such numbers."""
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
    """Return a tolerance for these true values: half their spread, or a share of each if they span magnitudes."""
    low, high = np.quantile(labels, (0.05, 0.95))
    if low > 0 and high >= RELATIVE_FROM * low:
        reason = f"{RELATIVE:.0%} of the true value, as these go from {low:.3g} to {high:.3g} (5 % and 95 % quantiles)"
        return ToleranceChoice(Tolerance(RELATIVE, "truth", True), reason)
    eps = _half_spread(labels)
    always = float(np.mean(np.abs(labels - np.median(labels)) <= eps))
    reason = f"{eps:g}, half of the spread of the true values; always answering their median would pass {always:.2f}"
    return ToleranceChoice(Tolerance(eps, "truth"), reason)


def clean_tolerance(outputs: Array) -> ToleranceChoice:
    """Return a tolerance around clean outputs: half of their spread."""
    eps = _half_spread(outputs)
    return ToleranceChoice(Tolerance(eps), f"{eps:g}, half of the spread of the answers on clean inputs")


def are_numbers(outputs: Array) -> bool:
    """Return True if outputs are one number for each input, and not all of them integers."""
    one = outputs.ndim == 1 or outputs.shape[1] == 1
    return one and outputs.dtype.kind == "f" and not bool((outputs == np.floor(outputs)).all())


def _half_spread(values: Array) -> float:
    return float(f"{SHARE * spread(np.asarray(values, np.float64).reshape(-1)):.2g}") or SHARE
