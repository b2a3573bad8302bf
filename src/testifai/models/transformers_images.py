"""Image classifiers of Hugging Face's transformers, with their preprocessing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.preprocess import Preprocess
from testifai.models.texts.network import class_names, fingerprint, open_network, read_config, read_json
from testifai.models.torch import TorchModel
from testifai.support import optional_imports
from testifai.support.types import Record

if TYPE_CHECKING:
    from torch import Tensor

FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # as Pillow numbers them
Size = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Resizing:
    """Resizes images with a filter of Pillow; then crops the centre."""

    size: Size | int | None = None  # an integer is the length of the shorter side
    crop: Size | None = None
    resample: int = 2

    def target(self, height: int, width: int) -> Size:
        if self.size is None:
            return height, width
        if isinstance(self.size, tuple):
            return self.size
        short = min(height, width)
        return int(height * self.size / short), int(width * self.size / short)

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        height, width = self.target(*images.shape[1:3])
        if (height, width) != images.shape[1:3]:
            from PIL import Image

            resized = (Image.fromarray(one).resize((width, height), self.resample) for one in images)
            images = np.stack([np.asarray(one, np.uint8) for one in resized])
        return images[self._middle(height, width)]

    def on_tensors(self, images: Tensor) -> Tensor:
        """Resize a tensor on its device; PyTorch rounds differently, and replaces Lanczos by bicubic."""
        import torch

        height, width = self.target(*images.shape[1:3])
        if (height, width) != tuple(images.shape[1:3]):
            mode = FILTERS[self.resample] if self.resample != 1 else "bicubic"
            planes = images.movedim(-1, 1).float() if images.ndim == 4 else images[:, None].float()
            exact = {} if mode == "nearest" else {"antialias": True, "align_corners": False}
            planes = torch.nn.functional.interpolate(planes, (height, width), mode=mode, **exact)
            planes = planes.round().clamp(0, 255).to(images.dtype)
            images = planes.movedim(1, -1) if images.ndim == 4 else planes[:, 0]
        return images[self._middle(height, width)]

    def _middle(self, height: int, width: int) -> tuple[slice, ...]:
        if self.crop is None:
            return (slice(None),)
        top, left = (height - self.crop[0]) // 2, (width - self.crop[1]) // 2
        if top < 0 or left < 0:
            raise InputError(
                f"inputs: {height}×{width} images are smaller than the {self.crop[0]}×{self.crop[1]} to cut out"
            )
        return slice(None), slice(top, top + self.crop[0]), slice(left, left + self.crop[1])


class Resized(Preprocess):
    """Preprocessing that resizes images first; grey ones get three channels if the model takes three."""

    def __init__(self, resizing: Resizing, channels: int, **options: Any) -> None:
        super().__init__(**options)
        self.resizing, self.channels = resizing, channels

    def __call__(self, batch: Tensor) -> Tensor:
        images = self.resizing(batch)
        if images.ndim == 3 and self.channels == 3:
            images = np.repeat(images[..., np.newaxis], 3, axis=-1)
        return super().__call__(images)

    def on_tensors(self, batch: Tensor) -> Tensor:
        images = self.resizing.on_tensors(batch)
        if images.ndim == 3 and self.channels == 3:
            images = images[..., None].expand(*images.shape, 3)
        return super().on_tensors(images)


def read_processor(config: Record, where: str) -> tuple[Resizing, Record]:
    if config.get("do_pad"):
        raise InputError(
            f"model: {where} pads images, which is not known here; accepted: resizing, cropping, rescaling"
        )
    told: Record = {"scale": config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else "raw"}
    if config.get("do_normalize", True):
        told |= {"mean": config.get("image_mean", [0.5]), "std": config.get("image_std", [0.5])}
    resample = config.get("resample", 3 if "crop_pct" in config else 2)
    if resample not in FILTERS:
        raise InputError(f"model: {where}: resample = {resample!r}; accepted: {', '.join(map(str, FILTERS))}")
    crop = _size(config.get("crop_size", config.get("size")), where) if config.get("do_center_crop") else None
    crop = (crop, crop) if isinstance(crop, int) else crop
    if not config.get("do_resize", True):
        return Resizing(None, crop, resample), told
    size = _size(config.get("size", 224), where)
    if "crop_pct" in config and isinstance(size, int):
        # ConvNeXt: small images are enlarged by crop_pct and cropped, large ones are stretched.
        if size < 384:
            return Resizing(int(size / config["crop_pct"]), (size, size), resample), told
        return Resizing((size, size), None, resample), told
    if crop is None and isinstance(size, int) and config.get("image_processor_type", "").startswith("ViT"):
        size = (size, size)
    return Resizing(size, crop, resample), told


def _size(given: object, where: str) -> Size | int:
    if isinstance(given, int):
        return given
    if isinstance(given, dict) and "shortest_edge" in given:
        return int(given["shortest_edge"])
    if isinstance(given, dict) and {"height", "width"} <= {*given}:
        return int(given["height"]), int(given["width"])
    raise InputError(f"model: {where}: size = {given!r}; accepted: height and width, or shortest_edge")


PROCESSOR = "preprocessor_config.json"


def is_image_folder(folder: Path) -> bool:
    config = read_json(Path(folder, "config.json")) if Path(folder).is_dir() else None
    named = config.get("architectures") if isinstance(config, dict) else None
    return any("ForImageClassification" in str(one) for one in named or ())


class TransformersImageModel(TorchModel):
    """An image classifier in a folder, which has the size, scale, mean and std of its images."""

    def __init__(
        self,
        folder: str | Path,
        *,
        device: str | None = None,
        threads: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        read_config(self.folder)
        torch: Any = optional_imports.load("torch", extra="text")
        network = open_network(self.folder, "AutoModelForImageClassification", "").float().eval()

        class Logits(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, images: Tensor) -> Tensor:
                return self.network(pixel_values=images).logits

        super().__init__(Logits(), device=device, threads=threads, batch_size=batch_size)
        processor = self.folder / PROCESSOR
        resizing, feeding = read_processor(read_json(processor) or {}, str(processor))
        channels = int(getattr(network.config, "num_channels", 3))
        self._images = Resized(resizing, channels, layout="NCHW", **feeding)
        self._others = None
        self.preprocessing = {}  # that of the folder, which the fingerprint covers
        self.name = self.folder.resolve().name
        self.outputs, self.classes = "scores", int(network.config.num_labels)
        self.class_values = class_names(network.config)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.folder)
