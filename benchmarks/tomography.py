"""Full 3D tomography of 10,000 MNIST digits against the bare model on as many ready batches, in one run.

    python benchmarks/tomography.py [--inputs 10000]

The floor is onnxruntime alone: float32 batches that are already perturbed and preprocessed, at the model's best batch
size, on as many threads as the scan has workers. The scan runs in a process of its own between two halves of the floor,
and all of it twice: on a shared machine the speed of either changes by half within minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import need, report

AXES = {"brightness": "mnist_c.brightness", "zoom": "mnist_c.zoom", "blur": "mnist_c.motion_blur"}
TESTS = 216
TURNS = 2


def best_batches(model: Path, data: Path, workers: int) -> tuple[Any, list[np.ndarray]]:
    """The bare model, and perturbed digits as it takes them, in batches of the size at which it is quickest."""
    import onnxruntime

    import testifai as ta

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    digits = np.load(data)["x"][:4096]
    perturbed = ta.apply({"mnist_c.brightness": 2, "mnist_c.zoom": 2, "mnist_c.motion_blur": 2}, digits)
    ready = (perturbed[:, None] / np.float32(255)).astype(np.float32)
    times = {}
    for size in (16, 32, 64, 128, 256, 512, 1024):
        batches = [np.ascontiguousarray(ready[start : start + size]) for start in range(0, 4096, size)]
        times[size] = min(bare_seconds(session, batches, 20_000, workers) for _ in range(3)), batches
    return session, times[min(times, key=lambda size: times[size][0])][1]


def bare_seconds(
    session: Any, batches: list[np.ndarray], count: int, workers: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Time for `count` inferences on ready batches."""
    size = len(batches[0])
    rounds = -(-count // (size * workers))

    def work(start: int) -> None:
        for turn in range(rounds):
            session.run(["logits"], {"images": batches[(start + turn) % len(batches)]})

    begin = clock()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    return (clock() - begin) * count / (rounds * size * workers)


def peak_mb() -> float:
    """The most memory this process has held; unlike getrusage's figure, not that of the process that started it."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def scan(model: str, data: str, inputs: slice, workers: int) -> dict[str, float]:
    """Full tomography of some digits with a run file."""
    import testifai as ta

    arrays = np.load(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.db")
        digits = (arrays["x"][inputs], arrays["y"][inputs])
        begin = time.perf_counter()
        tomogram = ta.scan(model, digits, ta.Space(AXES), strategy="full", store=path, workers=workers)
        return {
            "seconds": time.perf_counter() - begin,
            "inferences": tomogram.inferences,
            "base": tomogram.base,
            "peak_mb": peak_mb(),
            "file_mb": path.stat().st_size / 1e6,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--scan", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    model, data = need("models/mnist_lenet5.onnx", "data/mnist_test.npz")
    workers = len(os.sched_getaffinity(0))
    if options.scan:
        print(json.dumps(scan(str(model), str(data), slice(options.inputs), workers)))
        return

    session, batches = best_batches(model, data, workers)
    print(f"{workers} threads; bare model's best batch size: {len(batches[0])}")

    half = TESTS * options.inputs // 2
    bare, scanned = [], []
    for turn in range(TURNS):
        before = bare_seconds(session, batches, half, workers)
        child = subprocess.run(
            [sys.executable, __file__, "--scan", "--inputs", str(options.inputs)],
            capture_output=True,
            text=True,
            check=True,
        )
        whole = json.loads(child.stdout)
        bare.append(before + bare_seconds(session, batches, half, workers))
        scanned.append(whole["seconds"])
        print(
            f"turn {turn + 1}: {whole['inferences']:,} inferences, bare {bare[-1]:.1f} s, scan {scanned[-1]:.1f} s, "
            f"ratio {scanned[-1] / bare[-1]:.2f}; clean accuracy {whole['base']:.4f}"
        )
    report("full 3D tomography against the bare model", sum(scanned) / sum(bare), "x", 1.6)
    report("peak memory of the scan", whole["peak_mb"], "MB", 700)
    report("run file per million outcomes", whole["file_mb"] / (whole["inferences"] / 1e6), "MB", 0.5)


if __name__ == "__main__":
    main()
