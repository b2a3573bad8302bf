"""The strategy for gates on models whose every outcome is known."""

from functools import cache

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  brings a BLAS of its own, which threads can only be told about once it is loaded

import testifai as ta
from testifai.gates.strategy import GateStrategy
from testifai.gates.verdicts import judge
from testifai.session.assembly import session_of
from testifai.spec.parsing import Gate
from testifai.strategies import Adaptive
from testifai.support.threads import one_blas_thread

INPUTS = 400
QUERY = "shift <= 2 and noise <= 2"
SPACE = ta.Space(
    {
        "shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.3, 0.6, 0.9, 1.2]),
        "noise": ta.Perturbation("noise", lambda x, by, rng: x + by * rng.normal(())[:, None], [0, 0.4, 0.8, 1.2]),
    }
)


@pytest.fixture(autouse=True)
def _quick():
    """As in `measure`: BLAS threads on a busy machine wait for each other most of the time."""
    with one_blas_thread():
        yield


def model(x):
    return (x[:, 0] > 1).astype(int)


def data(seed):
    labels = np.zeros(INPUTS, int)
    labels[0] = 1  # with a single class no gate is decided
    return np.random.default_rng(seed).normal(size=(INPUTS, 1)), labels


@cache
def truth(seed, query=QUERY):
    return ta.scan(model, data(seed), SPACE, strategy="full", seed=seed).query(query).robustness


def session(gates, *, seed=0, sharing=None, population="data", **options):
    strategy = GateStrategy((), gates=tuple(gates), sharing=sharing)
    return session_of(model, data(seed), SPACE, strategy=strategy, seed=seed, population=population, **options)


def test_it_stops_as_soon_as_the_gates_are_decided():
    rate = truth(0)
    easy = session([Gate(query=QUERY, at_least=rate - 0.15), Gate(query=QUERY, at_least=rate + 0.15)])
    run = easy.run()
    assert [one.status for one in judge(easy.strategy.gates, run)] == ["holds", "fails"]
    assert run.inferences < SPACE.size * INPUTS / 4


def test_more_inferences_go_to_the_tests_of_undecided_gates():
    """What is spent after the first round goes to the nine tests of the gate, and to no others."""
    made = session([Gate(query=QUERY, at_least=truth(0)), Gate(query=QUERY, at_least=0.01)], budget=3200)
    run = made.run()
    chosen = run.query_engine.select(QUERY).reshape(SPACE.shape)
    outside = run.trials[~chosen]
    assert run.inferences == 3200
    assert outside.max() <= outside.min() + 1
    assert run.trials[chosen].min() > 3 * outside.max()
    # Evenly: outcomes do not say which of them get more, or good luck would be kept and bad luck mended.
    trials = run.trials[chosen][1:]  # the clean test has its share of all that is spent
    assert trials.max() <= trials.min() + 4  # one for each round


def test_a_gate_at_the_truth_is_only_decided_by_every_input():
    made = session([Gate(query=QUERY, at_least=truth(0))])
    run = made.run()
    assert (run.trials.reshape(-1)[run.query_engine.select(QUERY)] == INPUTS).all()
    assert judge(made.strategy.gates, run)[0].status == "holds"
    assert run.inferences < SPACE.size * INPUTS


def test_new_inputs_leave_it_undecided_even_then():
    made = session([Gate(query=QUERY, at_least=truth(0))], population="future")
    assert judge(made.strategy.gates, made.run())[0].status == "undecided"


@pytest.mark.parametrize(("seeds", "most"), [(2, 1), pytest.param(20, 4, marks=pytest.mark.simulation)])
def test_wrong_decisions_are_as_rare_as_promised(seeds, most):
    """Gates a hair's breadth on the wrong side of the truth, looked at after every doubling.

    At most 5 % of decisions may be wrong: more wrong ones than `most` have a probability of 0.003.
    """
    wrong = 0
    for seed in range(seeds):
        rate = truth(seed)
        gates = [Gate(query=QUERY, at_least=rate + 1e-6), Gate(query=QUERY, at_least=rate - 1e-6)]
        made = session(gates, seed=seed, budget=800)
        wrong += [one.status for one in judge(gates, made.run())] not in (["undecided"] * 2, ["fails", "holds"])
    assert wrong <= most


@pytest.mark.parametrize("cut", [37, 450])
def test_a_run_cut_short_ends_like_one_that_was_not(cut):
    gates = [Gate(query=QUERY, at_least=truth(3))]
    whole = session(gates, seed=3, budget=800).run()

    class CutError(Exception):
        pass

    def stop(step):
        if step.done >= cut:
            raise CutError

    broken = session(gates, seed=3, budget=800, batch_size=16)
    with pytest.raises(CutError):
        broken.run(progress=stop)
    resumed = session(gates, seed=3, budget=800)
    resumed.outcomes = broken.outcomes
    assert 0 < broken.outcomes.total() < 800
    assert np.array_equal(resumed.run().trials, whole.trials)
    assert np.array_equal(resumed.tomogram().passes, whole.passes)


def test_rounds_double_up_to_the_budget():
    made = session([Gate(query=QUERY, at_least=truth(0))], budget=3000)
    totals = []
    work = made.strategy.propose(made.progress())
    while work is not None:
        made.executor.run(work, made.outcomes, lambda m: made.outcomes.record(m.configuration, m.places, m.passed))
        totals.append(made.outcomes.total())
        work = made.strategy.propose(made.progress())
    assert totals == [375 + 37, 750, 1500, 3000]  # a tenth more in the gate's region first


def test_a_budget_too_small_for_ten_trials_each_is_spent_at_once():
    run = session([Gate(query=QUERY, at_least=0.99)], budget=50).run()
    assert run.inferences == 50


def test_lenient_gates_go_on_to_the_target_unless_they_are_clear():
    rate = truth(0)
    clear = session([Gate(query=QUERY, at_least=rate - 0.2, basis="estimate")]).run()
    made = session([Gate(query=QUERY, at_least=rate + 0.001, basis="estimate")])
    near = made.run()
    assert clear.inferences < near.inferences
    (found,) = judge(made.strategy.gates, near)
    assert (found.answer.high - found.answer.low) / 2 <= 0.02


def test_a_target_is_reached_besides_the_gates():
    gates = [Gate(query=QUERY, at_least=0.01)]
    alone, wide = session(gates).run(), session(gates, target=0.08).run()
    assert alone.inferences < wide.inferences
    assert ((wide.high - wide.low) / 2).max() <= 0.08


def test_outputs_compared_with_clean_ones_have_those_paid_for():
    """The clean test has seen every input that another test has; the budget holds for all of them together."""
    made = session([Gate(query=QUERY, at_least=0.93)], oracle="consistency", budget=2500)
    run = made.run()
    places = np.arange(INPUTS)
    clean = run.outcomes.attempted(0, places)
    for test in range(1, SPACE.size):
        assert not (run.outcomes.attempted(test, places) & ~clean).any()
    assert run.inferences <= 2500
    assert made.outcomes.total() == run.inferences


def test_without_correction_every_gate_stands_for_itself():
    gates = [Gate(query=QUERY, at_least=0.5)] * 8
    run = session(gates, budget=200).run()
    shared, alone = judge(gates, run)[0].answer, judge(gates, run, sharing=1)[0].answer
    assert shared.low < alone.low < alone.high < shared.high
    assert alone == judge(gates[:1], run)[0].answer


def test_a_run_file_is_the_same_as_that_of_an_adaptive_run():
    assert session([Gate(query=QUERY, at_least=0.5)]).strategy.describe() == Adaptive().describe()
