"""Models under test, whatever they are written in.

A model is any callable batch → (N,) labels or (N, d) scores or values. An adapter is one file and, if a spec
can name it, one line in `ADAPTERS`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

from testifai.errors import InputError, suggest
from testifai.models.base import Model, Outputs
from testifai.models.foreign import ForeignModel, is_adapter
from testifai.models.outputs import align_labels, check_outputs
from testifai.models.preprocess import Guess, Preprocess, guess
from testifai.models.python import PythonModel

__all__ = [
    "ADAPTERS",
    "Guess",
    "Model",
    "Outputs",
    "Preprocess",
    "PythonModel",
    "align_labels",
    "check_outputs",
    "guess",
    "load",
    "wrap",
]

ADAPTERS: dict[str, str] = {
    "encoder": "testifai.models.texts.encoder:load_encoder",
    "onnx": "testifai.models.onnx:load_onnx",
    "python": "testifai.models.python:from_path",
    "torch": "testifai.models.torch:load_torch",
    "transformers": "testifai.models.texts.classifier:load_transformers",
}
# An option that makes it another kind of model.
VARIANTS: dict[tuple[str, str], str] = {("onnx", "tokenizer"): "testifai.models.texts.onnx:load_onnx_text"}


def load(kind: str, source: str | Path, *, folder: str | Path = ".", **options: Any) -> Model:
    """The model a spec names, e.g. load("onnx", "lenet5.onnx"); paths and modules start at `folder`."""
    if kind not in ADAPTERS:
        raise InputError(f"model: kind {kind!r} is not known; {suggest(kind, ADAPTERS)}")
    variants = [place for (of, option), place in VARIANTS.items() if of == kind and option in options]
    module, name = (variants or [ADAPTERS[kind]])[0].split(":")
    make: Callable[..., Model] = getattr(importlib.import_module(module), name)
    accepted = _options(make)
    for option in options:
        if option not in accepted:
            raise InputError(f"model: {kind} has no option {option!r}; {suggest(option, accepted)}")
    return make(str(source), folder=folder, **options)


def _options(make: Callable[..., Model]) -> list[str]:
    """Options of a loader: its own, and those of the adapter it returns."""
    adapter = get_type_hints(make)["return"]
    parameters = [
        *inspect.signature(make).parameters.values(),
        *inspect.signature(adapter).parameters.values(),
    ]
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "folder"]


def wrap(model: Any) -> Model:
    """An adapter for what is handed over: an adapter, an estimator, a module, a path, a callable.

    A path is that of an .onnx file or of the folder of a text model (transformers, or sentence-transformers with a
    head.npz in it).
    """
    if isinstance(model, str | Path):
        return load(_kind_of_path(Path(model)), model)
    if isinstance(model, type):
        raise InputError(f"model: {model.__name__} is a class; hand over an instance")
    if isinstance(model, Model):
        return model
    if is_adapter(model):
        return ForeignModel(model)
    torch = sys.modules.get("torch")  # a module of torch cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from testifai.models.torch import TorchModel

        return TorchModel(model)
    if hasattr(model, "predict") and (hasattr(model, "get_params") or not callable(model)):
        from testifai.models.sklearn import SklearnModel

        return SklearnModel(model)
    if not callable(model):
        raise InputError(
            f"model: {type(model).__name__} is not accepted; a callable, estimator, module or .onnx path is"
        )
    return PythonModel(model)


def _kind_of_path(path: Path) -> str:
    if path.is_dir():
        return "encoder" if Path(path, "modules.json").is_file() else "transformers"
    if path.suffix.lower() != ".onnx":
        raise InputError(
            f"model: {str(path)!r} is not accepted; a path that ends in .onnx, a text model's folder or a callable is"
        )
    return "onnx"
