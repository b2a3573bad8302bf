"""Models under test, in any framework.

A model is any callable batch → (N,) labels or (N, d) scores or values. An adapter is one file, with a `Model` and, if a
spec can name it, its `ModelPart`; and one line in `ADAPTERS`, or an entry point of another package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.models.base import DeviceModel, Model, ModelPart, Outputs
from testifai.models.gradient_boosting import booster
from testifai.models.outputs import align_labels, check_outputs
from testifai.models.preprocess import Guess, PerChannel, Preprocess, Scale, guess
from testifai.models.python import ForeignModel, PythonModel, is_adapter, is_estimator
from testifai.models.transformers import PipelineModel, is_pipeline
from testifai.support import optional_imports
from testifai.support.options_base import make_part
from testifai.support.registry import Registry

__all__ = [
    "ADAPTERS", "DeviceModel", "Guess", "Model", "ModelPart", "Outputs", "Preprocess", "PythonModel", "align_labels",
    "check_outputs", "from_torch", "guess", "load", "onnx_as_torch", "recognise", "wrap",
]  # fmt: skip

ADAPTERS = Registry(
    "model",
    "testifai.models",
    {
        "onnx": "testifai.models.onnx:OnnxPart",
        "transformers": "testifai.models.transformers:TransformersPart",
        "encoder": "testifai.models.texts.encoder:EncoderPart",
        "python": "testifai.models.python:PythonModelPart",
        "torch": "testifai.models.torch:TorchPart",
        "skops": "testifai.models.sklearn:SkopsPart",
        "xgboost": "testifai.models.gradient_boosting:XgboostPart",
        "lightgbm": "testifai.models.gradient_boosting:LightgbmPart",
    },
)


_PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".dill")


def load(kind: str, source: str | Path, *, folder: str | Path = ".", **options: Any) -> Model:
    """Load the model a spec names, e.g. load("onnx", "lenet5.onnx"); relative paths and modules start at `folder`.

    Args:
        kind: as a spec names it: "onnx", "torch", "transformers", …
        source: a path or "module:name"
        folder: start of relative paths and modules
        options: options of the kind, as in a spec's [model]
    """
    return wrap(make_part(ADAPTERS, kind, source, options).load(Path(folder)))


def from_torch(
    module: Any,
    *,
    mean: PerChannel | None = None,
    std: PerChannel | None = None,
    layout: str | None = None,
    scale: Scale | None = None,
    device: str | None = None,
    threads: int | None = None,
    outputs: Outputs | None = None,
    batch_size: int | None = None,
    version: str | None = None,
) -> Model:
    """Wrap a PyTorch module, with the preprocessing that it needs.

    Args:
        module: the network
        mean: subtracted, one number or one per channel; None: that of a `pretrained_cfg`, or 0
        std: divided by, likewise; None: that of a `pretrained_cfg`, or 1
        layout: "NCHW" (default), "NHWC" or "flat"
        scale: applied to bytes first: "unit" (0 … 1, default), "signed", "raw" or a factor
        device: device to move it to; None: it stays
        threads: of PyTorch; None: unchanged
        outputs: "labels", "scores" or "values"; None: inferred
        batch_size: None: the quickest
        version: identifies the module if its code cannot be fingerprinted
    """
    optional_imports.load("torch", extra="torch")
    from testifai.models.torch import TorchModel

    return TorchModel(
        module, layout=layout, scale=scale, mean=mean, std=std, device=device, threads=threads, outputs=outputs,
        batch_size=batch_size, version=version,
    )  # fmt: skip


def onnx_as_torch(path: str | Path, output: str | None = None) -> Any:
    """Return the graph of an ONNX file as a `torch.nn.Module`; needs the extra `torch`, and no onnxruntime.

    It returns the model's scores, or the named output. Unsupported operators raise an InputError that names them.

    Args:
        path: of the .onnx file
        output: the output to return; None: the scores
    """
    for library in ("torch", "onnx"):
        optional_imports.load(library, extra="torch")
    from testifai.models import onnx_torch

    return onnx_torch.onnx_as_torch(path, output)


def wrap(model: Any, table: Table | None = None) -> Model:
    """Return an adapter for an adapter, estimator, PyTorch module, path or callable.

    A path is that of an .onnx file, of a model of tables (.skops, XGBoost's .json, LightGBM's .txt) or of the folder of
    a text model (transformers, or sentence-transformers with a head.npz in it).

    Args:
        model: the model
        table: the columns, if inputs are rows of a table, encoded as numbers
    """
    adapter = _adapter(model)
    return adapter if table is None else adapter.reading(table)


def _adapter(model: Any) -> Model:
    if isinstance(model, str | Path):
        kind = recognise(model)
        if kind is None:
            endings = [suffix for _, part in _parts() for suffix in part.suffixes]
            raise InputError(
                f"model: {str(model)!r} is not accepted; a path that ends in {', '.join(endings)}, a folder of "
                "transformers (config.json), package.module:name or a callable is"
            )
        return load(kind, model)
    if isinstance(model, type):
        raise InputError(f"model: {model.__name__} is a class; hand over an instance")
    if isinstance(model, Model):
        return model
    if is_adapter(model):
        return ForeignModel(model)
    if is_pipeline(model):
        return PipelineModel(model)
    torch = sys.modules.get("torch")  # a PyTorch module cannot exist before torch is imported
    if torch is not None and isinstance(model, torch.nn.Module):
        from testifai.models.torch import TorchModel

        return TorchModel(model)
    if (boosted := booster(model)) is not None:
        return boosted
    if is_estimator(model):
        from testifai.models.sklearn import SklearnModel

        return SklearnModel(model)
    if not callable(model):
        raise InputError(
            f"model: {type(model).__name__} is not accepted; a callable, estimator, module or .onnx path is"
        )
    return PythonModel(model)


def recognise(path: str | Path) -> str | None:
    """Return the name of the first adapter that reads a model's file or folder, None if there is none.

    Nothing is loaded. A pickle that no adapter reads is refused.

    Args:
        path: of a file or a folder

    >>> recognise("lenet5.onnx"), recognise("forest.skops"), recognise("notes.md")
    ('onnx', 'skops', None)
    """
    path = Path(path)
    kind = next((kind for kind, part in _parts() if part.recognises(path)), None)
    if kind is None and (path.suffix.lower() in _PICKLES or _starts_like_a_pickle(path)):
        raise InputError(
            f"model: {path} is a pickle, and to load one is to run whatever code is in it; save the model with "
            f"skops.io.dump(model, '{path.stem}.skops'), or load it in code of your own: python = 'my_module:model'"
        )
    return kind


def _parts() -> Iterator[tuple[str, type[ModelPart]]]:
    return ((kind, ADAPTERS[kind]) for kind in ADAPTERS if ADAPTERS.problem(kind) is None)


def _starts_like_a_pickle(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) in {bytes([0x80, protocol]) for protocol in range(6)}
