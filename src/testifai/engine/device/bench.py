"""What one device does for a subject: it perturbs, asks the model, and says who judges."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from testifai.engine.batch_size import BatchSize
from testifai.engine.device.lane import Lane
from testifai.engine.device.perturbing import DevicePerturbing
from testifai.engine.device.profile import Clock, no_clock
from testifai.engine.inference import blamed, one_line
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.outputs import check_form
from testifai.oracles.tensors import TensorJudge, on_tensors

log = logging.getLogger(__name__)


class Bench:
    """A subject on a device; what it cannot do there is done in this computer, and said once."""

    def __init__(self, subject: Subject, lane: Lane, precision: str, batch_size: BatchSize) -> None:
        self.subject, self.lane, self.precision, self.batch_size = subject, lane, precision, batch_size
        self.perturbing = DevicePerturbing(subject, lane)
        self.clock: Clock = no_clock
        self._twins: dict[int, TensorJudge | None] = {}
        self._said: set[str] = set()
        if not subject.model.takes_tensors:
            self.say(f"device: the model {subject.model.name} takes arrays: its batches are copied to this computer")

    def ask(self, values: Tensor, configuration: int) -> Tensor:
        """The model's outputs on a batch, of a form that is accepted; whatever goes wrong is one line."""
        subject = self.subject
        if not subject.model.takes_tensors:
            return self.lane.up(subject.infer(values.cpu().numpy(), configuration))
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
        self.lane.release()
        self.say(f"device: out of memory with a batch of {size:,}; going on with {size // 2:,} or fewer", "batch")

    def too_small(self, error: BaseException) -> InputError:
        """That nothing can be made smaller any more."""
        return InputError(f"device: {self.lane.device} has too little memory for a single input ({one_line(error)})")

    def say(self, line: str, once: str | None = None) -> None:
        """Say it, and not again; `once` is what is said only once, in other words perhaps."""
        if (once or line) not in self._said:
            self._said.add(once or line)
            log.warning("%s", line)
