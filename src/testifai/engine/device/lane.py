"""The way to a device and back: copies that nobody waits for, clocks, memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Fetch = Callable[[Tensor], Tensor]


class Lane:
    """One device. What is asked of CUDA's streams and events happens at once on the CPU."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        self._beside = torch.cuda.Stream(self.device) if self.cuda else None

    def up(self, array: NDArray[Any]) -> Tensor:
        """An array on the device; the caller goes on at once, by way of memory that the device reads itself."""
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        return tensor.pin_memory().to(self.device, non_blocking=True) if self.cuda else tensor

    def down(self, tensor: Tensor) -> Callable[[], NDArray[Any]]:
        """Begin to copy a tensor to this computer; what comes back waits for it and gives the array."""
        if not self.cuda:
            return lambda: np.asarray(tensor.numpy())
        kept = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        kept.copy_(tensor, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(self.device))

        def wait() -> NDArray[Any]:
            done.synchronize()
            return np.asarray(kept.numpy())

        return wait

    @contextmanager
    def beside(self) -> Iterator[Fetch]:
        """Work that other work need not wait for; a tensor made here is fetched by what this gives, once it is used."""
        if self._beside is None:
            yield lambda tensor: tensor
            return
        # Memory may still be in use by what was asked for earlier.
        self._beside.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._beside):
            done = torch.cuda.Event()

            def fetch(tensor: Tensor) -> Tensor:
                here = torch.cuda.current_stream(self.device)
                here.wait_event(done)
                tensor.record_stream(here)
                return tensor

            yield fetch
            done.record(self._beside)

    def mark(self) -> Any:
        """This moment, as the device sees it."""
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """From one moment to another; both have passed."""
        return float(begin.elapsed_time(end) / 1000 if self.cuda else end - begin)

    def wait(self) -> None:
        """Until the device has done all it was given."""
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def free_bytes(self) -> int | None:
        """Memory that a run may use; None where nobody says."""
        if not self.cuda:
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        # What torch holds and does not use is free too.
        return int(free + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device))

    def release(self) -> None:
        """Give back memory that is held for later."""
        if self.cuda:
            torch.cuda.empty_cache()


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what it came from, is that memory did not suffice."""
    while error is not None and not isinstance(error, torch.OutOfMemoryError):
        error = error.__cause__
    return error is not None
