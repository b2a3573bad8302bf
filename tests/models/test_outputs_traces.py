from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.models.outputs import as_rows

RNG = np.random.default_rng(0)


def test_every_shape_becomes_rows():
    assert as_rows(RNG.normal(size=5), 5, "a").shape == (5, 1)
    table = RNG.normal(size=(5, 3)).astype(np.float32)
    assert np.array_equal(as_rows(table, 5, "a"), table)
    maps = RNG.normal(size=(5, 3, 4, 6))
    by_hand = [[maps[i, c].sum() / 24 for c in range(3)] for i in range(5)]
    np.testing.assert_allclose(as_rows(maps, 5, "a"), by_hand, rtol=1e-5, atol=1e-7)
    tokens = RNG.normal(size=(5, 7, 2))
    np.testing.assert_allclose(as_rows(tokens, 5, "a"), sum(tokens[:, t] for t in range(7)) / 7, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("activations", "problem"),
    [
        (np.ones((4, 2)), "one row each"),
        (np.array(3.0), "one row each"),
        (np.full((5, 2), np.nan), "NaN or infinity"),
        (np.full((5, 2), "a"), "numbers is needed"),
    ],
)
def test_what_is_no_trace(activations, problem):
    with pytest.raises(InputError, match=problem):
        as_rows(activations, 5, "layer")
