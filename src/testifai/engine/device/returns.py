"""Results on their way back: one copy for each batch, behind the work of the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from testifai.engine.base import BatchOutcome
from testifai.engine.device.lane import Lane

AHEAD = 3  # batches that the device has before the first of them is waited for

# What to make of the arrays that come back for a batch.
Finish = Callable[[list[NDArray[Any]]], Iterable[BatchOutcome]]


class Returns:
    """Batches that the device still works on, in order."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._waiting: deque[Callable[[], Iterable[BatchOutcome]]] = deque()

    def send(self, tensors: Sequence[Tensor], finish: Finish) -> None:
        """Begin to copy a batch's results back; once they are here, `finish` makes outcomes of them."""
        forms = [(one.dtype, tuple(one.shape)) for one in tensors]
        arrived = self.lane.down(packed(tensors))
        self._waiting.append(lambda: finish(unpacked(arrived(), forms)))

    def finished(self, ahead: int = AHEAD) -> Iterator[BatchOutcome]:
        """Outcomes of the batches that came first, until so many are still with the device."""
        while len(self._waiting) > ahead:
            yield from self._waiting.popleft()()


def packed(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of any kind as the bytes of one; flags take a bit each.

    >>> packed([torch.tensor([True, False, True]), torch.tensor([1], dtype=torch.int16)]).tolist()
    [160, 1, 0]
    """
    return torch.cat([_bytes(one) for one in tensors])


def unpacked(content: NDArray[np.uint8], forms: Sequence[tuple[torch.dtype, tuple[int, ...]]]) -> list[NDArray[Any]]:
    """The arrays of which `packed` made these bytes."""
    arrays, start = [], 0
    for dtype, shape in forms:
        count = prod(shape)
        flags = dtype == torch.bool
        stop = start + (-(-count // 8) if flags else count * dtype.itemsize)
        own = content[start:stop].copy()
        arrays.append((np.unpackbits(own, count=count).view(bool) if flags else own.view(_numpy(dtype))).reshape(shape))
        start = stop
    return arrays


def _bytes(tensor: Tensor) -> Tensor:
    flat = tensor.reshape(-1)
    if tensor.dtype == torch.bool:
        eights = pad(flat.view(torch.uint8), (0, -len(flat) % 8)).view(-1, 8)
        return (eights << _shifts(tensor.device)).sum(dim=1, dtype=torch.uint8)
    return flat.contiguous().view(torch.uint8)


@lru_cache
def _shifts(device: torch.device) -> Tensor:
    return torch.arange(7, -1, -1, dtype=torch.uint8, device=device)


@lru_cache
def _numpy(dtype: torch.dtype) -> np.dtype[Any]:
    return np.asarray(torch.empty(0, dtype=dtype).numpy()).dtype
