"""Our own models on drifted streams: whether each example fails, and what a technique may know of it before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import testifai as ta
from evaluation.setting import MissingFileError
from testifai.data import load
from testifai.models.onnx import OnnxModel
from testifai.operational import resolve
from testifai.operational.auxiliary import Observed, observe, risk_of
from testifai.operational.ces import binned

CLEAN_SHARE = 0.4
TRAINING_INPUTS = 10_000
Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Stream:
    """A model, its data, how many examples of them drift, and through which mixes of perturbations.

    Surprise is measured against unchanged inputs: training data where there are some, else the test data left over.
    """

    name: str
    title: str
    model: str
    data: str
    size: int
    mixes: tuple[Mapping[str, int], ...]
    training: str | None = None
    layer: str | None = None  # None: the features

    @property
    def files(self) -> list[str]:
        """What it is made from."""
        return [self.model, self.data, *([self.training] if self.training else [])]

    def drifted(self, images: Images, seed: int = 0) -> Images:
        """A share as it was, the rest in equal parts through the mixes."""
        mix = np.random.default_rng(seed).random(len(images))
        place = np.floor((mix - CLEAN_SHARE) / (1 - CLEAN_SHARE) * len(self.mixes)).astype(int)
        stream = images.copy()
        for number, composite in enumerate(self.mixes):
            rows = np.flatnonzero(place == number)
            stream[rows] = ta.apply(composite, images[rows], seed=seed, indices=rows)
        return stream

    def observed(self, folder: Path) -> tuple[Observed, Observed, NDArray[np.bool_]]:
        """What the model says of the stream and of the unchanged inputs, and where it is wrong on the stream."""
        model, data = OnnxModel(folder / self.model), load("npz", folder / self.data)
        images, labels = np.asarray(data.inputs), np.asarray(data.labels)
        order = np.random.default_rng(0).permutation(len(images))
        rows, left = order[: self.size], order[self.size :]
        unchanged = images[left] if self.training is None else _some(folder / self.training)
        seen = observe(model, self.drifted(images[rows]), traces=True, layer=self.layer)
        return seen, observe(model, unchanged, traces=True, layer=self.layer), seen.predicted != labels[rows]


def _some(path: Path) -> Images:
    inputs = np.asarray(load("npz", path).inputs)
    return inputs[np.sort(np.random.default_rng(0).permutation(len(inputs))[:TRAINING_INPUTS])]


STREAMS = (
    Stream(
        "operational_mnist", "LeNet-5, MNIST drifted", "models/mnist_lenet5.onnx", "data/mnist_test.npz", 10_000,
        (
            {"mnist_c.shear": 2, "mnist_c.shot_noise": 2},
            {"mnist_c.motion_blur": 2, "mnist_c.brightness": 2},
            {"mnist_c.zoom": 2, "mnist_c.impulse_noise": 2},
            {"mnist_c.rotate": 2, "mnist_c.dotted_line": 2},
        ),
        "data/mnist_train.npz",
    ),
    Stream(
        "operational_cifar10", "ResNet-20, CIFAR-10 drifted", "models/cifar10_resnet20.onnx", "data/cifar10_test.npz",
        8_000,
        (
            {"cifar_c.fog": 3, "cifar_c.gaussian_noise": 1},
            {"cifar_c.motion_blur": 2, "cifar_c.brightness": 3},
            {"cifar_c.snow": 2, "cifar_c.jpeg_compression": 2},
            {"cifar_c.contrast": 3, "cifar_c.spatter": 2},
            {"cifar_c.defocus_blur": 3, "cifar_c.saturate": 2, "cifar_c.jpeg_compression": 1},
            {"cifar_c.frost": 2, "cifar_c.shot_noise": 1},
        ),
    ),
    Stream(
        "operational_gtsrb", "CNN-SE, GTSRB drifted", "models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz", 10_000,
        (
            {"cure.darken": 3, "cure.gaussian_blur": 2},
            {"cure.codec_error": 2, "cure.exposure": 2},
            {"cure.haze": 3, "cure.noise": 2},
            {"cure.rain": 2, "cure.decolorization": 3},
        ),
        layer="linear_6",  # behind the rectifier every feature is constant in one class or another, and no LSA is left
    ),
)  # fmt: skip


def record(out: Path, data: Path, device: str) -> None:
    """Every stream whose files are there; the device plays no part. Raises MissingFileError for what is not."""
    missing = []
    for stream in STREAMS:
        lacking = [name for name in stream.files if not (data / name).exists()]
        missing += lacking
        if not lacking:
            np.savez_compressed(out / f"{stream.name}.npz", **_facts(stream, data))
    if missing:
        raise MissingFileError(f"{', '.join(missing)} (below TESTIFAI_DATA)")


def _facts(stream: Stream, folder: Path) -> dict[str, NDArray[np.generic]]:
    seen, unchanged, failed = stream.observed(folder)
    surprises = {name: risk_of(resolve(name), seen, unchanged) for name in ("dsa", "lsa")}
    return {
        "title": np.array(stream.title),
        "size": np.array(len(failed)),
        "failed": np.packbits(failed),
        "confidence": np.asarray(seen.confidence, np.float32),
        **{name: np.asarray(values, np.float32) for name, values in surprises.items()},
        "bins": binned(np.asarray(seen.traces)),  # all that `ces` looks at
    }
