"""Fitted scikit-learn estimators, and others with the same methods."""

from __future__ import annotations

import math
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart
from testifai.models.preprocess import PerChannel, Preprocess, Scale
from testifai.models.table_columns import TableModel
from testifai.support import optional_imports
from testifai.support.batches import Batch, are_images, several_sizes
from testifai.support.fingerprints import CodeFingerprint, fingerprint_code, fingerprint_files
from testifai.support.options_base import Count, File
from testifai.support.types import Array


class SklearnModel(TableModel):
    """A fitted estimator: scores from predict_proba or decision_function, else what predict says.

    Column j of the scores, and label j, stand for `estimator.classes_[j]`. Where the classes are not 0 … k −
    1 they are in `class_values`, and `outputs.align_labels` turns the data's labels into columns. A binary
    decision d becomes the two columns (−d, d). Several labels per input (a table from predict_proba, or a
    list of tables, one per label) become one column of probabilities per label. `scores=False` takes the
    labels of `predict` although there are scores. Images are flattened where the estimator was fitted on as
    many columns; scale, mean and std are for estimators that were fitted on other numbers than 0 … 255. Of a table it
    gets the columns that it was fitted on, by name where it knows their names.
    """

    thread_safe = True  # predicting does not change an estimator

    def __init__(
        self,
        estimator: Any,
        scores: bool = True,
        *,
        scale: Scale | None = None,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        batch_size: int | None = None,
    ) -> None:
        if isinstance(estimator, type) or not (_score_method(estimator) or hasattr(estimator, "predict")):
            what = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
            raise InputError(f"model: {what} has nothing to predict with; a fitted estimator is accepted")
        _check_fitted(estimator)
        self.estimator, self.batch_size = estimator, batch_size
        self.name = type(estimator).__name__
        plain = scale is None and mean is None and std is None
        self._preprocess = None if plain else Preprocess(None, scale, mean, std, np.float64)
        classes = getattr(estimator, "classes_", None)
        # Estimators of several labels keep a list of class arrays; their columns are the labels.
        self._values = np.asarray(classes) if classes is not None and not isinstance(classes, list) else None
        count = len(self._values) if self._values is not None else None
        self._method = _score_method(estimator) if scores else None
        if self._method == "decision_function" and _is_one_against_one(estimator, count):
            self._method = None
        self.classes = count
        self.class_values = self._values if self._values is not None and not _is_range(self._values) else None
        names = getattr(estimator, "feature_names_in_", None)
        self.columns = None if names is None else tuple(map(str, names))
        self.width = getattr(estimator, "n_features_in_", None)
        # Libraries that follow scikit-learn's interface take categories as such, its own take what they stand for.
        self.categorical = not type(estimator).__module__.startswith("sklearn.")
        if self._method is not None:
            self.outputs = "scores"
        elif classes is not None:
            self.outputs = "labels"
        else:  # of another's object it is to be seen whether these are values or labels
            self.outputs = "values" if _is_regressor(estimator) else None

    @cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self.estimator)

    @property
    def fingerprint(self) -> str:
        """A hash of the estimator's class, parameters and everything it learned."""
        return self._code.fingerprint

    @property
    def unidentified_reason(self) -> str | None:
        return self._code.unidentified_reason

    def __call__(self, batch: Batch) -> Array:
        ready = self._ready(batch)
        if self._method is None:
            return self._as_indexes(np.asarray(self._asked("predict", ready, batch)))
        scores = self._asked(self._method, ready, batch)
        if isinstance(scores, list):
            return np.stack([np.asarray(one)[:, -1] for one in scores], axis=1)
        array = np.asarray(scores)
        return np.stack([-array, array], axis=1) if array.ndim == 1 else array

    def _asked(self, method: str, ready: object, batch: Batch) -> object:
        try:
            return getattr(self.estimator, method)(ready)
        except ValueError as error:
            if isinstance(batch, list) or batch.dtype.kind != "f" or not np.isnan(batch).any():
                raise
            if "NaN" not in str(error) and "missing" not in str(error):
                raise
            raise InputError(
                f"model: {self.name} takes no missing values (NaN), and there are some in the data or made by a "
                "perturbation: put an imputer into its pipeline, say what stands for them (missing = -1 under [data]), "
                "or leave tabular.missing out"
            ) from error

    def _as_indexes(self, predicted: Array) -> Array:
        if self.class_values is None or predicted.ndim != 1:
            return predicted
        order = np.argsort(self.class_values)
        indexes: Array = order[np.searchsorted(self.class_values, predicted, sorter=order)]
        return indexes

    def _ready(self, batch: Batch) -> object:
        if are_images(batch):
            raise InputError(f"{self.name}: {several_sizes(batch)}")
        if isinstance(batch, list):
            return batch
        if self._feed is not None:
            return self._feed(batch)
        wanted = self.width
        columns = math.prod(batch.shape[1:])
        if wanted is not None and columns != wanted:
            raise InputError(f"inputs: have shape {batch.shape}, {columns} columns; {self.name} was fitted on {wanted}")
        ready = batch if self._preprocess is None else np.asarray(self._preprocess(batch))
        return ready.reshape(len(ready), -1) if wanted is not None and ready.ndim != 2 else ready


def _check_fitted(estimator: object) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise InputError(f"model: {type(estimator).__name__} is not fitted; fit it first") from None
    except TypeError:
        pass  # not one of scikit-learn's own: it only has the same methods


def _is_regressor(estimator: object) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(estimator))
    except (AttributeError, TypeError, ValueError):
        return False  # not one of scikit-learn's own


def _score_method(estimator: object) -> str | None:
    return next((name for name in ("predict_proba", "decision_function") if hasattr(estimator, name)), None)


def _is_one_against_one(estimator: object, classes: int | None) -> bool:
    """Whether decisions are one column per pair of classes, which says nothing about columns per class."""
    last = getattr(estimator, "steps", [(None, estimator)])[-1][1]  # of a pipeline
    return getattr(last, "decision_function_shape", "ovr") == "ovo" and (classes or 0) > 2


def _is_range(values: Array) -> bool:
    return values.dtype.kind in "biuf" and np.array_equal(values, np.arange(len(values)))


class SkopsModel(SklearnModel):
    """An estimator out of a file, which tells it: what is loaded anew need not hash alike."""

    def __init__(self, estimator: Any, path: Path, batch_size: int | None = None) -> None:
        super().__init__(estimator, batch_size=batch_size)
        self._content = fingerprint_files({"": Path(path)})

    @property
    def fingerprint(self) -> str:
        return self._content


class SkopsPart(ModelPart):
    """A .skops file; `trusted` are types to load besides those that skops trusts by itself."""

    skops: File
    """The file, as `skops.io.dump` writes it."""
    trusted: list[str] | None = None
    """Types to load besides those that skops trusts by itself."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""

    FILES: ClassVar = ("skops",)
    suffixes: ClassVar = (".skops",)

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        return load_skops(options.pop("skops"), **options)


def load_skops(path: Path, trusted: list[str] | None = None, batch_size: int | None = None) -> SkopsModel:
    """The estimator in a file; types that nobody trusts are refused by name before anything of them is loaded."""
    if not Path(path).is_file():
        raise InputError(f"model: {path} does not exist")
    io = optional_imports.load("skops.io", extra="tables")
    try:
        found = io.get_untrusted_types(file=path)
        _refuse(Path(path).name, found, trusted or [])
        return SkopsModel(io.load(path, trusted=found), path, batch_size)
    except InputError:
        raise
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise InputError(f"model: {path} is not a file of skops ({type(error).__name__})") from None
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"model: {path} cannot be loaded ({reason}); is a library missing, or was it saved by another version of "
            "scikit-learn?"
        ) from None


def _refuse(file: str, found: list[str], trusted: list[str]) -> None:
    """Refuse types that neither skops nor the user trusts."""
    unknown = [one for one in found if one not in trusted]
    if unknown:
        listing = ", ".join(f'"{one}"' for one in found)
        raise InputError(
            f"model: {file} holds types that skops does not trust by itself: {', '.join(unknown)}; if you do, say "
            f"trusted = [{listing}] under [model] (testifai init: {' '.join(f'--trusted {one}' for one in found)})"
        )
