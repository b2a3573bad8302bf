"""Models of Hugging Face's transformers: pipelines, and folders with a classifier of texts or of images."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.texts.base import LIMIT_MB, NetworkPart, Text, TextModel
from testifai.models.texts.network import NetworkOptions, TextNetwork, class_names, fingerprint
from testifai.models.transformers_images import TransformersImageModel, is_image_folder
from testifai.support.batches import Batch, are_pairs
from testifai.support.fingerprints import fingerprint_code
from testifai.support.options_base import File
from testifai.support.types import Array

TASKS = ("text-classification", "sentiment-analysis", "image-classification")


def is_pipeline(model: object) -> bool:
    return type(model).__module__.startswith("transformers.pipelines")


class PipelineModel(Model):
    """A pipeline, which returns the scores of all classes in the order of its model's outputs."""

    outputs = "scores"

    def __init__(self, pipeline: Any) -> None:
        if pipeline.task not in TASKS:
            raise InputError(f"model: a pipeline for {pipeline.task!r} is not accepted; one of {', '.join(TASKS)} is")
        self.pipeline, config = pipeline, pipeline.model.config
        self.name = f"{type(pipeline.model).__name__} ({pipeline.task})"
        self.names = [str(config.id2label[number]) for number in range(config.num_labels)]
        self.classes, self.class_values = len(self.names), class_names(config)
        self.preprocessing = {}

    @cached_property
    def fingerprint(self) -> str:
        config = self.pipeline.model.config.to_json_string()
        return fingerprint_code([self.pipeline.task, config, self.pipeline.model.state_dict()]).fingerprint

    def __call__(self, batch: Batch) -> Array:
        images = self.pipeline.task == "image-classification"
        if images == isinstance(batch, list):
            wanted = "images" if images else "texts"
            raise InputError(f"{self.name}: takes {wanted}; the inputs are {'texts' if images else 'numbers'}")
        given: list[Any]
        if isinstance(batch, list):
            given = [{"text": one, "text_pair": two} for one, two in batch] if are_pairs(batch) else list(batch)
        else:
            from PIL import Image

            given = [Image.fromarray(one).convert("RGB") for one in np.asarray(batch, np.uint8)]
        found = self.pipeline(given, top_k=len(self.names), function_to_apply="none", batch_size=len(batch))
        rows = [{one["label"]: one["score"] for one in row} for row in found]
        return np.array([[row[name] for name in self.names] for row in rows], np.float32)


class TransformersModel(TextModel):
    """A sequence classifier in a folder, from texts or pairs of texts to logits; with one output a regression."""

    features_output = "features"

    def __init__(
        self,
        folder: str | Path,
        *,
        cache_mb: float = LIMIT_MB,
        batch_size: int | None = None,
        **options: Unpack[NetworkOptions],
    ) -> None:
        super().__init__(cache_mb=cache_mb, batch_size=batch_size)
        self.folder = Path(folder)
        self.name = self.folder.resolve().name
        self.network = TextNetwork(self.folder, "AutoModelForSequenceClassification", **options)
        config = self.network.module.config
        self.outputs = "values"
        if config.num_labels > 1:
            self.outputs, self.classes, self.class_values = "scores", int(config.num_labels), class_names(config)
        self.preprocessing = {} if options.get("max_length") is None else {"max_length": options["max_length"]}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.folder)

    def scores(self, texts: list[Text]) -> Array:
        return self.network.rows(texts, attrgetter("logits"))

    def features(self, batch: Batch) -> Array:
        texts = self._texts(batch)
        return self.network.rows(texts, lambda made: made.hidden_states[-1].mean(dim=1), output_hidden_states=True)

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return logits and a submodule's outputs, averaged over the tokens; by default the features."""
        if layer is not None:
            return self.network.traced(self._texts(batch), attrgetter("logits"), layer)
        return self(batch), self.features(batch)


class TransformersPart(NetworkPart):
    """A classifier of texts, or of images, in a folder of transformers."""

    transformers: File
    """The folder, as `save_pretrained` writes it."""

    FILES: ClassVar = ("transformers",)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / "config.json").is_file() and not (path / "modules.json").is_file()

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        if is_image_folder(Path(options["transformers"])):
            for_texts = [name for name in ("max_length", "cache_mb") if name in options]
            if for_texts:
                raise InputError(f"model.{for_texts[0]}: is for models of texts; {self.transformers} takes images")
            return TransformersImageModel(options.pop("transformers"), **options)
        return TransformersModel(options.pop("transformers"), **options)
