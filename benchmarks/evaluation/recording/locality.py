"""Records the answers behind section `locality`: some 600,000 inferences, minutes on one core."""

from __future__ import annotations

from pathlib import Path

from evaluation.locality_answers import PROPERTIES, SUBJECTS, write
from testifai.data import load
from testifai.locality import local
from testifai.models.onnx import OnnxModel


def record(out: Path, data: Path, device: str) -> None:
    """Every input that a model gets right, under every property at every severity; `device` makes no difference."""
    for one in SUBJECTS:
        write(out / one.recorded, local(OnnxModel(data / one.model), load("npz", data / one.data), PROPERTIES, None))
