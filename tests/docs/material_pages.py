"""Files that README.md and the older pages take for the reader's own, from the embedded example."""

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

SPEC = """[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
[space]
zoom = "mnist_c.zoom"
blur = { use = "mnist_c.motion_blur", severities = [0, 1, 2, 3] }
[scan]
budget = 3000
"""


def lenet5(folder: Path, count: int = 200) -> dict[str, Any]:
    """lenet5.onnx and digits.npz, 200 digits; in Python `model` and `data`."""
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    data = demo_data()
    np.savez(folder / "digits.npz", x=data.inputs[:count], y=data.labels[:count])
    return {"model": "lenet5.onnx", "data": "digits.npz"}


def thousand_digits(folder: Path) -> dict[str, Any]:
    """The same with 1,000 digits."""
    return lenet5(folder, 1000)


def spec(folder: Path) -> None:
    """spec.toml about lenet5.onnx and digits.npz: zoom and blur."""
    (folder / "spec.toml").write_text(SPEC)


def spec_run(folder: Path) -> dict[str, Any]:
    """spec.toml and its run, spec.db; in Python its `space`."""
    spec(folder)
    subprocess.run(["testifai", "run", "spec.toml"], check=True, capture_output=True)
    return {"space": ta.open(folder / "spec.db").space}


def spec_with_quality(folder: Path) -> dict[str, Any]:
    """spec.toml that asks for KID; in Python the `space`."""
    found = spec_run(folder)
    with (folder / "spec.toml").open("a", encoding="utf-8") as file:
        file.write('quality = "kid"\n')
    return found


def contrast_spec(folder: Path) -> None:
    """spec.toml with contrast and brightness, which a verifier takes, and zoom, which none does."""
    axes = 'contrast = "deeptest.contrast"\nbrightness = "deeptest.brightness"\nzoom = "mnist_c.zoom"\n'
    (folder / "spec.toml").write_text(f'[model]\nonnx = "lenet5.onnx"\n[data]\nnpz = "digits.npz"\n[space]\n{axes}')


def other_run(folder: Path) -> None:
    """other.db: the run of another model in the space of the README's spec."""
    space = ta.Space({"brightness": "mnist_c.brightness", "zoom": ("mnist_c.zoom", [0, 1, 3, 5])})
    ta.scan(lambda batch: np.arange(len(batch)) % 10, str(folder / "digits.npz"), space, store=str(folder / "other.db"))


def sign(folder: Path) -> None:
    """sign.jpg: a photograph, in colour."""
    cv2.imwrite(str(folder / "sign.jpg"), example_photographs(1, (64, 64, 3))[0])


def three_runs(folder: Path) -> None:
    """run.db, old.db and new.db, in one space."""
    for seed, name in enumerate(("run", "old", "new")):
        space = ta.Space({"zoom": ("mnist_c.zoom", [0, 2, 4]), "blur": ("mnist_c.motion_blur", [0, 2])})
        ta.scan("lenet5.onnx", "digits.npz", space, strategy="full", seed=seed, store=str(folder / f"{name}.db"))


def gate_project(folder: Path) -> None:
    """models/digits.onnx and tests/digits.npz."""
    for name in ("models", "tests"):
        (folder / name).mkdir()
    shutil.copy(demo_model_path(), folder / "models" / "digits.onnx")
    data = demo_data()
    np.savez(folder / "tests" / "digits.npz", x=data.inputs, y=data.labels)


def labelled(folder: Path) -> None:
    """labelled.csv: what `testifai label select` wrote about lenet5.onnx and digits.npz, filled in."""
    (folder / "labelled.toml").write_text(SPEC)
    options = ["--technique", "srs", "--tests", "100", "-o", "labelled.csv"]
    subprocess.run(["testifai", "label", "select", "labelled.toml", *options], check=True, capture_output=True)
    _fill_in(folder / "labelled.csv")


def filled_in(folder: Path) -> None:
    """Every sheet to_label*.csv about digits.npz, filled in."""
    for sheet in folder.glob("to_label*.csv"):
        _fill_in(sheet)


def _fill_in(sheet: Path) -> None:
    truth = np.load(sheet.parent / "digits.npz")["y"]
    with sheet.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "label": truth[int(row["id"])]} for row in rows)


def confidences(folder: Path) -> dict[str, Any]:
    """In Python `confidence`, one number for each example, and `ask`, whether an example fails."""
    confidence = np.random.default_rng(0).uniform(0.5, 1, 5000)
    failed = np.random.default_rng(1).uniform(size=5000) > confidence
    return {"confidence": confidence, "ask": lambda example: bool(failed[example])}


def masks_model(folder: Path) -> dict[str, Any]:
    """In Python `model` and `new_model`, which say of each pixel whether it is ink."""
    return {
        "model": lambda batch: (batch > 100).reshape(len(batch), -1).astype(float),
        "new_model": lambda batch: (batch > 120).reshape(len(batch), -1).astype(float),
        "space": ta.Space({"zoom": ("mnist_c.zoom", [0, 1, 3])}),
    }


def tile_detector(folder: Path) -> None:
    """detector.onnx, which finds white tiles, and photos/ of them."""
    from tests.models.detection.graphs import tiled, tiles

    tiles(folder / "detector.onnx")
    (folder / "photos").mkdir()
    for number in range(8):
        cv2.imwrite(str(folder / "photos" / f"{number}.png"), tiled([(number % 4, number // 4), (3, 3)]))


def label_maps(folder: Path) -> dict[str, Any]:
    """In Python `images`, `maps` and a `model` that labels bright pixels 1."""
    images = demo_data().inputs[:20]
    return {"images": images, "maps": (images > 100).astype(int), "model": lambda batch: (batch > 100).astype(int)}


def images_and_boxes(folder: Path) -> dict[str, Any]:
    """In Python `images`, and `boxes` on each."""
    images = example_photographs(4, (64, 64, 3))
    return {"images": images, "boxes": [np.array([[8.0, 8.0, 40.0, 40.0]]) for _ in images]}


def table_and_model(folder: Path) -> None:
    """table.csv, and model.skops that was fitted to it."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from skops.io import dump

    frame = load_iris(as_frame=True).frame
    frame.to_csv(folder / "table.csv", index=False)
    model = LogisticRegression(max_iter=1000).fit(frame.drop(columns="target"), frame["target"])
    dump(model, folder / "model.skops")


def kid_extractor(folder: Path) -> dict[str, Any]:
    """In Python `module`, which makes features of a batch."""
    return {"module": lambda batch: batch.reshape(len(batch), -1)[:, ::28].astype(np.float32)}


def papers_adder(folder: Path) -> dict[str, Any]:
    """In Python `local`, the worked example of the paper on local and global robustness."""
    from tests.locality.test_explain import worked_example

    return {"local": worked_example()}


def digits_local(folder: Path) -> dict[str, Any]:
    """In Python `local`, what digits.local.db holds."""
    return {"local": ta.locality.from_run("digits.local.db")}


def foggy(folder: Path) -> dict[str, Any]:
    """In Python a `tomogram` with the axes fog and brightness."""
    space = ta.Space({"fog": ("mnist_c.fog", [0, 1, 2]), "brightness": ("mnist_c.brightness", [0, 1, 3])})
    return {"tomogram": ta.scan("lenet5.onnx", "digits.npz", space, budget=1500)}
