"""Oracles: from a model's outputs to an outcome per input, passed or not and, where there is one, a value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.choice import make
from testifai.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of each input: `passed` bool (N,), `value` float32 (N,) or None."""

    passed: NDArray[np.bool_]
    value: NDArray[np.float32] | None = None


class Oracle(Protocol):
    """Judges outputs on perturbed inputs; it changes none of its arguments and keeps nothing between calls.

    `expected` are the labels (None where there are none), `clean` what `reference` kept of the outputs on the
    clean inputs (None unless `needs_clean`). All three have one row per input.
    """

    name: str
    needs_labels: bool
    needs_clean: bool

    def reference(self, outputs: Array) -> Array:
        """What must be remembered of the clean outputs, one row per input."""
        ...

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome: ...

    def check(self, labels: Array | None, classes: int | None) -> None:
        """Raise InputError where these labels cannot be judged for a model of so many classes (if known)."""
        ...

    def describe(self) -> dict[str, Any]:
        """Name and options; `resolve` makes the same oracle of them (a function is only named)."""
        ...


def predicted(outputs: Array) -> NDArray[np.int64]:
    """The class a model decides for: labels as they are, else the column of the highest score (or the first).

    >>> predicted(np.array([[0.1, 0.9], [0.5, 0.5]])).tolist()
    [1, 0]
    """
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        columns: NDArray[np.int64] = outputs.argmax(axis=1).astype(np.int64, copy=False)
        return columns
    labels = outputs.reshape(-1)
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.floor(labels)):
        wrong = labels[labels != np.floor(labels)][0]
        raise InputError(
            f"oracle: the model returned {wrong:g} where a class is needed; labels (N,) or scores (N, d) of "
            "at least two classes are accepted (for numeric outputs use the oracle tolerance)"
        )
    return labels.astype(np.int64)


def margin(outputs: Array, labels: NDArray[np.int64]) -> NDArray[np.float32] | None:
    """Score of the labelled class minus the best other; None where a model gives labels alone.

    >>> margin(np.array([[3.0, 1.0, 2.5]]), np.array([0])).tolist()
    [0.5]
    """
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        return None
    rows = np.arange(len(outputs))
    others = outputs.astype(np.float32)
    own = others[rows, labels]
    others[rows, labels] = -np.inf
    margins: NDArray[np.float32] = own - others.max(axis=1)
    return margins


class Label:
    """Correct label. With several labels per input: the same set, or an F1 of at least `f1`.

    With one label the value is the margin; with several it is F1 (1 where neither side has a label), and a
    class counts as given where its score is at least `threshold`.
    """

    name = "label"
    needs_labels = True
    needs_clean = False

    def __init__(self, threshold: float = 0.5, f1: float | None = None) -> None:
        self.threshold = _number("threshold", threshold)
        self.f1 = None if f1 is None else _number("f1", f1)
        if self.f1 is not None and not 0 < self.f1 <= 1:
            raise InputError(f"oracle label: f1 = {f1} is not accepted; a number above 0 and up to 1 is")

    def reference(self, outputs: Array) -> Array:
        return np.empty((len(outputs), 0), dtype=np.uint8)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if expected is None:
            raise InputError("oracle label: needs labels, and the data have none")
        if expected.ndim == 2:
            return self._judge_sets(outputs, expected)
        labels = expected.astype(np.int64, copy=False)
        return Outcome(predicted(outputs) == labels, margin(outputs, labels))

    def _judge_sets(self, outputs: Array, expected: Array) -> Outcome:
        if outputs.ndim != 2:
            raise InputError("oracle label: the data have several labels per input, the model returns one label")
        given = outputs >= self.threshold
        wanted = np.zeros(given.shape, dtype=bool)
        wanted[:, : expected.shape[1]] = expected != 0
        common = (given & wanted).sum(axis=1)
        total = given.sum(axis=1) + wanted.sum(axis=1)
        score = np.where(total == 0, 1.0, 2.0 * common / np.maximum(total, 1))
        passed = (given == wanted).all(axis=1) if self.f1 is None else score >= self.f1
        return Outcome(passed, score.astype(np.float32))

    def check(self, labels: Array | None, classes: int | None) -> None:
        if labels is None:
            raise InputError("oracle label: needs labels, and the data have none; the oracle consistency needs none")
        if labels.ndim == 2:
            if classes is not None and labels.shape[1] > classes:
                raise InputError(f"labels: have {labels.shape[1]} columns; the model has {classes} classes")
            return
        if labels.dtype.kind not in "iub":
            raise InputError(f"labels: dtype {labels.dtype} is not accepted by the oracle label; class numbers are")
        if classes == 1:
            raise InputError(
                "oracle label: the model has one output column; labels (N,) or at least two scores are needed"
            )
        outside = (labels < 0) | (labels >= (classes if classes is not None else np.inf))
        if outside.any():
            row = int(np.argmax(outside))
            limit = "from 0" if classes is None else f"0 … {classes - 1}, the classes of the model"
            raise InputError(
                f"labels: {labels[row]} (input {row}; {int(outside.sum())} of {len(labels)} labels) cannot "
                f"be produced by the model; accepted: {limit}"
            )

    def describe(self) -> dict[str, Any]:
        described: dict[str, Any] = {"use": self.name, "threshold": self.threshold}
        return described if self.f1 is None else {**described, "f1": self.f1}


class Consistency:
    """The same label as on the clean input; with `threshold`, the same set of labels."""

    name = "consistency"
    needs_labels = False
    needs_clean = True

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = None if threshold is None else _number("threshold", threshold)

    def reference(self, outputs: Array) -> Array:
        return predicted(outputs) if self.threshold is None else outputs >= self.threshold

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if clean is None:
            raise InputError("oracle consistency: needs the outputs on clean inputs")
        if self.threshold is not None:
            same = (outputs >= self.threshold) == clean
            return Outcome(same.reshape(len(same), -1).all(axis=1))
        return Outcome(predicted(outputs) == clean, margin(outputs, clean))

    def check(self, labels: Array | None, classes: int | None) -> None:
        return None

    def describe(self) -> dict[str, Any]:
        return {"use": self.name} if self.threshold is None else {"use": self.name, "threshold": self.threshold}


class Tolerance:
    """Numeric output within `eps` of the clean one, in every column; the value is the largest distance."""

    name = "tolerance"
    needs_labels = False
    needs_clean = True

    def __init__(self, eps: float) -> None:
        self.eps = _number("eps", eps)
        if self.eps < 0:
            raise InputError(f"oracle tolerance: eps = {eps} is not accepted; a number from 0 is")

    def reference(self, outputs: Array) -> Array:
        return outputs

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        if clean is None:
            raise InputError("oracle tolerance: needs the outputs on clean inputs")
        distance = np.abs(outputs.astype(np.float64) - clean.astype(np.float64))
        farthest = distance.reshape(len(distance), -1).max(axis=1)
        return Outcome(farthest <= self.eps, farthest.astype(np.float32))

    def check(self, labels: Array | None, classes: int | None) -> None:
        return None

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "eps": self.eps}


class Function:
    """A function of the user's: (outputs, expected, clean outputs) → passed per input, or an `Outcome`."""

    name = "function"
    needs_clean = True

    def __init__(
        self, function: Callable[[Array, Array | None, Array | None], Any], needs_labels: bool = False
    ) -> None:
        if not callable(function):
            raise InputError(f"oracle function: {function!r} cannot be called; f(outputs, expected, clean) is accepted")
        self.function, self.needs_labels = function, needs_labels

    def reference(self, outputs: Array) -> Array:
        return outputs

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        try:
            result = self.function(outputs, expected, clean)
        except Exception as error:
            raise InputError(f"oracle {self._called}: failed with {type(error).__name__}: {error}") from error
        value = None
        if isinstance(result, Outcome):
            value = None if result.value is None else np.asarray(result.value, dtype=np.float32)
            result = result.passed
        passed = np.asarray(result)
        for part in (passed, value):
            if part is not None and part.shape != (len(outputs),):
                raise InputError(
                    f"oracle {self._called}: returned shape {part.shape} for {len(outputs)} inputs; "
                    "one value per input is accepted"
                )
        if passed.dtype.kind != "b" and not (passed.dtype.kind in "iu" and np.isin(passed, (0, 1)).all()):
            raise InputError(
                f"oracle {self._called}: returned {passed.dtype} values; true or false per input is accepted"
            )
        return Outcome(passed.astype(bool), value)

    def check(self, labels: Array | None, classes: int | None) -> None:
        if self.needs_labels and labels is None:
            raise InputError(f"oracle {self._called}: needs labels, and the data have none")

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "function": self._called, "needs_labels": self.needs_labels}

    @property
    def _called(self) -> str:
        module = getattr(self.function, "__module__", type(self.function).__module__)
        return f"{module}:{getattr(self.function, '__qualname__', type(self.function).__qualname__)}"


ORACLES: dict[str, Callable[..., Oracle]] = {
    "label": Label,
    "consistency": Consistency,
    "tolerance": Tolerance,
    "function": Function,
}


def resolve(oracle: Any) -> Oracle:
    """An oracle from its name, from a mapping with `use` and options, from a function, or itself.

    >>> resolve({"use": "tolerance", "eps": 0.1}).describe()
    {'use': 'tolerance', 'eps': 0.1}
    """
    if isinstance(oracle, str | Mapping):
        return make("oracle", oracle, ORACLES)
    if hasattr(oracle, "judge") and not isinstance(oracle, type):
        found: Oracle = oracle
        return found
    if callable(oracle) and not isinstance(oracle, type):
        return Function(oracle)
    raise InputError(f"oracle: {oracle!r} is not accepted; a name, a mapping with 'use', a function or an oracle is")


def _number(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InputError(f"oracle: {field} = {value!r} is not accepted; a finite number is")
    return float(value)
