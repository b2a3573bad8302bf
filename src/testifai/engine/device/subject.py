"""From a chunk's outputs to outcomes, where the outputs are; by an oracle that only knows arrays, in this computer."""

from __future__ import annotations

import logging
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, BatchSize, Executor
from testifai.engine.device.streams import Clock, DeviceStreams, out_of_memory
from testifai.engine.inference import blamed, one_line
from testifai.engine.prefix_tree import ArrayJudge, by_configuration
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import DeviceModel
from testifai.models.outputs import check_form, check_outputs
from testifai.oracles.tensors import TensorJudge, on_tensors, predicted
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Ids, Places
from testifai.support.types import Array

log = logging.getLogger(__name__)


class DevicePerturbing:
    """Steps of composites on tensors. No perturbation knows of the device: what each takes is decided here."""

    def __init__(self, subject: Subject, streams: DeviceStreams) -> None:
        self.subject, self.streams = subject, streams
        self._arrays_only: dict[str, bool] = {}  # by the name of an axis

    def step(self, values: Tensor, numbers: Tensor, places: Places, axis: int, severity: int) -> Tensor:
        """One step for inputs on the device: `numbers` are those in the data set, `places` those of the order."""
        chosen = self.subject.space.axes[axis]
        if chosen.name not in self._arrays_only and not chosen.perturbation.tensors:
            self._note(chosen.name, chosen.perturbation, "it does not say that it takes tensors")
        if not self._arrays_only.get(chosen.name):
            try:
                changed: Tensor = self.subject.step(values, numbers, axis, severity)
            except InputError as error:
                if chosen.name in self._arrays_only or out_of_memory(error):
                    raise
                self._note(chosen.name, chosen.perturbation, str(error))
            else:
                self._arrays_only[chosen.name] = False
                return changed
        arrays = self.subject.perturb(values.cpu().numpy(), places, axis, severity)
        return self.streams.up(np.asarray(arrays))

    def _note(self, axis: str, perturbation: Perturbation, why: str) -> None:
        self._arrays_only[axis] = True
        log.warning(
            "device: perturbation %s works on arrays, and its inputs travel to this computer and back: %s",
            perturbation.name,
            why,
        )


class DeviceSubject:
    """A subject on a device; what it cannot do there is done in this computer, and said once."""

    def __init__(self, subject: Subject, streams: DeviceStreams, precision: str, batch_size: BatchSize) -> None:
        self.subject, self.streams, self.precision, self.batch_size = subject, streams, precision, batch_size
        self.perturbing = DevicePerturbing(subject, streams)
        self.clock: Clock = lambda part: nullcontext()
        self._twins: dict[int, TensorJudge | None] = {}
        self._said: set[str] = set()
        if not isinstance(subject.model, DeviceModel):
            self.say(f"device: the model {subject.model.name} takes arrays: its batches are copied to this computer")

    def ask(self, values: Tensor, configuration: int) -> Tensor:
        """The model's outputs on a batch, of a form that is accepted; whatever goes wrong is one line."""
        subject = self.subject
        if not isinstance(subject.model, DeviceModel):
            return self.streams.up(subject.infer(values.cpu().numpy(), configuration))
        with blamed(len(values), lambda: subject.where(configuration)):
            outputs: Tensor = subject.model.on_tensors(values, self.precision)
        if outputs.dtype == torch.bool:
            outputs = outputs.byte()
        if tuple(outputs.shape) != (len(values), subject.columns):
            # The rules are those for arrays; the numbers themselves are looked at when they are back.
            kind = torch.empty(0, dtype=outputs.dtype).numpy().dtype
            check_form(tuple(outputs.shape), kind, len(values), subject.model.name, columns=subject.columns)
            subject.saw(outputs.shape)
        return outputs

    def twin(self, outputs: Tensor) -> TensorJudge | None:
        """Who judges outputs like these on the device; None: nobody."""
        columns = outputs.shape[1] if outputs.ndim == 2 else 0
        if columns not in self._twins:
            # A class is what a column says: of fewer than two, arrays are looked at.
            fits = columns > 1 or "predicted" not in self.subject.keep
            twin = self._twins[columns] = on_tensors(self.subject.oracle, columns) if fits else None
            if twin is None:
                name = self.subject.oracle.name
                self.say(f"device: the oracle {name} judges these outputs as arrays: they are copied to this computer")
        return self._twins[columns]

    def smaller_batches(self, size: int, error: BaseException) -> None:
        """Go on with half the batch; refuse where it cannot be halved."""
        if size == 1:
            raise self.too_small(error) from None
        self.batch_size.limit(size // 2)
        self.streams.release()
        self.say(f"device: out of memory with a batch of {size:,}; going on with {size // 2:,} or fewer", "batch")

    def too_small(self, error: BaseException) -> InputError:
        """That nothing can be made smaller any more."""
        return InputError(f"device: {self.streams.device} has too little memory for a single input ({one_line(error)})")

    def say(self, line: str, once: str | None = None) -> None:
        """Say it, and not again; `once` is what is said only once, in other words perhaps."""
        if (once or line) not in self._said:
            self._said.add(once or line)
            log.warning("%s", line)


KEPT: tuple[str, ...] = ("value", "predicted")  # in the order in which they come back


class ChunkJudge:
    """Judges the outputs of one chunk's inputs."""

    def __init__(self, executor: Executor, on_device: DeviceSubject, places: Places, labels: Tensor | None) -> None:
        self.on_device, self.subject, self.references = on_device, executor.subject, executor.references
        self.places, self.labels = places, labels
        self._arrays = ArrayJudge(executor, places)
        self._clean: Tensor | None = None

    def results(self, outputs: Tensor, at: Tensor, *, clean: bool) -> list[Tensor]:
        """What must come back of a batch to know its outcomes: `outcomes` takes it. `at` are rows of the chunk."""
        twin = self.on_device.twin(outputs)
        if twin is None:
            return [outputs]
        keep, reference = self.subject.keep, None
        back = [torch.isfinite(outputs).all().reshape(1)]
        if self.subject.oracle.needs_clean:
            if clean:  # the clean test has batches of its own
                reference = twin.reference(outputs)
                self._remember(at, reference)
                back.append(reference)
            else:
                reference = self._known()[at]
        passed, value = twin.judge(outputs, None if self.labels is None else self.labels[at], reference)
        back.append(passed)
        if "value" in keep and value is not None:
            back.append(value())
        if "predicted" in keep:
            back.append(predicted(outputs).float())
        return back

    def outcomes(self, back: list[Array], outputs: Tensor, configurations: Ids, places: Places) -> list[BatchOutcome]:
        """What became of a batch, from what came back of it."""
        if self.on_device.twin(outputs) is None:
            return self._arrays.outcomes(self._checked(back[0]), configurations, places)
        finite, *rest = back
        if not finite[0]:
            self._checked(outputs.cpu().numpy())
        subject = self.subject
        reference = rest.pop(0) if subject.oracle.needs_clean and configurations[0] == 0 else None
        passed, *values = rest
        # An oracle may have no value to keep; what is predicted comes last.
        wanted = [name for name in KEPT if name in subject.keep]
        names = wanted[len(wanted) - len(values) :]
        kept = dict(zip(names, values, strict=True))
        return by_configuration(configurations, BatchOutcome(0, places, passed, kept, reference))

    def _checked(self, outputs: Array) -> Array:
        name, classes = self.subject.model.name, self.subject.classes
        return check_outputs(outputs, len(outputs), name, columns=self.subject.columns, classes=classes)

    def _remember(self, at: Tensor, clean: Tensor) -> None:
        if self._clean is None:
            known = self.references.get(self.places)
            empty = clean.new_zeros((len(self.places), *clean.shape[1:]))
            self._clean = empty if known is None else self.on_device.streams.up(known)
        self._clean[at] = clean

    def _known(self) -> Tensor:
        """Clean outputs of this chunk, measured just now or in an earlier run."""
        if self._clean is None:
            known = self.references.get(self.places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self._clean = self.on_device.streams.up(known)
        return self._clean
