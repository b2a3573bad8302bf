"""Files of the reader's that pages name. One function each: it fills the page's folder, from the embedded example.

A function may return names that the page's Python blocks use. More of them stand in files material_SUBJECT.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2

from testifai.data.sample import demo_data, demo_model_path

COUNT = 200  # inputs, so that pages are quick


def model(folder: Path) -> None:
    """model.onnx: the embedded classifier of 28 × 28 digits."""
    shutil.copy(demo_model_path(), folder / "model.onnx")


def photos(folder: Path) -> None:
    """photos/CLASS/NUMBER.png: digits, a folder for each class."""
    data = demo_data()
    for number, (image, label) in enumerate(zip(data.inputs[:COUNT], data.labels[:COUNT], strict=True)):
        place = folder / "photos" / str(label)
        place.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(place / f"{number:04}.png"), image)
