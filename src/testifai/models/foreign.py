"""Objects of other people's that are no `Model`: the one place where it is guessed what they are and can do."""

from __future__ import annotations

import inspect
from typing import Any

from numpy.typing import NDArray

from testifai.models.base import Model
from testifai.support.batches import Batch


class ForeignModel(Model):
    """A callable with a fingerprint, and whatever else of a `Model` it happens to have."""

    def __init__(self, given: Any) -> None:
        self.given = given
        for attribute in ("name", "outputs", "classes", "class_values", "batch_size", "thread_safe", "preprocessing"):
            setattr(self, attribute, getattr(given, attribute, getattr(Model, attribute)))
        self.features_output = getattr(given, "features_output", None)
        # One that says it has no output for features has none, whatever its methods.
        lacks_output = hasattr(given, "features_output") and self.features_output is None
        self.has_features = hasattr(given, "features") and not lacks_output
        self.traces_layers = hasattr(given, "traced")

    @property
    def fingerprint(self) -> str:
        """What the object says of itself, or at least its class."""
        found: str = self.given.fingerprint or type(self.given).__qualname__
        return found

    def __call__(self, batch: Batch) -> NDArray[Any]:
        outputs: NDArray[Any] = self.given(batch)
        return outputs

    def features(self, batch: Batch) -> NDArray[Any]:
        rows: NDArray[Any] = self.given.features(batch) if self.has_features else super().features(batch)
        return rows

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        found: tuple[NDArray[Any], NDArray[Any]] = (
            self.given.traced(batch, layer) if self.traces_layers else super().traced(batch, layer)
        )
        return found


def is_adapter(model: Any) -> bool:
    """Whether an object was made to be a model, rather than any callable."""
    # Looked up without asking for it: a fingerprint may take a while to compute.
    return callable(model) and inspect.getattr_static(model, "fingerprint", None) is not None


def is_estimator(model: Any) -> bool:
    """Whether an object predicts as scikit-learn's do, and is not simply called."""
    predicts = hasattr(model, "predict") or hasattr(model, "predict_proba")
    return predicts and not isinstance(model, type) and (hasattr(model, "get_params") or not callable(model))
