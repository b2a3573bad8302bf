"""Sequence classifiers of Hugging Face's transformers in a local folder (needs the extra `text`)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from testifai.models.texts.base import TextModel
from testifai.models.texts.batching import LIMIT_MB, Text
from testifai.models.texts.network import TextNetwork, class_names, fingerprint
from testifai.support.batches import Batch
from testifai.support.types import Array


class TransformersModel(TextModel):
    """A sequence classifier; texts, or pairs of texts read together, in, logits out.

    With one output it is a regression and gives values. The folder needs config.json, weights (.safetensors, or .bin
    read as tensors alone) and the tokenizer's files; nothing is downloaded and no code of the folder is run.
    """

    features_output = "features"

    def __init__(
        self,
        folder: str | Path,
        *,
        cache_mb: float = LIMIT_MB,
        max_length: int | None = None,
        device: str | None = None,
        threads: int = 1,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(cache_mb=cache_mb, batch_size=batch_size)
        self.folder = Path(folder)
        self.name = self.folder.resolve().name
        self.network = TextNetwork(
            self.folder, "AutoModelForSequenceClassification", max_length=max_length, device=device, threads=threads
        )
        columns = int(self.network.module.config.num_labels)
        self.outputs = "scores" if columns > 1 else "values"
        self.classes = columns if columns > 1 else None
        self.class_values = class_names(self.network.module.config) if columns > 1 else None
        self.preprocessing = {} if max_length is None else {"max_length": max_length}

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the folder's files."""
        return fingerprint(self.folder)

    def scores(self, texts: list[Text]) -> Array:
        return self.network.rows(texts, _logits)

    def features(self, batch: Batch) -> Array:
        """The last layer's states, averaged over the tokens."""
        return self.network.rows(self._texts(batch), _last_states, output_hidden_states=True)

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Logits and, from the same pass, what a submodule said, averaged over the tokens; by default the features."""
        if layer is not None:
            return self.network.traced(self._texts(batch), _logits, layer)
        return self(batch), self.features(batch)


def _logits(outputs: Any) -> Any:
    return outputs.logits


def _last_states(outputs: Any) -> Any:
    return outputs.hidden_states[-1].mean(dim=1)
