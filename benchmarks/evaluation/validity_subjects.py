"""What the five tasks are made of: clean inputs, perturbations, and what a quality measure looks at them with."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import qqp
from numpy.typing import NDArray

from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import Task
from testifai import models, perturb, quality
from testifai.data import load
from testifai.models.detection.onnx import Letterbox
from testifai.models.onnx_session import open_session
from testifai.quality.bertscore import TokenEncoder, Vectors, load_encoder

INPUTS = 10_000
MODELS = {
    "mnist": "models/mnist_lenet5.onnx",
    "cifar10": "models/cifar10_resnet56.onnx",
    "driving": "models/yolox_nano_coco.onnx",
    "gtsrb": "models/gtsrb_cnn_se.onnx",
}
IMAGES = {"mnist": "data/mnist_test.npz", "cifar10": "data/cifar10_test.npz", "gtsrb": "data/gtsrb_test.npz"}
PHOTOGRAPHS = "data/coco_tiny/instances.json"
PAIRS = "data/qqp_dev.csv"
# What the detector takes, and the last tensor of its backbone: (1, 256, 13, 13), what its heads are fed from.
IMAGE, CANVAS, BACKBONE = "images", (416, 416), "input.359"


def perturbations(task: Task) -> list[perturb.Perturbation]:
    """The task's axes, in the order of their application."""
    return [perturb.get(f"{task.suite}.{axis}") for axis in task.axes]


def clean_inputs(task: Task, setting: Setting) -> Any:
    """Images, photographs of many sizes, or the questions that are edited; raises MissingFileError."""
    if task.name in IMAGES:
        return np.load(setting.file(IMAGES[task.name]))["x"][:INPUTS]
    if task.name == "driving":
        return load("coco", setting.file(PHOTOGRAPHS)).inputs
    tested, _ = qqp.pairs(setting.file(PAIRS), "first")
    return [first for first, _ in tested.inputs]


def model_under_test(task: Task, setting: Setting) -> models.Model:
    """The model of an image task; raises MissingFileError."""
    return models.load("onnx", setting.file(MODELS[task.name]))


def encoder() -> Path:
    """The folder of the sentence encoder; raises MissingFileError where its package, or what runs it, is not there."""
    folder = qqp.encoder_folder()
    if folder is None:
        raise MissingFileError(f"the package {qqp.PACKAGE.replace('_', '-')}")
    absent = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if absent:
        raise MissingFileError(f"the package {' and '.join(absent)}")
    return folder


def measure_of(task: Task, setting: Setting, sample: int) -> quality.Measure:
    """KID by the features of the model under test or of a detector's backbone, BERTScore F1 for texts."""
    if task.name == "qqp":
        return quality.resolve({"use": "bertscore", "encoder": remembering(load_encoder(encoder())), "sample": sample})
    extractor = {"extractor": backbone(setting.file(MODELS[task.name]))} if task.name == "driving" else {}
    return quality.resolve({"use": "kid", "sample": sample, **extractor})


def remembering(encode: TokenEncoder) -> Callable[[list[str]], list[Vectors]]:
    """An encoder that works out each text once: of all tests' questions eight in nine have been there before."""
    known: dict[str, Vectors] = {}

    def remembered(texts: list[str]) -> list[Vectors]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encode(new), strict=True))
        return [known[text] for text in texts]

    return remembered


def backbone(path: Path) -> Callable[[Any], NDArray[np.float32]]:
    """Photographs in, the mean of each channel of the detector's backbone out."""
    import onnx
    from onnx.utils import Extractor

    # What comes after the backbone takes as long again.
    first = Extractor(onnx.load(path)).extract_model([IMAGE], [BACKBONE])
    session, fit = open_session(path, 1, first.SerializeToString()), Letterbox(CANVAS, centred=False)

    def features(images: Any) -> NDArray[np.float32]:
        # The graph takes one image at a time, BGR in 0..255, channels first.
        ready = (fit(image[None])[..., ::-1].transpose(0, 3, 1, 2).astype(np.float32) for image in images)
        return np.concatenate([session.run([BACKBONE], {IMAGE: one})[0].mean(axis=(2, 3)) for one in ready])

    return features
