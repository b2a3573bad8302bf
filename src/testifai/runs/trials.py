"""Single outcomes, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Trials:
    """Single outcomes, for surrogates that know that tests share inputs.

    Trial m ran the test in row `test[m]` of the features on the input at `place[m]`, from 0 to `inputs` - 1.
    """

    test: NDArray[np.intp]
    place: NDArray[np.intp]
    passed: NDArray[Any]  # bool, or float for trials that count by a score in 0..1
    inputs: int  # how many inputs there are
    value: NDArray[np.float32] | None = None  # the oracle's value of each trial, such as a margin; NaN where unknown

    @property
    def graded(self) -> bool:
        """Whether trials count by a score and not by whether they passed."""
        return self.passed.dtype.kind == "f"
