"""Features of inputs: one row of numbers each, from the model under test or from another network.

`Inception` is the network with which KID was published, with weights on disk (needs the extra `torch`): Szegedy,
Vanhoucke, Ioffe, Shlens and Wojna, "Rethinking the Inception architecture for computer vision" (CVPR 2016), in the
version of 2015-12-05 that distances between sets of images are computed with. Averages exclude the padding, the last
block pools by maxima, and images are resized to 299×299 pixels as in TensorFlow 1. The 2048 features are those before
the classifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import models
from testifai.engine.inference import attempt
from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.outputs import as_rows
from testifai.support import optional_imports
from testifai.support.batches import Batch, are_images, take
from testifai.support.types import Floats, Record

Rows = Floats
_BATCH = 256
_ACCEPTED = "a path that ends in .onnx, 'inception', a module of torch or a function of a batch is"


def load_extractor(given: Any, *, weights: str | Path | None = None, folder: str | Path = ".") -> Model:
    inception = isinstance(given, str) and given == "inception"
    if weights is not None and not inception:
        raise InputError("quality: weights belong to extractor = 'inception'; other extractors bring their own")
    if inception:
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


SIZE = 299
_FILE = "the file …inception-2015-12-05-6726825d.pth of torch-fidelity or pytorch-fid"
_EPSILON = 1e-3

# A branch is a sequence of steps, a block has parallel branches. A step is a convolution, which keeps the size unless
# it ends in "!" (no padding) or "/2" (no padding, stride 2), a pooling, or several parallel steps.
Step = str | tuple[str, ...]
Block = tuple[tuple[Step, ...], ...]

_STEM: tuple[Step, ...] = (
    "Conv2d_1a_3x3/2", "Conv2d_2a_3x3!", "Conv2d_2b_3x3", "max/2", "Conv2d_3b_1x1", "Conv2d_4a_3x3!", "max/2",
)  # fmt: skip
_THREE = ("branch3x3dbl_1", "branch3x3dbl_2")
_A: Block = (
    ("branch1x1",), ("branch5x5_1", "branch5x5_2"), (*_THREE, "branch3x3dbl_3"), ("average", "branch_pool"),
)  # fmt: skip
_B: Block = (("branch3x3/2",), (*_THREE, "branch3x3dbl_3/2"), ("max/2",))
_C: Block = (
    ("branch1x1",),
    tuple(f"branch7x7_{i}" for i in (1, 2, 3)),
    tuple(f"branch7x7dbl_{i}" for i in (1, 2, 3, 4, 5)),
    ("average", "branch_pool"),
)
_D: Block = (
    ("branch3x3_1", "branch3x3_2/2"),
    (*(f"branch7x7x3_{i}" for i in (1, 2, 3)), "branch7x7x3_4/2"),
    ("max/2",),
)


def _last(pooling: str) -> Block:
    return (
        ("branch1x1",),
        ("branch3x3_1", ("branch3x3_2a", "branch3x3_2b")),
        (*_THREE, ("branch3x3dbl_3a", "branch3x3dbl_3b")),
        (pooling, "branch_pool"),
    )


_BLOCKS: dict[str, Block] = {
    **dict.fromkeys(("Mixed_5b", "Mixed_5c", "Mixed_5d"), _A),
    "Mixed_6a": _B,
    **dict.fromkeys(("Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"), _C),
    "Mixed_7a": _D,
    "Mixed_7b": _last("average"),
    "Mixed_7c": _last("max"),
}
_POOLINGS: dict[str, tuple[str, dict[str, int | bool]]] = {
    "max": ("max_pool2d", {"stride": 1, "padding": 1}),
    "max/2": ("max_pool2d", {"stride": 2}),
    "average": ("avg_pool2d", {"stride": 1, "padding": 1, "count_include_pad": False}),
}


class Inception(Model):
    """Images (N, H, W) or (N, H, W, 1 or 3), uint8 or floats in 0..1, in; 2048 features each out."""

    name = "inception"
    outputs = "values"
    batch_size = 32

    def __init__(self, weights: Record, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._torch = optional_imports.load("torch", extra="torch")
        self._convolutions = {name: self._folded(weights, name) for name in convolutions()}

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        torch = self._torch
        with torch.inference_mode():
            x = self._resized(torch.from_numpy(_pixels(batch)).permute(0, 3, 1, 2))
            x = self._row(_STEM, "", (x - 128) / 128)
            for name, block in _BLOCKS.items():
                x = torch.cat([self._row(branch, f"{name}.", x) for branch in block], dim=1)
            return np.asarray(x.mean(dim=(2, 3)).numpy())

    def _folded(self, weights: Record, name: str) -> tuple[Any, Any]:
        try:
            kernel, scale, shift, mean, variance = (
                weights[f"{name}.{part}"].float()
                for part in ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")
            )
            factor = scale / (variance + _EPSILON).sqrt()
            return kernel * factor[:, None, None, None], shift - mean * factor
        except (KeyError, AttributeError, RuntimeError, IndexError, TypeError):
            raise InputError(f"quality: weights: {name} is missing or of another shape; give {_FILE}") from None

    def _row(self, steps: tuple[Step, ...], prefix: str, x: Any) -> Any:
        for step in steps:
            if isinstance(step, tuple):
                x = self._torch.cat([self._row((one,), prefix, x) for one in step], dim=1)
            elif step in _POOLINGS:
                kind, options = _POOLINGS[step]
                x = getattr(self._torch.nn.functional, kind)(x, 3, **options)
            else:
                kernel, shift = self._convolutions[prefix + _plain(step)]
                border = (0, 0) if step.endswith(("!", "/2")) else tuple(size // 2 for size in kernel.shape[2:])
                stride = 2 if step.endswith("/2") else 1
                x = self._torch.nn.functional.conv2d(x, kernel, shift, stride=stride, padding=border).relu_()
        return x

    def _resized(self, x: Any) -> Any:
        """Resize bilinearly, with pixels at their upper left corners."""
        for axis in (2, 3):
            size = x.shape[axis]
            place = self._torch.arange(SIZE, dtype=self._torch.float32) * np.float32(size / SIZE)
            low = place.long().clamp_max(size - 1)
            share = (place - low).reshape((-1, 1) if axis == 2 else (-1,))
            below = x.index_select(axis, low)
            x = below + (x.index_select(axis, (low + 1).clamp_max(size - 1)) - below) * share
        return x


def convolutions() -> Iterator[str]:
    rows = [("", _STEM), *((f"{name}.", branch) for name, block in _BLOCKS.items() for branch in block)]
    for prefix, steps in rows:
        for step in steps:
            names = step if isinstance(step, tuple) else (step,)
            yield from (prefix + _plain(name) for name in names if name not in _POOLINGS)


def load_inception(weights: str | Path | None, *, folder: str | Path = ".") -> Inception:
    if weights is None:
        raise InputError(f"quality: extractor = 'inception' needs weights = 'path' ({_FILE}); none are downloaded")
    path = Path(folder, weights)
    if not path.is_file():
        raise InputError(f"quality: weights: {path} does not exist; give {_FILE}")
    torch = optional_imports.load("torch", extra="torch")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has no exception of its own for this
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"quality: weights: {path} is not a file of weights alone ({reason})") from None
    if not isinstance(state, dict):
        raise InputError(f"quality: weights: {path} holds a {type(state).__name__}; give {_FILE}")
    with path.open("rb") as file:
        return Inception(state, hashlib.file_digest(file, "sha256").hexdigest())


def _plain(step: str) -> str:
    return step.removesuffix("!").removesuffix("/2")


def _pixels(batch: Batch) -> NDArray[np.float32]:
    if are_images(batch):
        raise InputError("quality: inception takes images of one size; these are of different sizes")
    if isinstance(batch, list):
        raise InputError("quality: inception looks at images; these inputs are texts")
    images = np.asarray(batch)
    images = images[..., None] if images.ndim == 3 else images
    if images.ndim != 4 or images.shape[3] not in (1, 3) or images.dtype.kind not in "uf":
        raise InputError(
            f"quality: inception takes images (N, H, W) or (N, H, W, 1 or 3), uint8 or floats in 0..1; "
            f"these are {images.dtype} {np.shape(batch)}"
        )
    pixels = images.astype(np.float32) * (255 if images.dtype.kind == "f" else 1)
    return np.repeat(pixels, 3, axis=3) if images.shape[3] == 1 else pixels
