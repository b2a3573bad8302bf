"""What a model is, and what a spec says of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.models.table_columns import refuse_words
from testifai.support.batches import Batch
from testifai.support.options_base import Part
from testifai.support.types import Array, Record

Outputs = Literal["labels", "scores", "values", "boxes", "maps"]


class Model(ABC):
    """A model under test: a batch in, (N,) labels, (N, d) scores or values, (N, boxes, 6) boxes, or maps out.

    Maps are labels of pixels (N, H, W), or scores of them (N, classes, H, W).

    An adapter says what is known beyond that; what stands here holds where it says nothing.
    """

    name: str = "model"
    outputs: Outputs | None = None  # None: to be seen when they come
    classes: int | None = None  # how many there are
    class_values: Sequence[Any] | Array | None = None  # what they are called, where not 0 … k − 1
    batch_size: int | None = None  # a good one
    thread_safe: bool = False  # whether several threads may call it at once
    preprocessing: Record | None = None  # what was told about its inputs, as plain data
    has_features: bool = False
    features_output: str | None = None  # where features come from, where that has a name
    traces_layers: bool = False
    spares_batch: bool = False  # never writes into a batch, nor lets code of others do so: it needs no copy of its own
    takes_tensors: bool = False  # answers about torch tensors too, on a device: see `on_tensors`
    columns: tuple[str, ...] | None = None  # of a table, by name, that it was fitted on
    width: int | None = None  # how many columns it was fitted on
    repeatable: bool = False  # known to answer the same each time; where not, a run asks it twice to see

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Changes when the model does, and is the same on every machine."""

    @property
    def unidentified_reason(self) -> str | None:
        """What the fingerprint does not cover, such as a database connection; None if it covers everything."""
        return None

    @abstractmethod
    def __call__(self, batch: Batch) -> Array: ...

    def reading(self, table: Table) -> Model:
        """The same model for rows of a table, as numbers: it makes of them what it takes, or refuses the columns.

        Here: a model that takes numbers takes them as they are.
        """
        refuse_words(table, self.name)
        return self

    def placed(self, device: str | None) -> Model:
        """The same model on a device of torch, None for where it is; a model of the user's own stays where it is.

        Here: a model that takes arrays alone is the same everywhere.
        """
        return self

    @property
    def place(self) -> str | None:
        """The device of torch that it is on, such as "cuda:0"; None for a model that takes arrays alone."""
        return None

    def on_tensors(self, batch: Any, precision: str = "float32") -> Any:
        """The outputs on a batch that is a tensor on the model's device, as a tensor there; nothing is waited for.

        Called while `answering()` lasts.
        """
        raise InputError(f"{self.name}: takes no tensors")

    def answering(self) -> AbstractContextManager[None]:
        """While this lasts, the model is asked about tensors, and nothing else is done with it."""
        return nullcontext()

    def features(self, batch: Batch) -> Array:
        """One row of numbers for each input, from inside the model."""
        raise InputError(f"{self.name}: has no features")

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Outputs and, from the same pass, a layer's activations as one row each; by default the features."""
        raise InputError(f"layer: {self.name} does not show its layers; an ONNX file or a torch module does")


class ModelPart(Part):
    """What a spec says of a model of some kind; each adapter has its own."""

    @abstractmethod
    def load(self, folder: Path) -> Model:
        """The model itself; files and modules are looked for in the folder first."""
