"""The contract of every strategy, and what is particular to each."""

import numpy as np
import pytest

from testifai.engine.stopping import Window
from testifai.errors import InputError
from testifai.outcomes import Outcomes
from testifai.perturb import Perturbation
from testifai.space import Space
from testifai.strategies import STRATEGIES, Ordered, Progress, Random, resolve

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2, 3, 4, 5])
SPACE = Space({"a": KEEP, "b": KEEP, "c": KEEP})
INPUTS = 60


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
    {"budget": 1500},
    {"budget": 1500, "stopping": Window(batch=10, delta=0.05, window=2)},
    {"budget": 17},
]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("options", CASES)
class TestContract:
    def test_resumes_to_the_same_outcomes_wherever_it_was_stopped(self, name, options):
        whole = play(resolve(name), **options)
        for limit in (1, 16, 400, 1234):
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
        ({"use": "ordered", "max_order": 0}, "max_order must be a whole number, at least 1, got 0"),
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
