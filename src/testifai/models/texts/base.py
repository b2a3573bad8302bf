"""What adapters of text models have in common."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart
from testifai.models.texts.batching import LIMIT_MB, RowCache, Text
from testifai.support.batches import Batch, are_pairs
from testifai.support.options_base import Count, Megabytes
from testifai.support.types import Array

# Texts are told apart, sorted by length and cut into batches by the adapter: many at a time leave it a choice.
BATCH_SIZE = 4096


class NetworkPart(ModelPart):
    """What a spec may say of a network that reads texts."""

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
    """A model of texts whose scores of repeated inputs are worked out once.

    An adapter has `scores(texts)`, a row for each of some distinct texts or pairs, and says in `pairs` which of the
    two it takes (None: either).
    """

    thread_safe = True
    spares_batch = True
    repeatable = True
    pairs: bool | None = None

    def __init__(self, *, cache_mb: float = LIMIT_MB, batch_size: int | None = None) -> None:
        self.batch_size = batch_size or BATCH_SIZE
        self._known = RowCache(cache_mb)

    @abstractmethod
    def scores(self, texts: list[Text]) -> Array:
        """A row for each."""

    def __call__(self, batch: Batch) -> Array:
        return self._known.rows(self._texts(batch), self.scores)

    def _texts(self, batch: Batch) -> list[Text]:
        return check_texts(batch, self.name, self.pairs)


def check_texts(batch: object, name: str, pairs: bool | None) -> list[Text]:
    """The batch as the list of texts, or of pairs, that the model takes.

    >>> check_texts(np.array(["a", "b"], object), "model", None)
    ['a', 'b']
    >>> check_texts([("a", "b")], "model", False)
    Traceback (most recent call last):
    testifai.errors.InputError: model: inputs are pairs of texts; the model takes texts
    """
    wanted = {None: "texts or pairs of texts", False: "texts", True: "pairs of texts"}[pairs]
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "O" and batch.ndim == 1:
        batch = batch.tolist()
    if not isinstance(batch, list):
        found = f"{batch.dtype} of shape {batch.shape}" if isinstance(batch, np.ndarray) else type(batch).__name__
        raise InputError(f"{name}: inputs are {found}; the model takes {wanted}")
    given = are_pairs(batch)
    known = all(isinstance(one, tuple) and [*map(type, one)] == [str, str] for one in batch) if given else all(
        isinstance(one, str) for one in batch
    )  # fmt: skip
    if not known:
        raise InputError(f"{name}: inputs are neither all texts nor all pairs of texts; the model takes {wanted}")
    if pairs is not None and batch and given != pairs:
        raise InputError(f"{name}: inputs are {'pairs of texts' if given else 'texts'}; the model takes {wanted}")
    return batch
