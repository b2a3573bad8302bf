"""Photographs with boxes, as COCO and as YOLO have them."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

from testifai import data as datasets
from testifai.data import from_arrays
from testifai.data.annotations import unpack
from testifai.errors import InputError
from testifai.testing import check_data

SIZES = [(40, 60), (30, 20), (40, 60)]  # height, width
# By image: class, corners.
BOXES = [[(1, (10, 5, 30, 25)), (0, (0, 0, 60, 40))], [(1, (2, 3, 8, 9))], []]


def images(folder, sizes=SIZES):
    folder.mkdir(parents=True, exist_ok=True)
    for number, (height, width) in enumerate(sizes):
        pixels = np.full((height, width, 3), 20 * number, np.uint8)
        pixels[:, :, 2] = 200  # red
        cv2.imwrite(str(folder / f"{number}.png"), pixels)


def coco(folder, **changes):
    images(folder / "images")
    table = {
        "images": [{"id": 10 + number, "file_name": f"{number}.png"} for number in range(3)],
        "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
        "annotations": [
            {"id": 0, "image_id": 10, "category_id": 7, "bbox": [10, 5, 20, 20]},
            {"id": 1, "image_id": 10, "category_id": 3, "bbox": [0, 0, 60, 40.5], "iscrowd": 1},
            {"id": 2, "image_id": 11, "category_id": 7, "bbox": [2, 3, 6, 6]},
        ],
    } | changes
    (folder / "instances.json").write_text(json.dumps(table))
    return folder


def yolo(folder, sizes=SIZES, **changes):
    images(folder / "images", sizes)
    (folder / "labels").mkdir()
    for number, ((height, width), boxes) in enumerate(zip(sizes, BOXES, strict=True)):
        lines = [
            f"{label} {(x1 + x2) / 2 / width} {(y1 + y2) / 2 / height} {(x2 - x1) / width} {(y2 - y1) / height}"
            for label, (x1, y1, x2, y2) in boxes
        ]
        (folder / "labels" / f"{number}.txt").write_text(changes.get(f"_{number}", "\n".join(lines)))
    return folder


def test_coco_is_read_with_crowds_that_may_be_found(tmp_path):
    data = datasets.wrap(coco(tmp_path))
    assert data.classes == ("cat", "dog")
    assert [len(rows) for rows in unpack(data.labels)] == [2, 1, 0]
    assert data.labels[0].tolist() == [[10, 5, 30, 25, 1, 1], [0, 0, 60, 40, 0, 0]]
    batch = data.inputs[np.array([1, 0])]
    assert [image.shape for image in batch] == [(30, 20, 3), (40, 60, 3)]
    assert batch[0][0, 0].tolist() == [200, 20, 20]
    assert data.sizes(np.arange(3)).tolist() == [list(size) for size in SIZES]
    check_data(str(tmp_path))


def test_yolo_is_read_likewise(tmp_path):
    data = datasets.load("yolo", yolo(tmp_path), background=True, classes=["cat", "dog"])
    assert [len(rows) for rows in unpack(data.labels)] == [2, 1, 0]
    assert data.labels[0] == pytest.approx(np.array([[10, 5, 30, 25, 1, 1], [0, 0, 60, 40, 1, 0]]), abs=1e-4)
    assert (data.classes, datasets.recognise(tmp_path)) == (("cat", "dog"), "yolo")
    (tmp_path / "classes.txt").write_text("a\nb\n")
    assert datasets.load("yolo", tmp_path, background=True).classes == ("a", "b")


def test_photographs_of_one_size_are_an_array(tmp_path):
    data = datasets.load("yolo", yolo(tmp_path, [(40, 60)] * 3), background=True)
    assert data.inputs[np.arange(2)].shape == (2, 40, 60, 3)


def test_a_photograph_that_says_it_is_turned_is_as_large_as_it_is_shown(tmp_path):
    (tmp_path / "p").mkdir()
    _, png = cv2.imencode(".jpg", np.zeros((16, 32, 3), np.uint8))
    jpeg = png.tobytes()
    # An Exif block with one entry, the orientation: turned by a quarter.
    tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    exif = b"Exif\0\0" + tiff
    block = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    (tmp_path / "p" / "a.jpg").write_bytes(jpeg[:2] + block + jpeg[2:])
    (tmp_path / "p" / "b.jpg").write_bytes(jpeg)
    data = datasets.load("folder", tmp_path / "p", size="own")
    assert data.sizes(np.arange(2)).tolist() == [[32, 16], [16, 32]]
    assert [image.shape[:2] for image in data.inputs[np.arange(2)]] == [(32, 16), (16, 32)]


def test_a_folder_of_images_as_they_are(tmp_path):
    images(tmp_path)
    with pytest.raises(InputError, match=r"size = \[height, width\] to resize them all, or size = 'own'"):
        datasets.load("folder", tmp_path).inputs[np.arange(3)]
    data = datasets.load("folder", tmp_path, size="own")
    assert data.labels is None
    assert [image.shape[:2] for image in data.inputs[np.arange(3)]] == SIZES
    check_data(lambda: datasets.load("folder", tmp_path, size="own"))
    with pytest.raises(InputError, match="size"):
        datasets.load("folder", tmp_path, size="any")


def test_images_and_boxes_may_be_handed_over():
    pictures = [np.full((*size, 3), place, np.uint8) for place, size in enumerate(SIZES)]
    labels = [{"boxes": [box for _, box in boxes], "labels": [label for label, _ in boxes]} for boxes in BOXES]
    data = from_arrays(pictures, labels)
    assert data.labels.shape == (3, 2, 6)
    assert data.sizes(np.array([1])).tolist() == [[30, 20]]
    check_data(lambda: (pictures, labels))
    with pytest.raises(InputError, match=r"row 1 is float64 .*all grey or all in colour"):
        from_arrays([pictures[0], pictures[1].astype(float)])
    with pytest.raises(InputError, match="2 labels for 3 inputs"):
        from_arrays(pictures, labels[:2])
    with pytest.raises(InputError, match="1 is not a class"):
        from_arrays(pictures, labels, ["cat"])
    with pytest.raises(InputError, match="not one box on any image; leave labels out"):
        from_arrays(pictures, [{"boxes": [], "labels": []}] * 3)


def annotation(**changes):
    return {"annotations": [{"id": 5, "image_id": 10, "category_id": 7, "bbox": [10, 5, 20, 20]} | changes]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (annotation(bbox=[50, 5, 20, 20]), r"0.png is 40×60, and its box \(50, 5, 70, 25\) is not within; .*x2 ≤ 60"),
        (annotation(bbox=[10, 5, -20, 20]), "is not within"),
        (annotation(bbox=[1, 2]), r"annotations\[0\].bbox: expected \[x, y, width, height\] in pixels, got \[1, 2\]"),
        (annotation(category_id=4), "category_id: expected one of 3, 7, got 4"),
        (annotation(image_id=99), "image_id: expected the id of an image that the file lists, got 99"),
        ({"annotations": []}, "holds no boxes; to compare with what is found on clean images"),
        ({"categories": []}, "has no list 'categories'"),
        ({"images": [{"id": 1}]}, r"images\[0\] has no 'file_name'"),
        ({"images": [{"id": 10, "file_name": "9.png"}]} | annotation(), "9.png, the first image .* say where"),
        (
            {"images": [{"id": 10, "file_name": "0.png"}, {"id": 11, "file_name": "9.png"}]} | annotation(),
            "1 of 2 images of instances.json are not in .*images, such as 9.png",
        ),
    ],
)
def test_mistakes_in_coco_files_are_one_line(changes, message, tmp_path):
    with pytest.raises(InputError, match=message) as told:
        datasets.load("coco", coco(tmp_path, **changes))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "message"), [("", "is empty; a COCO file has"), ("[]", "holds a list"), ("{", "not JSON")]
)
def test_files_that_are_no_coco_file(text, message, tmp_path):
    (tmp_path / "instances.json").write_text(text)
    with pytest.raises(InputError, match=message):
        datasets.load("coco", tmp_path / "instances.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "2.txt is empty; where that means that nothing is on the image, set background = true"),
        ({"_2": "0 0.5 0.5 1.5 0.1"}, r"2.png is 40×60, and its box \(-15, 18, 75, 22\) is not within"),
        ({"_2": "cat 0.5 0.5 1 1"}, "line 1 is 'cat 0.5 0.5 1 1'; class x y width height"),
        ({"_2": "0 0.5 0.5 1"}, "line 1 is"),
        ({"_2": "5 0.5 0.5 1 1"}, "has boxes of class 5; 2 classes are named, 0 … 1"),
    ],
)
def test_mistakes_in_yolo_files_are_one_line(changes, message, tmp_path):
    with pytest.raises(InputError, match=message) as told:
        datasets.load("yolo", yolo(tmp_path, **changes), classes=["cat", "dog"])
    assert "\n" not in str(told.value)


def test_a_missing_label_file_is_told(tmp_path):
    folder = yolo(tmp_path, _2="0 0.5 0.5 1 1")
    (folder / "labels" / "1.txt").unlink()
    with pytest.raises(InputError, match=r"1.txt does not exist; where that means"):
        datasets.load("yolo", folder)
