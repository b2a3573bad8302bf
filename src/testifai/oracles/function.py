"""The oracle `function`: the user decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.oracles.base import Oracle, Outcome, score_of
from testifai.support.types import Array, Record


class Function(Oracle):
    """A function: (outputs, expected, clean outputs) → passed per input, or an `Outcome`; `score` names its value."""

    name = "function"
    needs_clean = True
    _described = ("needs_labels", "score", "moves")

    def __init__(
        self,
        function: Callable[[Array, Array | None, Array | None], Any],
        needs_labels: bool = False,
        score: str | None = None,
        moves: str | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(
                f"oracle function: {function!r} cannot be called; f(outputs, expected, clean) is accepted, in a spec "
                "oracle = { python = 'module:name' }"
            )
        self.function, self.needs_labels, self.moves = function, needs_labels, moves
        self.score = score_of(function) if score is None else score

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        try:
            result = self.function(outputs, expected, clean)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
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

    @property
    def source(self) -> Any:
        return self.function

    def describe(self) -> Record:
        return {"use": self.name, "function": self._called, **super().describe()}

    @property
    def _called(self) -> str:
        module = getattr(self.function, "__module__", type(self.function).__module__)
        return f"{module}:{getattr(self.function, '__qualname__', type(self.function).__qualname__)}"
