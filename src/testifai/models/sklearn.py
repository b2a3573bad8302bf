"""Fitted scikit-learn estimators, and others with the same methods."""

from __future__ import annotations

import importlib
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.preprocess import PerChannel, Preprocess, Scale
from testifai.support.batches import Batch, are_images, several_sizes


class SklearnModel(Model):
    """A fitted estimator: scores from predict_proba or decision_function, else what predict says.

    Column j of the scores, and label j, stand for `estimator.classes_[j]`. Where the classes are not 0 … k −
    1 they are in `class_values`, and `outputs.align_labels` turns the data's labels into columns. A binary
    decision d becomes the two columns (−d, d). Several labels per input (a table from predict_proba, or a
    list of tables, one per label) become one column of probabilities per label. `scores=False` takes the
    labels of `predict` although there are scores. Images are flattened where the estimator was fitted on as
    many columns; scale, mean and std are for estimators that were fitted on other numbers than 0 … 255.
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
        if isinstance(estimator, type) or not hasattr(estimator, "predict"):
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
        if self._method is not None:
            self.outputs = "scores"
        else:
            self.outputs = "labels" if classes is not None else "values"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the estimator's class, parameters and everything it learned."""
        joblib = importlib.import_module("joblib")  # comes with scikit-learn
        return str(joblib.hash(self.estimator, hash_name="sha1"))

    def __call__(self, batch: Batch) -> NDArray[Any]:
        ready = self._ready(batch)
        if self._method is None:
            return self._as_indexes(np.asarray(self.estimator.predict(ready)))
        scores = getattr(self.estimator, self._method)(ready)
        if isinstance(scores, list):
            return np.stack([np.asarray(one)[:, -1] for one in scores], axis=1)
        array = np.asarray(scores)
        return np.stack([-array, array], axis=1) if array.ndim == 1 else array

    def _as_indexes(self, predicted: NDArray[Any]) -> NDArray[Any]:
        if self.class_values is None or predicted.ndim != 1:
            return predicted
        order = np.argsort(self.class_values)
        indexes: NDArray[Any] = order[np.searchsorted(self.class_values, predicted, sorter=order)]
        return indexes

    def _ready(self, batch: Batch) -> Batch:
        if are_images(batch):
            raise InputError(f"{self.name}: {several_sizes(batch)}")
        if isinstance(batch, list):
            return batch
        wanted = getattr(self.estimator, "n_features_in_", None)
        columns = math.prod(batch.shape[1:])
        if wanted is not None and columns != wanted:
            raise InputError(f"inputs: have shape {batch.shape}, {columns} columns; {self.name} was fitted on {wanted}")
        ready = batch if self._preprocess is None else np.asarray(self._preprocess(batch))
        return ready.reshape(len(ready), -1) if wanted is not None and ready.ndim != 2 else ready


def _check_fitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise InputError(f"model: {type(estimator).__name__} is not fitted; fit it first") from None
    except TypeError:
        pass  # not one of scikit-learn's own: it only has the same methods


def _score_method(estimator: Any) -> str | None:
    return next((name for name in ("predict_proba", "decision_function") if hasattr(estimator, name)), None)


def _is_one_against_one(estimator: Any, classes: int | None) -> bool:
    """Whether decisions are one column per pair of classes, which says nothing about columns per class."""
    last = getattr(estimator, "steps", [(None, estimator)])[-1][1]  # of a pipeline
    return getattr(last, "decision_function_shape", "ovr") == "ovo" and (classes or 0) > 2


def _is_range(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and np.array_equal(values, np.arange(len(values)))
