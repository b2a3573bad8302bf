"""What an oracle is: it turns outputs into an outcome per input."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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


def finite_number(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InputError(f"oracle: {field} = {value!r} is not accepted; a finite number is")
    return float(value)
