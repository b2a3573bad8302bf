"""Any function of clean and perturbed inputs as a measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.python import PythonModel
from testifai.quality.base import FEWEST, SAMPLE, Measure, Score, check_count, mean_score, sample_of
from testifai.support.batches import Batch, own_copy, take
from testifai.support.types import Floats, Record
from testifai.support.validation import flag, whole

_GROUPS = 10  # of inputs, left out one at a time for the error of a single number


class FunctionMeasure(Measure):
    """f(clean, perturbed), which returns a value for each input, or one number for all of them.

    Larger values are better unless `higher_is_better` (here, or as an attribute of the function) is False. The error of
    one number comes from leaving out a tenth of the inputs at a time, so the function is called eleven times per test.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        higher_is_better: bool | None = None,
        sample: int = SAMPLE,
    ) -> None:
        described = PythonModel(function, name=name)
        self.function, self.name, self._fingerprint = function, described.name, described.fingerprint
        better = getattr(function, "higher_is_better", True) if higher_is_better is None else higher_is_better
        self.higher_is_better = flag("quality: higher_is_better", better)
        self.sample = whole("quality: sample", sample, least=FEWEST)

    def describe(self) -> Record:
        return {
            "use": self.name,
            "function": self._fingerprint,
            "sample": self.sample,
            "higher_is_better": self.higher_is_better,
        }

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> FunctionReference:
        rows, chosen = sample_of(self.name, clean, self.sample, seed)
        return FunctionReference(self.name, rows, self.function, chosen)


@dataclass(frozen=True)
class FunctionReference:
    name: str
    rows: NDArray[np.intp]
    function: Callable[..., Any]
    clean: Batch
    inferences: int = 0

    def score(self, perturbed: Batch) -> Score:
        check_count(self.name, perturbed, len(self.rows))
        values = self._values(self.clean, perturbed)
        if values.ndim == 1:
            return mean_score(self.name, values)
        number, count = self._finite(values), len(self.rows)  # the error is that of the delete-a-group jackknife
        groups = min(_GROUPS, count)
        group = np.random.default_rng(0).permutation(count) % groups
        left = np.empty(groups)
        for each in range(groups):
            kept = np.flatnonzero(group != each)
            left[each] = self._finite(self._values(take(self.clean, kept), take(perturbed, kept)))
        return Score(number, math.sqrt((groups - 1) * float(left.var())))

    def _values(self, clean: Batch, perturbed: Batch) -> Floats:
        try:
            made = self.function(own_copy(clean), own_copy(perturbed))
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"quality: {self.name} failed: {type(error).__name__}: {reason}") from error
        made = made.detach().cpu() if hasattr(made, "detach") else made
        try:
            values = np.asarray(made, dtype=np.float64)
        except (ValueError, TypeError):
            raise InputError(f"quality: {self.name} returned {type(made).__name__}; numbers are accepted") from None
        if values.shape not in ((), (len(clean),)):
            raise InputError(
                f"quality: {self.name} returned shape {values.shape} for {len(clean)} inputs; "
                "a value each or one number is accepted"
            )
        return values

    def _finite(self, value: Floats) -> float:
        if value.ndim or not np.isfinite(value):
            what = f"shape {value.shape} after one number" if value.ndim else f"{value}"
            raise InputError(f"quality: {self.name} returned {what}; one finite number is needed")
        return float(value)
