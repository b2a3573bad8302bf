"""Base classes of models and of their fields in a spec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.support.batches import Batch
from testifai.support.fingerprints import CodeFingerprint, fingerprint_code
from testifai.support.options_base import Part
from testifai.support.types import Array, Record

if TYPE_CHECKING:
    from torch import Tensor

Outputs = Literal["labels", "scores", "values", "boxes", "maps"]


class Model(ABC):
    """A model under test: from a batch to (N,) labels, (N, d) scores or values, (N, boxes, 6) boxes, or maps.

    Maps are labels of pixels (N, H, W), or scores of them (N, classes, H, W). An adapter writes `__call__`, and
    `fingerprint` if it holds more than Python code and plain values; all else has a default.
    """

    name: str = "model"
    outputs: Outputs | None = None  # None: inferred from the first outputs
    classes: int | None = None  # number of classes
    class_values: Sequence[Any] | Array | None = None  # names or values of the classes, if they are not 0 … k − 1
    batch_size: int | None = None  # recommended
    thread_safe: bool = False  # several threads may call it at the same time
    repeatable: bool = False  # known to be deterministic; otherwise a run checks
    preprocessing: Record | None = None  # the options that prepare its inputs, as plain data
    features_output: str | None = None  # source of `features`; None: it has none
    spares_batch: bool = False  # never writes into a batch, nor does any code that it calls: no copy is needed

    @abstractmethod
    def __call__(self, batch: Batch) -> Array: ...

    @cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self)

    @property
    def fingerprint(self) -> str:
        """Changes when the model does, and is the same on every machine; by default a hash of its code and values."""
        return self._code.fingerprint

    @property
    def unidentified_reason(self) -> str | None:
        """The state that the fingerprint does not cover, such as a database connection; None if it covers all."""
        return self._code.unidentified_reason if type(self).fingerprint is Model.fingerprint else None

    @property
    def may_read_files(self) -> bool:
        """Whether a call may read files, or import modules, that the fingerprint does not cover."""
        return False

    def reading(self, table: Table) -> Model:
        """Return the same model for rows of a table, encoded as numbers; InputError if it cannot take its columns."""
        for column in table.columns:
            if column.kind == "category":
                raise InputError(
                    f"model: {self.name} takes numbers, and column {column.name!r} holds categories; leave it out of "
                    "features, or use a model that knows what to do with them"
                )
        return self

    def placed(self, device: str) -> Model:
        """Return the same model on a PyTorch device (see `DeviceModel`), itself if it cannot be moved."""
        return self

    def features(self, batch: Batch) -> Array:
        """Return one row of numbers per input, from inside the model."""
        return self.traced(batch)[1]

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return outputs and, from the same pass, a layer's activations in one row each; by default the features."""
        raise InputError(f"layer: {self.name} does not show its layers; an ONNX file or a torch module does")

    @property
    def traces_layers(self) -> bool:
        return type(self).traced is not Model.traced


class DeviceModel(Model):
    """A model that also predicts PyTorch tensors, on its device."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The device, such as "cuda:0"."""

    @abstractmethod
    def on_tensors(self, batch: Tensor, precision: str = "float32") -> Tensor:
        """Return the outputs for a tensor on the model's device, without waiting for it; called in `answering()`."""

    def answering(self) -> AbstractContextManager[None]:
        """Return the context for calls of `on_tensors`; the model is not used for anything else in it."""
        return nullcontext()


def first_line(error: BaseException, most: int = 200) -> str:
    return " ".join(str(error).split())[:most] or type(error).__name__


class ModelPart(Part):
    """The fields of [model] for one kind of model; `suffixes` or `recognises` find it by its path alone."""

    suffixes: ClassVar[tuple[str, ...]] = ()  # lower-case, with the dot

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Return True if this adapter loads the file or folder, judged by its name and at most its first bytes."""
        return path.suffix.lower() in cls.suffixes

    @classmethod
    def companions(cls, path: Path, inputs: str) -> dict[str, Path]:
        """Return the files next to a model of "images", "texts", "pairs" or a "table" that it needs, by field."""
        return {}

    @abstractmethod
    def load(self, folder: Path) -> Model: ...
