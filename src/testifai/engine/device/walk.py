"""The walk of a chunk through the prefix tree on a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.device.bench import Bench
from testifai.engine.device.inputs import Chunk
from testifai.engine.device.judging import ChunkJudge
from testifai.engine.device.lane import out_of_memory
from testifai.engine.device.returns import Returns
from testifai.engine.plan import Piece, Work
from testifai.engine.walk import Waiting, Walk, cut
from testifai.errors import InputError
from testifai.runs.outcomes import Places


@dataclass(frozen=True)
class Rows:
    """Inputs on the device, and which rows of the chunk they are."""

    values: Tensor
    at: Tensor

    def __getitem__(self, part: slice) -> Rows:
        return Rows(self.values[part], self.at[part])


class DeviceWalk(Walk[Rows]):
    """Perturbs, asks and judges on the device, and never waits for it but for results of batches long begun."""

    def __init__(
        self, executor: Executor, bench: Bench, work: Work, piece: Piece, chunk: Chunk, returns: Returns
    ) -> None:
        super().__init__(executor, work, *piece)
        self.bench, self.lane, self.clock = bench, bench.lane, bench.clock
        self.chunk, self.returns = chunk, returns
        self.judge = ChunkJudge(executor, bench, self.places, chunk.labels)

    def inputs(self, rows: NDArray[np.intp]) -> Rows:
        everything = Rows(self.chunk.values, torch.arange(len(self.places), device=self.lane.device))
        return everything if len(rows) == len(self.places) else self.take(everything, rows)

    def take(self, batch: Rows, rows: NDArray[np.intp]) -> Rows:
        chosen = self.lane.up(rows.astype(np.int64))
        return Rows(batch.values[chosen], batch.at[chosen])

    def perturb(self, batch: Rows, places: Places, axis: int, severity: int) -> Rows:
        with self.clock("perturb"), torch.no_grad():
            numbers = self.chunk.numbers[batch.at]
            return Rows(self.bench.perturbing.step(batch.values, numbers, places, axis, severity), batch.at)

    def measure(self, taken: list[Waiting[Rows]]) -> Iterator[BatchOutcome]:
        try:
            with torch.inference_mode():
                self._begin(taken)
        except (InputError, torch.OutOfMemoryError) as error:
            if not out_of_memory(error):
                raise
            size = sum(len(places) for _, places, _ in taken)
            self.bench.smaller_batches(size, error)
            while taken:
                part, taken = cut(taken, self.executor.batch_size.next())
                yield from self.measure(part)
            return
        with self.clock("copy"):
            done = list(self.returns.finished())
        yield from done

    def _begin(self, taken: list[Waiting[Rows]]) -> None:
        """Give the device a batch; its results come back by themselves."""
        parts = [(configuration, places) for configuration, places, _ in taken]
        values, at = taken[0][2].values, taken[0][2].at
        if len(taken) > 1:
            values, at = torch.cat([rows.values for _, _, rows in taken]), torch.cat([rows.at for _, _, rows in taken])
        begin = self.lane.mark()
        with self.clock("infer"):
            outputs = self.bench.ask(values, parts[0][0])
        end = self.lane.mark()
        with self.clock("judge"):
            back = self.judge.results(outputs, at, parts)

        def finish(arrays: list[NDArray[np.generic]]) -> Iterator[BatchOutcome]:
            self.executor.batch_size.note(len(values), self.lane.seconds(begin, end))
            return self.judge.outcomes(arrays, outputs, parts)

        with self.clock("copy"):
            self.returns.send(back, finish)
