"""Boosters of XGBoost and LightGBM, and their model files."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart, Outputs
from testifai.models.table_columns import TableModel
from testifai.support import optional_imports
from testifai.support.batches import Batch
from testifai.support.options_base import Count, File
from testifai.support.types import Array

_UNNAMED = re.compile(r"Column_\d+")  # what LightGBM calls columns without a name


class Boosted(TableModel):
    """A booster, of whose scores a probability p of two classes becomes (1 − p, p); missing values are NaN."""

    thread_safe = True
    repeatable = True
    categorical = True

    def __init__(self, booster: Any, objective: str, classes: int, names: Sequence[str] | None, width: int) -> None:
        self.booster, self.width = booster, width
        self.columns = None if names is None else tuple(names)
        self._two = objective.startswith("binary")
        self._label = objective in ("multi:softmax", "binary:hinge")
        several = classes > 1 or self._two
        self.classes = max(classes, 2) if several else None
        self.outputs: Outputs = "labels" if self._label else "scores" if several else "values"

    @abstractmethod
    def predict(self, ready: object) -> Array: ...

    def __call__(self, batch: Batch) -> Array:
        if isinstance(batch, list):
            raise InputError(f"inputs: texts are not accepted by {self.name}; rows of numbers are")
        if self._feed is None and (batch.ndim != 2 or batch.shape[1] != self.width):
            raise InputError(f"inputs: have shape {batch.shape}; {self.name} was fitted on {self.width} columns")
        found = np.asarray(self.predict(batch if self._feed is None else self._feed(batch)))
        if self._label:
            return found.astype(np.int64)
        return np.stack([1 - found, found], axis=1) if self._two else found


class XgboostModel(Boosted):
    name = "XGBoost"

    def __init__(self, booster: Any) -> None:
        learner = json.loads(booster.save_config())["learner"]
        objective = str(learner["objective"]["name"])
        classes = int(learner["learner_model_param"]["num_class"])
        super().__init__(booster, objective, classes, booster.feature_names, booster.num_features())

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha1(bytes(self.booster.save_raw("json"))).hexdigest()

    def predict(self, ready: object) -> Array:
        xgboost = optional_imports.load("xgboost", extra="tables")
        names = None if hasattr(ready, "columns") else self.columns  # a DataFrame has its own
        matrix = xgboost.DMatrix(ready, enable_categorical=True, feature_names=names, nthread=1)
        return np.asarray(self.booster.predict(matrix))


class LightgbmModel(Boosted):
    name = "LightGBM"

    def __init__(self, booster: Any) -> None:
        objective = re.search(r"^objective=(\S+)", booster.model_to_string(num_iteration=1), re.MULTILINE)
        classes, names = int(booster.num_model_per_iteration()), booster.feature_name()
        known = None if all(map(_UNNAMED.fullmatch, names)) else names
        super().__init__(booster, objective[1] if objective else "regression", classes, known, len(names))

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha1(self.booster.model_to_string().encode()).hexdigest()

    def predict(self, ready: object) -> Array:
        return np.asarray(self.booster.predict(ready, num_threads=1))


class _BoostedPart(ModelPart):
    def load(self, folder: Path) -> Model:
        told = self.told(folder)
        path: Path = told[self.FILES[0]]
        if not path.is_file():
            raise InputError(f"model: {path} does not exist")
        model = self._read(path)
        model.batch_size = told.get("batch_size")
        return model

    @abstractmethod
    def _read(self, path: Path) -> Boosted: ...


class XgboostPart(_BoostedPart):
    """A model that XGBoost saved as .json or .ubj."""

    xgboost: File
    """The file."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""

    FILES: ClassVar = ("xgboost",)
    suffixes: ClassVar = (".json", ".ubj")

    def _read(self, path: Path) -> Boosted:
        library = optional_imports.load("xgboost", extra="tables")
        booster = library.Booster()
        try:
            booster.load_model(path)
        except (ValueError, library.core.XGBoostError):  # its text is a trace of C++
            raise InputError(
                f"model: {path} is not a model of XGBoost; one saved with booster.save_model is accepted"
            ) from None
        return XgboostModel(booster)


class LightgbmPart(_BoostedPart):
    """A model that LightGBM saved as text."""

    lightgbm: File
    """The file."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""

    FILES: ClassVar = ("lightgbm",)
    suffixes: ClassVar = (".txt",)

    def _read(self, path: Path) -> Boosted:
        library = optional_imports.load("lightgbm", extra="tables")
        if not path.read_bytes().startswith(b"tree"):
            raise InputError(f"model: {path} is not a model of LightGBM; one saved with booster.save_model is accepted")
        try:
            return LightgbmModel(library.Booster(model_file=path))
        except library.basic.LightGBMError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1][:160]
            raise InputError(f"model: {path} is not a model of LightGBM ({reason})") from None


def booster(model: object) -> Boosted | None:
    made = {"xgboost": XgboostModel, "lightgbm": LightgbmModel}.get(type(model).__module__.partition(".")[0])
    return made(model) if made is not None and type(model).__name__ == "Booster" else None
