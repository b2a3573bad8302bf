"""What runs on the nodes: an executor of its own process, with the subject in memory, measuring task by task."""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.local import LocalExecutor
from testifai.engine.ray.tasks import Measured, Task
from testifai.engine.subject import Subject
from testifai.models.base import Model
from testifai.runs.outcomes import Outcomes
from testifai.support.version import VERSION


class Actor:
    """One worker: told where the driver stands, given the subject once, then task after task."""

    def __init__(self, folder: str, path: list[str]) -> None:
        # Relative files and modules of the user's are looked for where the driver found them, if that is reachable.
        with suppress(OSError):
            os.chdir(folder)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._executor: Executor | None = None

    def about(self) -> tuple[str, str]:
        """The version that runs here, and the machine's name."""
        return VERSION, socket.gethostname()

    def load(self, subject: Subject, batch_size: int | None, cpus: float, gpus: float) -> None:
        """Take the subject; its model goes to a GPU where one was asked for and is there."""
        if gpus:
            _to_gpu(subject.model)
        threads = max(1, int(cpus)) if subject.model.thread_safe else 1
        self._executor = LocalExecutor(subject, batch_size=batch_size, workers=threads)

    def measure(self, task: Task) -> Measured:
        """All trials of the task."""
        executor = self._executor
        assert executor is not None, "a subject is loaded first"
        begin = time.perf_counter()
        known = Outcomes(len(executor.subject.order))
        if task.references is not None:
            executor.references.put(task.places, task.references)
            known.record(0, task.places, np.ones(len(task.places), bool))
        found: list[BatchOutcome] = []
        executor.run(task.work(), known, found.append)
        return Measured.of(task, found, time.perf_counter() - begin)


def _to_gpu(model: Model) -> None:
    torch: Any = sys.modules.get("torch")
    module = getattr(model, "module", None)
    if torch is None or not isinstance(module, torch.nn.Module) or not torch.cuda.is_available():
        return
    from testifai.models.torch import TorchModel

    if isinstance(model, TorchModel):
        model.module, model.device = module.to("cuda"), torch.device("cuda")
