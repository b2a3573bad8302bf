"""The balanced design: equal shares, equal use of inputs, and a budget that is kept to the last inference."""

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.strategies import Balanced, Progress
from testifai.strategies.balanced import design, pool_size

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3, 4, 5])
SPACE = Space({"a": KEEP, "b": KEEP, "c": KEEP})
TESTS = 216


def play(budget, *, inputs=2000, space=SPACE, outcomes=None, limit=None, **options) -> Outcomes:
    """Run the design as an executor would; `limit` ends a round in its middle, as a crash would."""
    outcomes = outcomes or Outcomes(inputs)
    while (work := Balanced().propose(Progress(space, outcomes, budget=budget, **options))) is not None:
        work = work.with_clean() if options.get("needs_clean") else work
        union = work.union()
        table = work.missing(outcomes, union)
        assert table.any()
        for row, configuration in zip(table, work.configurations.tolist(), strict=True):
            places = union[row][:limit]
            outcomes.record(configuration, places, np.ones(len(places), bool))
            if limit is not None:
                limit -= len(places)
                if limit <= 0:
                    return outcomes
    return outcomes


def trials(outcomes, space=SPACE):
    return outcomes.counts(space.ids_up_to(None))[1]


def uses(outcomes):
    """Under how many tests each input was run."""
    rows = [outcomes.bits(test)[0] for test in outcomes]
    return np.unpackbits(np.array(rows), axis=1)[:, : outcomes.inputs].sum(axis=0)


def facts(outcomes):
    return {test: outcomes.bits(test)[0].tobytes() for test in outcomes}


@pytest.mark.parametrize("budget", [216, 1000, 2160, 10_000, 54_321, 216 * 2000 - 1])
def test_every_test_and_every_input_of_the_pool_has_its_equal_share(budget):
    outcomes = play(budget)
    assert outcomes.total() == budget  # a place twice in a block would be missing here
    clean, *others = trials(outcomes).tolist()
    assert clean == min(2000, max(1000, budget // 10), budget // 2)
    assert max(others) - min(others) <= 1
    used = uses(outcomes)
    pool = min(2000, max(-(-budget // 6), min(budget // 2, 1500)))
    assert np.count_nonzero(used) == pool
    assert used[:pool].max() - used[:pool].min() <= 1


@pytest.mark.parametrize(("budget", "inputs"), [(100, 50), (100, 1000), (1000, 300), (17, 17), (12, 1), (None, 30)])
def test_no_block_holds_an_input_twice_however_few_there_are(budget, inputs):
    space = Space({"a": (KEEP, [0, 1]), "b": (KEEP, [0, 1])})
    _, blocks = design(Progress(space, Outcomes(inputs), budget=budget))
    assert all(len(np.unique(block)) == len(block) for block in blocks)
    assert sum(map(len, blocks)) == min(4 * inputs, budget or np.inf)


def test_without_a_budget_everything_is_run():
    assert trials(play(None, inputs=20)).tolist() == [20] * TESTS
    assert trials(play(10**9, inputs=20)).tolist() == [20] * TESTS


@pytest.mark.parametrize("budget", [1, 2, 17, 215])
def test_a_budget_below_the_number_of_tests_buys_one_input_each_and_half_of_it_the_clean_test(budget):
    outcomes = play(budget)
    clean, *others = trials(outcomes).tolist()
    assert clean == max(1, budget // 2)
    assert [n for n in others if n] == [1] * (budget - clean)
    if 1 < budget < 200:
        assert set(play(budget, seed=1)) != set(outcomes)


def test_any_input_may_meet_any_test():
    """Over the seeds, each of 12 places is under each but the clean test with probability 4 of 12."""
    space, seeds = Space({"a": (KEEP, [0, 1]), "b": (KEEP, [0, 1, 2])}), 600
    met = np.zeros((6, 12))
    for seed in range(seeds):
        tests, blocks = design(Progress(space, Outcomes(12), budget=12 + 20, seed=seed))
        for test, block in zip(tests, blocks, strict=True):
            met[test, block] += 1
    assert met.sum() == seeds * 32
    assert (met[0] == seeds).all()
    # 60 counts, binomial with p = 4/12: none further than 4 standard deviations.
    assert np.abs(met[1:] - seeds / 3).max() < 4 * np.sqrt(seeds * (1 / 3) * (2 / 3))


def test_pool_sizes_of_the_reference_budgets():
    assert [pool_size(b, 10_000, 1296) for b in (6480, 12_960, 129_600, 648_000)] == [1500, 2160, 10_000, 10_000]
    assert pool_size(2160, 10_000, 216) == 1080
    assert pool_size(9000, 10_000, 2) == 4500  # one test alone needs more than a sixth of the budget
    assert pool_size(1, 10, 216) == 1


def test_same_seed_same_design_and_another_seed_another():
    assert facts(play(1000)) == facts(play(1000))
    assert facts(play(1000)) != facts(play(1000, seed=1))


@pytest.mark.parametrize("needs_clean", [False, True])
@pytest.mark.parametrize("first", [1, 100, 500, 1000, 1999])
def test_a_raised_budget_is_kept_to_the_last_inference(first, needs_clean):
    before = facts(play(first, needs_clean=needs_clean))
    outcomes = play(2000, outcomes=play(first, needs_clean=needs_clean), needs_clean=needs_clean)
    assert outcomes.total() == 2000
    assert all(test in outcomes for test in before)
    others = np.delete(trials(outcomes), 0)
    assert others.max() - others.min() <= 1
    for limit in (3, 700):
        broken = play(2000, outcomes=play(first, needs_clean=needs_clean), needs_clean=needs_clean, limit=limit)
        assert facts(play(2000, outcomes=broken, needs_clean=needs_clean)) == facts(outcomes)


def test_a_lowered_budget_asks_for_nothing():
    outcomes = play(2000)
    assert Balanced().propose(Progress(SPACE, outcomes, budget=1000)) is None


@pytest.mark.parametrize("budget", [1, 2, 17, 215, 216, 1000, 5000, 50_000])
def test_comparing_with_the_clean_output_is_paid_for(budget):
    """The executor runs the clean test on every input that another test asks for; that too is within the budget."""
    outcomes = play(budget, needs_clean=True)
    assert outcomes.total() == budget
    clean, _ = outcomes.bits(0)
    assert all(((outcomes.bits(test)[0] & ~clean) == 0).all() for test in outcomes)


def test_a_space_too_large_to_list_takes_a_budget():
    large = Space({f"a{i}": KEEP for i in range(15)})
    outcomes = play(500, space=large)
    assert (outcomes.total(), len(outcomes)) == (500, 26), "half for the clean test, ten trials for each other"
    assert outcomes.counts([0])[1] == 250
    for budget in (None, 6_000_000):
        with pytest.raises(InputError, match="balanced would run"):
            Balanced().expected(Progress(large, Outcomes(10), budget=budget))
