"""The executor of a PyTorch device: perturbing, inference and judging there, on the CPU if one only takes arrays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, BatchSize, Executor, References, input_bytes
from testifai.engine.device.streams import Chunk, DeviceInputs, DeviceStreams, ResultQueue, out_of_memory
from testifai.engine.inference import blamed, one_line
from testifai.engine.local import CHUNK_BYTES, CHUNK_INPUTS
from testifai.engine.plan import Node, Piece, Work, most_inputs, prefix_tree
from testifai.engine.prefix_tree import ArrayJudge, CleanRows, Rows, TreePaths, TreeWalk, Waiting, by_configuration
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import DeviceModel
from testifai.models.outputs import check_form, check_outputs
from testifai.oracles.base import TensorOracle, on_tensors
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Ids, Outcomes, Places
from testifai.support.types import Array

MANY = 4096  # inputs
TOGETHER = 1 << 17  # trials
log = logging.getLogger(__name__)


class DeviceSubject:
    """A subject on a device; what is done on the CPU is reported once."""

    def __init__(self, subject: Subject, streams: DeviceStreams, precision: str, batch_size: BatchSize) -> None:
        self.subject, self.streams, self.precision, self.batch_size = subject, streams, precision, batch_size
        self._arrays_only: dict[str, bool] = {}  # by the name of an axis
        self._twins: dict[int, TensorOracle | None] = {}
        self._said: set[str] = set()
        if not isinstance(subject.model, DeviceModel):
            self.say(f"device: the model {subject.model.name} takes arrays: its batches are copied to this computer")

    def perturb(self, values: Tensor, numbers: Tensor, places: Places, axis: int, severity: int) -> Tensor:
        """Apply one step to inputs on the device: `numbers` are those in the data set, `places` those of the order."""
        chosen = self.subject.space.axes[axis]
        if chosen.name not in self._arrays_only and not chosen.perturbation.tensors:
            self._use_arrays(chosen.name, chosen.perturbation, "it does not say that it takes tensors")
        if not self._arrays_only.get(chosen.name):
            try:
                changed: Tensor = self.subject.step(values, numbers, axis, severity)
            except InputError as error:
                if chosen.name in self._arrays_only or out_of_memory(error):
                    raise
                self._use_arrays(chosen.name, chosen.perturbation, str(error))
            else:
                self._arrays_only[chosen.name] = False
                return changed
        arrays = self.subject.perturb(values.cpu().numpy(), places, axis, severity)
        return self.streams.up(np.asarray(arrays))

    def _use_arrays(self, axis: str, perturbation: Perturbation, why: str) -> None:
        self._arrays_only[axis] = True
        log.warning(
            "device: perturbation %s works on arrays, and its inputs travel to this computer and back: %s",
            perturbation.name,
            why,
        )

    def ask(self, values: Tensor, configuration: int) -> Tensor:
        """Return the model's outputs on a batch, with their shape and dtype checked."""
        subject = self.subject
        if not isinstance(subject.model, DeviceModel):
            return self.streams.up(subject.infer(values.cpu().numpy(), configuration))
        with blamed(len(values), lambda: subject.where(configuration)):
            outputs: Tensor = subject.model.on_tensors(values, self.precision)
        if outputs.dtype == torch.bool:
            outputs = outputs.byte()
        if tuple(outputs.shape) != (len(values), subject.columns):
            # The values are checked once they are on the CPU.
            kind = torch.empty(0, dtype=outputs.dtype).numpy().dtype
            check_form(tuple(outputs.shape), kind, len(values), subject.model.name, columns=subject.columns)
            subject.saw(outputs.shape)
        return outputs

    def twin(self, outputs: Tensor) -> TensorOracle | None:
        """Return the judge of outputs with this number of columns on the device, None if there is none."""
        columns = outputs.shape[1] if outputs.ndim == 2 else 0
        if columns not in self._twins:
            # Classes of fewer than two columns are predicted on arrays.
            fits = columns > 1 or "predicted" not in self.subject.keep
            twin = self._twins[columns] = on_tensors(self.subject.oracle, columns) if fits else None
            if twin is None:
                name = self.subject.oracle.name
                self.say(f"device: the oracle {name} judges these outputs as arrays: they are copied to this computer")
        return self._twins[columns]

    def smaller_batches(self, size: int, error: BaseException) -> None:
        """Continue with half the batch; InputError if it cannot be halved."""
        if size == 1:
            raise self.too_small(error) from None
        self.batch_size.limit(size // 2)
        self.streams.release()
        self.say(f"device: out of memory with a batch of {size:,}; going on with {size // 2:,} or fewer", "batch")

    def too_small(self, error: BaseException) -> InputError:
        return InputError(f"device: {self.streams.device} has too little memory for a single input ({one_line(error)})")

    def say(self, line: str, once: str | None = None) -> None:
        """Log a line unless it, or another with the key `once`, was logged before."""
        if (once or line) not in self._said:
            self._said.add(once or line)
            log.warning("%s", line)


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
        self, executor: DeviceExecutor, work: Work, paths: TreePaths, piece: Piece, chunk: Chunk, results: ResultQueue
    ) -> None:
        super().__init__(executor, work, paths, piece)
        self.on_device, self.streams = executor.on_device, executor.on_device.streams
        self.chunk, self.results = chunk, results
        # Calls for many inputs are not joined: arranging them would take longer than a call.
        many = self.complete and len(self.places) >= MANY
        self.together = 0 if many else min(executor.chunk, TOGETHER)
        self.arrays = ArrayJudge(executor, self.places)
        self.clean = CleanRows(executor.references, self.places, self.streams.up)

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
        configurations, places = asked.configurations, asked.places
        begin = self.streams.mark()
        outputs = self.on_device.ask(asked.inputs.values, int(configurations[0]))
        end = self.streams.mark()
        back = self.judge(outputs, asked.inputs.at, clean=configurations[0] == 0)

        def finish(arrays: list[Array]) -> list[BatchOutcome]:
            self.executor.batch_size.note(len(places), self.streams.seconds(begin, end))
            return self._outcomes(dict(zip(back, arrays, strict=True)), outputs, configurations, places)

        self.results.send(list(back.values()), finish)

    def judge(self, outputs: Tensor, at: Tensor, *, clean: bool) -> dict[str, Tensor]:
        """Return what `_outcomes` needs of a batch on the CPU; `at` are rows of the chunk."""
        twin = self.on_device.twin(outputs)
        if twin is None:
            return {"outputs": outputs}
        back, reference = {"finite": torch.isfinite(outputs).all().reshape(1)}, None
        if self.subject.oracle.needs_clean and clean:  # the clean test has batches of its own
            fresh: Tensor = twin.reference(outputs)
            reference = back["reference"] = fresh
            self.clean.put(at, fresh, fresh.new_zeros((len(self.places), *fresh.shape[1:])))
        elif self.subject.oracle.needs_clean:
            reference = self.clean.get(at)
        labels = None if self.chunk.labels is None else self.chunk.labels[at]
        wanted = twin.wanted(labels, reference)
        back["passed"] = twin.passes(outputs, wanted)
        if "value" in self.subject.keep and (value := twin.value(outputs, wanted)) is not None:
            back["value"] = value
        if "predicted" in self.subject.keep:
            back["predicted"] = outputs.argmax(1).float()
        return back

    def _outcomes(
        self, back: dict[str, Array], outputs: Tensor, configurations: Ids, places: Places
    ) -> list[BatchOutcome]:
        if "outputs" in back:
            return self.arrays.outcomes(self._checked(back["outputs"]), configurations, places)
        if not back["finite"][0]:
            self._checked(outputs.cpu().numpy())
        kept: dict[str, Array] = {name: back[name] for name in ("value", "predicted") if name in back}
        measured = BatchOutcome(0, places, back["passed"], kept, back.get("reference"))
        return by_configuration(configurations, measured)

    def _checked(self, outputs: Array) -> Array:
        name, classes = self.subject.model.name, self.subject.classes
        return check_outputs(outputs, len(outputs), name, columns=self.subject.columns, classes=classes)


SIZES = (16384, 4096, 1024, 256)  # batch sizes tried on an accelerator: large ones are mostly best
BATCH_BYTES = 256 << 20  # most bytes of a batch's inputs: a model's activations are many times as large
TRIES = 3
APART = 1 << 15  # least trials of tests with separate inputs that are split into several pieces
CHUNK_SHARE = 8  # one part in 8 of the free memory is for a chunk and its composites


class DeviceExecutor(Executor):
    """One PyTorch device ("cpu" too); outcomes do not depend on batch size or chunks, except for rounding."""

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
                    yield from DeviceTreeWalk(self, work, paths, piece, chunk, returns).run(tree)
            except Exception:
                # Keep what was measured before the failure.
                yield from returns.finished(0)
                raise
            yield from returns.finished(0)

    def _chunk_size(self, work: Work) -> int:
        """Return the size of equal chunks that fit into memory; at least two if tests have separate inputs."""
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
