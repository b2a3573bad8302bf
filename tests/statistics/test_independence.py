import itertools
import json

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.statistics import independence
from testifai.statistics.independence import PairTests, connected, examine, examine_counts, find_designs
from testifai.tomogram import Tomogram
from testifai.tomogram.interactions import analyse, lines

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3])
CLEAN = 0.93
HIGH = np.array([[1, 0.987, 0.973, 0.96]] * 2)
ALONE = np.array([[1, 0.9, 0.75, 0.6], [1, 0.8, 0.6, 0.4], [1, 0.85, 0.7, 0.5]])  # relative to clean, by severity


def up_to_two(axes: int) -> np.ndarray:
    grid = np.array(list(itertools.product(range(4), repeat=axes)))
    return grid[np.count_nonzero(grid, axis=1) <= 2]


def tied(
    rng: np.random.Generator, inputs: int, axes: int = 2, correlation: float = 0.0, alone: np.ndarray = ALONE
) -> np.ndarray:
    """Outcomes, inputs by tests, that an input's own thresholds decide in every test.

    Independent perturbations unless the thresholds of the first two axes are correlated.
    """
    normal = rng.standard_normal((inputs, axes))
    normal[:, 1] = correlation * normal[:, 0] + np.sqrt(1 - correlation**2) * normal[:, 1]
    sigmas = up_to_two(axes)
    survives = ndtr(normal)[:, None, :] < alone[np.arange(axes), sigmas]
    return (rng.random((inputs, 1)) < CLEAN) & survives.all(axis=2)


def tossed(rng: np.random.Generator, inputs: int, axes: int = 2) -> np.ndarray:
    """The same rates, with every outcome tossed anew."""
    rates = CLEAN * np.prod(ALONE[np.arange(axes), up_to_two(axes)], axis=1)
    return rng.random((inputs, len(rates))) < rates


def examined(outcomes: np.ndarray, axes: int = 2, seed: int = 0, draws: int = 199, **options) -> PairTests:
    everywhere = np.ones_like(outcomes)
    designs = list(find_designs(up_to_two(axes)))
    names = ["zoom", "blur", "shear"][:axes]
    return examine(
        designs, names, lambda rows: (everywhere[:, rows], outcomes[:, rows]), len(outcomes),
        seed=seed, draws=draws, **options,
    )  # fmt: skip


def run_of(outcomes: np.ndarray, axes: int = 2, tried=None, **options) -> Tomogram:
    """A tomogram of these outcomes on all tests of up to two perturbations."""
    space = Space(dict.fromkeys(["zoom", "blur", "shear"][:axes], KEEP), **options)
    recorded = Outcomes(len(outcomes))
    for column, sigma in enumerate(up_to_two(axes).tolist()):
        places = np.flatnonzero(tried[:, column]) if tried is not None else np.arange(len(outcomes))
        if len(places):
            recorded.record(space.id(sigma), places, outcomes[places, column])
    return Tomogram(space, recorded, np.arange(len(outcomes)))


def spread(share: float, seeds: int) -> float:
    """Three standard deviations of a share seen in this many seeds."""
    return 3 * np.sqrt(share * (1 - share) / seeds)


# -- size and power -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[60, pytest.param(200, marks=pytest.mark.simulation)])
def null(request):
    """Per seed what was found on independent perturbations, whether or not an input's outcomes hang together."""
    return {
        make.__name__: [
            examined(make(np.random.default_rng([seed, 7]), 800), seed=seed).pairs[0] for seed in range(request.param)
        ]
        for make in (tied, tossed)
    }


@pytest.mark.parametrize("kind", ["tied", "tossed"])
def test_the_bootstrap_keeps_its_size_however_outcomes_hang_together(null, kind):
    p = np.array([pair.p_bootstrap for pair in null[kind]])
    for level in (0.05, 0.1, 0.5):
        assert np.mean(p <= level) == pytest.approx(level, abs=spread(level, len(p)))


def test_the_published_chi_square_does_not_keep_its_size(null):
    """Neither way: it never rejects where outcomes are tied, and mostly does where they are not."""
    assert all(pair.p_published > 0.05 for pair in null["tied"])
    assert np.mean([pair.chi2 for pair in null["tied"]]) < 9 / 2
    assert np.mean([pair.p_published <= 0.05 for pair in null["tossed"]]) > 0.05 + spread(0.05, len(null["tossed"]))
    assert np.mean([pair.chi2 for pair in null["tossed"]]) > 9 * 1.5
    assert {pair.valid for pair in null["tied"] + null["tossed"]} == {9}


@pytest.mark.parametrize("kind", ["tied", "tossed"])
def test_the_expected_chi_square_is_its_mean_under_independence(null, kind):
    found, expected = np.array([(pair.chi2, pair.chi2_expected) for pair in null[kind]]).T
    error = np.sqrt((found.var() + expected.var()) / len(found))
    assert found.mean() == pytest.approx(expected.mean(), abs=4 * error)


@pytest.mark.parametrize("seeds", [60, pytest.param(200, marks=pytest.mark.simulation)])
def test_the_bootstrap_keeps_its_size_where_few_joint_failures_are_expected(seeds):
    """Those seen are often none, of which a bootstrap makes none ever: it rejected in 20 to 40 % of such runs."""
    pairs = [
        examined(tied(np.random.default_rng([seed, 8]), 800, alone=HIGH), seed=seed).pairs[0] for seed in range(seeds)
    ]
    assert np.mean([pair.p_bootstrap <= 0.05 for pair in pairs]) <= 0.05 + spread(0.05, seeds)
    assert np.mean([pair.joint_failures for pair in pairs]) == pytest.approx(800 * CLEAN * 0.04**2, rel=0.1)


def test_a_strong_dependence_is_found_where_few_joint_failures_are_expected():
    pairs = [
        examined(tied(np.random.default_rng([seed, 9]), 800, correlation=0.8, alone=HIGH), seed=seed).pairs[0]
        for seed in range(30)
    ]
    assert np.mean([pair.dependent for pair in pairs]) > 0.9


def test_a_weak_dependence_is_found_that_the_published_test_misses():
    pairs = [
        examined(tied(np.random.default_rng(seed), 800, correlation=0.2), seed=seed).pairs[0] for seed in range(60)
    ]
    assert np.mean([pair.dependent for pair in pairs]) > 0.9
    assert np.mean([pair.p_published <= 0.05 for pair in pairs]) < 0.5


def test_a_strong_dependence_is_found_by_both():
    pair = examined(tied(np.random.default_rng(0), 800, correlation=0.7)).pairs[0]
    assert pair.dependent
    assert pair.p_published < 0.001
    assert pair.largest_effect > 0.1  # what survives one survives the other


@pytest.mark.simulation
def test_all_pairs_together_keep_the_size():
    seeds = 200
    wrong = [
        any(pair.dependent for pair in examined(tied(np.random.default_rng([seed, 1]), 600, 3), 3, seed).pairs)
        for seed in range(seeds)
    ]
    assert np.mean(wrong) <= 0.05 + spread(0.05, seeds)


@pytest.mark.parametrize("seeds", [100, pytest.param(400, marks=pytest.mark.simulation)])
def test_counts_alone_keep_the_size_where_every_outcome_is_tossed(seeds):
    designs = list(find_designs(up_to_two(2)))
    p = []
    for seed in range(seeds):
        outcomes = tossed(np.random.default_rng([seed, 2]), 800)
        counts = outcomes.sum(axis=0), np.full(outcomes.shape[1], 800)
        p.append(examine_counts(designs, ["a", "b"], *counts, seed=seed, draws=199).pairs[0].p_bootstrap)
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=spread(0.05, seeds))


# -- the numbers, by brute force ------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
def test_statistics_are_their_definitions(plain):
    """On outcomes that are tossed: they vary more than the least, and nothing is missing from the bootstrap."""
    outcomes = tossed(np.random.default_rng(5), 300)
    pair = examined(outcomes, plain=plain, draws=100, seed=4).pairs[0]
    sigmas = [tuple(s) for s in up_to_two(2).tolist()]

    def departures(chosen):
        rate = dict(zip(sigmas, outcomes[chosen].mean(axis=0), strict=True))
        base = 1 if plain else rate[0, 0]
        return np.array([[rate[a, b] - rate[a, 0] * rate[0, b] / base for b in (1, 2, 3)] for a in (1, 2, 3)]).ravel()

    rng = np.random.default_rng([4, 300])
    found = departures(np.arange(300))
    drawn = np.array([departures(rng.integers(300, size=300)) for _ in range(100)])
    scale = drawn.std(axis=0)
    statistic = np.sum((found / scale) ** 2)
    null = np.sum(((drawn - found) / scale) ** 2, axis=1)
    assert pair.statistic == pytest.approx(statistic)
    assert pair.p_bootstrap == pytest.approx((1 + np.sum(null >= statistic)) / 101)
    assert pair.mean_effect == pytest.approx(np.abs(found).mean())
    assert pair.largest_effect == pytest.approx(found[np.argmax(np.abs(found))])
    assert pair.measured - pair.product == pytest.approx(pair.largest_effect)
    rates = outcomes.mean(axis=0)
    product = np.array([rates[sigmas.index(s)] for s in itertools.product((1, 2, 3), repeat=2)]) - found
    valid = 9 * np.maximum((1 - product) / product, product / (1 - product)) < 300
    expected = np.sum((found**2 / (product * (1 - product) / 300))[valid])
    assert pair.valid == valid.sum()
    assert pair.chi2 == pytest.approx(expected)
    assert pair.p_published == pytest.approx(chi2.sf(expected, valid.sum()))


def test_the_condition_on_n_is_that_of_the_paper():
    """40 trials: a product of 0.81 needs 9 * 0.81 / 0.19 = 38.4 of them, one of 0.855 needs 53.1."""
    designs = list(find_designs(np.array([[0, 0], [1, 0], [0, 1], [0, 2], [1, 1], [1, 2]])))
    result = examine_counts(designs, ["a", "b"], [40, 36, 36, 38, 30, 30], [40] * 6)
    assert (result.pairs[0].tests, result.pairs[0].valid) == (2, 1)
    assert result.pairs[0].chi2 == pytest.approx((0.75 - 0.81) ** 2 / (0.81 * 0.19 / 40))


def test_tests_that_fall_short_of_the_condition_are_left_out_and_reported():
    """With 60 inputs the condition is a product between 0.13 and 0.87."""
    outcomes = np.ones((60, len(up_to_two(2))), bool)
    result = examined(outcomes)
    pair = result.pairs[0]
    assert (pair.valid, pair.tests) == (0, 9)
    assert np.isnan(pair.p_published)
    assert not pair.dependent  # a model that is always right
    assert any("9 of 9 tests fall short" in line for line in lines(result))
    assert not examined(~outcomes).pairs[0].dependent


def test_groups():
    assert connected(5, [(3, 4), (1, 4), (0, 2)]) == [[0, 2], [1, 3, 4]]
    assert connected(2, []) == [[0], [1]]


def test_weights_in_parts_change_nothing(monkeypatch):
    outcomes = tied(np.random.default_rng(1), 300, 3, correlation=0.3)
    at_once = examined(outcomes, 3)
    monkeypatch.setattr(independence, "WEIGHTS_AT_ONCE", 1_000)
    assert examined(outcomes, 3) == at_once


# -- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_is_analysed_as_its_outcomes():
    outcomes = tied(np.random.default_rng(2), 1_001, 3, correlation=0.6)
    result = analyse(run_of(outcomes, 3), seed=5, draws=199)
    assert result == examined(outcomes, 3, seed=5)
    assert result == analyse(run_of(outcomes, 3), seed=5, draws=199)
    assert result.groups == (("zoom", "blur"), ("shear",))
    assert {pair.inputs for pair in result.pairs} == {1_001}
    table = result.matrix()
    assert table[0, 1] == table[1, 0] == result.pairs[0].mean_effect
    assert np.isnan(np.diag(table)).all()
    assert result.matrix("dependent")[0].tolist()[1:] == [1, 0]


def test_the_text_names_the_pairs_that_mislead():
    result = analyse(run_of(tied(np.random.default_rng(2), 1_000, 3, correlation=0.6), 3))
    said = lines(result)
    pair = result.pairs[0]
    (sentence,) = [line for line in said if line.startswith("Products will mislead")]
    assert "zoom × blur" in sentence
    assert f"pessimistic by {pair.largest_effect:.3f} at zoom {pair.at[0]} with blur {pair.at[1]}" in sentence
    assert any("Groups: zoom, blur; shear." in line for line in said)
    assert sum(" × " in line for line in said) == 4
    plain = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert plain["warnings"] == [sentence]
    assert plain["pairs"][0]["misleading"]
    assert plain["matrix"][0][0] is None


def test_the_text_says_when_products_will_do():
    said = lines(analyse(run_of(tied(np.random.default_rng(0), 1_000))))
    assert said[-1].startswith("No pair departs from the product")


def test_the_text_says_where_failures_are_too_few_to_tell():
    result = analyse(run_of(tied(np.random.default_rng(0), 800, alone=HIGH)))
    (pair,) = result.pairs
    assert pair.few
    assert not pair.dependent
    assert lines(result)[-1] == (
        "Too few failures to tell a dependence unless it is strong: zoom × blur "
        f"(at most {pair.joint_failures:.1f} inputs expected to fail under both)."
    )
    assert result.as_dict()["pairs"][0]["few"]
    (pair,) = analyse(run_of(tied(np.random.default_rng(0), 800, correlation=0.95, alone=HIGH))).pairs
    assert pair.few
    assert pair.dependent


def test_only_inputs_tried_by_all_tests_of_a_pair_count():
    """The first 200 inputs by all; the others by the clean test alone, where they all fail."""
    outcomes = tied(np.random.default_rng(3), 300)
    outcomes[200:] = False
    tried = np.ones_like(outcomes)
    tried[200:, 1:] = False
    (pair,) = analyse(run_of(outcomes, tried=tried)).pairs
    assert (pair.inputs, pair.shared) == (200, True)
    (alone,) = analyse(run_of(outcomes[:200])).pairs
    assert (pair.mean_effect, pair.chi2) == (alone.mean_effect, alone.chi2)


def test_tests_on_inputs_of_their_own_are_tested_all_the_same():
    rng = np.random.default_rng(4)
    outcomes = tied(rng, 3_000, correlation=0.9)
    tried = rng.random(outcomes.shape) < 0.1
    result = analyse(run_of(outcomes, tried=tried))
    assert not result.pairs[0].shared
    assert result.pairs[0].dependent
    assert any("tried by all tests" in line for line in lines(result))


@pytest.mark.slow
def test_the_bootstrap_keeps_its_size_on_inputs_of_their_own():
    seeds, p = 200, []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 3])
        outcomes = tied(rng, 1_000)
        tried = rng.random(outcomes.shape) < 0.3
        p.append(analyse(run_of(outcomes, tried=tried), seed=seed, draws=99).pairs[0].p_bootstrap)
    assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=spread(0.1, seeds))


def test_pairs_that_were_not_measured_are_named():
    outcomes = tied(np.random.default_rng(5), 200, 3)
    tried = np.ones_like(outcomes)
    tried[:, [(s[1] > 0 and s[2] > 0) for s in up_to_two(3)]] = False
    result = analyse(run_of(outcomes, 3, tried=tried))
    assert [pair.tests for pair in result.pairs] == [9, 9, 0]
    assert lines(result)[-1] == "Not tested, because their tests were not measured: blur × shear."
    json.dumps(result.as_dict(), allow_nan=False)


def test_runs_that_cannot_be_analysed_are_refused_in_one_line():
    outcomes = tied(np.random.default_rng(6), 50)
    nothing = np.zeros_like(outcomes)
    no_clean = ~nothing
    no_clean[:, 0] = False
    few = nothing.copy()
    few[:10] = True
    for run, words in [
        (run_of(outcomes, order_sensitive=True), "application orders"),
        (run_of(outcomes, tried=no_clean), "clean test was not measured"),
        (run_of(outcomes, tried=few), "on at least 20 inputs"),
        (run_of(outcomes, tried=nothing), "on at least 20 inputs"),
        (Tomogram(Space({"zoom": KEEP}), Outcomes(50), np.arange(50)), "one axis, zoom"),
    ]:
        with pytest.raises(InputError, match=words) as caught:
            analyse(run)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="draws: 10; accepted: at least 99"):
        analyse(run_of(outcomes), draws=10)
