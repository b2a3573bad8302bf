"""Flags as bits, set one by one or in a row."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.support.bits import put, unpack


@pytest.mark.parametrize("first", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize("given", [True, False])
def test_flags_in_a_row_are_set_as_one_by_one(first, count, given):
    random = np.random.default_rng(first + count)
    before = random.random(64) < 0.3
    bits, places = np.packbits(before), np.arange(first, first + count)
    flags = random.random(count) < 0.5 if given else None
    put(bits, places, flags)
    expected = before.copy()
    expected[places] |= True if flags is None else flags
    assert np.array_equal(unpack(bits, 64), expected)


def test_flags_in_any_order():
    bits, places = np.zeros(3, np.uint8), np.array([9, 3, 4, 5, 6, 7, 8, 1, 20])
    put(bits, places)
    assert np.flatnonzero(unpack(bits, 24)).tolist() == sorted(places.tolist())
