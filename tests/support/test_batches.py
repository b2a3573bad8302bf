from __future__ import annotations

import numpy as np
import pytest

from testifai.support.batches import are_images, are_pairs, are_texts, by_shape, concat, own_copy, take


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


def test_images_of_different_sizes_are_a_list():
    images = [np.zeros((2, 3), np.uint8), np.ones((4, 3), np.uint8), np.full((2, 3), 7, np.uint8)]
    assert are_images(images)
    assert not are_texts(images)
    assert are_texts(["a"])
    copied = own_copy(images)
    copied[0][:] = 9
    assert images[0].max() == 0
    seen = []

    def change(part, rows):
        seen.append((part.shape, rows.tolist()))
        return part + 1

    changed = by_shape(images, change)
    assert seen == [((2, 2, 3), [0, 2]), ((1, 4, 3), [1])]
    assert [image.max() for image in changed] == [1, 2, 8]
