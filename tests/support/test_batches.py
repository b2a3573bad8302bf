from __future__ import annotations

import numpy as np
import pytest

from testifai.support.batches import are_pairs, concat, take


@pytest.mark.parametrize("batch", [np.arange(6).reshape(3, 2), ["a", "b", "c"], [("a", "b"), ("c", "d"), ("", "e")]])
def test_rows_are_taken_and_put_together_as_what_they_are(batch):
    parts = [take(batch, np.array([0])), take(batch, np.array([1, 2]))]
    assert all(type(part) is type(batch) for part in parts)
    assert np.array_equal(concat(parts), batch)
    assert concat(parts[:1]) is parts[0]


def test_pairs_are_told_from_texts_and_arrays():
    assert are_pairs([("a", "b")])
    for other in ([], ["ab"], [["a", "b"]], np.array([["a", "b"]], object), (("a", "b"),), None):
        assert not are_pairs(other)
