"""What the how-to guides take for the reader's own files."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np


def stream(folder: Path) -> None:
    """stream.npz: 600 images without labels, blurred since the model was trained, and truth.json, what people see."""
    from testifai import perturb
    from testifai.data.sample import demo_data

    data = demo_data()
    blurred = perturb.get("mnist_c.motion_blur").apply(np.asarray(data.inputs[:600]), 2, seed=0)
    np.savez(folder / "stream.npz", x=blurred)
    truth = {f"stream.npz[{place}]": int(label) for place, label in enumerate(data.labels[:600])}
    (folder / "truth.json").write_text(json.dumps(truth))


def wine(folder: Path) -> None:
    """wine.csv, a table with the target `grape`, and wine.skops, a pipeline fitted to half of it."""
    from sklearn.datasets import load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skops.io import dump

    frame = load_wine(as_frame=True).frame.rename(columns={"target": "grape"})
    frame.to_csv(folder / "wine.csv", index=False)
    half = frame[::2]
    dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(half.drop(columns="grape"), half["grape"]),
         folder / "wine.skops")  # fmt: skip


def reviews(folder: Path) -> None:
    """reviews.csv: short texts with a label."""
    made = [
        ("I really like this little camera, it is good.", "good"),
        ("The battery was empty after an hour, very bad.", "bad"),
        ("A good lens and a good price, I am happy.", "good"),
        ("It broke on the second day, what a bad buy.", "bad"),
        ("Good pictures, even when it is dark outside.", "good"),
        ("The screen is bad and the menu is worse.", "bad"),
    ]
    lines = ["text,label", *(f'"{text}",{label}' for text, label in made * 10)]
    (folder / "reviews.csv").write_text("\n".join(lines) + "\n")


def detector(folder: Path) -> None:
    """detector.onnx, which finds white tiles, and street/: images with such tiles and their boxes in COCO's format."""
    from tests.models.detection.graphs import SIDE, boxes, tiled, tiles

    tiles(folder / "detector.onnx")
    (folder / "street" / "images").mkdir(parents=True)
    table: dict[str, list[dict[str, object]]] = {"images": [], "annotations": [], "categories": []}
    table["categories"] = [{"id": 1, "name": "tile"}, {"id": 2, "name": "other"}]
    rng = np.random.default_rng(0)
    for number in range(36):
        scale = int(rng.integers(1, 4))
        places = [divmod(int(place), 4) for place in rng.choice(16, 1 + number % 3, replace=False)]
        cv2.imwrite(str(folder / "street" / "images" / f"{number:02}.png"), tiled(places, (SIDE * scale,) * 2))
        table["images"].append({"id": number, "file_name": f"{number:02}.png"})
        for x1, y1, x2, y2 in boxes(places, scale)["boxes"]:
            table["annotations"].append({"image_id": number, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    (folder / "street" / "instances.json").write_text(json.dumps(table))
