"""The check that needs no model: variances by brute force, coverage by simulation, and a recorded grid."""

import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.statistics.intervals import wilson
from testifai.tomogram.region_estimator import raw_mean

GRID = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "reference" / "tomography" / "cifar10_resnet56.npz"


def record(passed, places) -> Outcomes:
    """Test t tried on the inputs places[t]."""
    outcomes = Outcomes(passed.shape[1])
    for test, chosen in enumerate(places):
        outcomes.record(test, np.asarray(chosen, np.intp), passed[test, chosen])
    return outcomes


def population(rng, tests, inputs, correlation, rate):
    """Outcomes whose difficulty is partly the input's own, under tests of different severity."""
    own = rng.normal(size=inputs)
    hard = math.sqrt(correlation) * own + math.sqrt(1 - correlation) * rng.normal(size=(tests, inputs))
    return hard < stats.norm.ppf(rate) + np.linspace(-0.6, 0.6, tests)[:, None]


def blocks(rng, tests, inputs, each, pool):
    """Tests in random order take successive blocks of permutations of a pool."""
    chosen = rng.permutation(inputs)[:pool]
    stream = np.concatenate([rng.permutation(chosen)[: pool // each * each] for _ in range(tests * each // pool + 2)])
    taken = stream[: tests * each].reshape(tests, each)
    return taken[rng.permutation(tests)]


def least(share, seeds):
    """A share this far below the nominal one is no accident of so many seeds (one in a thousand)."""
    return share - 3.1 * math.sqrt(share * (1 - share) / seeds)


def test_the_estimate_is_the_mean_of_raw_rates():
    rng = np.random.default_rng(0)
    passed = rng.random((4, 30)) < 0.6
    places = [rng.permutation(30)[:n] for n in (3, 7, 20, 1)]
    found = raw_mean(record(passed, places), [3, 0, 1, 2, 9])
    assert found.estimate == pytest.approx(np.mean([passed[t, p].mean() for t, p in enumerate(places)]))
    assert (found.tests, found.left_out, found.inputs) == (4, 1, len(set(np.concatenate(places).tolist())))
    assert found.low < found.estimate < found.high


@pytest.mark.parametrize("fails", [60, 200, 500])
def test_one_test_with_many_trials_has_wilsons_interval(fails):
    passed = np.arange(1000)[None] >= fails
    found = raw_mean(record(passed, [np.arange(1000)]), [0], finite=False)
    low, high = map(float, wilson(1000 - fails, 1000))
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.02 * (high - low))


# -- what must not happen -----------------------------------------------------------------------------------------


def test_full_data_leave_no_width():
    passed = population(np.random.default_rng(2), 6, 40, 0.5, 0.7)
    outcomes = record(passed, [np.arange(40)] * 6)
    found = raw_mean(outcomes, range(6))
    assert found.low == found.estimate == found.high == pytest.approx(passed.mean())
    future = raw_mean(outcomes, range(6), finite=False)
    assert future.low < future.estimate < future.high


@pytest.mark.parametrize("passes", [True, False])
def test_no_width_collapses_because_no_difference_was_seen(passes):
    rng = np.random.default_rng(3)
    found = raw_mean(record(np.full((20, 500), passes), blocks(rng, 20, 500, 10, 100)), range(20))
    assert found.estimate == passes
    assert (found.high == 1 and 0.9 < found.low < 0.99) if passes else (found.low == 0 and 0.01 < found.high < 0.1)


def test_one_trial_says_next_to_nothing():
    found = raw_mean(record(np.ones((1, 100), bool), [[4]]), [0])
    assert (found.estimate, found.low, found.high, found.inputs) == (1.0, 0.01, 1.0, 1)  # one of a hundred did pass


def test_nothing_tried_is_no_estimate():
    found = raw_mean(Outcomes(10), [1, 2])
    assert math.isnan(found.estimate)
    assert found.as_dict() == {"estimate": None, "low": None, "high": None, "tests": 0, "left_out": 2, "inputs": 0}


def test_part_of_the_inputs_is_a_run_of_its_own():
    rng = np.random.default_rng(4)
    passed = population(rng, 8, 80, 0.5, 0.7)
    places = blocks(rng, 8, 80, 20, 80)
    part = np.arange(80) < 48
    found = raw_mean(record(passed, places), range(8), np.packbits(part))
    alone = record(passed[:, part], [p[p < 48] for p in places])
    assert found == raw_mean(alone, range(8))


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InputError, match=f"confidence: must be a number, above 0 and below 1, got {confidence}"):
        raw_mean(Outcomes(10), [0], confidence=confidence)


def test_more_confidence_is_more_width():
    rng = np.random.default_rng(5)
    outcomes = record(population(rng, 8, 80, 0.5, 0.7), blocks(rng, 8, 80, 10, 40))
    widths = [
        found.high - found.low for found in (raw_mean(outcomes, range(8), confidence=c) for c in (0.8, 0.95, 0.99))
    ]
    assert widths == sorted(widths)


# -- coverage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize(("correlation", "pool"), [(0.0, 80), (0.5, 80), (0.5, 400), (0.9, 80)])
@pytest.mark.parametrize("seeds", [100, pytest.param(300, marks=pytest.mark.simulation)])
def test_intervals_cover_in_balanced_designs(correlation, pool, finite, seeds):
    tests, rate = 24, 0.75
    expected = float(stats.norm.cdf(stats.norm.ppf(rate) + np.linspace(-0.6, 0.6, tests)).mean())
    covered = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        passed = population(rng, tests, 400, correlation, rate)
        found = raw_mean(record(passed, blocks(rng, tests, 400, 10, pool)), range(tests), finite=finite)
        covered += found.low <= (passed.mean() if finite else expected) <= found.high
    assert covered / seeds >= least(0.95, seeds)


def test_the_finite_correction_is_not_wasteful():
    """Tests that use all inputs equally often know the mean well: the width must say so."""
    widths, errors = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        passed = population(rng, 30, 50, 0.9, 0.7)
        found = raw_mean(record(passed, blocks(rng, 30, 50, 10, 50)), range(30))
        widths.append(found.high - found.low)
        errors.append(found.estimate - passed.mean())
    assert 0.9 < np.mean(widths) / (2 * 1.96 * np.std(errors)) < 1.25


@pytest.mark.skipif(not GRID.exists(), reason="no recorded grid (set TESTIFAI_DATA)")
def test_regions_of_a_recorded_grid_are_covered():
    with np.load(GRID) as grid:
        passed = np.unpackbits(grid["passes"].reshape(1296, -1), axis=1, count=10_000).astype(bool)
    high = np.indices((6, 6, 6, 6)).reshape(4, -1).T >= 3
    regions = [np.flatnonzero((high == corner).all(axis=1)) for corner in itertools.product([False, True], repeat=4)]
    truth = [passed[tests].mean() for tests in regions]
    covered, widths = [], []
    for seed in range(20):
        outcomes = record(passed, blocks(np.random.default_rng(seed), 1296, 10_000, 10, 2160))
        for tests, rate in zip(regions, truth, strict=True):
            found = raw_mean(outcomes, tests)
            covered.append(found.low <= rate <= found.high)
            widths.append(found.high - found.low)
    assert np.mean(covered) >= least(0.95, len(covered))
    assert np.mean(widths) == pytest.approx(0.065, abs=0.005)
