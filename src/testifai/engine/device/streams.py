"""Asynchronous copies to a device and back, its clock and memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from testifai.engine.base import BatchOutcome
from testifai.engine.plan import Piece
from testifai.engine.subject import Subject
from testifai.runs.outcomes import Places
from testifai.support.types import Array

Fetch = Callable[[Tensor], Tensor]


class DeviceStreams:
    """One device. Operations of CUDA's streams and events are immediate on the CPU."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        self._beside = torch.cuda.Stream(self.device) if self.cuda else None

    def up(self, array: Array) -> Tensor:
        """Copy an array to the device by way of pinned memory, without waiting."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.cuda else tensor

    def down(self, tensor: Tensor) -> Callable[[], Array]:
        """Start to copy a tensor to the CPU; the function returned waits for it."""
        if not self.cuda:
            return lambda: np.asarray(tensor.numpy())
        kept = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        kept.copy_(tensor, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))

        def wait() -> Array:
            done.synchronize()
            return np.asarray(kept.numpy())

        return wait

    @contextmanager
    def beside(self) -> Iterator[Fetch]:
        """Run work on a second stream; `fetch` makes its tensors available to the current one."""
        if self._beside is None:
            yield lambda tensor: tensor
            return
        # Earlier work may still use the memory.
        self._beside.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._beside):
            done = torch.cuda.Event()

            def fetch(tensor: Tensor) -> Tensor:
                here = torch.cuda.current_stream(self.device)
                here.wait_event(done)
                tensor.record_stream(here)
                return tensor

            yield fetch
            done.record(self._beside)

    def mark(self) -> Any:
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end) / 1000 if self.cuda else end - begin)

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def free_bytes(self) -> int | None:
        if not self.cuda:
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        # Memory that PyTorch has reserved and does not use is free too.
        return int(free + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device))

    def release(self) -> None:
        if self.cuda:
            torch.cuda.empty_cache()


def out_of_memory(error: BaseException | None) -> bool:
    """Return True if an error, or one of its causes, is that memory did not suffice."""
    while error is not None and not isinstance(error, torch.OutOfMemoryError):
        error = error.__cause__
    return error is not None


AHEAD = 3  # batches on the device before the first of them is waited for


class ResultQueue:
    def __init__(self, streams: DeviceStreams) -> None:
        self.streams = streams
        self._waiting: deque[Callable[[], Iterable[BatchOutcome]]] = deque()

    def send(self, tensors: Sequence[Tensor], finish: Callable[[list[Array]], Iterable[BatchOutcome]]) -> None:
        """Start to copy a batch's results to the CPU, where `finish` makes outcomes of them."""
        forms = [(one.dtype, tuple(one.shape)) for one in tensors]
        arrived = self.streams.down(packed(tensors))
        self._waiting.append(lambda: finish(unpacked(arrived(), forms)))

    def finished(self, ahead: int = AHEAD) -> Iterator[BatchOutcome]:
        """Return outcomes of the first batches, until `ahead` are left on the device."""
        while len(self._waiting) > ahead:
            yield from self._waiting.popleft()()


def packed(tensors: Sequence[Tensor]) -> Tensor:
    """Pack tensors of any dtype into the bytes of one; booleans take a bit each."""
    return torch.cat([_bytes(one) for one in tensors])


def unpacked(content: NDArray[np.uint8], forms: Sequence[tuple[torch.dtype, tuple[int, ...]]]) -> list[Array]:
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


SHARE = 4  # one part in 4 of a device's free memory may hold inputs permanently


@dataclass(frozen=True)
class Chunk:
    values: Tensor
    numbers: Tensor  # in the data set
    labels: Tensor | None


class DeviceInputs:
    """The inputs of a subject, which stay on the device if there is memory for all."""

    def __init__(self, subject: Subject, streams: DeviceStreams, bytes_each: int) -> None:
        self.subject, self.streams = subject, streams
        free = streams.free_bytes()
        inputs = len(subject.order)
        self._stay = free is not None and inputs * bytes_each <= free // SHARE
        self._there = np.zeros(inputs, bool)
        self._kept: Tensor | None = None

    def chunk(self, places: Places) -> Chunk:
        subject, streams = self.subject, self.streams
        numbers = subject.order[places]
        labels = None
        if subject.oracle.needs_labels and subject.labels is not None:
            wanted = subject.labels[numbers]
            labels = streams.up(wanted.astype(np.int64) if wanted.ndim == 1 else wanted)
        where = streams.up(numbers.astype(np.int64))
        return Chunk(self._values(places, where), where, labels)

    def _values(self, places: Places, where: Tensor) -> Tensor:
        if not self._stay:
            return self.streams.up(np.asarray(self.subject.batch(places)))
        numbers = self.subject.order[places]
        missing = places[~self._there[numbers]]
        if len(missing):
            batch = self.streams.up(np.asarray(self.subject.batch(missing)))
            if self._kept is None:
                self._kept = torch.empty((len(self._there), *batch.shape[1:]), dtype=batch.dtype, device=batch.device)
            self._kept[self.streams.up(self.subject.order[missing].astype(np.int64))] = batch
            self._there[self.subject.order[missing]] = True
        assert self._kept is not None
        return self._kept[where]

    def ahead(self, pieces: Iterator[Piece]) -> Generator[tuple[Piece, Chunk], None, None]:
        """Return every piece with its inputs; the next one is prepared and sent meanwhile."""
        with ThreadPoolExecutor(1, thread_name_prefix="testifai-inputs") as pool:
            piece = next(pieces, None)
            there = None if piece is None else (piece, self.chunk(piece[0]))
            while there is not None:
                coming = pool.submit(self._beside, pieces)
                yield there
                there = coming.result()()

    def _beside(self, pieces: Iterator[Piece]) -> Callable[[], tuple[Piece, Chunk] | None]:
        """Prepare the next piece; the function returned fetches it."""
        piece = next(pieces, None)
        if piece is None:
            return lambda: None
        with self.streams.beside() as fetch:
            chunk = self.chunk(piece[0])

        def fetched() -> tuple[Piece, Chunk]:
            labels = None if chunk.labels is None else fetch(chunk.labels)
            return piece, Chunk(fetch(chunk.values), fetch(chunk.numbers), labels)

        return fetched
