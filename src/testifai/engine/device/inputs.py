"""Inputs on their way to a device: each once where all fit, else piece by piece while the one before is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from testifai.engine.device.streams import DeviceStreams, Fetch
from testifai.engine.plan import Piece
from testifai.engine.subject import Subject
from testifai.runs.outcomes import Places

SHARE = 4  # of a device's free memory, one part in so many may hold inputs for good


@dataclass(frozen=True)
class Chunk:
    """Some inputs on the device, in the order of their places."""

    values: Tensor
    numbers: Tensor  # in the data set
    labels: Tensor | None


class DeviceInputs:
    """The inputs of a subject. What was sent to the device once stays there, if there is room for all."""

    def __init__(self, subject: Subject, streams: DeviceStreams, bytes_each: int) -> None:
        self.subject, self.streams = subject, streams
        free = streams.free_bytes()
        inputs = len(subject.order)
        # The computer's own memory holds them already.
        self._stay = free is not None and inputs * bytes_each <= free // SHARE
        self._there = np.zeros(inputs, bool)
        self._kept: Tensor | None = None

    def chunk(self, places: Places) -> Chunk:
        """The inputs at these places."""
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
        """Every piece with its inputs; the next one is arranged and on its way meanwhile."""
        with ThreadPoolExecutor(1, thread_name_prefix="testifai-inputs") as pool:
            piece = next(pieces, None)
            there = None if piece is None else (piece, self.chunk(piece[0]))
            while there is not None:
                coming = pool.submit(self._beside, pieces)
                yield there
                there = self._fetched(coming.result())

    def _beside(self, pieces: Iterator[Piece]) -> tuple[Piece, Chunk, Fetch] | None:
        piece = next(pieces, None)
        if piece is None:
            return None
        with self.streams.beside() as fetch:
            return piece, self.chunk(piece[0]), fetch

    @staticmethod
    def _fetched(coming: tuple[Piece, Chunk, Fetch] | None) -> tuple[Piece, Chunk] | None:
        if coming is None:
            return None
        piece, chunk, fetch = coming
        labels = None if chunk.labels is None else fetch(chunk.labels)
        return piece, Chunk(fetch(chunk.values), fetch(chunk.numbers), labels)
