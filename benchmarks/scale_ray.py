"""Ray on two nodes of this machine against two workers of one process, and two workers against one.

The scan is bound by the CPU: LeNet-5 on MNIST, a full 3D space. The cluster is up before anything is timed; what is
timed is the whole of `ta.scan`, connecting and starting actors included. Turns are interleaved, and what is printed are
the medians of each turn's ratios, since whatever else a machine does moves both sides. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import testifai as ta
from testifai.engine.plan import Work
from testifai.engine.ray.cutting import Cutting
from testifai.engine.ray.tasks import Measured
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store
from testifai.scans.session import SAVE_EVERY

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TESTIFAI_DATA", ROOT.parent / "shared"))
AXES = {"brightness": "mnist_c.brightness", "shear": "mnist_c.shear", "motion_blur": "mnist_c.motion_blur"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="of the 10,000; the time grows with them")
    parser.add_argument("--turns", type=int, default=3, help="0: only what the driver can take")
    chosen = parser.parse_args()
    print(f"the driver alone cuts, unpacks, records and saves {driver_rate(ta.Space(AXES)):,.0f} outcomes a second")
    if not chosen.turns:
        return
    sys.path.insert(0, str(ROOT))
    from tests.engine.ray.nodes import Nodes

    arrays = np.load(DATA / "data" / "mnist_test.npz")
    data = arrays["x"][: chosen.inputs], arrays["y"][: chosen.inputs]
    space = ta.Space(AXES)
    nodes = Nodes()
    try:
        nodes.add()
        kinds = {"one worker": 1, "two workers": 2, "Ray, two nodes": f"ray:{nodes.address}"}
        turns = [{name: timed(data, space, workers) for name, workers in kinds.items()} for _ in range(chosen.turns)]
    finally:
        nodes.close()
    inferences = chosen.inputs * space.size
    print(f"{inferences:,} inferences, {chosen.turns} turns; load of the machine {os.getloadavg()[0]:.1f}")
    for name in kinds:
        seconds = statistics.median(turn[name] for turn in turns)
        print(f"{name:15} {seconds:7.1f} s ({inferences / seconds:,.0f} a second)")
    show("two workers are faster than one by", [turn["one worker"] / turn["two workers"] for turn in turns])
    show("Ray takes, of two workers' time,", [turn["Ray, two nodes"] / turn["two workers"] for turn in turns])


def driver_rate(space: ta.Space, inputs: int = 20_000, trials: int = 4000) -> float:
    """Outcomes a second, each with a value kept, if actors took no time for tasks of so many trials."""
    work, outcomes = Work(np.arange(space.size), np.arange(inputs)), Outcomes(inputs)
    values = np.random.default_rng(0).random(trials * 4).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, Store.create_or_open(Path(folder, "run.db")) as store:
        begin = saved = time.perf_counter()
        cutting = Cutting(space, work, outcomes, most_inputs=4096)
        while (task := cutting.next(trials)) is not None:
            count = task.trials()
            answer = Measured(np.zeros(-(-count // 8), np.uint8), {"value": values[:count]}, None, 1.0)
            for one in answer.outcomes(task):
                store.touch(one.configuration, one.places)
                outcomes.record(one.configuration, one.places, one.passed, one.kept)
            if time.perf_counter() - saved > SAVE_EVERY:
                store.save(outcomes)
                saved = time.perf_counter()
        store.save(outcomes)
        return space.size * inputs / (time.perf_counter() - begin)


def timed(data: tuple[np.ndarray, np.ndarray], space: ta.Space, workers: int | str) -> float:
    begin = time.perf_counter()
    ta.scan(DATA / "models" / "mnist_lenet5.onnx", data, space, strategy="full", workers=workers)
    return time.perf_counter() - begin


def show(what: str, ratios: list[float]) -> None:
    print(f"{what} {statistics.median(ratios):.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")


if __name__ == "__main__":
    main()
