"""The executor of a device: chunks of inputs through the prefix tree there, outcomes back while it works on."""

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


SIZES = (16384, 4096, 1024, 256)  # of batches, tried on an accelerator: large ones are mostly best
BATCH_BYTES = 256 << 20  # of a batch's inputs at most: what a model makes of them is many times as much
TRIES = 3
APART = 1 << 15  # trials of tests with inputs of their own from which on they come in several pieces
CHUNK_SHARE = 8  # of free memory, one part in so many is for a chunk and what its composites are made from


class DeviceExecutor(Executor):
    """One device of torch ("cpu" too), fed by the caller's thread.

    The outcomes do not depend on batch size or chunks, but for rounding: an accelerator may sum in another order for
    batches of another size. `on_device.clock` may be set to see what the time goes to.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        device: str = "cpu",
        precision: str = "float32",
        batch_size: int | None = None,
        workers: int | None = None,  # one, whatever is told: the device itself does many things at a time
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
            # Clean inputs twice, for the next chunk comes meanwhile; a batch for each step, and one that waits.
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
                    self.stream_results(results, self._timed(hand_over))
                return
            except (InputError, torch.OutOfMemoryError) as error:
                if not out_of_memory(error):
                    raise
                # What was handed over is not missing any more: the rest goes on in smaller chunks.
                self._smaller_chunks(error)

    def _tree(self, work: Work) -> tuple[Ids, Node, TreePaths]:
        """Tests by number, all of the work among them, and how they share their steps.

        Rounds of a run are mostly of much the same tests: the tree of those before is kept where it serves.
        """
        wanted, known = np.unique(work.configurations), self._grown
        scattered = isinstance(work.places, list)
        if known is not None and (np.array_equal(known[0], wanted) or (scattered and _mostly(wanted, known[0]))):
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
                # What was measured before the failure counts.
                yield from returns.finished(0)
                raise
            yield from returns.finished(0)

    def _chunk_size(self, work: Work) -> int:
        """Chunks of equal size, none above what memory allows.

        Where every test has its own inputs, that which comes next is arranged while the device works: two at least.
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

    def _timed(self, hand_over: Callable[[BatchOutcome], None]) -> Callable[[BatchOutcome], None]:
        def timed(measured: BatchOutcome) -> None:
            with self.on_device.clock("record"):
                hand_over(measured)

        return timed


def _mostly(tests: Ids, others: Ids) -> bool:
    """Whether all of the tests are among the others, and are at least half of them."""
    return 2 * len(tests) >= len(others) and bool(np.isin(tests, others).all())


def _needed(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces without the places that nobody asks for: what is not needed is not sent."""
    for places, table in pieces:
        needed = table.any(axis=0)
        yield (places, table) if needed.all() else (places[needed], table[:, needed])
