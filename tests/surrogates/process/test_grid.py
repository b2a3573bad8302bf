"""Which tests configurations are: against a dictionary, in small spaces and in ones no machine word counts."""

import numpy as np
import pytest

from testifai.surrogates.process.grid import GridIndex
from testifai.surrogates.process.kernel import Prior


@pytest.mark.parametrize("sizes", [(3,), (4, 1, 3, 2), (9,) * 30])
def test_numbers_are_those_of_a_dictionary(sizes):
    rng = np.random.default_rng(len(sizes))
    places = np.array([rng.integers(size, size=40) for size in sizes]).T  # some twice
    asked = np.concatenate([places[::-1], np.array([rng.integers(size, size=40) for size in sizes]).T])
    known = {tuple(place): number for number, place in enumerate(places.tolist())}
    assert GridIndex(places, sizes)(asked).tolist() == [known.get(tuple(place), -1) for place in asked.tolist()]


@pytest.mark.parametrize("sizes", [(5,), (4, 3), (4, 1, 3), (3, 2, 4, 3, 2), (1, 1)])
@pytest.mark.parametrize("part", [1.0, 0.6, 0.02])
def test_a_kernel_over_many_is_that_of_each_pair(sizes, part):
    """Whether pairs of halves are tabulated depends on how many configurations there are; what comes out does not."""
    rng = np.random.default_rng(len(sizes))
    prior = Prior([range(size) for size in sizes])
    parameters = prior.mean + rng.normal(size=len(prior.mean)) * prior.sd / 3
    grid = np.argwhere(np.ones(sizes, bool))
    rows, columns = (rng.permutation(grid)[: max(1, int(part * len(grid)))] for _ in range(2))
    whole = prior.kernel(parameters, rows, columns)
    for i in rng.integers(len(rows), size=5):
        for j in rng.integers(len(columns), size=5):
            one = prior.kernel(parameters, rows[i : i + 1], columns[j : j + 1])
            assert whole[i, j] == pytest.approx(one[0, 0], abs=1e-12)
    np.testing.assert_allclose(
        np.diag(prior.kernel(parameters, rows, rows)), prior.variance(parameters, rows), atol=1e-12
    )


def test_many_axes_of_two_levels_are_numbered_by_words_of_a_machine():
    places = np.eye(30, dtype=np.intp)
    numbers = GridIndex(places, [2] * 30)
    assert numbers(places).tolist() == list(range(30))
    assert numbers.keys(places).dtype == np.int64
