"""Three of the first paper's tasks: digits, small photographs and traffic signs, all tests of four axes each.

Runs on tensors, so torch is needed: a minute or two a task on an accelerator, hours on a CPU.
"""

from __future__ import annotations

from pathlib import Path

from make_grids import GRIDS, INPUTS, measure
from replay import Grid

from evaluation.recording._grids import write
from evaluation.setting import MissingFileError, Setting

NAMES = ("mnist", "cifar10", "gtsrb")


def record(out: Path, data: Path, device: str, inputs: int = INPUTS) -> None:
    """A grid of each task whose model and images are there."""
    setting, missing = Setting(out, data), []
    for name in NAMES:
        asked = GRIDS[name]
        try:
            model, images = setting.file(f"models/{asked.model}.onnx"), setting.file(f"data/{asked.data}.npz")
        except MissingFileError as error:
            missing.append(f"{name}: {error}")
            continue
        found = measure(asked, model, images, device, inputs)
        write(out / f"{name}.npz", Grid(asked.axes, int(found["inputs"]), found["passes"]))
    if missing:
        raise MissingFileError("; ".join(missing))
