"""Operational testing end to end: a CIFAR-10 ResNet-20 on a drifted stream, 200 labels, every technique.

    python benchmarks/operational.py [--repetitions 1000] [--tests 200] [--techniques srs balanced …]

The stream are 8,000 test images; 40 % are as they were, the others changed by one of six mixes of two or three
corruptions (cifar_c). The other 2,000 images, unchanged, stand in for training data where surprise is measured.
The model runs once over both; then every technique draws and estimates again and again. Printed are the mean squared
error over the exact one of simple random sampling (with its standard error), the mean failures found, the share of 95 %
intervals that hold the true accuracy, and their mean width over ±1.96 root mean squared errors.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import FOLDER, need
from evaluation.operational_subjects import DEEPEST, Subject
from evaluation.operational_trials import Arm, measure
from evaluation.recording.operational import STREAMS

from testifai.operational import TECHNIQUES, resolve
from testifai.operational.auxiliary import risk_of

STREAM = next(stream for stream in STREAMS if "ResNet-20" in stream.title)


def prepare() -> Subject:
    """The stream as a subject: what the model says of it and where it is wrong."""
    need(STREAM.model, STREAM.data)
    begin = time.perf_counter()
    seen, unchanged, failed = STREAM.observed(FOLDER)
    risks = {name: np.asarray(risk_of(resolve(name), seen, unchanged)) for name in DEEPEST}
    print(f"stream of {STREAM.size:,} images made, model run and traced in {time.perf_counter() - begin:.1f} s")
    return Subject(STREAM.name, failed, risks, seen.traces)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--techniques", nargs="+", default=sorted(TECHNIQUES, key=lambda name: (name != "srs", name)))
    arguments = parser.parse_args()
    subject = prepare()
    print(f"true accuracy {1 - subject.rate:.4f}; {arguments.tests} labels, {arguments.repetitions} repetitions\n")
    print(f"{'technique':12s} {'MSE / SRS':>10s} {'±':>6s} {'failures':>9s} {'covered':>8s} {'width':>6s} {'s':>7s}")
    simple = subject.simple(arguments.tests)
    for name in ["srs", *(name for name in arguments.techniques if name != "srs")]:
        begin = time.perf_counter()
        trials = measure(subject, Arm(name, name), arguments.tests, arguments.repetitions)
        print(
            f"{name:12s} {trials.mse / simple:10.3f} {trials.mse_error / simple:6.3f} {trials.found:9.1f} "
            f"{trials.coverage:8.3f} {trials.width:6.2f} {time.perf_counter() - begin:7.1f}"
        )


if __name__ == "__main__":
    main()
