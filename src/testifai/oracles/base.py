"""What an oracle is: it turns outputs into an outcome per input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of each input: `passed` bool (N,), `value` float32 (N,) or None."""

    passed: NDArray[np.bool_]
    value: NDArray[np.float32] | None = None


class Oracle(ABC):
    """Judges outputs on perturbed inputs; it changes none of its arguments and keeps nothing between calls.

    `expected` are the labels (None where there are none), `clean` what `reference` kept of the outputs on the
    clean inputs (None unless `needs_clean`). All three have one row per input.
    """

    name: str
    needs_labels = False
    needs_clean = False
    decides_classes = False  # what it judges is the class that the model decides for
    moves: str | None = None  # what of labels and clean outputs moves along with the image: "boxes"
    score: str | None = None  # the name of its value, where every input has one in 0..1 and 1 is best, such as "f1"

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

    def describe(self) -> dict[str, Any]:
        """Name and options; `resolve` makes the same oracle of them (a function is only named)."""
        return {"use": self.name}
