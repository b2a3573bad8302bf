"""The executor of a device: chunks of inputs through the prefix tree there, outcomes back while it works on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext

import numpy as np
import torch

from testifai.engine.base import BatchOutcome, Executor, References
from testifai.engine.batch_size import BatchSize, input_bytes
from testifai.engine.device.inputs import DeviceInputs
from testifai.engine.device.prefix_tree import DeviceWalk
from testifai.engine.device.streams import Lane, Returns, out_of_memory
from testifai.engine.device.subject import Bench
from testifai.engine.local import CHUNK_BYTES, CHUNK_INPUTS
from testifai.engine.plan import Node, Piece, Work, most_inputs, prefix_tree
from testifai.engine.prefix_tree import Trails
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import DeviceModel
from testifai.runs.outcomes import Ids, Outcomes

SIZES = (16384, 4096, 1024, 256)  # of batches, tried on an accelerator: large ones are mostly best
BATCH_BYTES = 256 << 20  # of a batch's inputs at most: what a model makes of them is many times as much
TRIES = 3
APART = 1 << 15  # trials of tests with inputs of their own from which on they come in several pieces
CHUNK_SHARE = 8  # of free memory, one part in so many is for a chunk and what its composites are made from


class DeviceExecutor(Executor):
    """One device of torch ("cpu" too), fed by the caller's thread.

    The outcomes do not depend on batch size or chunks, but for rounding: an accelerator may sum in another order for
    batches of another size. `bench.clock` may be set to see what the time goes to.
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
        lane, size = Lane(device), max(1, input_bytes(subject.data))
        told, free = batch_size or subject.model.batch_size, lane.free_bytes()
        if free is None:
            self.batch_size = BatchSize(told, size)
            self.chunk = max(1, min(CHUNK_INPUTS, CHUNK_BYTES // size))
        else:
            self.batch_size = BatchSize(told, size, sizes=SIZES, most_bytes=BATCH_BYTES, tries=TRIES)
            # Clean inputs twice, for the next chunk comes meanwhile; a batch for each step, and one that waits.
            self.chunk = max(1, free // (CHUNK_SHARE * size * (len(subject.space.axes) + 3)))
        self.bench = Bench(subject, lane, precision, self.batch_size)
        self.inputs = DeviceInputs(subject, lane, size)
        self._grown: tuple[Ids, Node, Trails] | None = None

    def run(self, work: Work, outcomes: Outcomes, hand_over: Callable[[BatchOutcome], None]) -> None:
        if self.subject.oracle.needs_clean:
            work = work.with_clean()
        tests, tree, trails = self._tree(work)
        work = work.among(tests)
        while True:
            try:
                with closing(self._results(work, tree, trails, outcomes)) as results:
                    self.hand_on(results, self._timed(hand_over))
                return
            except (InputError, torch.OutOfMemoryError) as error:
                if not out_of_memory(error):
                    raise
                # What was handed over is not missing any more: the rest goes on in smaller chunks.
                self._smaller_chunks(error)

    def _tree(self, work: Work) -> tuple[Ids, Node, Trails]:
        """Tests by number, all of the work among them, and how they share their steps.

        Rounds of a run are mostly of much the same tests: the tree of those before is kept where it serves.
        """
        wanted, known = np.unique(work.configurations), self._grown
        scattered = isinstance(work.places, list)
        if known is not None and (np.array_equal(known[0], wanted) or (scattered and _mostly(wanted, known[0]))):
            return known
        tree = prefix_tree(self.subject.space, wanted)
        self._grown = wanted, tree, Trails(tree)
        return self._grown

    def _results(
        self, work: Work, tree: Node, trails: Trails, outcomes: Outcomes
    ) -> Generator[BatchOutcome, None, None]:
        returns = Returns(self.bench.lane)
        pieces = work.pieces(outcomes, self._chunk_size(work))
        model = self.subject.model
        answering = model.answering() if isinstance(model, DeviceModel) else nullcontext()
        with answering, closing(self.inputs.ahead(_needed(pieces))) as chunks:
            try:
                for piece, chunk in chunks:
                    walk = DeviceWalk(self, self.bench, work, trails, piece, chunk=chunk, returns=returns)
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
            raise self.bench.too_small(error) from None
        self.chunk = max(1, min(self.chunk, len(self.subject.order)) // 2)
        self.bench.lane.release()
        self.bench.say(
            f"device: out of memory when perturbing; going on with {self.chunk:,} inputs at a time, or fewer", "chunk"
        )

    def _timed(self, hand_over: Callable[[BatchOutcome], None]) -> Callable[[BatchOutcome], None]:
        def timed(measured: BatchOutcome) -> None:
            with self.bench.clock("record"):
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
