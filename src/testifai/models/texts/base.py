"""Base classes of text models and of their fields in a spec."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart
from testifai.models.texts.batching import LIMIT_MB, RowCache, Text
from testifai.support.batches import Batch, are_pairs
from testifai.support.options_base import Count, Megabytes
from testifai.support.types import Array

# The adapter removes duplicates, sorts texts by length and makes batches: it needs many at a time.
BATCH_SIZE = 4096


class NetworkPart(ModelPart):
    max_length: Count | None = None
    """Tokens after which a text is cut off."""
    device: str | None = None
    """Where it runs, such as `cuda`; default: `cpu`."""
    threads: Count | None = None
    """Threads of one inference; default: 1."""
    cache_mb: Megabytes | None = None
    """Memory for the scores of texts that come again; default: 256."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""


class TextModel(Model):
    """A model of texts, or of pairs if `pairs` (None: either), that computes the scores of repeated inputs once."""

    thread_safe = True
    spares_batch = True
    repeatable = True
    pairs: bool | None = None

    def __init__(self, *, cache_mb: float = LIMIT_MB, batch_size: int | None = None) -> None:
        self.batch_size = batch_size or BATCH_SIZE
        self._known = RowCache(cache_mb)

    @abstractmethod
    def scores(self, texts: list[Text]) -> Array:
        """Return one row per text or pair, which are distinct."""

    def __call__(self, batch: Batch) -> Array:
        return self._known.rows(self._texts(batch), self.scores)

    def _texts(self, batch: Batch) -> list[Text]:
        return check_texts(batch, self.name, self.pairs)


def check_texts(batch: object, name: str, pairs: bool | None) -> list[Text]:
    """Return the batch as the list of texts, or of pairs, that the model takes."""
    wanted = {None: "texts or pairs of texts", False: "texts", True: "pairs of texts"}[pairs]
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "O" and batch.ndim == 1:
        batch = batch.tolist()
    if not isinstance(batch, list):
        found = f"{batch.dtype} of shape {batch.shape}" if isinstance(batch, np.ndarray) else type(batch).__name__
        raise InputError(f"{name}: inputs are {found}; the model takes {wanted}")
    given = are_pairs(batch)
    if given:
        known = all(isinstance(one, tuple) and [*map(type, one)] == [str, str] for one in batch)
    else:
        known = all(isinstance(one, str) for one in batch)
    if not known:
        raise InputError(f"{name}: inputs are neither all texts nor all pairs of texts; the model takes {wanted}")
    if pairs is not None and batch and given != pairs:
        raise InputError(f"{name}: inputs are {'pairs of texts' if given else 'texts'}; the model takes {wanted}")
    return batch
