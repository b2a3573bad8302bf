"""From images as data sets store them (uint8, height × width × colour) to a model's input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import DTypeLike

from testifai.errors import InputError, suggest
from testifai.models.base import ModelPart
from testifai.support import validation
from testifai.support.batches import Batch
from testifai.support.options_base import Numbers
from testifai.support.types import Array, Floats

if TYPE_CHECKING:
    from torch import Tensor

Layout = Literal["NCHW", "NHWC", "flat"]
NamedScale = Literal["unit", "raw", "signed"]
LAYOUTS: tuple[str, ...] = get_args(Layout)
SCALES: tuple[str, ...] = get_args(NamedScale)

Shape = Sequence[int | None]
Scale = str | float
PerChannel = float | Sequence[float]


class ImagePart(ModelPart):
    layout: Layout | None = None
    """The order of the axes of images that the model takes."""
    scale: float | NamedScale | None = None
    """What 0 … 255 becomes: 0 … 1 (unit), −1 … 1 (signed), itself (raw), or a factor."""
    mean: Numbers | None = None
    """Taken off after scaling: a number, or one per channel."""
    std: Numbers | None = None
    """Divided by after that: a number, or one per channel."""


class Guess(NamedTuple):
    layout: str | None
    scale: Scale


class Preprocess:
    """Turns a batch into a model's input: scale, then (x − mean) / std per channel, then layout.

    `scale` maps 0 … 255 to "unit" 0 … 1, "signed" −1 … 1, or itself, "raw"; these names apply to batches of integers
    (others count as scaled already), a number multiplies any batch. `layout` None keeps the shape. `expects` is the
    model's input shape (first axis = input, None = any size), checked on every batch.
    """

    def __init__(
        self,
        layout: str | None = None,
        scale: Scale | None = None,
        mean: PerChannel | None = None,
        std: PerChannel | None = None,
        dtype: DTypeLike = np.float32,
        expects: Shape | None = None,
    ) -> None:
        if layout is not None and layout not in LAYOUTS:
            raise InputError(f"layout: {layout!r} is not known; {suggest(layout, LAYOUTS)}")
        self.layout, self.dtype, self.expects = layout, np.dtype(dtype), expects
        self.scale: Scale = "raw" if scale is None else scale
        if not isinstance(scale, str | None):
            self.scale = validation.number("scale", scale)
            if self.scale == 0:
                raise InputError("scale: must be a number other than 0, got 0")
        elif self.scale not in SCALES:
            raise InputError(f"scale: {scale!r} is not accepted; a number or one of {', '.join(SCALES)} is")
        self.mean, self.std = _check_channels("mean", mean), _check_channels("std", std)
        self._known: dict[Any, Any] = {}
        if self.std is not None and (self.std <= 0).any():
            raise InputError(f"std: {self.std.tolist()} is not accepted; positive numbers are")
        if self.dtype.kind != "f" and (self.mean is not None or self.std is not None or self.scale != "raw"):
            raise InputError(f"scale: the model takes {self.dtype} inputs; scale, mean and std need a model of floats")

    def __call__(self, batch: Batch) -> Batch:
        if isinstance(batch, list):
            return batch
        view = self._arrange(batch)
        divisor, shift = self._factors(batch, view.shape)
        if divisor is None:
            out = np.array(view, dtype=self.dtype, order="C", copy=None)
        else:
            # One pass: the conversion happens inside the division, straight into the target's layout.
            out = np.divide(view, divisor, out=np.empty(view.shape, self.dtype), dtype=self.dtype, casting="unsafe")
        if shift is not None:
            out = np.subtract(out, shift, out=out if divisor is not None else None)
        return out

    def on_tensors(self, batch: Tensor) -> Tensor:
        """Prepare a tensor on its device; NCHW images stay "channels last" in memory, which is faster on GPUs."""
        import torch

        view = self._arrange(batch)
        divisor, shift = self._factors(batch, view.shape)
        # A copy: the model may write into it.
        out = view.to(getattr(torch, self.dtype.name), copy=divisor is None and shift is None)
        out = out if divisor is None else out / divisor
        return out if shift is None else out - shift

    def _factors(self, batch: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Return divisor and shift in the shape of the arranged batch, an array or tensor; cached per kind of batch."""
        device = None if isinstance(batch, np.ndarray) else batch.device
        key = (device, batch.dtype, batch.shape[1:])
        if key not in self._known:
            dtype = np.dtype(str(batch.dtype).removeprefix("torch."))
            pair = [None if one is None else self._spread(one, shape, batch.shape) for one in self.affine(dtype)]
            if device is not None:
                import torch

                pair = [None if one is None else torch.from_numpy(one).to(device) for one in pair]
            self._known[key] = pair
        divisor, shift = self._known[key]
        return divisor, shift

    def _arrange(self, batch: Any) -> Any:
        view = self.laid_out(batch)
        if self.expects is not None and not _fits(view.shape[1:], self.expects[1:]):
            raise InputError(_mismatch(tuple(batch.shape), self.expects, self.layout, tuple(view.shape)))
        return view

    def laid_out(self, batch: Any) -> Any:
        if self.layout is None:
            return batch
        if self.layout == "flat":
            return batch.reshape(len(batch), -1)
        if batch.ndim not in (3, 4):
            raise InputError(
                f"layout: {self.layout} is for images (N, H, W) or (N, H, W, C); "
                f"the inputs have shape {_show(batch.shape)}"
            )
        images = batch[..., None] if batch.ndim == 3 else batch
        if self.layout != "NCHW":
            return images
        return images.transpose(0, 3, 1, 2) if isinstance(images, np.ndarray) else images.permute(0, 3, 1, 2)

    def affine(self, dtype: np.dtype[Any]) -> tuple[Array | None, Array | None]:
        """Return (divisor, shift): x / divisor − shift equals ((x · scale + offset) − mean) / std; None: no change."""
        divisor, offset = np.ones(1), 0.0
        if not isinstance(self.scale, str):
            divisor = np.array([1.0 / self.scale])
        elif dtype.kind in "iu" and self.scale != "raw":
            divisor, offset = (np.array([255.0]), 0.0) if self.scale == "unit" else (np.array([127.5]), -1.0)
        std = np.ones(1) if self.std is None else self.std
        shift = ((0.0 if self.mean is None else self.mean) - offset) / std
        divisor = divisor * std
        return (None if (divisor == 1).all() else divisor), (None if (shift == 0).all() else shift)

    def _spread(self, values: Array, shape: tuple[int, ...], batch_shape: tuple[int, ...]) -> Array:
        values = values.astype(self.dtype)
        if len(values) == 1:
            return values.reshape(())
        channels = shape[1] if self.layout == "NCHW" else batch_shape[-1] if self.layout == "flat" else shape[-1]
        if len(values) != channels or (self.layout == "flat" and len(batch_shape) == 3):
            raise InputError(
                f"mean, std: have {len(values)} values; the inputs {_show(batch_shape)} have another number"
            )
        if self.layout == "NCHW":
            return values[:, np.newaxis, np.newaxis]
        return np.tile(values, shape[1] // channels) if self.layout == "flat" else values


def guess(input_shape: Shape, dtype: DTypeLike, batch_shape: Sequence[int]) -> Guess:
    """Return layout and scale from the model's input shape and the data's; InputError unless one layout fits.

    The scale cannot be inferred: 0 … 1 is assumed for images if the model takes floats.

    Args:
        input_shape: of the model, None for any size
        dtype: of its input
        batch_shape: of the data's inputs

    >>> guess((None, 3, 32, 32), "float32", (100, 32, 32, 3)).layout
    'NCHW'
    """
    rank = len(batch_shape)
    layouts = (None, "NCHW", "NHWC", "flat") if rank in (3, 4) else (None, "flat") if rank > 4 else (None,)
    one = np.broadcast_to(np.uint8(0), (1, *batch_shape[1:]))
    fitting = [layout for layout in layouts if _fits(Preprocess(layout).laid_out(one).shape[1:], input_shape[1:])]
    if None in fitting and "NHWC" in fitting:
        fitting.remove(None)  # for images with a colour axis they are the same
    if not fitting:
        raise InputError(_mismatch(batch_shape, input_shape))
    if len(fitting) > 1:
        raise InputError(
            f"layout: inputs {_show(batch_shape)} fit the model's input {_show(input_shape)} as "
            f"{' and as '.join(str(one) for one in fitting)}; set layout"
        )
    images = np.dtype(dtype).kind == "f" and rank >= 3
    return Guess(fitting[0], "unit" if images else "raw")


def _fits(shape: Sequence[int], wanted: Shape) -> bool:
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(size is None or size == have for have, size in pairs)


def _show(shape: Shape) -> str:
    sizes = ("any" if size is None else str(size) for size in shape[1:])
    return f"({', '.join(['N', *sizes][: len(shape)])})"


def _mismatch(
    batch_shape: Sequence[int], input_shape: Shape, layout: str | None = None, made: Sequence[int] = ()
) -> str:
    colours = {3: "grey", 4: "colour"}.get(len(batch_shape))
    hint = f" ({colours} images)" if colours and len(input_shape) == 4 else ""
    same = _show(batch_shape) == _show(input_shape)
    becomes = f", which layout = {layout!r} makes {_show(made)}" if same else ""
    return f"inputs: have shape {_show(batch_shape)}{hint}{becomes}; the model takes {_show(input_shape)}"


def _check_channels(field: str, values: PerChannel | None) -> Floats | None:
    if values is None:
        return None
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.empty((0, 0))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise InputError(f"{field}: {values!r} is not accepted; a number or one number per channel is")
    return array
