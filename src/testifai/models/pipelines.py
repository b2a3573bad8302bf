"""Pipelines of Hugging Face's transformers for classification, of texts or of images, as they are handed over."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.class_names import class_names
from testifai.support.batches import Batch, are_pairs
from testifai.support.reachable import tensor_bytes

TASKS = ("text-classification", "sentiment-analysis", "image-classification")


def is_pipeline(model: Any) -> bool:
    """Whether this is a pipeline of transformers."""
    return type(model).__module__.startswith("transformers.pipelines")


class PipelineModel(Model):
    """A pipeline asked for the scores of all its classes, in the order of its model's outputs."""

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
        """The task, the config and the weights."""
        digest = hashlib.sha256(f"{self.pipeline.task} {self.pipeline.model.config.to_json_string()}".encode())
        for name, value in sorted(self.pipeline.model.state_dict().items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(tensor_bytes(value))
        return digest.hexdigest()

    def __call__(self, batch: Batch) -> NDArray[Any]:
        found = self.pipeline(self._fed(batch), top_k=len(self.names), function_to_apply="none", batch_size=len(batch))
        rows = [{one["label"]: one["score"] for one in row} for row in found]
        return np.array([[row[name] for name in self.names] for row in rows], np.float32)

    def _fed(self, batch: Batch) -> list[Any]:
        images = self.pipeline.task == "image-classification"
        if images == isinstance(batch, list):
            wanted = "images" if images else "texts"
            raise InputError(f"{self.name}: takes {wanted}; the inputs are {'texts' if images else 'numbers'}")
        if isinstance(batch, list):
            return [{"text": one, "text_pair": two} for one, two in batch] if are_pairs(batch) else list(batch)
        from PIL import Image

        return [Image.fromarray(one).convert("RGB") for one in np.asarray(batch, np.uint8)]
