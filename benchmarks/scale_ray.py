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
import time
from pathlib import Path

import numpy as np

import testifai as ta

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TESTIFAI_DATA", ROOT.parent / "shared"))
AXES = {"brightness": "mnist_c.brightness", "shear": "mnist_c.shear", "motion_blur": "mnist_c.motion_blur"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="of the 10,000; the time grows with them")
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
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


def timed(data: tuple[np.ndarray, np.ndarray], space: ta.Space, workers: int | str) -> float:
    begin = time.perf_counter()
    ta.scan(DATA / "models" / "mnist_lenet5.onnx", data, space, strategy="full", workers=workers)
    return time.perf_counter() - begin


def show(what: str, ratios: list[float]) -> None:
    print(f"{what} {statistics.median(ratios):.2f} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")


if __name__ == "__main__":
    main()
