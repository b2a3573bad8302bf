"""The recorded answers behind section `locality`: what a model said to every input under every property and severity.

Of our own measuring: predicted classes and confidences as a byte each, no inputs and no weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.setting import Setting
from testifai.locality import Local, Sampled
from testifai.locality.local import count_answers

# Rotation and brightness in both directions.
PROPERTIES = {
    "noise": "classic.gaussian_noise",
    "rotation_left": "classic.rotation",
    "rotation_right": "classic.rotation_clockwise",
    "darker": "classic.brightness",
    "brighter": "classic.brighten",
}
PER_CLASS = 200


@dataclass(frozen=True)
class Subject:
    """A model and its test data, as files below TESTIFAI_DATA, and where its answers are recorded."""

    name: str
    title: str
    model: str
    data: str

    @property
    def recorded(self) -> str:
        """The file of `benchmarks/grids`."""
        return f"locality_{self.name}.npz"

    def answers(self, setting: Setting) -> Local:
        """The answers to all inputs that the model gets right; raises MissingFileError."""
        return read(setting.grid(self.recorded))


SUBJECTS = (
    Subject("mnist", "LeNet-5 on MNIST", "models/mnist_lenet5.onnx", "data/mnist_test.npz"),
    Subject("gtsrb", "CNN-SE on GTSRB", "models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz"),
)


def write(path: Path, local: Local) -> None:
    """Keep a table of single answers."""
    sampled = local.sampled
    assert sampled is not None
    assert sampled.confidence is not None
    np.savez_compressed(
        path,
        classes=np.array(local.classes),
        properties=np.array(local.properties),
        severities=np.array(local.severities),
        outputs=np.array(local.outputs),
        ids=sampled.ids.astype(np.uint16),
        truth=sampled.classes.astype(np.uint8),
        predicted=sampled.predicted.astype(np.uint8),
        confidence=np.rint(255 * sampled.confidence).astype(np.uint8),
    )


def read(path: Path) -> Local:
    """The table again; confidences are rounded to 1/255."""
    with np.load(path) as file:
        kept = {name: file[name] for name in file.files}
    predicted, truth = kept["predicted"].astype(np.int32), kept["truth"].astype(np.intp)
    classes, outputs = kept["classes"].tolist(), kept["outputs"].tolist()
    single = Sampled(kept["ids"].astype(np.intp), truth, predicted, (kept["confidence"] / 255).astype(np.float32))
    counts = count_answers(predicted, truth, len(classes), len(outputs))
    return Local.from_counts(
        classes, kept["properties"].tolist(), kept["severities"].tolist(), counts, outputs=outputs, sampled=single
    )


def halves(everything: Local, seed: int, per_class: int = PER_CLASS) -> tuple[Local, Local]:
    """A random division: so many inputs of each class, or half of those of a small class, and the rest."""
    assert everything.sampled is not None
    order = np.random.default_rng(seed).permutation(len(everything.sampled.ids))
    classes = everything.sampled.classes[order]
    own = [order[classes == place] for place in range(len(everything.classes))]
    taken = [min(per_class, len(rows) // 2) for rows in own]
    first = np.concatenate([rows[:count] for rows, count in zip(own, taken, strict=True)])
    rest = np.concatenate([rows[count:] for rows, count in zip(own, taken, strict=True)])
    return everything.part(first), everything.part(rest)
