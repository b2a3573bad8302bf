"""What the time of a run on a device goes to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from testifai.engine.device.lane import Lane

PARTS = ("perturb", "infer", "judge", "copy", "record")


class Clock(Protocol):
    """Told which part of the work is being done."""

    def __call__(self, part: str) -> AbstractContextManager[None]: ...


def no_clock(part: str) -> AbstractContextManager[None]:
    """Nobody looks."""
    return nullcontext()


class Split:
    """Seconds for each part of the work. It waits for the device after every step, so the whole takes longer.

    Set as `clock` of a `DeviceExecutor`.
    """

    def __init__(self, device: str) -> None:
        self.lane = Lane(device)
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        self.lane.wait()
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.lane.wait()
            self.seconds[part] += time.perf_counter() - begin

    def __str__(self) -> str:
        total = sum(self.seconds.values()) or 1.0
        return ", ".join(f"{part} {100 * spent / total:.1f} %" for part, spent in self.seconds.items())
