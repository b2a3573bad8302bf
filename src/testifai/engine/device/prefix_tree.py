"""The walk of a chunk through the prefix tree on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.device.inputs import Chunk
from testifai.engine.device.streams import Returns, out_of_memory
from testifai.engine.device.subject import Bench, ChunkJudge
from testifai.engine.plan import Piece, Work
from testifai.engine.prefix_tree import Rows, Trails, Waiting, Walk
from testifai.errors import InputError
from testifai.runs.outcomes import Places
from testifai.support.types import Array

MANY = 4096  # inputs
TOGETHER = 1 << 17  # trials


@dataclass(frozen=True)
class Placed:
    """Inputs on the device, and which rows of the chunk they are."""

    values: Tensor
    at: Tensor

    def __getitem__(self, part: slice) -> Placed:
        return Placed(self.values[part], self.at[part])

    def __setitem__(self, part: slice, batch: Placed) -> None:
        self.values[part], self.at[part] = batch.values, batch.at


class DeviceWalk(Walk[Placed]):
    """Perturbs, asks and judges on the device, and never waits for it but for results of batches long begun."""

    def __init__(
        self,
        executor: Executor,
        bench: Bench,
        work: Work,
        trails: Trails,
        piece: Piece,
        *,
        chunk: Chunk,
        returns: Returns,
    ) -> None:
        super().__init__(executor, work, trails, piece)
        self.bench, self.lane, self.clock = bench, bench.lane, bench.clock
        self.chunk, self.returns = chunk, returns
        # Calls for many inputs anyway are not put together: to arrange them takes longer than a call.
        many = self.complete and len(self.places) >= MANY
        self.together = 0 if many else min(executor.chunk, TOGETHER)
        self.judge = ChunkJudge(executor, bench, self.places, chunk.labels)

    def inputs(self, rows: Rows) -> Placed:
        everything = Placed(self.chunk.values, torch.arange(len(self.places), device=self.lane.device))
        return everything if len(rows) == len(self.places) else self.take(everything, rows)

    def take(self, batch: Placed, rows: Rows) -> Placed:
        chosen = self.lane.up(rows.astype(np.int64))
        return Placed(batch.values[chosen], batch.at[chosen])

    def roomy(self, batch: Placed, size: int) -> Placed:
        made = Placed(batch.values.new_empty((size, *batch.values.shape[1:])), batch.at.new_empty(size))
        made[: len(batch.at)] = batch
        return made

    def concat(self, batches: Sequence[Placed]) -> Placed:
        return Placed(torch.cat([one.values for one in batches]), torch.cat([one.at for one in batches]))

    def perturb(self, batch: Placed, places: Places, axis: int, severity: int) -> Placed:
        with self.clock("perturb"), torch.no_grad():
            numbers = self.chunk.numbers[batch.at]
            return Placed(self.bench.perturbing.step(batch.values, numbers, places, axis, severity), batch.at)

    def measure(self, asked: Waiting[Placed]) -> Iterator[BatchOutcome]:
        try:
            with torch.inference_mode():
                self._begin(asked)
        except (InputError, torch.OutOfMemoryError) as error:
            if not out_of_memory(error):
                raise
            self.bench.smaller_batches(len(asked), error)
            while len(asked):
                part, asked = asked.split(self.executor.batch_size.next())
                yield from self.measure(part)
            return
        with self.clock("copy"):
            done = list(self.returns.finished())
        yield from done

    def _begin(self, asked: Waiting[Placed]) -> None:
        """Give the device a batch; its results come back by themselves."""
        first = int(asked.configurations[0])
        begin = self.lane.mark()
        with self.clock("infer"):
            outputs = self.bench.ask(asked.inputs.values, first)
        end = self.lane.mark()
        with self.clock("judge"):
            back = self.judge.results(outputs, asked.inputs.at, clean=first == 0)
        configurations, places = asked.configurations, asked.places

        def finish(arrays: list[Array]) -> list[BatchOutcome]:
            self.executor.batch_size.note(len(places), self.lane.seconds(begin, end))
            return self.judge.outcomes(arrays, outputs, configurations, places)

        with self.clock("copy"):
            self.returns.send(back, finish)
