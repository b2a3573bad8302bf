"""A detector in a file and photographs of different sizes, from init to report, through the entry point."""

from __future__ import annotations

import json
import re
import sys

import cv2
import numpy as np
import pytest
from tests.models.detection.graphs import SIDE, TILE, boxes, constant, tiled, tiles

import testifai as ta

PLACES = [[(0, 1), (2, 2)], [(1, 1)], [(0, 0), (0, 3), (3, 3)], [(2, 0)], [(3, 1)], [(1, 2), (2, 1)]]
SCALES = [1, 2, 1, 3, 2, 1]
SPACE = """[space]
brightness = { use = "deeptest.brightness", severities = [0, 2] }
turn = { use = "deeptest.rotate", severities = [0, 1, 5] }
"""


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A finder of white tiles, and photographs of them with their boxes."""
    folder = tmp_path_factory.mktemp("detectors")
    tiles(folder / "tiles.onnx")
    (folder / "photos" / "images").mkdir(parents=True)
    table = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "tile"}, {"id": 2, "name": "other"}]}
    for number, (places, scale) in enumerate(zip(PLACES, SCALES, strict=True)):
        cv2.imwrite(str(folder / f"photos/images/{number}.png"), tiled(places, (SIDE * scale,) * 2))
        table["images"].append({"id": number, "file_name": f"{number}.png"})
        for x1, y1, x2, y2 in boxes(places, scale)["boxes"]:
            table["annotations"].append({"image_id": number, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    (folder / "photos" / "instances.json").write_text(json.dumps(table))
    (folder / "spec.toml").write_text(
        '[model]\nonnx = "tiles.onnx"\nhead = "yolox"\n[data]\ncoco = "photos"\n'
        + SPACE
        + '[scan]\noracle = "detection"\nstrategy = "full"\n'
    )
    return folder


def test_from_init_to_report(folder, command):
    code, out, _ = command("init", "tiles.onnx", "photos", "-o", "own.toml")
    assert code == 0
    assert re.search(r"Outputs \(1, 21, 7\) read as yolox: (7|8|9) boxes on 5 images", out)
    assert "Mean F1 on them: 1.000" in out
    text = (folder / "own.toml").read_text()
    assert 'head = "yolox"' in text
    assert command("check", "own.toml")[0] == 0
    code, out, _ = command("run", "own.toml")
    assert code == 0
    assert "clean accuracy 1.000" in out
    for arguments in (["show", "own.db"], ["report", "own.db", "-o", "own.html"], ["export", "own.db", "-o", "t.csv"]):
        assert command(*arguments)[0] == 0, arguments
    code, out, _ = command("query", "own.db", "brightness <= 2 and translate == 0 and order <= 1", "--json")
    assert code == 0
    assert json.loads(out)["robustness"] == 1  # tiles are white on black, and only a little lighter


def test_a_run_by_its_labels_and_one_by_its_clean_boxes(folder, command, spec_text):
    assert command("run", "spec.toml")[0] == 0
    found = ta.open("spec.db")
    assert found.estimate[:, 0].tolist() == [1, 1]
    assert found.estimate[0, 2] < 1  # turned tiles fill no tile of the canvas
    (folder / "clean.toml").write_text(spec_text.replace('coco = "photos"', 'folder = "photos/images"\nsize = "own"'))
    assert command("run", "clean.toml")[0] == 0
    assert np.array_equal(ta.open("clean.db").passes, found.passes)


def test_a_continued_run_ends_like_an_uninterrupted_one(folder, command, spec_text):
    clean = spec_text.replace('"detection"', '{ use = "detection", against = "clean" }')
    (folder / "whole.toml").write_text(clean)
    (folder / "parts.toml").write_text(clean.replace('strategy = "full"', 'strategy = "full"\nbudget = 20'))
    assert command("run", "whole.toml")[0] == 0
    command("run", "parts.toml")
    (folder / "parts.toml").write_text(clean)
    assert command("run", "parts.toml")[0] == 0
    assert np.array_equal(ta.open("whole.db").passes, ta.open("parts.db").passes)
    assert np.array_equal(ta.open("whole.db").trials, ta.open("parts.db").trials)


def test_init_for_a_folder_of_images_alone(folder, command):
    code, out, _ = command("init", "tiles.onnx", "photos/images", "-o", "own.toml", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["oracle"], found["accuracy"]) == ("detection", None)
    assert found["data"] == {"folder": "photos/images", "size": "own"}
    assert command("check", "own.toml")[0] == 0


def test_init_for_a_yolo_folder(folder, command):
    (folder / "photos" / "labels").mkdir()
    (folder / "photos" / "instances.json").unlink()
    share = TILE / SIDE
    for number, places in enumerate(PLACES):
        lines = [f"0 {(column + 0.5) * share} {(row + 0.5) * share} {share} {share}" for row, column in places]
        (folder / f"photos/labels/{number}.txt").write_text("\n".join(lines))
    code, out, _ = command("init", "tiles.onnx", "photos", "-o", "own.toml")
    assert code == 0
    assert "Mean F1 on them: 1.000" in out
    assert "background" not in (folder / "own.toml").read_text()
    cv2.imwrite(str(folder / "photos/images/black.png"), tiled([]))
    code, out, _ = command("init", "tiles.onnx", "photos", "-o", "black.toml")
    assert code == 0
    assert "1 images have an empty label file, or none: background = true" in out
    assert "background = true" in (folder / "black.toml").read_text()
    assert command("check", "black.toml")[0] == 0


def test_init_for_a_detector_in_code(folder, command):
    (folder / "finder_of_this_test.py").write_text(
        "def find(images):\n"
        "    return [{'boxes': [[0, 0, 8, 8]], 'labels': [0], 'scores': [0.9]} for _ in images]\n\n\n"
        "def classify(images):\n    return [0 for _ in images]\n"
    )
    try:
        code, out, _ = command("init", "finder_of_this_test:find", "photos", "-o", "own.toml")
        assert code == 0
        assert "Returned: 5 boxes on 5 images (1, 1, 1, 1, 1)" in out
        assert command("check", "own.toml")[0] == 0
        code, _, err = command("init", "finder_of_this_test:classify", "photos", "-o", "other.toml")
        assert code == 2
        assert "returned outputs of shape (6,), and the data have boxes" in err
    finally:
        sys.modules.pop("finder_of_this_test", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('head = "yolox"', 'head = "yolov3"', "head 'yolov3' is not known"),
        ('head = "yolox"', 'head = "detr"', "fit not the head 'detr'"),
        ('oracle = "detection"', 'oracle = "label"', "labels: are boxes; the oracle detection judges those"),
        ('oracle = "detection"', 'oracle = { use = "detection", iou = 2 }', "oracle detection: iou"),
        ('coco = "photos"', 'coco = "photos"\nimages = "elsewhere"', "elsewhere"),
        ('head = "yolox"', 'head = "yolox"\nclasses = ["tile"]', "classes names 1 classes"),
        ('head = "yolox"', 'head = "yolox"\nclasses = ["cat", "dog"]', "'tile' is not a class of the model"),
    ],
)
def test_mistakes_are_one_line(folder, command, spec_text, old, new, message):
    (folder / "other.toml").write_text(spec_text.replace(old, new))
    code, _, err = command("run", "other.toml")
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_classes_that_the_model_does_not_know(folder, command):
    table = json.loads((folder / "photos/instances.json").read_text())
    table["categories"] = [{"id": number, "name": f"thing {number}"} for number in range(5)]
    table["annotations"][0]["category_id"] = 4
    (folder / "photos/instances.json").write_text(json.dumps(table))
    code, _, err = command("run", "spec.toml")
    assert code == 2
    assert "boxes of class 4 cannot be found by the model; accepted: 0 … 1" in err


def test_images_of_two_sizes_for_a_model_that_takes_one(folder, command):
    from tests.wizard.test_init import brightness_model

    brightness_model(folder / "one.onnx", 0.5, (3, SIDE, SIDE))
    (folder / "one.toml").write_text(
        '[model]\nonnx = "one.onnx"\n[data]\nfolder = "photos/images"\nsize = "own"\n' + SPACE + "[scan]\n"
        'oracle = "consistency"\n'
    )
    code, _, err = command("run", "one.toml")
    assert code == 2
    assert "of different sizes" in err
    assert "the model takes one; resize them with size = [height, width]" in err


def test_a_graph_of_another_form(folder, command):
    constant(folder / "odd.onnx", [np.zeros((1, 7, 9))], (SIDE, SIDE))
    code, _, err = command("init", "odd.onnx", "photos", "-o", "own.toml")
    assert code == 2
    assert "odd.onnx" in err
    assert "accepted for images of 32×32: yolox (N, 21, 5 + classes)" in err
