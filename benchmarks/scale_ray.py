"""Ray on two nodes of this machine against two workers of one process, and two workers against one.

The scan is bound by the CPU: LeNet-5 on MNIST, a full 3D space. The cluster is up before anything is timed; what is
timed is the whole of `ta.scan`, connecting and starting actors included. Turns are interleaved, and what is printed are
the medians of each turn's ratios, since whatever else a machine does moves both sides; the load of the machine stands
beside every turn. Seconds of CPU are those of all processes that take part (of Ray, its own and the actors'): they move
less than the clock where others are at work. A run with the defaults takes some six minutes on two idle cores. Needs
the extra `ray`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import testifai as ta
from testifai.engine.plan import Work
from testifai.engine.ray import executor as on_ray
from testifai.engine.ray.jobs import Measured, TaskPace, TaskSplitter
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store
from testifai.session.observers import SAVE_EVERY

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TESTIFAI_DATA", ROOT.parent / "shared"))
AXES = {"brightness": "mnist_c.brightness", "shear": "mnist_c.shear", "motion_blur": "mnist_c.motion_blur"}
LOOK_EVERY = 0.5  # seconds, at the CPU time of Ray's processes
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="of the 10,000; the time grows with them")
    parser.add_argument("--turns", type=int, default=3, help="0: only what the driver can take")
    chosen = parser.parse_args()
    space = ta.Space(AXES)
    clock, cpu = driver_rate(space)
    print(f"the driver alone cuts, unpacks, records and saves {clock:,.0f} outcomes a second "
          f"({cpu:,.0f} a second of CPU); load {load()}", flush=True)  # fmt: skip
    if not chosen.turns:
        return
    sys.path.insert(0, str(ROOT))
    from tests.engine.ray.nodes import Nodes, descendants

    arrays = np.load(DATA / "data" / "mnist_test.npz")
    data = arrays["x"][: chosen.inputs], arrays["y"][: chosen.inputs]
    nodes = Nodes()
    try:
        nodes.add()

        def family() -> list[int]:
            return [os.getpid(), *(child for node in nodes._started for child in descendants(node.pid))]

        print(f"two nodes with nothing to do take {idle_rate(family):.3f} s of CPU a second", flush=True)
        kinds: dict[str, int | str] = {"one worker": 1, "two workers": 2, "Ray, two nodes": f"ray:{nodes.address}"}
        turns = []
        for _ in range(chosen.turns):
            turns.append({name: timed(data, space, workers, family) for name, workers in kinds.items()})
            show_turn(turns[-1])
    finally:
        nodes.close()
    inferences = chosen.inputs * space.size
    print(f"{inferences:,} inferences, {chosen.turns} turns; medians:")
    for name in kinds:
        seconds, cpu = (statistics.median(getattr(turn[name], what) for turn in turns) for what in ("wall", "cpu"))
        print(f"{name:15} {seconds:7.1f} s ({inferences / seconds:,.0f} a second), {cpu:6.1f} s of CPU "
              f"({1e6 * cpu / inferences:.1f} µs an inference)")  # fmt: skip
    one, two, far = ([turn[name] for turn in turns] for name in kinds)
    show("two workers are faster than one by", [a.wall / b.wall for a, b in zip(one, two, strict=True)])
    show("Ray takes, of two workers' time,", [a.wall / b.wall for a, b in zip(far, two, strict=True)])
    show("Ray takes, of two workers' CPU,", [a.cpu / b.cpu for a, b in zip(far, two, strict=True)])
    show("the same, once the actors have begun,", [a.later_cpu / b.cpu for a, b in zip(far, two, strict=True)])
    show("actors are without a task for a share of", [turn.tasks.idle() for turn in far])
    show("the same, but for the last second,", [turn.tasks.idle(end=1.0) for turn in far])


@dataclass
class Tasks:
    """When actors were at tasks, by the driver's clock."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def note(self, seconds: float) -> None:
        now = time.perf_counter()
        self.spans.append((now - seconds, now))

    def idle(self, actors: int = 2, end: float = 0.0) -> float:
        """The share of the actors' time in which they had none, from the first begun to so long before the end."""
        first, last = min(begin for begin, _ in self.spans), max(stop for _, stop in self.spans) - end
        busy = sum(max(0.0, min(stop, last) - begin) for begin, stop in self.spans)
        return 1 - busy / (actors * (last - first))


@dataclass
class Timed:
    """A scan: seconds by the clock and of CPU, the latter also after the first task was back."""

    wall: float
    cpu: float
    later_cpu: float
    tasks: Tasks


def timed(
    data: tuple[np.ndarray, np.ndarray], space: ta.Space, workers: int | str, family: Callable[[], list[int]]
) -> Timed:
    tasks = Tasks()
    spent = Spent(family if isinstance(workers, str) else lambda: [os.getpid()])
    at_first: list[float] = []

    class Noted(TaskPace):
        def note(self, trials: int, seconds: float) -> None:
            tasks.note(seconds)
            if not at_first:
                at_first.append(spent.seconds())
            super().note(trials, seconds)

    on_ray.TaskPace = Noted  # type: ignore[misc]
    begin = time.perf_counter()
    with spent:
        ta.scan(DATA / "models" / "mnist_lenet5.onnx", data, space, strategy="full", workers=workers)
    wall = time.perf_counter() - begin
    return Timed(wall, spent.total, spent.total - (at_first[0] if at_first else 0.0), tasks)


class Spent:
    """CPU seconds of processes while this lasts, looked at every now and then: some end before it does."""

    def __init__(self, processes: Callable[[], list[int]]) -> None:
        self._processes, self._known, self._begin = processes, dict[int, float](), dict[int, float]()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._looking = 0.0  # what the looking takes itself, which is nobody's
        self.total = 0.0

    def __enter__(self) -> None:
        self.seconds()
        self._begin = dict(self._known)
        self._thread.start()

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()
        self.total = self.seconds()

    def seconds(self) -> float:
        with self._lock:
            for process in self._processes():
                with suppress(OSError):
                    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
                    self._known[process] = sum(map(int, ticks)) / TICKS
            spent = sum(seen - self._begin.get(process, 0.0) for process, seen in self._known.items())
            return spent - self._looking

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self.seconds()
            self._looking = time.thread_time()


def idle_rate(family: Callable[[], list[int]], seconds: float = 10.0) -> float:
    """Seconds of CPU a second that a cluster takes for itself."""
    spent = Spent(family)
    with spent:
        time.sleep(seconds)
    return spent.total / seconds


def driver_rate(space: ta.Space, inputs: int = 20_000, trials: int = 4000) -> tuple[float, float]:
    """Outcomes a second, by the clock and of CPU, each with a value kept, if actors took no time for such tasks."""
    work, outcomes = Work(np.arange(space.size), np.arange(inputs)), Outcomes(inputs)
    values = np.random.default_rng(0).random(trials * 4).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, Store.create_or_open(Path(folder, "run.db")) as store:
        begin = saved = time.perf_counter()
        begin_cpu = time.process_time()
        splitter = TaskSplitter(space, work, outcomes, most_inputs=4096)
        while (task := splitter.next(trials)) is not None:
            count = task.trials()
            answer = Measured(np.zeros(-(-count // 8), np.uint8), {"value": values[:count]}, None, 1.0)
            for one in answer.outcomes(task):
                store.touch(one.configuration, one.places)
                outcomes.record(one.configuration, one.places, one.passed, one.kept)
            if time.perf_counter() - saved > SAVE_EVERY:
                store.save(outcomes)
                saved = time.perf_counter()
        store.save(outcomes)
        made = space.size * inputs
        return made / (time.perf_counter() - begin), made / (time.process_time() - begin_cpu)


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def show_turn(turn: dict[str, Timed]) -> None:
    words = ", ".join(f"{name} {one.wall:.1f} s ({one.cpu:.1f} s of CPU)" for name, one in turn.items())
    print(f"{words}; load {load()}", flush=True)


def show(what: str, ratios: list[float]) -> None:
    print(f"{what} {statistics.median(ratios):.3f} ({', '.join(f'{ratio:.3f}' for ratio in ratios)})")


if __name__ == "__main__":
    main()
