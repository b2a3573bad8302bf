"""What an oracle is: it turns outputs into an outcome per input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.types import Array, Bools, Record


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of each input: `passed` bool (N,), `value` float32 (N,) or None."""

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
    # "module:function" that makes a `tensors.TensorJudge` of the oracle. A subclass may judge otherwise, so it does not
    # inherit this.
    device: ClassVar[str | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    def fitted(self, labels: Array | None) -> Oracle:
        """The oracle for data with these labels, where that makes a difference."""
        return self

    @abstractmethod
    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        """One outcome per row of the outputs."""

    def reference(self, outputs: Array) -> Array:
        """What must be remembered of the clean outputs, one row per input."""
        return outputs if self.needs_clean else np.empty((len(outputs), 0), dtype=np.uint8)

    def check(self, labels: Array | None, classes: int | None) -> None:
        """Raise InputError where these labels cannot be judged for a model of so many classes (if known)."""
        if self.needs_labels and labels is None:
            raise InputError(f"oracle {self.name}: needs labels, and the data have none")

    @property
    def source(self) -> Any:
        """The object that holds the code of an oracle of the user's; None for one of this package."""
        return None if type(self).__module__.startswith("testifai.") else self

    def describe(self) -> Record:
        """Name and options; `resolve` makes the same oracle of them (a function is only named)."""
        return {"use": self.name}


class ForeignOracle(Oracle):
    """An object with judge(), and with whatever else of an oracle it has; the rest is as usual."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.name = str(getattr(given, "name", type(given).__name__))
        self.needs_labels = bool(getattr(given, "needs_labels", False))
        self.needs_clean = bool(getattr(given, "needs_clean", False))
        self.decides_classes = bool(getattr(given, "decides_classes", False))
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
    """The score that an object of someone else's names; many have a method of that name, which is another matter."""
    named = getattr(given, "score", None)
    return named if isinstance(named, str) and named else None


def adapt(oracle: Any) -> Oracle | None:
    """An oracle as it is, another object with judge() by way of an adapter; None for what has no such method."""
    if isinstance(oracle, Oracle):
        return oracle
    return ForeignOracle(oracle) if hasattr(oracle, "judge") and not isinstance(oracle, type) else None
