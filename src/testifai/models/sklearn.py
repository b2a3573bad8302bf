"""Fitted scikit-learn estimators, and others with the same methods."""

from __future__ import annotations

import math
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart, first_line
from testifai.models.table_columns import TableModel
from testifai.support import optional_imports
from testifai.support.batches import Batch, are_images, several_sizes
from testifai.support.fingerprints import CodeFingerprint, fingerprint_code, fingerprint_files
from testifai.support.options_base import Count, File
from testifai.support.types import Array


class SklearnModel(TableModel):
    """A fitted estimator: scores from predict_proba or decision_function, else what predict returns.

    Column j of the scores, and label j, represent `estimator.classes_[j]`. A binary decision d becomes the columns
    (−d, d). Several labels per input (a table from predict_proba, or a list of tables, one each) become one column of
    probabilities per label. Images are flattened; columns of a table are found by name if the estimator stores names.
    """

    thread_safe = True  # predicting does not change an estimator

    def __init__(self, estimator: Any, *, batch_size: int | None = None) -> None:
        if isinstance(estimator, type) or not (_score_method(estimator) or hasattr(estimator, "predict")):
            what = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
            raise InputError(f"model: {what} has nothing to predict with; a fitted estimator is accepted")
        _check_fitted(estimator)
        self.estimator, self.batch_size = estimator, batch_size
        self.name = type(estimator).__name__
        classes = getattr(estimator, "classes_", None)
        # Estimators of several labels keep a list of class arrays; their columns are the labels.
        values = np.asarray(classes) if classes is not None and not isinstance(classes, list) else None
        if values is not None:
            self.classes = len(values)
            in_order = values.dtype.kind in "biuf" and np.array_equal(values, np.arange(len(values)))
            self.class_values = None if in_order else values
        self._method = _score_method(estimator)
        last = getattr(estimator, "steps", [(None, estimator)])[-1][1]  # of a pipeline
        one_against_one = getattr(last, "decision_function_shape", "ovr") == "ovo" and (self.classes or 0) > 2
        if self._method == "decision_function" and one_against_one:  # columns are pairs of classes
            self._method = None
        names = getattr(estimator, "feature_names_in_", None)
        self.columns = None if names is None else tuple(map(str, names))
        self.width = getattr(estimator, "n_features_in_", None)
        # Third-party estimators take categories as such, scikit-learn's own take their values.
        self.categorical = not type(estimator).__module__.startswith("sklearn.")
        if self._method is not None:
            self.outputs = "scores"
        elif classes is not None:
            self.outputs = "labels"
        else:  # a third-party object may return values or labels
            self.outputs = "values" if _is_regressor(estimator) else None

    @cached_property
    def _code(self) -> CodeFingerprint:
        return fingerprint_code(self.estimator)

    def __call__(self, batch: Batch) -> Array:
        scores = self._asked(self._method or "predict", self._ready(batch), batch)
        if self._method is None:
            found = np.asarray(scores)
            if self.class_values is None or found.ndim != 1:
                return found
            order = np.argsort(self.class_values)
            return np.asarray(order[np.searchsorted(self.class_values, found, sorter=order)])
        if isinstance(scores, list):
            return np.stack([np.asarray(one)[:, -1] for one in scores], axis=1)
        array = np.asarray(scores)
        return np.stack([-array, array], axis=1) if array.ndim == 1 else array

    def _asked(self, method: str, ready: object, batch: Batch) -> object:
        try:
            return getattr(self.estimator, method)(ready)
        except ValueError as error:
            missing = not isinstance(batch, list) and batch.dtype.kind == "f" and np.isnan(batch).any()
            if not missing or not any(word in str(error) for word in ("NaN", "missing")):
                raise
            raise InputError(
                f"model: {self.name} takes no missing values (NaN), and there are some in the data or made by a "
                "perturbation: put an imputer into its pipeline, say what stands for them (missing = -1 under [data]), "
                "or leave tabular.missing out"
            ) from error

    def _ready(self, batch: Batch) -> object:
        if are_images(batch):
            raise InputError(f"{self.name}: {several_sizes(batch)}")
        if isinstance(batch, list):
            return batch
        if self._feed is not None:
            return self._feed(batch)
        wanted, columns = self.width, math.prod(batch.shape[1:])
        if wanted is not None and columns != wanted:
            raise InputError(f"inputs: have shape {batch.shape}, {columns} columns; {self.name} was fitted on {wanted}")
        return batch.reshape(len(batch), -1) if wanted is not None and batch.ndim != 2 else batch


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


class SkopsModel(SklearnModel):
    """An estimator in a file, whose bytes identify it: an object that is loaded again need not hash alike."""

    def __init__(self, estimator: Any, path: Path, batch_size: int | None = None) -> None:
        super().__init__(estimator, batch_size=batch_size)
        self._content = fingerprint_files({"": Path(path)})

    @property
    def fingerprint(self) -> str:
        return self._content

    @property
    def unidentified_reason(self) -> str | None:
        return self._code.unidentified_reason


class SkopsPart(ModelPart):
    """A .skops file."""

    skops: File
    """The file, as `skops.io.dump` writes it."""
    trusted: list[str] | None = None
    """Types to load besides those that skops trusts by itself."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""

    FILES: ClassVar = ("skops",)
    suffixes: ClassVar = (".skops",)

    def load(self, folder: Path) -> Model:
        path: Path = self.told(folder)["skops"]
        if not path.is_file():
            raise InputError(f"model: {path} does not exist")
        io = optional_imports.load("skops.io", extra="tables")
        try:
            # Types that neither skops nor the user trusts are refused before loading.
            found = io.get_untrusted_types(file=path)
            unknown = [one for one in found if one not in (self.trusted or [])]
            if unknown:
                listing = ", ".join(f'"{one}"' for one in found)
                raise InputError(
                    f"model: {path.name} holds types that skops does not trust by itself: {', '.join(unknown)}; if "
                    f"you do, say trusted = [{listing}] under [model] "
                    f"(testifai init: {' '.join(f'--trusted {one}' for one in found)})"
                )
            return SkopsModel(io.load(path, trusted=found), path, self.batch_size)
        except InputError:
            raise
        except (zipfile.BadZipFile, KeyError, OSError) as error:
            raise InputError(f"model: {path} is not a file of skops ({type(error).__name__})") from None
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            raise InputError(
                f"model: {path} cannot be loaded ({first_line(error)}); is a library missing, or was it saved by "
                "another version of scikit-learn?"
            ) from None
