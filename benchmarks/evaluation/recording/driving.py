"""The first paper's third task: a detector under four alterations of photographs, with F1 as the score.

Photographs differ in size, so they run by onnxruntime on the processor, each in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from driving import scanned
from replay import Grid

from evaluation.recording._grids import joined, write
from evaluation.setting import Setting
from testifai.data import load
from testifai.present.export import write_grid


def record(out: Path, data: Path, device: str, inputs: int | None = None) -> None:
    """The grid of all photographs, or of the first so many; the device is not used."""
    setting = Setting(out, data)
    model, listing = setting.file("models/yolox_nano_coco.onnx"), setting.file("data/coco_tiny/instances.json")
    count = len(load("coco", listing))
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as pool,
    ):
        one = partial(photograph, model, listing, Path(folder))
        measured = pool.map(one, range(min(count, inputs or count)))
        write(out / "driving.npz", joined([Grid.read(path) for path in measured]))


def photograph(model: Path, listing: Path, folder: Path, number: int) -> Path:
    """All tests of one photograph, as a file in the folder."""
    data = load("coco", listing)
    assert data.labels is not None
    one = replace(data, inputs=[data.inputs[number]], labels=data.labels[number : number + 1])
    full = scanned(model, one, keep=["value"], workers=1)
    path = folder / f"{number}.npz"
    write_grid(full, path)
    return path
