"""Mean average precision against COCO's own code, and by hand."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

from testifai.oracles.average_precision import matches, mean_average_precision, weighted


def boxes_on_images(seed: int, images: int = 12, classes: int = 3) -> tuple[list[Any], list[Any]]:
    """Expected boxes, some of them crowds, and found ones: moved copies, doubles, other classes, and none at all."""
    generator = np.random.default_rng(seed)
    found, expected = [], []
    for _ in range(images):
        count = int(generator.integers(0, 6))
        corner, sides = generator.integers(0, 80, (count, 2)), generator.integers(4, 40, (count, 2))
        label = generator.integers(0, classes, count)
        counts = generator.random(count) > 0.2
        wanted = np.column_stack([corner, corner + sides, counts, label]).astype(np.float32)
        copies = wanted[generator.integers(0, max(count, 1), 2 * count)] if count else wanted
        seen = copies.copy()
        seen[:, :4] += generator.integers(-3, 4, seen[:, :4].shape)
        seen[:, 2:4] = np.maximum(seen[:, 2:4], seen[:, :2] + 1)
        seen[:, 4] = generator.integers(1, 10, len(seen)) / 10  # ties too
        seen[generator.random(len(seen)) < 0.2, 5] = generator.integers(0, classes)
        found.append(seen)
        expected.append(wanted)
    return found, expected


def as_coco(found: list[Any], expected: list[Any], classes: int) -> float:
    coco = pytest.importorskip("pycocotools.coco")
    evaluation = pytest.importorskip("pycocotools.cocoeval")

    def box(row: Any) -> list[float]:
        x1, y1, x2, y2 = map(float, row[:4])
        return [x1, y1, x2 - x1, y2 - y1]

    annotations = [
        {
            "image_id": image, "category_id": int(row[5]), "bbox": box(row), "iscrowd": int(row[4] == 0),
            "area": box(row)[2] * box(row)[3],
        }
        for image, rows in enumerate(expected)
        for row in rows
    ]  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(found))],
            "categories": [{"id": label} for label in range(classes)],
            "annotations": [{"id": number, **one} for number, one in enumerate(annotations, start=1)],
        }
        truth.createIndex()
        results = truth.loadRes(
            [
                {"image_id": image, "category_id": int(row[5]), "bbox": box(row), "score": float(row[4])}
                for image, rows in enumerate(found)
                for row in rows
            ]
        )
        judged = evaluation.COCOeval(truth, results, "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return float(judged.stats[0])


@pytest.mark.parametrize("seed", range(8))
def test_equal_to_coco(seed: int) -> None:
    found, expected = boxes_on_images(seed)
    assert mean_average_precision(matches(found, expected)) == pytest.approx(as_coco(found, expected, 3), abs=1e-9)


def test_weights_count_images_more_than_once() -> None:
    found, expected = boxes_on_images(3, images=5)
    times = np.array([2, 0, 1, 3, 0])
    repeated = np.repeat(np.arange(5), times)
    matched = mean_average_precision(matches([found[i] for i in repeated], [expected[i] for i in repeated]))
    # Repeated images tie with each other; the interpolated precision does not depend on which of them comes first.
    assert weighted(matches(found, expected), np.stack([times, 2 * times])) == pytest.approx([matched] * 2, abs=0.02)


def test_nothing_expected_has_no_precision() -> None:
    empty = np.zeros((0, 6), np.float32)
    assert np.isnan(mean_average_precision(matches([empty], [empty])))


def test_a_box_for_nothing_lowers_precision() -> None:
    box = np.array([[0, 0, 4, 4, 0.5, 0]], np.float32)
    wrong = np.array([[20, 20, 24, 24, 0.9, 0]], np.float32)
    assert mean_average_precision(matches([box], [box])) == pytest.approx(1.0)
    assert mean_average_precision(matches([np.concatenate([wrong, box])], [box])) == pytest.approx(0.5)
