"""Image classifiers of Hugging Face's transformers in a local folder (needs the extra `text`); no torchvision."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from testifai.models.class_names import class_names
from testifai.models.resizing import Resized, read_processor
from testifai.models.texts.network import fingerprint, open_network, read_config, read_json
from testifai.models.torch import TorchModel
from testifai.support import libraries

PROCESSOR = "preprocessor_config.json"


def is_image_folder(folder: Path) -> bool:
    """Whether a folder of transformers holds a classifier of images."""
    config = read_json(Path(folder, "config.json")) if Path(folder).is_dir() else None
    named = config.get("architectures") if isinstance(config, dict) else None
    return any("ForImageClassification" in str(one) for one in named or ())


class TransformersImageModel(TorchModel):
    """A classifier of images; its folder says what size, scale, mean and std its images have.

    The folder needs config.json, weights and preprocessor_config.json; nothing is downloaded and no code of the folder
    is run. Images are resized as the folder says, after they were perturbed at the size that the data have.
    """

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
        torch = libraries.load("torch", extra="text")
        network = open_network(self.folder, "AutoModelForImageClassification", "").float().eval()
        super().__init__(_logits_of(torch, network), device=device, threads=threads, batch_size=batch_size)
        told = read_json(self.folder / PROCESSOR) or {}
        resizing, feeding = read_processor(told, f"{self.folder / PROCESSOR}")
        channels = int(getattr(network.config, "num_channels", 3))
        self._images = Resized(resizing, channels, layout="NCHW", **feeding)
        self._others = None
        self.preprocessing = {}  # the folder's own, which its fingerprint tells
        self.name = self.folder.resolve().name
        self.outputs, self.classes = "scores", int(network.config.num_labels)
        self.class_values = class_names(network.config)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the folder's files."""
        return fingerprint(self.folder)

    @property
    def untold(self) -> str | None:
        return None


def _logits_of(torch: Any, network: Any) -> Any:
    """The network as a module that returns its logits alone."""

    class Logits(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Any) -> Any:
            return self.network(pixel_values=images).logits

    return Logits()
