"""What is being tested: model, data, space and oracle, which together turn (configuration, input) into an outcome."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data import Data
from testifai.errors import InputError
from testifai.models.outputs import check_outputs
from testifai.oracles import Oracle
from testifai.runs.outcomes import Places
from testifai.space import Space
from testifai.support.batches import Batch, take

log = logging.getLogger(__name__)


@dataclass
class Subject:
    """What is being tested: everything that turns (configuration, input) into an outcome."""

    model: Any
    data: Data
    space: Space
    oracle: Oracle
    order: NDArray[np.intp]
    labels: NDArray[Any] | None = None  # as the model numbers its classes
    classes: int | None = None
    seed: int = 0
    keep: tuple[str, ...] = ()
    columns: int | None = None  # of the outputs, once seen

    def batch(self, places: Places) -> Batch:
        """The clean inputs at these places of the visiting order."""
        inputs = self.data.inputs
        wanted = self.order[places]
        return take(inputs, wanted) if isinstance(inputs, list) else inputs[wanted]

    def perturb(self, batch: Batch, places: Places, axis: int, severity: int) -> Batch:
        """One step of a composite."""
        chosen = self.space.axes[axis].perturbation
        # Two axes with the same perturbation draw their own numbers.
        twins = sum(other.perturbation.name == chosen.name for other in self.space.axes[:axis])
        return chosen.apply(
            batch, severity, seed=self.seed, indices=self.order[places], occurrence=twins, side=self.data.side
        )

    def composite(self, sigma: tuple[int, ...], places: Places) -> Batch:
        """The inputs as the configuration shows them to the model."""
        batch = self.batch(places)
        for axis, severity in self.space.steps(sigma):
            batch = self.perturb(batch, places, axis, severity)
        return batch

    def infer(self, batch: Batch, configuration: int) -> NDArray[Any]:
        """The model's outputs on a batch, checked; whatever goes wrong is one line that says where."""
        try:
            outputs = self.model(batch)
        except InputError:
            raise
        except Exception as error:
            log.debug("the model raised", exc_info=True)
            sigma = self.space.configuration(configuration)
            raise InputError(
                f"model: raised {type(error).__name__}: {one_line(error)} "
                f"(batch of {len(batch)} inputs, configuration {sigma})"
            ) from error
        checked = check_outputs(outputs, len(batch), self.model.name, columns=self.columns, classes=self.classes)
        if self.columns is None and checked.ndim == 2 and checked.shape[1] > 1:
            # Not every model says beforehand how many classes it has.
            self.oracle.check(self.labels, checked.shape[1])
        self.columns = checked.shape[1] if checked.ndim == 2 else 0
        return checked


def one_line(error: BaseException) -> str:
    """The first line of an error's text."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else "no message"
