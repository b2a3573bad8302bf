"""How many inputs a model gets at a time, and how many workers hand them over."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import numpy as np

from testifai.data import Data
from testifai.models.base import Model
from testifai.support.batches import are_images, are_pairs


def default_workers(model: Model) -> int:
    """All cores for models that may be called from several threads at once, else one."""
    if not model.thread_safe:
        return 1
    # Not every system says which of its cores this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BatchSize:
    """How many inputs the model gets at a time: as told, or the quickest of a few sizes tried on the first batches.

    It only ever changes the speed. Trying costs nothing: the batches tried are part of the work.
    """

    SIZES = (32, 64, 128, 256, 512)
    MOST_BYTES = 4 << 20
    TRIES = 8
    WORTH = 1.04  # a larger batch has to be this much quicker: it takes more memory, and timings are noisy

    def __init__(
        self,
        told: int | None,
        bytes_each: int,
        *,
        sizes: Sequence[int] = SIZES,
        most_bytes: int = MOST_BYTES,
        tries: int = TRIES,
    ) -> None:
        affordable = [size for size in sizes if size * bytes_each <= most_bytes]
        self._sizes = [told] if told else affordable or [max(1, most_bytes // bytes_each)]
        self._tries = tries
        self._seconds: dict[int, list[float]] = {size: [] for size in self._sizes}
        self._best: int | None = self._sizes[0] if len(self._sizes) == 1 else None

    def next(self) -> int:
        """The size to use now."""
        return self._best or min(self._sizes, key=lambda size: len(self._seconds[size]))

    def limit(self, most: int) -> None:
        """Use no size above this one from now on, told or not: memory does not suffice for more."""
        self._sizes = [size for size in self._sizes if size <= most] or [most]
        self._seconds = {size: self._seconds.get(size, []) for size in self._sizes}
        if len(self._sizes) == 1 or (self._best is not None and self._best > most):
            self._best = self._sizes[-1]

    def note(self, inputs: int, seconds: float) -> None:
        """How long the model took for a batch."""
        if self._best is not None or inputs not in self._seconds:
            return
        self._seconds[inputs].append(seconds / inputs)
        # The fastest try of each size: whatever else the machine does only ever adds time.
        if all(len(times) >= self._tries for times in self._seconds.values()):
            quickest = {size: min(times) for size, times in self._seconds.items()}
            limit = self.WORTH * min(quickest.values())
            self._best = next(size for size in self._sizes if quickest[size] <= limit)


def input_bytes(data: Data) -> int:
    """The size of one input in memory; of texts, which differ, the mean."""
    if are_images(data.inputs):
        return sum(image.nbytes for image in data.inputs) // len(data.inputs)
    if isinstance(data.inputs, list):
        texts = itertools.chain.from_iterable(data.inputs) if are_pairs(data.inputs) else data.inputs
        return sum(map(len, texts)) // max(1, len(data.inputs))
    first = data.inputs[np.arange(min(1, len(data.inputs)))]
    return sum(one.nbytes for one in first)
