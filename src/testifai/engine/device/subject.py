"""A subject on a device: perturbing, inference and judging there, on the CPU if one of them only takes arrays."""

from __future__ import annotations

import logging

import numpy as np
import torch
from torch import Tensor

from testifai.engine.base import BatchOutcome, BatchSize, Executor
from testifai.engine.device.streams import DeviceStreams, out_of_memory
from testifai.engine.inference import blamed, one_line
from testifai.engine.prefix_tree import ArrayJudge, CleanRows, by_configuration
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import DeviceModel
from testifai.models.outputs import check_form, check_outputs
from testifai.oracles.tensors import TensorJudge, on_tensors, predicted
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Ids, Places
from testifai.support.types import Array

log = logging.getLogger(__name__)


class DeviceSubject:
    """A subject on a device; what is done on the CPU is reported once."""

    def __init__(self, subject: Subject, streams: DeviceStreams, precision: str, batch_size: BatchSize) -> None:
        self.subject, self.streams, self.precision, self.batch_size = subject, streams, precision, batch_size
        self._arrays_only: dict[str, bool] = {}  # by the name of an axis
        self._twins: dict[int, TensorJudge | None] = {}
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

    def twin(self, outputs: Tensor) -> TensorJudge | None:
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


KEPT: tuple[str, ...] = ("value", "predicted")  # in the order of the results


class ChunkJudge:
    def __init__(self, executor: Executor, on_device: DeviceSubject, places: Places, labels: Tensor | None) -> None:
        self.on_device, self.subject, self.places, self.labels = on_device, executor.subject, places, labels
        self._arrays = ArrayJudge(executor, places)
        self._clean = CleanRows(executor.references, places, on_device.streams.up)

    def results(self, outputs: Tensor, at: Tensor, *, clean: bool) -> list[Tensor]:
        """Return what `outcomes` needs of a batch on the CPU; `at` are rows of the chunk."""
        twin = self.on_device.twin(outputs)
        if twin is None:
            return [outputs]
        keep, reference = self.subject.keep, None
        back = [torch.isfinite(outputs).all().reshape(1)]
        if self.subject.oracle.needs_clean:
            if clean:  # the clean test has batches of its own
                reference = twin.reference(outputs)
                self._clean.put(at, reference, reference.new_zeros((len(self.places), *reference.shape[1:])))
                back.append(reference)
            else:
                reference = self._clean.get(at)
        passed, value = twin.judge(outputs, None if self.labels is None else self.labels[at], reference)
        back.append(passed)
        if "value" in keep and value is not None:
            back.append(value())
        if "predicted" in keep:
            back.append(predicted(outputs).float())
        return back

    def outcomes(self, back: list[Array], outputs: Tensor, configurations: Ids, places: Places) -> list[BatchOutcome]:
        if self.on_device.twin(outputs) is None:
            return self._arrays.outcomes(self._checked(back[0]), configurations, places)
        finite, *rest = back
        if not finite[0]:
            self._checked(outputs.cpu().numpy())
        subject = self.subject
        reference = rest.pop(0) if subject.oracle.needs_clean and configurations[0] == 0 else None
        passed, *values = rest
        # An oracle may have no value; predictions come last.
        wanted = [name for name in KEPT if name in subject.keep]
        names = wanted[len(wanted) - len(values) :]
        kept = dict(zip(names, values, strict=True))
        return by_configuration(configurations, BatchOutcome(0, places, passed, kept, reference))

    def _checked(self, outputs: Array) -> Array:
        name, classes = self.subject.model.name, self.subject.classes
        return check_outputs(outputs, len(outputs), name, columns=self.subject.columns, classes=classes)
