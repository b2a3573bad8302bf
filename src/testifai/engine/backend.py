"""The choice between arrays and tensors, executors and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from testifai.data import Data, LazyInputs
from testifai.engine.base import Threads, Workers, default_workers
from testifai.errors import InputError
from testifai.models.base import DeviceModel, Model
from testifai.support.batches import are_images, are_texts
from testifai.support.registry import make
from testifai.support.types import Record

PRECISIONS = ("float32", "bf16")


@dataclass(frozen=True)
class Backend:
    """An executor, its options, the model on its device, and the settings that change outcomes (`identity`)."""

    executor: Any
    model: Model
    options: Record = field(default_factory=dict)
    identity: Record = field(default_factory=dict)


def choose(
    executor: Any, device: str | None, precision: str, model: Model, data: Data, moves: str | None = None
) -> Backend:
    """Return the backend of a run; what an oracle `moves` along with images is implemented on arrays alone."""
    told = dict(executor) if isinstance(executor, Mapping) else {"use": executor}
    use = told.get("use", "")
    if use not in (None, "device"):
        if device is not None or precision != "float32":
            raise InputError(f"device, precision: the executor {use!r} has none; leave them out, or the executor")
        return Backend(executor, model)
    device, precision = told.get("device", device), told.get("precision", precision)
    texts = are_texts(data.inputs)
    accelerator = model.place if isinstance(model, DeviceModel) and model.place.startswith("cuda") else None
    sizes = are_images(data.inputs) or (isinstance(data.inputs, LazyInputs) and data.inputs.ndim == 1)
    arrays = texts or sizes or moves is not None
    if device is None and use is None and (accelerator is None or arrays):
        if precision != "float32":
            raise InputError(f"precision: {precision!r} is for runs on a device; say which, such as device = 'cuda'")
        return Backend("local", model)
    if texts:
        raise InputError(
            f"device: {device!r} is for inputs that are numbers; texts are changed where they are: leave device out "
            "(where a model computes is said with the model)"
        )
    if arrays:
        what = f"{moves} that move with their images" if moves is not None else "images of different sizes"
        raise InputError(
            f"device: {device!r} is not for {what}, which are worked on as arrays: leave device out (where a model "
            "computes is said with the model)"
        )
    where = _checked(device or accelerator or "cpu", np.dtype(getattr(data.inputs, "dtype", None)))
    identity = {"backend": "tensors", **({} if precision == "float32" else {"precision": precision})}
    return Backend("device", model.placed(where), {"device": where, "precision": precision}, identity)


def _checked(device: str, dtype: np.dtype[Any]) -> str:
    """Return the device's full name; InputError if it does not exist, or if inputs of the dtype do not fit there."""
    try:
        import torch
    except ImportError:
        raise InputError(f"device: {device!r} needs torch; pip install 'testifai[torch]'") from None
    there = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    known = {"cpu": "cpu", **({"cuda": f"cuda:{torch.cuda.current_device()}"} if there else {})}
    known |= {name: name for name in there}
    if device not in known:
        raise InputError(f"device: {device!r} is not there; accepted: {', '.join(known)}")
    try:
        torch.from_numpy(np.empty(0, dtype))
    except TypeError:
        raise InputError(
            f"device: inputs of dtype {dtype} do not fit into tensors; convert them, or leave device out"
        ) from None
    return known[device]


def hire(executor: Any, workers: int | None, model: Model) -> Workers:
    told = dict(executor) if isinstance(executor, Mapping) else {"use": executor}
    if told.get("use") != "ray":
        return Threads(workers or default_workers(model))
    from testifai.engine.ray.executor import RayWorkers

    return make("executor", {"workers": workers, **told}, {"ray": RayWorkers})
