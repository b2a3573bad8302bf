"""Any Python callable as a model, handed over directly or named in a spec."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, get_args

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart, Outputs
from testifai.models.table_columns import TableModel
from testifai.support import user_code, validation
from testifai.support.batches import Batch
from testifai.support.fingerprints import CodeFingerprint, fingerprint_code
from testifai.support.options_base import Count
from testifai.support.types import Array


class ForeignModel(Model):
    """A callable with a fingerprint that is no `Model`; attributes that it lacks have their defaults."""

    def __init__(self, given: Any) -> None:
        self.given = given
        for attribute in ("name", "outputs", "classes", "class_values", "batch_size", "thread_safe", "preprocessing"):
            setattr(self, attribute, getattr(given, attribute, getattr(Model, attribute)))
        if hasattr(given, "features"):
            self.features_output = getattr(given, "features_output", "features")

    @property
    def fingerprint(self) -> str:
        return str(self.given.fingerprint or type(self.given).__qualname__)

    def __call__(self, batch: Batch) -> Array:
        outputs: Array = self.given(batch)
        return outputs

    def features(self, batch: Batch) -> Array:
        rows: Array = self.given.features(batch) if self.features_output else super().features(batch)
        return rows

    @property
    def traces_layers(self) -> bool:
        return hasattr(self.given, "traced")

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        found: tuple[Array, Array] = getattr(self.given, "traced", super().traced)(batch, layer)
        return found


def is_adapter(model: object) -> bool:
    """Return True for a callable with a fingerprint."""
    # getattr_static: a fingerprint may take a while to compute.
    return callable(model) and inspect.getattr_static(model, "fingerprint", None) is not None


def is_estimator(model: object) -> bool:
    """Return True for an object that predicts as scikit-learn's estimators do, and is not simply called."""
    predicts = hasattr(model, "predict") or hasattr(model, "predict_proba")
    return predicts and not isinstance(model, type) and (hasattr(model, "get_params") or not callable(model))


class PythonModel(TableModel):
    """A function batch → (N,) labels or (N, d) scores or values; `outputs` says which, if known.

    `version` identifies a model that its code does not, such as one that calls a service.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        outputs: Outputs | None = None,
        classes: int | None = None,
        batch_size: int | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(f"model: {type(function).__name__} cannot be called; a function of a batch is accepted")
        if inspect.isclass(function):
            raise InputError(f"model: {function.__name__} is a class; hand over an instance or a function")
        if outputs is not None:
            validation.choice("outputs", outputs, get_args(Outputs))
        self.function, self.outputs, self.version = function, outputs, version
        self.classes, self.batch_size = classes, batch_size
        named = getattr(function, "func", function)  # of a functools.partial
        self.name = name or str(getattr(named, "__qualname__", None) or type(named).__qualname__)

    @functools.cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self.function, self.version)

    @property
    def may_read_files(self) -> bool:
        return self.version is None

    def __call__(self, batch: Batch) -> Array:
        given = batch if self._feed is None or isinstance(batch, list) else self._feed(batch)
        outputs: Array = self.function(given)
        return outputs


class PythonModelPart(ModelPart):
    """A user-defined function, or an object with predict or predict_proba."""

    python: str
    """Your function or object, `package.module:name`."""
    outputs: Outputs | None = None
    """What it returns, where that cannot be seen."""
    classes: Count | None = None
    """How many classes it tells apart; default: as many as its scores."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""
    name: str | None = None
    """What reports call it; default: its path."""
    version: str | None = None
    """A word that tells this model from another where its code cannot."""

    CODE: ClassVar = ("python",)

    def load(self, folder: Path) -> Model:
        options = self.told()
        path = options.pop("python")
        function = user_code.import_object(path, folder=folder, field="model.python")
        if is_estimator(function):
            from testifai.models.sklearn import SklearnModel

            if unknown := [option for option in options if option != "batch_size"]:
                raise InputError(f"model.{unknown[0]}: is for functions; what an object predicts is told by itself")
            return SklearnModel(function, **options)
        return PythonModel(function, **{"name": path, **options})
