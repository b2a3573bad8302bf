"""Bounds grow where the surface bends, against second differences written down in full."""

import numpy as np

from testifai.surrogates.process.posterior import GROWTH, MOST_GROWTH, Growth

GRID = np.indices((5, 4)).reshape(2, -1).T
SURFACE = np.random.default_rng(0).normal(size=(5, 4))


def surface(places):
    return SURFACE[tuple(places.T)]


def test_second_differences_are_those_of_the_grid():
    along = [np.pad(np.diff(SURFACE, 2, axis=axis), [(1, 1) if axis == other else (0, 0) for other in range(2)], "edge")
             for axis in range(2)]  # fmt: skip
    squared = sum(one**2 for one in along).ravel()
    expected = np.clip(1 + GROWTH * (squared / squared.mean() - 1), 1, MOST_GROWTH)
    np.testing.assert_allclose(Growth(surface, GRID, (5, 4))(GRID), expected)


def test_nothing_grows_on_a_plane_on_two_levels_or_off_a_grid():
    plane = Growth(lambda places: places @ np.array([1.0, 2.0]), GRID, (5, 4))
    flat = Growth(surface, GRID[:2], (2, 2))
    for growth in (plane, flat, Growth(surface, GRID, ())):
        assert growth(GRID[:2]).tolist() == [1, 1]
