"""What the engine may ask of a model besides calling it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from testifai.support.batches import Batch

Outputs = Literal["labels", "scores", "values"]


class Model(Protocol):
    """A model under test: a batch in, (N,) labels or (N, d) scores or values out.

    Any callable will do; adapters add what lets the engine plan. Optional further attributes: `classes` (int
    or None, the number of classes), `class_values` (what the classes are called, where not 0 … k − 1),
    `batch_size` (a good one), `thread_safe`, `name`, `preprocessing` (what was told about it, as plain
    data), `features(batch)`, and `traced(batch, layer)` (outputs, and a layer's activations as one row each).
    """

    @property
    def outputs(self) -> Outputs | None:
        """What comes out; None: to be seen when it does."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes when the model does, and is the same on every machine."""
        ...

    def __call__(self, batch: Batch) -> NDArray[Any]: ...
