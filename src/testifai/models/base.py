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
    """A model under test: a batch in, (N,) labels, (N, d) scores or values, (N, boxes, 6) boxes, or maps out.

    Maps are labels of pixels (N, H, W), or scores of them (N, classes, H, W).

    An adapter writes `__call__`; all else has a default. One that holds more than Python code and plain values also
    writes `fingerprint`.
    """

    name: str = "model"
    outputs: Outputs | None = None  # None: inferred from the first outputs
    classes: int | None = None  # number of classes
    class_values: Sequence[Any] | Array | None = None  # names or values of the classes, if they are not 0 … k − 1
    batch_size: int | None = None  # recommended
    thread_safe: bool = False  # several threads may call it at the same time
    repeatable: bool = False  # known to be deterministic; otherwise a run checks
    preprocessing: Record | None = None  # the options that prepare its inputs, as plain data
    features_output: str | None = None  # where `features` come from; None: it has none
    spares_batch: bool = False  # never writes into a batch, nor does other code that it calls: no copy is needed

    @abstractmethod
    def __call__(self, batch: Batch) -> Array: ...

    @cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self)

    @property
    def fingerprint(self) -> str:
        """Changes when the model does, and is the same on every machine; by default that of its code and values."""
        return self._code.fingerprint

    @property
    def unidentified_reason(self) -> str | None:
        """What the fingerprint does not cover, such as a database connection; None if it covers everything."""
        return self._code.unidentified_reason if type(self).fingerprint is Model.fingerprint else None

    def reading(self, table: Table) -> Model:
        """Return the same model for rows of a table, encoded as numbers; by default it takes them as they are.

        InputError if it cannot take the table's columns.
        """
        refuse_words(table, self.name)
        return self

    def placed(self, device: str | None) -> Model:
        """Return the same model on a PyTorch device (see `DeviceModel`), itself if it can only be where it is."""
        return self

    def features(self, batch: Batch) -> Array:
        """Return one row of numbers for each input, from inside the model."""
        return self.traced(batch)[1]

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return outputs and, from the same pass, a layer's activations as one row each; by default the features."""
        raise InputError(f"layer: {self.name} does not show its layers; an ONNX file or a torch module does")

    @property
    def traces_layers(self) -> bool:
        """Whether `traced` is available."""
        return type(self).traced is not Model.traced


class DeviceModel(Model):
    """A model that also answers about PyTorch tensors, on its device."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The device, such as "cuda:0"."""

    @abstractmethod
    def on_tensors(self, batch: Tensor, precision: str = "float32") -> Tensor:
        """Return the outputs for a tensor on the model's device, as a tensor there, without waiting for the device.

        Called within `answering()`.
        """

    def answering(self) -> AbstractContextManager[None]:
        """The context of calls of `on_tensors`; nothing else is done with the model in it."""
        return nullcontext()


def refuse_words(table: Table, model: str) -> None:
    """Raise InputError if a table has columns of texts, for a model that takes numbers alone."""
    for column in table.columns:
        if column.kind == "category":
            raise InputError(
                f"model: {model} takes numbers, and column {column.name!r} holds categories; leave it out of features, "
                "or use a model that knows what to do with them"
            )


def first_line(error: BaseException) -> str:
    """Return an error's message in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


class ModelPart(Part):
    """The fields of [model] for one kind of model; each adapter has its own subclass.

    An adapter that is to be found by path alone sets `suffixes`, or overrides `recognises`.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()  # lower-case, with the dot

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Return True if this adapter loads the file or folder, judged by its name and at most its first bytes.

        Imports no large library. The file may be at an address, or missing.
        """
        return path.suffix.lower() in cls.suffixes

    @classmethod
    def companions(cls, path: Path, inputs: str) -> dict[str, Path]:
        """Return the files next to a model that it needs, by field; InputError if one is missing.

        Args:
            path: of the model
            inputs: "images", "texts", "pairs" or "table"
        """
        return {}

    @abstractmethod
    def load(self, folder: Path) -> Model:
        """The model itself; files and modules are looked for in the folder first."""
