"""Models that answer with one number: how they are told, and how far from the truth an answer may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import oracles
from testifai.data import Data, rows
from testifai.data.tabular import as_values
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models import Model
from testifai.oracles import Oracle, Tolerance
from testifai.support.tables import spread

MANY_VALUES = 20  # different whole numbers from which on they may be no classes
PROBED = 16  # inputs that show what a model answers
SHARE = 0.5  # of the spread of the values that an answer may be off by
RELATIVE = 0.25  # of a value that an answer may be off by,
RELATIVE_FROM = 10.0  # where high values are so many times low ones


@dataclass(frozen=True)
class Chosen:
    """A tolerance for answers, and why this one."""

    oracle: Tolerance
    reason: str

    def notes(self, outputs: NDArray[Any], labels: NDArray[Any] | None) -> list[str]:
        """What to know about it, and how far answers on clean inputs are from the truth."""
        notes = [f"The answers are numbers: the oracle is tolerance, {self.reason}."]
        if labels is None:
            return [*notes, "The data have no target: answers are compared with those on clean inputs."]
        off = np.abs(np.asarray(outputs, np.float64).reshape(-1) - labels)
        squared = float((off**2).mean())
        return [*notes, f"Clean mean absolute error {off.mean():.4g}, root mean squared error {squared**0.5:.4g}."]


def judged(model: Model, data: Data, told: Any) -> tuple[Data, Oracle]:
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


def fitting(model: Model, data: Data, outputs: NDArray[Any]) -> Chosen | None:
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
            raise _words_for_numbers(model, data.name, data.classes)
        return False
    if model.outputs == "values" or labels.dtype.kind == "f":
        return True
    return _may_be_values(labels) and (model.classes == 1 or _answers_with_numbers(model, data))


def tolerance(labels: NDArray[Any]) -> Chosen:
    """How far from these values an answer may be: half their spread, or a share of each where they span magnitudes.

    >>> tolerance(np.array([10.0, 20.0, 30.0, 40.0])).oracle.describe()
    {'use': 'tolerance', 'eps': 5.6, 'against': 'truth'}
    """
    low, high = np.quantile(labels, (0.05, 0.95))
    if low > 0 and high >= RELATIVE_FROM * low:
        reason = f"{RELATIVE:.0%} of the true value, as these go from {low:.3g} to {high:.3g} (5 % and 95 % quantiles)"
        return Chosen(Tolerance(RELATIVE, "truth", True), reason)
    eps = _half_spread(labels)
    always = float(np.mean(np.abs(labels - np.median(labels)) <= eps))
    reason = f"{eps:g}, half of the spread of the true values; always answering their median would pass {always:.2f}"
    return Chosen(Tolerance(eps, "truth"), reason)


def clean_tolerance(outputs: NDArray[Any]) -> Chosen:
    """How far from its clean answers a model's answers may be, where no truth is known: half of their spread."""
    eps = _half_spread(outputs)
    return Chosen(Tolerance(eps), f"{eps:g}, half of the spread of the answers on clean inputs")


def are_numbers(outputs: NDArray[Any]) -> bool:
    """Whether outputs are one number for each input, and not all of them whole."""
    one = outputs.ndim == 1 or outputs.shape[1] == 1
    return one and outputs.dtype.kind == "f" and not bool((outputs == np.floor(outputs)).all())


def _words_for_numbers(model: Model, name: str, classes: tuple[str, ...]) -> InputError:
    return InputError(
        f"data: {name}: the target holds words ({', '.join(classes[:3])}, …), and {model.name} answers with numbers; "
        'name a column of numbers as target, or none (target = "") to compare with the clean answer'
    )


def _half_spread(values: NDArray[Any]) -> float:
    return float(f"{SHARE * spread(np.asarray(values, np.float64).reshape(-1)):.2g}") or SHARE


def _may_be_values(labels: NDArray[Any]) -> bool:
    different = np.unique(labels)
    return len(different) > MANY_VALUES and not np.array_equal(different, np.arange(len(different)))


def _answers_with_numbers(model: Model, data: Data) -> bool:
    few = np.arange(min(PROBED, len(data)))
    return are_numbers(call(model, rows(data.inputs, few), "to see what it answers"))
