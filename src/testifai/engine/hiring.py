"""Workers for those who ask a model without a run: who they are is told as it is for a scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testifai.engine.batch_size import default_workers
from testifai.engine.workers import Threads, Workers
from testifai.models.base import Model
from testifai.support.named import make


def hire(executor: Any, workers: int | None, model: Model) -> Workers:
    """Actors of a cluster where the executor says so, else threads of this process, as many as told or as fit."""
    told = dict(executor) if isinstance(executor, Mapping) else {"use": executor}
    if told.get("use") != "ray":
        return Threads(workers or default_workers(model))
    from testifai.engine.ray.workers import RayWorkers

    return make("executor", {"workers": workers, **told}, {"ray": RayWorkers})
