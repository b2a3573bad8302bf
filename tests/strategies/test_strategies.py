"""The contract of every strategy, and what is particular to each."""

import numpy as np
import pytest

from testifai.engine.stopping import Window
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.strategies import STRATEGIES, Ordered, Progress, Random, resolve

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3, 4, 5])
SPACE = Space({"a": KEEP, "b": KEEP, "c": KEEP})
INPUTS = 30


def passes(configuration: int, place: int) -> bool:
    return (configuration * 31 + place * 17) % 100 < 100 - configuration // 3


def play(strategy, *, limit: int | None = None, outcomes: Outcomes | None = None, **options) -> Outcomes:
    """Run a strategy against a made-up model; `limit` stops in the middle of a round, as a crash would."""
    outcomes = outcomes or Outcomes(INPUTS)
    left = np.inf if limit is None else limit
    while left and (work := strategy.propose(Progress(SPACE, outcomes, **options))) is not None:
        table = work.missing(outcomes, work.union())
        assert table.any(), "proposed work must have something left to do"
        for row, configuration in zip(table, work.configurations.tolist(), strict=True):
            for place in work.union()[row]:
                if not left:
                    return outcomes
                outcomes.record(configuration, np.array([place]), np.array([passes(configuration, int(place))]))
                left -= 1
    return outcomes


def facts(outcomes: Outcomes):
    return {i: tuple(bits.tobytes() for bits in outcomes.bits(i)) for i in outcomes}


CASES = [
    {},
    {"stopping": Window(batch=10, delta=0.05, window=2)},
    {"budget": 1000},
    {"budget": 1000, "stopping": Window(batch=10, delta=0.05, window=2)},
    {"budget": 17},
]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("options", CASES)
class TestContract:
    def test_resumes_to_the_same_outcomes_wherever_it_was_stopped(self, name, options):
        whole = play(resolve(name), **options)
        for limit in (1, 400, 1234):
            broken = play(resolve(name), limit=limit, **options)
            assert facts(play(resolve(name), outcomes=broken, **options)) == facts(whole)

    def test_never_spends_more_than_the_budget_or_expected(self, name, options):
        spent = play(resolve(name), **options).total()
        assert spent <= options.get("budget", np.inf)
        assert spent <= resolve(name).expected(Progress(SPACE, Outcomes(INPUTS), **options))
        assert spent > 0

    def test_measures_the_clean_test_and_describes_itself(self, name, options):
        strategy = resolve(name)
        assert 0 in play(strategy, **options)
        assert resolve(strategy.describe()).describe() == strategy.describe()


def test_full_and_ordered_run_what_they_say():
    assert len(play(resolve("full"))) == 216
    assert play(resolve("full")).total() == 216 * INPUTS
    for order, tests in enumerate([16, 91, 216], start=1):
        outcomes = play(Ordered(max_order=order))
        assert len(outcomes) == tests
        assert all(SPACE.order(SPACE.configuration(i)) <= order for i in outcomes)


WIDE = Space({"a": KEEP, "b": (KEEP, [0, 2]), "c": KEEP, "d": (KEEP, [0, 1, 4])})  # orders 0 to 4: 1, 13, 57, 95, 50


def ordered_tests(space: Space, seed: int = 0, **options) -> np.ndarray:
    return Ordered(**options).tests(Progress(space, Outcomes(INPUTS), seed=seed))


@pytest.mark.parametrize("order_sensitive", [False, True])
def test_ordered_adds_tests_of_higher_orders_equally(order_sensitive):
    space = Space({axis.name: (KEEP, axis.severities) for axis in WIDE.axes}, order_sensitive=order_sensitive)
    low = space.ids_up_to(2)
    tests = ordered_tests(space, extra=21)
    assert (tests[: len(low)] == low).all()
    orders = [space.order(space.configuration(int(i))) for i in tests[len(low) :]]
    assert (orders.count(3), orders.count(4)) == (11, 10)
    assert len(set(tests.tolist())) == len(low) + 21
    assert (tests == ordered_tests(space, extra=21)).all()
    assert (tests != ordered_tests(space, extra=21, seed=1)).any()
    assert set(tests) < set(ordered_tests(space, extra=60))


def test_ordered_takes_all_tests_where_fewer_exist_than_asked():
    counts = [WIDE.count(order) for order in range(5)]
    assert sorted(ordered_tests(WIDE, extra=10_000).tolist()) == list(range(WIDE.size))
    uneven = ordered_tests(WIDE, extra=2 * counts[4] + 5)
    orders = [WIDE.order(WIDE.configuration(int(i))) for i in uneven]
    assert orders.count(4) == counts[4]
    assert orders.count(3) == counts[4] + 5
    assert len(ordered_tests(WIDE, max_order=4, extra=5)) == WIDE.size


def test_ordered_draws_every_test_of_an_order_equally_often():
    seeds, extra = 400, 20
    drawn = np.concatenate([ordered_tests(SPACE, seed, extra=extra)[91:] for seed in range(seeds)])
    assert len(set(drawn)) == 125
    times, share = np.bincount(drawn, minlength=216)[np.unique(drawn)], extra / 125
    # Each is a binomial count; the largest of 125 stays within 4.5 standard deviations but once in 1,000 times.
    assert np.abs(times - seeds * share).max() < 4.5 * np.sqrt(seeds * share * (1 - share))


def test_ordered_draws_from_spaces_that_cannot_be_listed():
    large = Space({f"a{i}": KEEP for i in range(15)})
    tests = ordered_tests(large, extra=130)[1 + 75 + 2625 :]
    orders = np.count_nonzero(large.matrix(tests), axis=1)
    assert np.bincount(orders).tolist() == [0, 0, 0] + [10] * 13
    with pytest.raises(InputError, match="too many for 64-bit ids"):
        ordered_tests(Space({f"a{i}": KEEP for i in range(30)}), extra=1)


def test_ordered_without_extra_is_what_it_was():
    assert Ordered().describe() == Ordered(extra=0).describe() == {"use": "ordered", "max_order": 2, "extra": 0}
    assert resolve({"use": "ordered", "extra": 5}).describe() == {"use": "ordered", "max_order": 2, "extra": 5}


def test_random_draws_as_many_tests_as_asked_and_depends_on_the_seed():
    assert len(play(Random())) == 91
    drawn = set(play(Random(tests_run=20)))
    assert len(drawn) == 20
    assert drawn != set(play(Random(tests_run=20), seed=1))
    assert len(play(Random(tests_run=1000))) == 216


def test_a_budget_buys_every_test_the_same_number_of_inputs():
    _, trials = play(resolve("full"), budget=216 * 7 + 100).counts(SPACE.ids_up_to(None))
    assert set(trials.tolist()) == {7}


def test_a_budget_below_the_number_of_tests_goes_to_low_orders():
    outcomes = play(resolve("full"), budget=17)
    assert outcomes.total() == 17
    assert sorted(SPACE.order(SPACE.configuration(i)) for i in outcomes) == [0] + [1] * 15 + [2]


def test_a_higher_budget_continues_a_run():
    outcomes = play(resolve("full"), budget=216 * 7)
    outcomes = play(resolve("full"), budget=216 * 9, outcomes=outcomes)
    assert facts(outcomes) == facts(play(resolve("full"), budget=216 * 9))


def test_clean_test_goes_on_while_others_are_compared_with_it():
    rule = Window(batch=5, delta=0.15, window=2)
    without = play(resolve("ordered"), stopping=rule)
    compared = play(resolve("ordered"), stopping=rule, needs_clean=True)
    longest = max(compared.counts(list(compared))[1])
    assert compared.counts([0])[1] == longest
    assert without.counts([0])[1] < longest


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("orderd", "did you mean 'ordered'"),
        ({"use": "ordered", "max_ordr": 3}, "did you mean 'max_order'"),
        ({"use": "ordered", "max_order": 0}, "max_order: must be a whole number, at least 1, got 0"),
        ({"use": "ordered", "extra": -1}, "extra: must be a whole number, at least 0, got -1"),
        ({"use": "ordered", "extra": 2.5}, "extra: must be a whole number, at least 0, got 2.5"),
        ({"use": "ordered", "extra": True}, "extra: must be a whole number, at least 0, got True"),
        ({"use": "random", "tests_run": -1}, "tests_run"),
        (7, "expected one of"),
    ],
)
def test_mistakes_are_one_line(strategy, words):
    with pytest.raises(InputError, match=words) as caught:
        resolve(strategy)
    assert "\n" not in str(caught.value)


def test_full_refuses_an_endless_space():
    large = Space({f"a{i}": KEEP for i in range(15)})
    with pytest.raises(InputError, match="full would run"):
        resolve("full").propose(Progress(large, Outcomes(INPUTS)))
    assert len(resolve("ordered").propose(Progress(large, Outcomes(INPUTS))).configurations) == 1 + 75 + 2625
    assert len(resolve("random").propose(Progress(large, Outcomes(INPUTS))).configurations) == 1 + 75 + 2625
