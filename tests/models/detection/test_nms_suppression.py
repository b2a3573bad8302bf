"""Suppression against the plain definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from testifai.data.annotations import ious
from testifai.models.detection.nms import suppress


def plainly(boxes: np.ndarray, overlap: float) -> list[list[float]]:
    """One after the other, the surest first: kept unless a kept box of its class overlaps it."""
    kept: list[np.ndarray] = []
    for box in sorted(boxes, key=lambda one: -one[4]):
        if all(other[5] != box[5] or ious(box[None], other[None])[0, 0] <= overlap for other in kept):
            kept.append(box)
    return [box.tolist() for box in kept]


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 0.65]))
def test_what_stays_is_what_the_definition_says(seed: int, overlap: float) -> None:
    generator = np.random.default_rng(seed)
    corner = generator.integers(0, 20, (25, 2))
    boxes = np.column_stack(
        [
            corner,
            corner + generator.integers(1, 20, (25, 2)),
            generator.permutation(25) / 25,
            generator.integers(0, 3, 25),
        ]
    ).astype(np.float32)
    assert suppress(boxes, overlap, most=100).tolist() == plainly(boxes, overlap)


def test_no_boxes_and_too_many() -> None:
    assert suppress(np.zeros((0, 6), np.float32), 0.5, 5).shape == (0, 6)
    apart = np.array([[10 * i, 0, 10 * i + 5, 5, 1 - i / 10, 0] for i in range(8)], np.float32)
    assert len(suppress(apart, 0.5, 3)) == 3
