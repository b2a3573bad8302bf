"""The walk of a chunk through the prefix tree on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.device.inputs import Chunk
from testifai.engine.device.streams import ResultQueue, out_of_memory
from testifai.engine.device.subject import ChunkJudge, DeviceSubject
from testifai.engine.plan import Piece, Work
from testifai.engine.prefix_tree import Rows, TreePaths, TreeWalk, Waiting
from testifai.errors import InputError
from testifai.runs.outcomes import Places
from testifai.support.types import Array

MANY = 4096  # inputs
TOGETHER = 1 << 17  # trials


@dataclass(frozen=True)
class DeviceBatch:
    """Inputs on the device, and which rows of the chunk they are."""

    values: Tensor
    at: Tensor

    def __getitem__(self, part: slice) -> DeviceBatch:
        return DeviceBatch(self.values[part], self.at[part])

    def __setitem__(self, part: slice, batch: DeviceBatch) -> None:
        self.values[part], self.at[part] = batch.values, batch.at


class DeviceTreeWalk(TreeWalk[DeviceBatch]):
    """Perturbs, asks and judges on the device, and never waits for it but for results of batches long begun."""

    def __init__(
        self,
        executor: Executor,
        on_device: DeviceSubject,
        work: Work,
        paths: TreePaths,
        piece: Piece,
        *,
        chunk: Chunk,
        results: ResultQueue,
    ) -> None:
        super().__init__(executor, work, paths, piece)
        self.on_device, self.streams, self.clock = on_device, on_device.streams, on_device.clock
        self.chunk, self.results = chunk, results
        # Calls for many inputs anyway are not put together: to arrange them takes longer than a call.
        many = self.complete and len(self.places) >= MANY
        self.together = 0 if many else min(executor.chunk, TOGETHER)
        self.judge = ChunkJudge(executor, on_device, self.places, chunk.labels)

    def inputs(self, rows: Rows) -> DeviceBatch:
        everything = DeviceBatch(self.chunk.values, torch.arange(len(self.places), device=self.streams.device))
        return everything if len(rows) == len(self.places) else self.take(everything, rows)

    def take(self, batch: DeviceBatch, rows: Rows) -> DeviceBatch:
        chosen = self.streams.up(rows.astype(np.int64))
        return DeviceBatch(batch.values[chosen], batch.at[chosen])

    def roomy(self, batch: DeviceBatch, size: int) -> DeviceBatch:
        made = DeviceBatch(batch.values.new_empty((size, *batch.values.shape[1:])), batch.at.new_empty(size))
        made[: len(batch.at)] = batch
        return made

    def concat(self, batches: Sequence[DeviceBatch]) -> DeviceBatch:
        return DeviceBatch(torch.cat([one.values for one in batches]), torch.cat([one.at for one in batches]))

    def perturb(self, batch: DeviceBatch, places: Places, axis: int, severity: int) -> DeviceBatch:
        with self.clock("perturb"), torch.no_grad():
            numbers = self.chunk.numbers[batch.at]
            return DeviceBatch(self.on_device.perturbing.step(batch.values, numbers, places, axis, severity), batch.at)

    def measure(self, asked: Waiting[DeviceBatch]) -> Iterator[BatchOutcome]:
        try:
            with torch.inference_mode():
                self._begin(asked)
        except (InputError, torch.OutOfMemoryError) as error:
            if not out_of_memory(error):
                raise
            self.on_device.smaller_batches(len(asked), error)
            while len(asked):
                part, asked = asked.split(self.executor.batch_size.next())
                yield from self.measure(part)
            return
        with self.clock("copy"):
            done = list(self.results.finished())
        yield from done

    def _begin(self, asked: Waiting[DeviceBatch]) -> None:
        """Give the device a batch; its results come back by themselves."""
        first = int(asked.configurations[0])
        begin = self.streams.mark()
        with self.clock("infer"):
            outputs = self.on_device.ask(asked.inputs.values, first)
        end = self.streams.mark()
        with self.clock("judge"):
            back = self.judge.results(outputs, asked.inputs.at, clean=first == 0)
        configurations, places = asked.configurations, asked.places

        def finish(arrays: list[Array]) -> list[BatchOutcome]:
            self.executor.batch_size.note(len(places), self.streams.seconds(begin, end))
            return self.judge.outcomes(arrays, outputs, configurations, places)

        with self.clock("copy"):
            self.results.send(back, finish)
