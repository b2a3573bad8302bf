"""The base class of oracles, which turn outputs into an outcome per input."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.types import Array, Bools, Record
from testifai.support.validation import choice

Against = Literal["labels", "clean"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of each input: `passed` bool (N,), `value` float32 (N,) or None."""

    passed: Bools
    value: NDArray[np.float32] | None = None


class Oracle(ABC):
    """Judges outputs on perturbed inputs; it changes none of its arguments and keeps nothing between calls.

    An oracle writes `judge`; all else has a default. One with options also writes `describe`.

    `expected` are the labels (None where there are none), `clean` what `reference` kept of the outputs on the
    clean inputs (None unless `needs_clean`). All three have one row per input.
    """

    name: str  # by default that of the class
    needs_labels = False
    needs_clean = False
    decides_classes = False  # what it judges is the class that the model decides for
    moves: str | None = None  # what of labels and clean outputs moves along with the image: "boxes"
    score: str | None = None  # the name of its value, where every input has one in 0..1 and 1 is best, such as "f1"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    _described: ClassVar[tuple[str, ...]] = ()  # options that `describe` lists, unless they are None

    def fitted(self, labels: Array | None) -> Oracle:
        """Return the oracle for data with these labels, by default itself."""
        return self

    @abstractmethod
    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        """One outcome per row of the outputs."""

    def reference(self, outputs: Array) -> Array:
        """Return what `judge` needs of the clean outputs, one row per input."""
        return outputs if self.needs_clean else np.empty((len(outputs), 0), dtype=np.uint8)

    def check(self, labels: Array | None, classes: int | None) -> None:
        """Raise InputError if these labels cannot be judged for a model with this number of classes (if known)."""
        if self.needs_labels and labels is None:
            raise InputError(f"oracle {self.name}: needs labels, and the data have none")

    @property
    def source(self) -> Any:
        """Return the object with the code of a user-defined oracle; None for a built-in oracle."""
        return None if type(self).__module__.startswith("testifai.") else self

    def describe(self) -> Record:
        """Return name and options; `resolve` makes the same oracle of them (a function is only named)."""
        told = {option: getattr(self, option) for option in self._described}
        return {"use": self.name, **{option: value for option, value in told.items() if value is not None}}


class TensorOracle(Oracle):
    """An oracle of arrays and PyTorch tensors; a class that sets `tensors` itself is used on devices."""

    tensors: ClassVar[bool]

    @abstractmethod
    def wanted(self, expected: Array | None, clean: Array | None) -> Array:
        """Return the labels or the reference of the clean outputs, which outputs are compared with."""

    @abstractmethod
    def passes(self, outputs: Array, wanted: Array) -> Bools: ...

    @abstractmethod
    def value(self, outputs: Array, wanted: Array) -> NDArray[np.float32] | None: ...

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        wanted = self.wanted(expected, clean)
        return Outcome(self.passes(outputs, wanted), self.value(outputs, wanted))


def on_tensors(oracle: Oracle, columns: int) -> TensorOracle | None:
    """Return the oracle if it can judge n columns (0 for labels) on a device, where classes need at least two."""
    given = oracle.given if isinstance(oracle, ForeignOracle) else oracle
    # Not inherited: a subclass may judge otherwise.
    if not isinstance(given, TensorOracle) or not vars(type(given)).get("tensors"):
        return None
    return given if columns > 1 or not oracle.decides_classes else None


class LabelsOrClean(Oracle):
    """An oracle that expects the labels or, without labels or `against` "clean", what was found on the clean input."""

    against: Against | None

    def _expect(self, against: Against | None) -> None:
        if against is not None:
            choice(f"oracle {self.name}: against", against, get_args(Against))
        self.against = against
        self.needs_labels, self.needs_clean = against == "labels", against == "clean"

    def fitted(self, labels: Array | None) -> Oracle:
        if self.against is not None:
            return self
        made = copy.copy(self)
        made._expect("clean" if labels is None else "labels")
        return made

    def check(self, labels: Array | None, classes: int | None) -> None:
        if self.needs_labels and labels is None:
            raise InputError(
                f"oracle {self.name}: against = 'labels' needs labels, and the data have none; leave it out"
            )


class ForeignOracle(Oracle):
    """An object with judge() that is no `Oracle`; attributes that it lacks have their defaults."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        for needed in ("needs_labels", "needs_clean", "decides_classes"):
            setattr(self, needed, bool(getattr(given, needed, False)))
        self.moves = getattr(given, "moves", None)
        self.score = score_of(given)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        outcome: Outcome = self.given.judge(outputs, expected, clean)
        return outcome

    def reference(self, outputs: Array) -> Array:
        kept: Array = getattr(self.given, "reference", super().reference)(outputs)
        return kept

    def check(self, labels: Array | None, classes: int | None) -> None:
        getattr(self.given, "check", super().check)(labels, classes)

    @property
    def source(self) -> Any:
        return self.given

    def describe(self) -> Record:
        described: Record = getattr(self.given, "describe", super().describe)()
        return described


def score_of(given: Any) -> str | None:
    """Return the score that a third-party object names; many have a method `score`, which is not a name."""
    named = getattr(given, "score", None)
    return named if isinstance(named, str) and named else None


def adapt(oracle: Any) -> Oracle | None:
    """Return an oracle as it is, another object with judge() in an adapter, and None for anything else."""
    if isinstance(oracle, Oracle):
        return oracle
    return ForeignOracle(oracle) if hasattr(oracle, "judge") and not isinstance(oracle, type) else None
