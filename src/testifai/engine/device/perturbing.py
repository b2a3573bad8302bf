"""Perturbations on a device; one that only knows arrays is done in this computer, for itself."""

from __future__ import annotations

import logging

import numpy as np
from torch import Tensor

from testifai.engine.device.lane import Lane, out_of_memory
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Places

log = logging.getLogger(__name__)


class DevicePerturbing:
    """Steps of composites on tensors. No perturbation knows of the device: what each takes is decided here."""

    def __init__(self, subject: Subject, lane: Lane) -> None:
        self.subject, self.lane = subject, lane
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
        return self.lane.up(np.asarray(arrays))

    def _note(self, axis: str, perturbation: Perturbation, why: str) -> None:
        self._arrays_only[axis] = True
        log.warning(
            "device: perturbation %s works on arrays, and its inputs travel to this computer and back: %s",
            perturbation.name,
            why,
        )
