"""Standard queries against those of the paper; the search against trying every region in turn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.commands.example import AXES, table_2
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import EstimatorSettings, Tomogram
from testifai.tomogram.regions import standard_queries, worst_regions


def space(*levels):
    tables = [Perturbation("fade", lambda batch, parameter, rng: batch, tuple(range(count))) for count in levels]
    return Space(dict(zip("abcdefghij", tables, strict=False)))


def test_three_axes_have_the_papers_twelve():
    assert standard_queries(Space(AXES)) == table_2(Space(AXES).names)


@pytest.mark.parametrize("levels", [(6,), (3, 4), (2, 2, 2), (6, 6, 6, 6), (4, 3, 2, 5, 3)])
def test_octants_share_the_space_among_them(levels):
    some = space(*levels)
    queries = list(standard_queries(some).values())
    tomogram = Tomogram(some, Outcomes(1), np.arange(1))
    octants = np.array([tomogram.query_engine.select(query) for query in queries[: 2 ** len(levels)]])
    assert (octants.sum(axis=0) == 1).all()
    cubes = [tomogram.query_engine.select(query) for query in queries[2 ** len(levels) :]]
    assert all((small <= large).all() for small, large in itertools.pairwise(cubes))
    assert len(set(queries)) == len(queries)
    assert any(mask.all() for mask in [*octants, *cubes])


def test_many_axes_have_no_octants():
    assert len(standard_queries(space(*[3] * 7))) < 20


def brute(tomogram):
    """The worth of every region, by its mask: √(n/N) (mean - mean of the region)."""
    estimate, names = tomogram.estimate, tomogram.space.names
    found = {}
    for size in (1, 2, 3):
        for axes in itertools.combinations(range(len(names)), size):
            ranges = [
                [(lo, hi) for lo in range(n) for hi in range(lo, n) if hi - lo + 1 < n]
                for n in (estimate.shape[axis] for axis in axes)
            ]
            for box in itertools.product(*ranges):
                where = [slice(None)] * estimate.ndim
                for axis, (lo, hi) in zip(axes, box, strict=True):
                    where[axis] = slice(lo, hi + 1)
                part = estimate[tuple(where)]
                mask = np.zeros(estimate.shape, bool)
                mask[tuple(where)] = True
                found[mask.tobytes()] = np.sqrt(part.size / estimate.size) * (estimate.mean() - part.mean())
    return found


@pytest.mark.parametrize("seed", range(8))
def test_search_finds_the_best_of_all_regions(seed):
    rng = np.random.default_rng(seed)
    some, outcomes = space(3, 4, 3), Outcomes(30)
    for test in range(some.size):
        outcomes.record(test, np.arange(30), np.arange(30) < rng.integers(0, 31))
    tomogram = Tomogram(some, outcomes, np.arange(30))
    found, every = worst_regions(tomogram), brute(tomogram)
    assert found.searched == len(every)
    masks = [tomogram.query_engine.select(region.query) for region in found.regions]
    worth = [every[mask.tobytes()] for mask in masks]
    assert worth[0] == pytest.approx(max(every.values()))
    assert worth == sorted(worth, reverse=True)
    for one, other in itertools.combinations(masks, 2):
        assert (one & other).sum() <= (one | other).sum() / 3
    for region, mask in zip(found.regions, masks, strict=True):
        assert region.answer.robustness == pytest.approx(tomogram.estimate.reshape(-1)[mask].mean())


def test_intervals_allow_for_the_search():
    """Every test has the same rate, so each region that is found is chance; the intervals must hold that rate.

    They may miss it, for any of the regions, in one run of twenty. Plain intervals of what was found miss it often.
    """
    rate, runs, missed, plainly = 0.7, 60, 0, 0
    some = space(4, 4, 4)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        outcomes = Outcomes(2000)
        for test in range(some.size):
            outcomes.record(test, rng.choice(2000, 40, replace=False), rng.random(40) < rate)
        tomogram = Tomogram(
            some, outcomes, np.arange(2000), settings=EstimatorSettings(population="future", surrogate=None)
        )
        found = worst_regions(tomogram, count=10).regions
        plain = [tomogram.query(region.query) for region in found]
        missed += any(not region.answer.low <= rate <= region.answer.high for region in found)
        plainly += any(not answer.low <= rate <= answer.high for answer in plain)
    # With a chance of 0.05 in each of 60 runs, more than 8 have a chance below 0.005.
    assert missed <= 8
    assert plainly > 20


def test_what_is_unknown_is_no_region(tomogram):
    found = worst_regions(tomogram(3, max_order=1, surrogate=None))
    assert all(not np.isnan(region.answer.robustness) for region in found.regions)


def test_nothing_below_the_mean():
    some, outcomes = space(3, 3), Outcomes(5)
    for test in range(9):
        outcomes.record(test, np.arange(5), np.ones(5, bool))
    assert worst_regions(Tomogram(some, outcomes, np.arange(5))).regions == ()


def test_long_axes_are_searched_from_their_ends():
    some, outcomes = space(40, 3), Outcomes(4)
    for test in range(some.size):
        outcomes.record(test, np.arange(4), np.full(4, some.configuration(test)[0] < 30))
    found = worst_regions(Tomogram(some, outcomes, np.arange(4)), count=1)
    assert found.regions[0].query == "a >= 30"
    assert found.searched < 2000
