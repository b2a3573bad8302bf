"""Files of the reader's that pages name. One function each: it fills the page's folder, from the embedded example.

A function may return names that the page's Python blocks use. More of them may stand in files material_SUBJECT.py.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import testifai as ta
from testifai.data.sample import demo_data, demo_model_path
from testifai.testing import example_photographs

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


def digits(folder: Path) -> dict[str, Any]:
    """lenet5.onnx and digits.npz; in Python `model` and `data`, the same."""
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    data = demo_data()
    np.savez(folder / "digits.npz", x=data.inputs[:COUNT], y=data.labels[:COUNT])
    return {"model": "lenet5.onnx", "data": "digits.npz"}


def other_run(folder: Path) -> None:
    """other.db: the run of another model in the space of the README's spec."""
    space = ta.Space({"brightness": "mnist_c.brightness", "zoom": ("mnist_c.zoom", [0, 1, 3, 5])})
    ta.scan(lambda batch: np.arange(len(batch)) % 10, str(folder / "digits.npz"), space, store=str(folder / "other.db"))


def sign(folder: Path) -> None:
    """sign.jpg: a photograph, in colour."""
    cv2.imwrite(str(folder / "sign.jpg"), example_photographs(1, (64, 64, 3))[0])


def labelled(folder: Path) -> None:
    """labelled.csv: what `testifai select` wrote about lenet5.onnx and digits.npz, filled in."""
    spec, sheet = folder / "labelled.toml", folder / "labelled.csv"
    spec.write_text('[model]\nonnx = "lenet5.onnx"\n[data]\nnpz = "digits.npz"\n[space]\nzoom = "mnist_c.zoom"\n')
    command = ["testifai", "select", str(spec), "--technique", "srs", "--tests", "100", "-o", str(sheet)]
    subprocess.run(command, check=True, capture_output=True)
    truth = np.load(folder / "digits.npz")["y"]
    with sheet.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "label": truth[int(row["id"])]} for row in rows)
