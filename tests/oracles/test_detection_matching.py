"""Boxes found beside boxes expected, by hand and by what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.data.annotations import ious
from testifai.oracles.detection import match

A, B = [0, 0, 10, 10], [50, 50, 60, 60]


def rows(*boxes: list[float]) -> np.ndarray:
    return np.array(boxes, np.float32).reshape(-1, 6)


def test_the_surest_takes_the_box() -> None:
    found = rows([*A, 0.5, 1], [*A, 0.9, 1])
    assert match(found, rows([*A, 1, 1]), 0.5, 0.25).pairs == ((1, 0),)


def test_another_class_is_wrong_and_leaves_the_box_missed() -> None:
    matched = match(rows([*A, 0.9, 2]), rows([*A, 1, 1]), 0.5, 0.25)
    assert (matched.pairs, matched.wrong, matched.missed, matched.f1) == ((), (0,), (0,), 0.0)


def test_a_crowd_is_neither_missed_nor_held_against_the_model() -> None:
    matched = match(rows([2, 2, 4, 4, 0.9, 1], [*B, 0.8, 1]), rows([*A, 0, 1]), 0.5, 0.25)
    assert (matched.wrong, matched.missed) == ((1,), ())


def test_nothing_expected_and_nothing_found_is_right() -> None:
    assert match(rows(), rows(), 0.5, 0.25).f1 == 1.0
    assert match(rows([*A, 0.1, 0]), rows(), 0.5, 0.25).f1 == 1.0
    assert match(rows([*A, 0.9, 0]), rows(), 0.5, 0.25).f1 == 0.0
    assert match(rows(), rows([*A, 1, 0]), 0.5, 0.25).f1 == 0.0


@given(st.integers(0, 10_000))
def test_pairs_are_of_one_class_and_overlap(seed: int) -> None:
    generator = np.random.default_rng(seed)

    def some(count: int) -> np.ndarray:
        corner = generator.integers(0, 12, (count, 2))
        sides, label = generator.integers(2, 12, (count, 2)), generator.integers(0, 2, count)
        return np.column_stack([corner, corner + sides, generator.random(count), label]).astype(np.float32)

    found, expected = some(6), some(5)
    expected[:, 4] = 1
    matched = match(found, expected, 0.3, 0.2)
    overlap = ious(found, expected)
    seen = [place for place, _ in matched.pairs] + list(matched.wrong)
    wanted = [place for _, place in matched.pairs] + list(matched.missed)
    assert sorted(seen) == np.flatnonzero(found[:, 4] >= 0.2).tolist()
    assert sorted(wanted) == list(range(5))
    assert all(found[i, 5] == expected[j, 5] and overlap[i, j] >= 0.3 for i, j in matched.pairs)
    assert matched.f1 == pytest.approx(2 * len(matched.pairs) / (len(seen) + len(wanted)))
