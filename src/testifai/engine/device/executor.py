"""The executor of a PyTorch device."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, BatchSize, Executor, References, input_bytes
from testifai.engine.device.streams import Chunk, DeviceInputs, DeviceStreams, ResultQueue, out_of_memory
from testifai.engine.device.subject import ChunkJudge, DeviceSubject
from testifai.engine.local import CHUNK_BYTES, CHUNK_INPUTS
from testifai.engine.plan import Node, Piece, Work, most_inputs, prefix_tree
from testifai.engine.prefix_tree import Rows, TreePaths, TreeWalk, Waiting
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import DeviceModel
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.support.types import Array

MANY = 4096  # inputs
TOGETHER = 1 << 17  # trials


@dataclass(frozen=True)
class DeviceBatch:
    values: Tensor
    at: Tensor

    def __getitem__(self, part: slice) -> DeviceBatch:
        return DeviceBatch(self.values[part], self.at[part])

    def __setitem__(self, part: slice, batch: DeviceBatch) -> None:
        self.values[part], self.at[part] = batch.values, batch.at


class DeviceTreeWalk(TreeWalk[DeviceBatch]):
    """Perturbs, calls the model and judges on the device; it waits only for results of earlier batches."""

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
        self.on_device, self.streams, self.chunk, self.results = on_device, on_device.streams, chunk, results
        # Calls for many inputs are not joined: arranging them would take longer than a call.
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
        with torch.no_grad():
            numbers = self.chunk.numbers[batch.at]
            return DeviceBatch(self.on_device.perturb(batch.values, numbers, places, axis, severity), batch.at)

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
        yield from self.results.finished()

    def _begin(self, asked: Waiting[DeviceBatch]) -> None:
        """Start a batch on the device; `results` returns its outcomes later."""
        first = int(asked.configurations[0])
        begin = self.streams.mark()
        outputs = self.on_device.ask(asked.inputs.values, first)
        end = self.streams.mark()
        back = self.judge.results(outputs, asked.inputs.at, clean=first == 0)
        configurations, places = asked.configurations, asked.places

        def finish(arrays: list[Array]) -> list[BatchOutcome]:
            self.executor.batch_size.note(len(places), self.streams.seconds(begin, end))
            return self.judge.outcomes(arrays, outputs, configurations, places)

        self.results.send(back, finish)


SIZES = (16384, 4096, 1024, 256)  # batch sizes tried on an accelerator: large ones are mostly best
BATCH_BYTES = 256 << 20  # most bytes of a batch's inputs: a model's activations are many times as large
TRIES = 3
APART = 1 << 15  # least trials of tests with separate inputs that are split into several pieces
CHUNK_SHARE = 8  # one part in 8 of the free memory is for a chunk and its composites


class DeviceExecutor(Executor):
    """One PyTorch device ("cpu" too).

    The outcomes do not depend on batch size or chunks, except for rounding: an accelerator may sum in another order for
    batches of another size.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        device: str = "cpu",
        precision: str = "float32",
        batch_size: int | None = None,
        workers: int | None = None,  # ignored: the device itself works in parallel
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subject, self.interrupted = subject, interrupted
        self.workers = 1
        self.references = References(len(subject.order))
        streams, size = DeviceStreams(device), max(1, input_bytes(subject.data))
        told, free = batch_size or subject.model.batch_size, streams.free_bytes()
        if free is None:
            self.batch_size = BatchSize(told, size)
            self.chunk = max(1, min(CHUNK_INPUTS, CHUNK_BYTES // size))
        else:
            self.batch_size = BatchSize(told, size, sizes=SIZES, most_bytes=BATCH_BYTES, tries=TRIES)
            # Clean inputs twice, as the next chunk is sent meanwhile; a batch for each step, and one that waits.
            self.chunk = max(1, free // (CHUNK_SHARE * size * (len(subject.space.axes) + 3)))
        self.on_device = DeviceSubject(subject, streams, precision, self.batch_size)
        self.inputs = DeviceInputs(subject, streams, size)
        self._grown: tuple[Ids, Node, TreePaths] | None = None

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        if self.subject.oracle.needs_clean:
            work = work.with_clean()
        tests, tree, paths = self._tree(work)
        work = work.among(tests)
        while True:
            try:
                with closing(self._results(work, tree, paths, outcomes)) as results:
                    self.stream_results(results, hand_over)
                return
            except (InputError, torch.OutOfMemoryError) as error:
                if not out_of_memory(error):
                    raise
                # Outcomes so far are not missing any more: the rest continues in smaller chunks.
                self._smaller_chunks(error)

    def _tree(self, work: Work) -> tuple[Ids, Node, TreePaths]:
        """Return tests, including those of the work, and their tree; that of the last round if it fits."""
        wanted, known = np.unique(work.configurations), self._grown
        if known is not None:
            mostly = 2 * len(wanted) >= len(known[0]) and bool(np.isin(wanted, known[0]).all())
            if np.array_equal(known[0], wanted) or (isinstance(work.places, list) and mostly):
                return known
        tree = prefix_tree(self.subject.space, wanted)
        self._grown = wanted, tree, TreePaths(tree)
        return self._grown

    def _results(
        self, work: Work, tree: Node, paths: TreePaths, outcomes: Outcomes
    ) -> Generator[BatchOutcome, None, None]:
        returns = ResultQueue(self.on_device.streams)
        pieces = work.pieces(outcomes, self._chunk_size(work))
        model = self.subject.model
        answering = model.answering() if isinstance(model, DeviceModel) else nullcontext()
        with answering, closing(self.inputs.ahead(_needed(pieces))) as chunks:
            try:
                for piece, chunk in chunks:
                    walk = DeviceTreeWalk(self, self.on_device, work, paths, piece, chunk=chunk, results=returns)
                    yield from walk.run(tree)
            except Exception:
                # Keep what was measured before the failure.
                yield from returns.finished(0)
                raise
            yield from returns.finished(0)

    def _chunk_size(self, work: Work) -> int:
        """Return the size of equal chunks that fit into memory.

        Tests with separate inputs need at least two: the next one is prepared while the device works.
        """
        inputs = len(work.union())
        rounds = -(-inputs // min(self.chunk, most_inputs(len(work.configurations))))
        if isinstance(work.places, list) and work.asked() >= APART:
            rounds = max(rounds, 2)
        return -(-inputs // max(1, rounds)) or 1

    def _smaller_chunks(self, error: BaseException) -> None:
        if self.chunk == 1:
            raise self.on_device.too_small(error) from None
        self.chunk = max(1, min(self.chunk, len(self.subject.order)) // 2)
        self.on_device.streams.release()
        self.on_device.say(
            f"device: out of memory when perturbing; going on with {self.chunk:,} inputs at a time, or fewer", "chunk"
        )


def _needed(pieces: Iterator[Piece]) -> Iterator[Piece]:
    for places, table in pieces:
        needed = table.any(axis=0)
        yield (places, table) if needed.all() else (places[needed], table[:, needed])
