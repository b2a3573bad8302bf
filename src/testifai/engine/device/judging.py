"""From a chunk's outputs to outcomes, where the outputs are; by an oracle that only knows arrays, in this computer."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.device.bench import Bench
from testifai.engine.walk import ArrayJudge, by_configuration
from testifai.models.outputs import check_outputs
from testifai.oracles.tensors import predicted
from testifai.runs.outcomes import Ids, Places

KEPT: tuple[str, ...] = ("value", "predicted")  # in the order in which they come back


class ChunkJudge:
    """Judges the outputs of one chunk's inputs."""

    def __init__(self, executor: Executor, bench: Bench, places: Places, labels: Tensor | None) -> None:
        self.bench, self.subject, self.references = bench, executor.subject, executor.references
        self.places, self.labels = places, labels
        self._arrays = ArrayJudge(executor, places)
        self._clean: Tensor | None = None

    def results(self, outputs: Tensor, at: Tensor, *, clean: bool) -> list[Tensor]:
        """What must come back of a batch to know its outcomes: `outcomes` takes it. `at` are rows of the chunk."""
        twin = self.bench.twin(outputs)
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

    def outcomes(
        self, back: list[NDArray[Any]], outputs: Tensor, configurations: Ids, places: Places
    ) -> list[BatchOutcome]:
        """What became of a batch, from what came back of it."""
        if self.bench.twin(outputs) is None:
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

    def _checked(self, outputs: NDArray[Any]) -> NDArray[Any]:
        name, classes = self.subject.model.name, self.subject.classes
        return check_outputs(outputs, len(outputs), name, columns=self.subject.columns, classes=classes)

    def _remember(self, at: Tensor, clean: Tensor) -> None:
        if self._clean is None:
            known = self.references.get(self.places)
            empty = clean.new_zeros((len(self.places), *clean.shape[1:]))
            self._clean = empty if known is None else self.bench.lane.up(known)
        self._clean[at] = clean

    def _known(self) -> Tensor:
        """Clean outputs of this chunk, measured just now or in an earlier run."""
        if self._clean is None:
            known = self.references.get(self.places)
            assert known is not None, "work with a comparing oracle includes the clean test"
            self._clean = self.bench.lane.up(known)
        return self._clean
