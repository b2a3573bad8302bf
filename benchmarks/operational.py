"""Operational testing end to end: a CIFAR-10 ResNet-20 on a drifted stream, 200 labels, every technique.

    python benchmarks/operational.py [--repetitions 1000] [--tests 200] [--techniques srs balanced …]

The stream are 8,000 test images; 40 % are as they were, the others changed by one of six mixes of two or three
corruptions (cifar_c). The other 2,000 images, unchanged, stand in for training data where surprise is measured.
The model runs once over both; then every technique draws and estimates again and again. Printed are the mean squared
error over that of simple random sampling (with its standard error), the mean failures found, the share of 95 %
intervals that hold the true accuracy, and their mean width over ±1.96 root mean squared errors.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import need
from numpy.typing import NDArray

import testifai as ta
from testifai.data import load
from testifai.models.onnx import OnnxModel
from testifai.operational import TECHNIQUES
from testifai.operational.auxiliary import NEEDS_FEATURES, Observed, observe, risk_of
from testifai.operational.base import Estimate, Frame, Technique, conclude, draw
from testifai.operational.selection import make_technique

STREAM = 8000
CLEAN_SHARE = 0.4
MIXES: tuple[dict[str, int], ...] = (
    {"cifar_c.fog": 3, "cifar_c.gaussian_noise": 1},
    {"cifar_c.motion_blur": 2, "cifar_c.brightness": 3},
    {"cifar_c.snow": 2, "cifar_c.jpeg_compression": 2},
    {"cifar_c.contrast": 3, "cifar_c.spatter": 2},
    {"cifar_c.defocus_blur": 3, "cifar_c.saturate": 2, "cifar_c.jpeg_compression": 1},
    {"cifar_c.frost": 2, "cifar_c.shot_noise": 1},
)


def drifted(images: NDArray[np.uint8], seed: int = 0) -> NDArray[np.uint8]:
    """The stream: a share as it was, the rest in equal parts through the mixes."""
    mix = np.random.default_rng(seed).random(len(images))
    place = np.floor((mix - CLEAN_SHARE) / (1 - CLEAN_SHARE) * len(MIXES)).astype(int)
    stream = images.copy()
    for number, composite in enumerate(MIXES):
        rows = np.flatnonzero(place == number)
        stream[rows] = ta.apply(composite, images[rows], seed=seed, indices=rows)
    return stream


def measure(
    technique: Technique, frame: Frame, failed: NDArray[np.bool_], tests: int, repetitions: int
) -> tuple[NDArray[np.float64], float]:
    """Rows of (squared error, failures, whether covered, width), and seconds for all."""
    truth = 1 - failed.mean()
    begin = time.perf_counter()
    rows = []
    for seed in range(repetitions):
        sample = draw(technique, frame, tests, np.random.default_rng(seed), lambda batch: failed[batch])
        found: Estimate = conclude(technique, frame, sample)
        rows.append(
            ((found.accuracy - truth) ** 2, found.failures, found.low <= truth <= found.high, found.high - found.low)
        )
    return np.array(rows, float), time.perf_counter() - begin


def prepare() -> tuple[Observed, Observed, NDArray[np.bool_]]:
    """What the model says of the stream and of the reference images, and where it is wrong on the stream."""
    model_path, data_path = need("models/cifar10_resnet20.onnx", "data/cifar10_test.npz")
    model, data = OnnxModel(model_path), load("npz", data_path)
    images, labels = np.asarray(data.inputs), np.asarray(data.labels)
    order = np.random.default_rng(0).permutation(len(images))
    stream_rows, reference_rows = order[:STREAM], order[STREAM:]
    begin = time.perf_counter()
    stream = drifted(images[stream_rows])
    print(f"stream of {STREAM:,} images made in {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    seen = observe(model, stream, traces=True)
    reference = observe(model, images[reference_rows], traces=True)
    print(f"model run and traced on {len(images):,} images in {time.perf_counter() - begin:.1f} s")
    return seen, reference, seen.predicted != labels[stream_rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--techniques", nargs="+", default=sorted(TECHNIQUES, key=lambda name: (name != "srs", name)))
    arguments = parser.parse_args()
    seen, reference, failed = prepare()
    print(f"true accuracy {1 - failed.mean():.4f}; {arguments.tests} labels, {arguments.repetitions} repetitions\n")
    print(f"{'technique':12s} {'MSE / SRS':>10s} {'±':>6s} {'failures':>9s} {'covered':>8s} {'width':>6s} {'s':>7s}")
    baseline = None
    for name in ["srs", *(name for name in arguments.techniques if name != "srs")]:
        features = seen.traces if name in NEEDS_FEATURES else None
        frame = Frame(STREAM, risk_of(name, seen, reference), features, seen.predicted)
        technique = make_technique({"use": name})
        rows, seconds = measure(technique, frame, failed, arguments.tests, arguments.repetitions)
        squared = rows[:, 0]
        baseline = squared.mean() if baseline is None else baseline
        error = squared.std(ddof=1) / np.sqrt(len(squared)) / baseline
        width = rows[:, 3].mean() / (2 * 1.96 * np.sqrt(squared.mean()))
        print(
            f"{name:12s} {squared.mean() / baseline:10.3f} {error:6.3f} {rows[:, 1].mean():9.1f} "
            f"{rows[:, 2].mean():8.3f} {width:6.2f} {seconds:7.1f}"
        )


if __name__ == "__main__":
    main()
