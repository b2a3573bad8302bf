"""Features of inputs: one row of numbers each, from the model under test or from another network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import models
from testifai.engine.inference import attempt
from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.outputs import as_rows
from testifai.support.batches import Batch, take
from testifai.support.types import Floats, Record

Rows = Floats
_BATCH = 256
_ACCEPTED = "a path that ends in .onnx, 'inception', a module of torch or a function of a batch is"


def load_extractor(given: Any, *, weights: str | Path | None = None, folder: str | Path = ".") -> Model:
    """Load an extractor: an ONNX file, a model table as in a spec, "inception", a module or a function."""
    inception = isinstance(given, str) and given == "inception"
    if weights is not None and not inception:
        raise InputError("quality: weights belong to extractor = 'inception'; other extractors bring their own")
    if inception:
        from testifai.quality.inception import load_inception

        return load_inception(weights, folder=folder)
    if isinstance(given, Mapping):
        table: Record = dict(given)
        kinds = [kind for kind in models.ADAPTERS if kind in table]
        if len(kinds) != 1:
            raise InputError(
                f"quality: extractor = {table!r} is not accepted; give one of {', '.join(models.ADAPTERS)}"
            )
        return models.load(kinds[0], table.pop(kinds[0]), folder=folder, **table)
    if isinstance(given, str | Path):
        if Path(given).suffix.lower() != ".onnx":
            raise InputError(f"quality: extractor = {str(given)!r} is not accepted; {_ACCEPTED}")
        return models.load("onnx", given, folder=folder)
    if isinstance(given, type) or not callable(given):
        raise InputError(f"quality: extractor = {given!r} is not accepted; {_ACCEPTED}")
    return models.wrap(given)


def features_of_model(model: Model | None, layer: str | None) -> Callable[[Batch], Rows]:
    """Return a function of inputs to the model's features at a layer, or at its features output."""
    if model is None or not _has_features(model, layer):
        what = "there is no model" if model is None else f"{model.name} has no features output"
        traces = model is not None and model.traces_layers
        advice = "name a layer = … that it traces" if traces else "give extractor = 'x.onnx'"
        raise InputError(f"quality: kid compares features, and {what}; {advice}, or choose another measure")
    return _in_batches(model, layer)


def features_of_extractor(extractor: Model, layer: str | None) -> Callable[[Batch], Rows]:
    """Return a function of inputs to features at a layer, at the features output or, if there is none, the output."""
    if layer is not None and not extractor.traces_layers:
        raise InputError(
            f"quality: layer = {layer!r}: {extractor.name} does not trace layers; give ONNX or torch, or no layer"
        )
    return _in_batches(extractor, layer)


def _has_features(model: Model, layer: str | None) -> bool:
    return model.features_output is not None if layer is None else model.traces_layers


def _in_batches(model: Model, layer: str | None) -> Callable[[Batch], Rows]:
    size = model.batch_size or _BATCH
    named = layer or model.features_output or "features"

    def one(batch: Batch) -> NDArray[np.float32]:
        if layer is not None:
            return as_rows(np.asarray(model.traced(batch, layer)[1]), len(batch), named)
        made: Any = model.features(batch) if _has_features(model, None) else model(batch)
        made = made.detach().cpu() if hasattr(made, "detach") else made
        try:
            array = np.asarray(made)
        except (ValueError, TypeError):
            problem = f"layer: {named!r} gives rows of different length; a row of numbers each is needed"
            raise InputError(problem) from None
        return as_rows(array, len(batch), named)

    def features(batch: Batch) -> Rows:
        parts = [np.arange(start, min(start + size, len(batch))) for start in range(0, len(batch), size)]
        return np.concatenate([attempt(one, take(batch, part)) for part in parts]).astype(np.float64)

    return features
