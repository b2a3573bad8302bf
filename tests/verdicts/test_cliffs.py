"""Gates on regions where the model is always wrong and right everywhere else: no surface foresees such a cliff."""

import itertools

import numpy as np
import pytest

from testifai.gates.strategy import GatesFirst, GateStrategy
from testifai.gates.verdicts import judge
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.session.session import RunProgress
from testifai.space import Selection, Space
from testifai.spec.options import ScanOptions, choose
from testifai.spec.parsing import Gate
from testifai.support.threads import one_blas_thread
from testifai.tomogram import EstimatorSettings, Tomogram

INPUTS = 1_000


@pytest.fixture(autouse=True)
def _quick():
    with one_blas_thread():
        yield


def space_of(axes, levels=6):
    return Space({f"p{i}": Perturbation("keep", lambda x, by, rng: x, range(levels)) for i in range(axes)})


def corner(axes, least=4):
    return " and ".join(f"p{i} >= {least}" for i in range(axes))


def measured(space, bad, strategy, *, budget, seed=0, inputs=INPUTS, population="future"):
    """What a run finds if every input fails in the tests that a query selects, and passes elsewhere."""
    options = ScanOptions(strategy=strategy, budget=budget, seed=seed)
    surrogate, cliff = choose(options, space).surrogate, Selection(space, bad)
    outcomes, decided = Outcomes(inputs), {}
    settings = EstimatorSettings(surrogate=surrogate, seed=seed, population=population)

    def tomogram(known):
        return Tomogram(space, known, visiting_order(inputs, seed), settings=settings)

    while True:
        now = RunProgress(space, outcomes, budget=budget, seed=seed, decided=decided, tomogram=tomogram)
        work = strategy.propose(now)
        if work is None:
            break
        tests = work.configurations
        for test, places, fails in zip(tests.tolist(), work.places, cliff.contains(tests).tolist(), strict=True):
            new = places[~outcomes.attempted(test, places)] if test in outcomes else places
            outcomes.record(test, new, np.full(len(new), not fails))
    assert outcomes.total() <= budget
    return tomogram(outcomes)


@pytest.mark.parametrize(
    ("axes", "budget", "strategy"),
    [(4, 3_000, GatesFirst), (6, 5_000, GateStrategy), pytest.param(6, 20_000, GatesFirst, marks=pytest.mark.slow)],
)
def test_a_gate_on_a_corner_that_always_fails_does_not_hold(axes, budget, strategy):
    gates = [Gate(query=corner(axes), at_least=0.9, basis=basis) for basis in ("bound", "estimate")]
    run = measured(space_of(axes), corner(axes), strategy(gates=tuple(gates)), budget=budget)
    assert {verdict.status for verdict in judge(gates, run)} <= {"fails", "undecided"}
    assert run.query_engine.own_inputs(corner(axes)) >= 30


CORNERS = [(2, 5), (2, 4), (3, 3), (4, 3), (5, 3), (6, 2), (8, 2)]  # axes and least severity: 0.4 to 11 % of the tests
BUDGETS = 500, 1_500, 5_000, 15_000


def cliffs():
    """Corners, their complements, and regions that are a part of a corner or contain it."""
    for (axes, least), budget, wide in itertools.product(CORNERS, BUDGETS, (False, True)):
        bad = corner(axes, least)
        query = " and ".join(f"p{i} >= {least}" for i in range(axes - 1)) if wide else bad
        yield axes, bad, query, budget


def holds_wrongly(axes, bad, query, budget, seed):
    space = space_of(axes, 6 if axes < 6 else 4)
    asked = Selection(space, query)
    truth = 1 - asked.narrowed(bad).count / asked.count
    gate = Gate(query=query, at_least=min(1.0, truth + 0.05))
    run = measured(space, bad, GatesFirst(gates=(gate,)), budget=budget, seed=seed)
    return judge([gate], run)[0].holds


def test_wrong_holds_are_rare():
    wrong = [holds_wrongly(*case, seed) for seed, case in enumerate(cliffs()) if case[-1] < 5_000]
    assert sum(wrong) <= 1
    assert len(wrong) >= 28


@pytest.mark.simulation
def test_wrong_holds_are_rare_in_two_hundred_cliffs():
    wrong = [holds_wrongly(*case, seed) for seed, case in enumerate([*cliffs()] * 4)]
    assert len(wrong) >= 200
    assert sum(wrong) <= 0.05 * len(wrong)
