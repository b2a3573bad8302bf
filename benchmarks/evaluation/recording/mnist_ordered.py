"""LeNet-5 on MNIST under shot noise, brightness and motion blur, in every order of application: 916 ordered tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import testifai as ta
from evaluation.setting import Setting
from testifai.support.bits import unpack
from testifai.support.files import write_npz

FILE = "mnist_ordered.npz"
AXES = {"noise": "mnist_c.shot_noise", "bright": "mnist_c.brightness", "blur": "mnist_c.motion_blur"}


def space() -> ta.Space:
    """The ordered configurations of the three."""
    return ta.Space(AXES, order_sensitive=True)


def record(out: Path, data: Path, device: str, inputs: int = 10_000) -> None:
    """Run every test on the first digits; what comes out is one row of bits for each, by the test's number.

    A network as small as this one needs no accelerator: it runs on the processor, whatever the device.
    """
    setting = Setting(out, data)
    model, arrays = setting.file("models/mnist_lenet5.onnx"), np.load(setting.file("data/mnist_test.npz"))
    digits = arrays["x"][:inputs], arrays["y"][:inputs]
    found = ta.scan(model, digits, space(), strategy="full", surrogate="none")
    passes = np.zeros((found.space.size, (found.outcomes.inputs + 7) // 8), np.uint8)
    for test in found.outcomes:
        places, passed = found.outcomes.trials(test)
        row = np.zeros(found.outcomes.inputs, bool)
        row[found.order[places]] = passed
        passes[test] = np.packbits(row)
    inputs = found.outcomes.inputs
    write_npz(out / FILE, {"axes": np.array(list(AXES)), "inputs": np.array(inputs), "passes": passes})


def read(path: Path) -> NDArray[np.bool_]:
    """Whether each test (row) was passed on each input (column)."""
    with np.load(path) as arrays:
        return unpack(arrays["passes"], int(arrays["inputs"]))
