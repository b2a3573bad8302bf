"""Two runs compared: coverage by simulation, variances by brute force, and what is refused."""

import functools
import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

import testifai as ta
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.statistics.differences import independent_interval, paired_interval
from testifai.statistics.intervals import confidence_sequence
from testifai.tomogram import EstimatorSettings, Tomogram, comparison
from testifai.tomogram.comparison import compare

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, list(range(20)))


def space(tests: int) -> Space:
    return Space({"zoom": (KEEP, list(range(tests)))})


def tomogram(passed, tried=None, seed=0, labels=None, provenance=None, **settings) -> Tomogram:
    """A run in which these inputs (columns) were tried under these tests (rows)."""
    passed = np.asarray(passed, bool)
    tried = np.ones_like(passed) if tried is None else np.asarray(tried, bool)
    inputs = passed.shape[1]
    order, outcomes = visiting_order(inputs, seed), Outcomes(inputs)
    for test in np.flatnonzero(tried.any(axis=1)).tolist():
        bits = tried[test][order], (tried & passed)[test][order]
        outcomes.load(test, 0, *(np.packbits(part) for part in bits))
    estimated = EstimatorSettings(None, seed, **settings)
    return Tomogram(space(len(passed)), outcomes, order, labels=labels, settings=estimated, provenance=provenance or {})


def population(rng, tests, inputs, shared, rate_a=0.8, rate_b=0.75):
    """Outcomes of two models: `shared` is the part of an input's difficulty that both have in common."""
    common, noise = np.sqrt(shared), np.sqrt(1 - shared)
    hard = rng.normal(size=inputs)
    levels = np.linspace(-0.6, 0.6, tests)[:, None]
    return tuple(
        common * hard + noise * (0.6 * rng.normal(size=inputs) + 0.8 * rng.normal(size=(tests, inputs)))
        < stats.norm.ppf(rate) + levels
        for rate in (rate_a, rate_b)
    )


def least(share, seeds):
    """A share this far below the nominal one is no accident of so many seeds (one in a thousand)."""
    return share - 3.1 * math.sqrt(share * (1 - share) / seeds)


# -- coverage -----------------------------------------------------------------------------------------------------


INPUTS = 240


def partly(design, tests, seed):
    """Which inputs each of two runs tried, and the seeds they visited them by."""
    seeds = (seed, seed + 1000 if design == "other seed" else seed)
    tried = []
    for own in seeds:
        order = visiting_order(INPUTS, own)
        mask = np.zeros((tests, INPUTS), bool)
        for test in range(tests):
            if design == "sparse":
                rows = np.random.default_rng([own, test]).permutation(INPUTS)[:15]
            else:
                rows = order[: {"few": 15, "crossed": 60, "other seed": 100, "unbalanced": 12 + 9 * test}[design]]
            mask[test, rows] = True
        tried.append(mask)
    return tried, seeds


@functools.cache
def simulate(design, shared, seeds, tests=8, populations=6, rate_a=0.8, rate_b=0.75):
    """How often the bounds of every test hold the truth, how often those of the mean over all tests do.

    Then the mean half-width of the latter and the standard deviation of what they are bounds of.
    """
    rng = np.random.default_rng(7)
    held, region, halves, errors = [], [], [], []
    for seed in range(seeds):
        if seed % (seeds // populations) == 0:
            passed = population(rng, tests, INPUTS, shared, rate_a, rate_b)
            truth = passed[1].mean(axis=1) - passed[0].mean(axis=1)
        tried, own_seeds = partly(design, tests, seed)
        found = compare(*(tomogram(*run, own) for *run, own in zip(passed, tried, own_seeds, strict=True)))
        low, high = (np.array([getattr(test, side) for test in found.tests]) for side in ("low", "high"))
        held.append((low <= truth) & (truth <= high))
        region.append(found.overall.low <= truth.mean() <= found.overall.high)
        halves.append((found.overall.high - found.overall.low) / 2)
        errors.append(found.overall.difference - truth.mean())
    return np.mean(held, axis=0), np.mean(region), np.mean(halves), np.std(errors)


CASES = [("crossed", 0.0), ("crossed", 0.5), ("crossed", 0.95), ("sparse", 0.5), ("unbalanced", 0.5)]
CASES += [("other seed", 0.95)]


SHORT_AND_LONG = pytest.mark.parametrize("seeds", [60, pytest.param(300, marks=pytest.mark.simulation)])


@SHORT_AND_LONG
@pytest.mark.parametrize(("design", "shared"), CASES)
def test_bounds_of_tests_and_of_their_mean_hold_the_truth(design, shared, seeds):
    tests, region, _, _ = simulate(design, shared, seeds)
    # The score interval's own coverage swings by a point or two around 95 % with the counts that can occur.
    assert tests.min() >= least(0.935, seeds)
    assert region >= least(0.95, seeds)


@SHORT_AND_LONG
def test_the_bounds_of_a_mean_are_not_much_wider_than_need_be(seeds):
    for design in ("crossed", "sparse"):
        _, _, half, deviation = simulate(design, 0.5, seeds)
        # The standard deviation itself is known to within 3.1 / sqrt(2 seeds).
        assert half <= 1.3 * 1.96 * deviation * (1 + 3.1 / math.sqrt(2 * seeds))


@SHORT_AND_LONG
def test_rare_differences_are_covered_too(seeds):
    for design in ("few", "sparse"):
        _, region, _, _ = simulate(design, 0.95, seeds, rate_a=0.99, rate_b=0.985)
        assert region >= least(0.95, seeds)


@SHORT_AND_LONG
def test_bounds_for_new_inputs_hold_the_rate_behind_the_data(seeds):
    rng = np.random.default_rng(3)
    expected = np.mean(
        [stats.norm.cdf(stats.norm.ppf(0.75) + level) - stats.norm.cdf(stats.norm.ppf(0.8) + level)
         for level in np.linspace(-0.6, 0.6, 6)]
    )  # fmt: skip
    held = []
    for _ in range(seeds):
        runs = [tomogram(passed, population="future") for passed in population(rng, 6, 60, 0.5)]
        found = compare(*runs)
        assert found.population == "future"
        held.append(found.overall.low <= expected <= found.overall.high)
    assert np.mean(held) >= least(0.95, seeds)


@SHORT_AND_LONG
@pytest.mark.parametrize("design", ["crossed", "other seed"])
def test_verdicts_are_rarely_wrong_anywhere(design, seeds):
    """Models without any difference over the whole data, each tried on a part of it."""
    wrong, rng = 0, np.random.default_rng(5)
    for seed in range(seeds):
        one, two = population(rng, 8, INPUTS // 2, 0.5, 0.8, 0.8)
        # Every input beside its mirror image makes both rates of every test equal.
        passed = np.hstack([one, two]), np.hstack([two, one])
        tried, own_seeds = partly(design, 8, seed)
        found = compare(*(tomogram(*run, own) for *run, own in zip(passed, tried, own_seeds, strict=True)))
        wrong += bool(found.better or found.worse)
    assert wrong / seeds <= 1 - least(0.95, seeds)


def test_verdicts_find_what_is_there():
    rng = np.random.default_rng(1)
    one = rng.random((10, 400)) < 0.9
    two = one.copy()
    two[:4] &= rng.random((4, 400)) < 0.8
    two[7:] |= rng.random((3, 400)) < 0.9
    tried = np.zeros((10, 400), bool)
    tried[:, visiting_order(400, 0)[:200]] = True
    found = compare(tomogram(one, tried), tomogram(two, tried))
    assert [test.configuration[0] for test in found.worse] == [0, 1, 2, 3]
    assert [test.configuration[0] for test in found.better] == [7, 8, 9]
    assert found.counts == {"better": 3, "worse": 4, "equal": 0, "undecided": 3}


# -- the variance of a region -------------------------------------------------------------------------------------


def spread(values, sets):
    """Over all orders of visiting: the variance of the mean difference, and the mean of its estimates."""
    inputs = values.shape[1]
    means, estimates = [], []
    for order in itertools.permutations(range(inputs)):
        tried = np.zeros(values.shape, bool)
        for test, places in enumerate(sets):
            tried[test, [order[place] for place in places]] = True
        table = comparison._SharedTests(tomogram(values < 0, tried), tomogram(values > 0, tried), None)
        moved, _ = table.influence(np.arange(len(sets)))
        means.append(table.difference.mean())
        estimates.append(np.square(moved).sum())
    return np.var(means), np.mean(estimates)


def test_the_variance_is_unbiased_for_tests_on_the_same_inputs_and_safe_for_others(monkeypatch):
    values = np.array([[1, 0, 0, -1, 1], [1, 0, 1, -1, 0]])
    monkeypatch.setattr(comparison, "solve_paired", lambda counts, population: np.zeros((3, len(counts))))
    true, estimated = spread(values, [(0, 1, 2), (0, 1, 2)])
    assert estimated == pytest.approx(true)
    for sets in ([(0, 1, 2), (0, 1)], [(0, 1), (2, 3)], [(0, 1, 2), (2, 3, 4)], [(0, 1, 2, 3, 4), (0, 1)]):
        true, estimated = spread(values, sets)
        assert estimated >= true - 1e-12


def test_the_half_width_is_wilsons_for_rare_events():
    # s passes of n with n large: Wilson's upper bound is s + z²/2 + z sqrt(s + z²/4), over n.
    z2, n = stats.norm.ppf(0.975) ** 2, 10**6
    moved = np.zeros(n)
    moved[:7] = 1 / n
    expected = (z2 / 2 + math.sqrt(z2 * 7 + z2**2 / 4)) / n
    assert comparison._half_width(moved, np.full(n, 1 / n)) == pytest.approx(expected, rel=1e-6)
    assert comparison._half_width(np.zeros(n), np.full(n, 1 / n)) == pytest.approx(z2 / n)


# -- what is compared ---------------------------------------------------------------------------------------------


def test_inputs_are_paired_whatever_order_the_runs_visited_them_in():
    rng = np.random.default_rng(2)
    one, two = rng.random((2, 5, 90)) < 0.7
    tried = rng.random((2, 5, 90)) < 0.8
    found = compare(tomogram(one, tried[0], seed=4), tomogram(two, tried[1], seed=9))
    for test, record in enumerate(found.tests):
        common = [i for i in range(90) if tried[0][test, i] and tried[1][test, i]]
        gained = sum(bool(two[test, i]) and not one[test, i] for i in common)
        lost = sum(bool(one[test, i]) and not two[test, i] for i in common)
        assert record.difference == pytest.approx((gained - lost) / len(common))
        assert (record.trials_a, record.trials_b, record.method) == (len(common), len(common), "paired")
        expected = paired_interval(gained, lost, len(common), 90)
        np.testing.assert_allclose((record.low, record.high), expected)
    again = compare(tomogram(one, tried[0], seed=0), tomogram(two, tried[1], seed=0))
    assert again.as_dict()["tests"] == found.as_dict()["tests"]
    assert again.overall.low == pytest.approx(found.overall.low)


def test_without_common_inputs_each_run_counts_by_itself():
    rng = np.random.default_rng(2)
    one, two = rng.random((2, 3, 60)) < 0.7
    first = np.zeros((3, 60), bool)
    first[:, :30] = True
    found = compare(tomogram(one, first), tomogram(two, ~first))
    for test, record in enumerate(found.tests):
        passes = int(one[test, :30].sum()), int(two[test, 30:].sum())
        assert record.method == "apart"
        assert record.difference == pytest.approx((passes[1] - passes[0]) / 30)
        np.testing.assert_allclose((record.low, record.high), independent_interval(passes[0], 30, passes[1], 30))
    assert "3 tests share too few inputs" in found.notes[0]
    assert found.overall.low < found.overall.difference < found.overall.high


def test_a_part_of_the_inputs_is_compared_as_if_there_were_no_others():
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 80)
    one, two = rng.random((2, 4, 80)) < 0.8
    tried = rng.random((4, 80)) < 0.6
    runs = tomogram(one, tried, labels=labels), tomogram(two, tried, 5, labels=labels)
    found = compare(*runs, inputs="label in {0, 2}")
    kept = labels != 1
    alone = compare(tomogram(one[:, kept], tried[:, kept]), tomogram(two[:, kept], tried[:, kept]))
    assert found.inputs == kept.sum()
    assert found.as_dict()["tests"] == alone.as_dict()["tests"]
    assert found.overall.low == pytest.approx(alone.overall.low)


def test_regions_count_only_what_both_runs_measured():
    rng = np.random.default_rng(8)
    one, two = rng.random((2, 6, 50)) < 0.7
    tried = np.ones((6, 50), bool)
    tried[:, 40:] = False
    less = tried.copy()
    less[3:5] = False
    found = compare(tomogram(one, tried), tomogram(two, less), ["zoom >= 2", "zoom in {3, 4}", "zoom == 5"])
    some, none, single = found.regions
    assert (some.tests, some.compared, some.left_out) == (4, 2, 2)
    differences = {test.configuration[0]: test for test in found.tests}
    assert some.difference == pytest.approx((differences[2].difference + differences[5].difference) / 2)
    assert (none.compared, none.left_out, none.verdict) == (0, 2, "undecided")
    assert math.isnan(none.difference)
    assert none.as_dict()["low"] is None
    assert (single.low, single.high) == (differences[5].low, differences[5].high)
    assert (found.overall.tests, found.overall.compared) == (6, 4)
    assert compare(tomogram(one, tried), tomogram(two, less), "zoom >= 2").regions == (some,)


def test_equal_complete_runs_differ_by_exactly_nothing():
    passed = np.random.default_rng(0).random((5, 33)) < 0.6
    found = compare(tomogram(passed), tomogram(passed, seed=3), ["zoom > 1"])
    for one in (*found.tests, found.overall, *found.regions):
        assert (one.difference, one.low, one.high, one.verdict) == (0, 0, 0, "equal")
    assert found.best == found.worst == found.better == found.worse == ()


def test_complete_runs_are_compared_exactly():
    rng = np.random.default_rng(0)
    one, two = rng.random((2, 12, 33)) < 0.6
    found = compare(tomogram(one), tomogram(two, seed=3))
    assert found.overall.low == found.overall.high == found.overall.difference
    assert found.overall.difference == pytest.approx(two.mean() - one.mean())
    for test, record in enumerate(found.tests):
        difference = int(two[test].sum()) - int(one[test].sum())
        assert record.low == record.high == record.difference == difference / 33
        assert record.verdict == ("better" if difference > 0 else "worse" if difference else "equal")
    ranked = sorted(test.difference for test in found.tests)
    assert [test.difference for test in found.worst] == [value for value in ranked if value < 0][:5]
    assert [test.difference for test in found.best] == [value for value in ranked[::-1] if value > 0][:5]


IDENTITY = {"model": "m", "preprocessing": None, "seed": 0, "data": "d", "oracle": {"use": "label"}}


def test_runs_of_one_model_cannot_differ_on_inputs_not_yet_tried():
    rng = np.random.default_rng(0)
    passed, tried = rng.random((4, 50)) < 0.6, rng.random((2, 4, 50)) < 0.3
    runs = [tomogram(passed, part, provenance={"identity": IDENTITY}) for part in tried]
    found = compare(*runs)
    for one in (*found.tests, found.overall):
        assert (one.difference, one.low, one.high, one.verdict) == (0, 0, 0, "equal")
    assert "same model" in found.notes[0]
    other = tomogram(~passed, tried[1], provenance={"identity": IDENTITY})
    found = compare(runs[0], other)
    assert "contradict each other; is the model deterministic?" in found.notes[0]
    assert found.overall.low < found.overall.high


def test_stopped_runs_get_bounds_that_allow_for_it():
    rng = np.random.default_rng(0)
    one, two = rng.random((6, 200)) < 0.9, rng.random((6, 200)) < np.linspace(0.2, 0.9, 6)[:, None]
    tried = np.zeros((6, 200), bool)
    tried[:, visiting_order(200, 0)[:80]] = True
    found = compare(tomogram(one, tried, stopped_early=True), tomogram(two, tried))
    for test, record in enumerate(found.tests):
        a, b = (confidence_sequence(int((run & tried)[test].sum()), 80, 200, 0.975) for run in (one, two))
        assert (record.method, record.trials_a) == ("stopped", 80)
        np.testing.assert_allclose((record.low, record.high), (b[0] - a[1], b[1] - a[0]), atol=1e-12)
        assert (record.p < 0.05) == (record.high < 0 or record.low > 0)
    assert found.overall.low == pytest.approx(np.mean([test.low for test in found.tests]))
    assert "stopping rule" in found.notes[0]
    assert found.worse


def test_stopped_runs_tried_on_everything_are_exact():
    one = np.random.default_rng(0).random((2, 40)) < 0.5
    found = compare(tomogram(one, stopped_early=True), tomogram(~one, stopped_early=True))
    assert all(test.low == test.high == pytest.approx(test.difference) for test in found.tests)
    assert all(test.verdict != "undecided" for test in found.tests)


def test_populations_that_differ_are_taken_for_new_inputs():
    passed = np.random.default_rng(0).random((2, 3, 40)) < 0.5
    found = compare(tomogram(passed[0]), tomogram(passed[1], population="future"))
    assert found.population == "future"
    assert "populations differ" in found.notes[0]
    assert found.overall.low < found.overall.high


def test_plain_data_and_lines():
    rng = np.random.default_rng(0)
    one, two = rng.random((2, 8, 60)) < 0.7
    tried = rng.random((8, 60)) < 0.7
    found = compare(tomogram(one, tried), tomogram(two, tried), ["zoom > 3", "zoom == 0"])
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert len(plain["tests"]) == 8
    assert plain["tests"][3]["configuration"] == [3]
    assert plain["regions"][0]["query"] == "zoom > 3"
    assert sum(plain["verdicts"].values()) == 8
    assert len(plain["worst"]) <= 5
    lines = found.lines()
    assert repr(found) == "\n".join(lines)
    assert lines[0] == "A = A, B = B: 8 tests run in both, up to 60 inputs each; every number is for these inputs only"
    assert lines[1].startswith("all tests: B − A ")
    assert lines[2].startswith("zoom > 3: B − A ")
    assert any(line.strip().startswith("zoom ") and " → " in line for line in lines)
    assert all("\n" not in line for line in lines)


def test_a_difference_is_never_shown_as_a_signed_zero():
    assert [comparison._signed(value) for value in (0.0, -0.0, 0.0002, -0.0123)] == ["0", "0", "+2e-04", "-0.012"]


# -- mistakes -----------------------------------------------------------------------------------------------------


def run(axes=None, inputs=20, order_sensitive=False, tests=(0, 1), labels=None, **identity):
    """A run of another space, other data or another oracle."""
    made = Space(axes or {"zoom": KEEP, "blur": KEEP}, order_sensitive=order_sensitive)
    outcomes = Outcomes(inputs)
    for test in tests:
        outcomes.record(test, np.arange(inputs), np.arange(inputs) % 3 > 0)
    provenance = {"identity": {**IDENTITY, **identity}}
    return Tomogram(
        made,
        outcomes,
        visiting_order(inputs, 0),
        labels=labels,
        settings=EstimatorSettings(surrogate=None),
        provenance=provenance,
    )


OTHER = Perturbation("other", lambda batch, parameter, rng: batch, list(range(20)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axes": {"zoom": KEEP}}, "spaces differ: axes zoom, blur against zoom"),
        ({"axes": {"zoom": KEEP, "blur": (KEEP, [0, 2])}}, r"severities of axis blur: .* against \[0, 2\]"),
        ({"axes": {"zoom": OTHER, "blur": KEEP}}, "perturbation of axis zoom: keep against other"),
        ({"order_sensitive": True}, "application order counts in only one"),
        ({"inputs": 30}, "data differ: 20 inputs against 30"),
        ({"data": "e" * 64}, "data differ: fingerprint d against e+…"),
        ({"oracle": {"use": "consistency"}}, "oracles differ: .*label.* against .*consistency"),
        ({"tests": (3, 4)}, "no test was run in both A and B"),
        ({"tests": ()}, "no test was run in both A and B"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_with_what_differs(options, words):
    with pytest.raises(InputError, match=words) as caught:
        compare(run(), run(**options))
    assert "\n" not in str(caught.value)


def test_other_models_seeds_and_strategies_may_be_compared():
    assert compare(run(), run(model="n", strategy="full", stopping=None, keep=["value"])).overall.compared == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"queries": ["zom > 1"]}, "did you mean 'zoom'"),
        ({"queries": ["zoom > 99"]}, "selects no test"),
        ({"inputs": "label == 1"}, "no labels"),
    ],
)
def test_questions_that_cannot_be_asked_are_one_line(options, words):
    with pytest.raises(InputError, match=words):
        compare(run(), run(), **options)


def test_inputs_that_no_test_tried_are_an_error():
    tried = np.zeros((2, 10), bool)
    tried[:, :5] = True
    runs = [tomogram(np.ones((2, 10)), tried, labels=np.arange(10)) for _ in range(2)]
    with pytest.raises(InputError, match='run in both A and B on the inputs "label > 6"'):
        compare(*runs, inputs="label > 6")


# -- real models --------------------------------------------------------------------------------------------------


def test_the_public_name_is_a_function_whatever_was_imported():
    assert ta.compare is compare


def test_scans_of_two_models_are_compared():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    noise = Perturbation("noise", lambda x, by, rng: x + by * rng.normal(x.shape[1:]), [0.0, 0.5, 1.0, 2.0])
    shift = Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.2, 0.4])
    made = Space({"noise": noise, "shift": shift})

    def model(weights):
        return lambda x: (x @ weights > 0).astype(int)

    good, bad = model(np.array([1.0, 1, 1])), model(np.array([1.0, 1, -1]))
    labels = good(rows)
    full = [ta.scan(one, (rows, labels), made, strategy="full") for one in (good, bad)]
    found = ta.compare(*full, queries=["noise == 0", "noise > 1"])
    assert found.regions[0].difference == pytest.approx(
        full[1].query("noise == 0").robustness - full[0].query("noise == 0").robustness
    )
    assert found.regions[0].verdict == "worse"
    part = [ta.scan(one, (rows, labels), made, strategy="full", budget=12 * 90) for one in (good, bad)]
    partial = ta.compare(*part, queries=["noise == 0"])
    assert partial.regions[0].low <= found.regions[0].difference <= partial.regions[0].high
    assert {test.method for test in partial.tests} == {"paired"}
    with pytest.raises(InputError, match="data differ"):
        ta.compare(full[0], ta.scan(good, (rows, bad(rows)), made, strategy="full"))
