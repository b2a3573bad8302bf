import numpy as np
import pytest

from testifai.errors import InputError
from testifai.gates.verdicts import judge
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.spec.parsing import Gate
from testifai.statistics.intervals import confidence_sequence
from testifai.tomogram import EstimatorSettings, Tomogram, region_estimator

KEEP = Perturbation("keep", lambda batch, parameter, rng: batch, [0, 1, 2])
SPACE = Space({"zoom": KEEP, "blur": KEEP})
INPUTS = 200


def tomogram(trials: int, *, rate: float = 0.8, tests=range(9), labels=None, surrogate="forest") -> Tomogram:
    outcomes = Outcomes(INPUTS)
    for i in tests:
        outcomes.record(i, np.arange(trials), np.arange(trials) < rate * trials)
    settings = EstimatorSettings(surrogate=surrogate)
    return Tomogram(SPACE, outcomes, visiting_order(INPUTS, 0), labels=labels, settings=settings)


def status(run: Tomogram, *gates: Gate) -> list[str]:
    return [verdict.status for verdict in judge(gates, run)]


def test_a_gate_holds_when_the_lower_bound_does():
    low, high = confidence_sequence(80, 100, INPUTS)
    for at_least, expected in [
        (float(low) - 0.001, "holds"),
        (float(low) + 0.001, "undecided"),
        (float(high) - 0.001, "undecided"),
        (float(high) + 0.001, "fails"),
    ]:
        assert status(tomogram(100), Gate(query="zoom > 0", at_least=at_least)) == [expected]


def test_with_all_inputs_tried_every_gate_is_decided():
    run = tomogram(INPUTS)
    assert status(run, Gate(query="zoom > 0", at_least=0.8)) == ["holds"]
    assert status(run, Gate(query="zoom > 0", at_least=0.81)) == ["fails"]


def test_the_lenient_kind_looks_at_the_estimate():
    run = tomogram(100)
    assert status(run, Gate(query="zoom > 0", at_least=0.8, basis="estimate")) == ["holds"]
    assert status(run, Gate(query="zoom > 0", at_least=0.81, basis="estimate")) == ["fails"]


def test_many_gates_share_the_doubt():
    """With m gates each bound stands at 1 - 0.05/m: a gate that holds alone need not hold among twenty."""
    alone, _ = confidence_sequence(80, 100, INPUTS, 0.95)
    among, high = confidence_sequence(80, 100, INPUTS, 1 - 0.05 / 20)
    assert among < alone
    gate = Gate(query="zoom > 0", at_least=(float(alone) + float(among)) / 2)
    assert status(tomogram(100), gate) == ["holds"]
    verdicts = judge([gate] * 20, tomogram(100))
    assert {verdict.status for verdict in verdicts} == {"undecided"}
    assert (verdicts[0].answer.low, verdicts[0].answer.high) == pytest.approx((float(among), float(high)))


@pytest.mark.parametrize("surrogate", ["forest", "process", None])
@pytest.mark.parametrize("basis", ["bound", "estimate"])
def test_a_gate_over_tests_without_trials_is_undecided(surrogate, basis):
    run = tomogram(INPUTS, tests=[0, 1, 2, 3, 6], surrogate=surrogate)
    (verdict,) = judge([Gate(query="order == 2", at_least=0.5, basis=basis)], run)
    assert (verdict.status, verdict.holds) == ("undecided", False)
    assert verdict.reason == "not enough runs in this region: 0 of 30 different inputs on tests drawn from it"
    assert (verdict.as_dict()["robustness"] is None) == (surrogate is None)


def test_a_gate_may_speak_of_some_inputs():
    labels = np.zeros(INPUTS, int)
    labels[visiting_order(INPUTS, 0)[: INPUTS * 8 // 10]] = 1  # label 1 is what passes
    run = tomogram(INPUTS, labels=labels)
    assert status(run, Gate(query="zoom > 0", at_least=1.0, inputs="label == 1")) == ["holds"]
    assert status(run, Gate(query="zoom > 0", at_least=0.1, inputs="label == 0")) == ["fails"]


def spread_out(failing=(), inputs=800, tried=104):
    """Each of 16 tests on an eighth of the inputs tried, without a failure but those of some inputs, in all tests."""
    axis = Perturbation("keep", KEEP.function, range(4))
    space = Space({"zoom": axis, "blur": axis})
    outcomes, rng = Outcomes(inputs), np.random.default_rng(0)
    places = np.concatenate([rng.permutation(tried), rng.permutation(tried)]).reshape(16, -1)
    for test, block in enumerate(places):
        outcomes.record(test, np.sort(block), ~np.isin(np.sort(block), list(failing)))
    return Tomogram(space, outcomes, visiting_order(inputs, 0), settings=EstimatorSettings(surrogate="process"))


def test_two_hundred_trials_of_a_hundred_inputs_are_no_two_hundred():
    """Where 3 % of the inputs fail in all tests, none of a hundred does in one of 20 runs."""
    for failing in ((), (7,)):
        (verdict,) = judge([Gate(query="zoom >= 0", at_least=0.97)], spread_out(failing))
        assert verdict.status == "undecided"
        assert verdict.answer.low < 0.955  # an exact bound for the fewest that may fail everywhere says 0.947


def test_the_verdict_says_what_bounds_rest_on():
    gate = Gate(query="zoom >= 0", at_least=0.5)
    (verdict,) = judge([gate], spread_out())
    assert verdict.reason.endswith(
        "by the surface, which the tests' own trials do not contradict, for these 800 inputs only"
    )
    outcomes = tomogram(100, tests=range(1, 7)).outcomes.snapshot()
    outcomes.record(0, np.arange(INPUTS), np.ones(INPUTS, bool))
    run = Tomogram(SPACE, outcomes, visiting_order(INPUTS, 0), settings=EstimatorSettings(surrogate="process"))
    (verdict,) = judge([Gate(query="order == 0", at_least=0.5)], run)
    assert verdict.reason == "between 1.000 and 1.000, for these 200 inputs only"  # the clean test speaks for itself


def test_where_own_trials_contradict_the_surface_bounds_are_those_of_both(monkeypatch):
    run = spread_out((3, 40, 41))
    _, low, high = run.estimator.pooling().region(run.space.matrix(range(16)), run.estimator.anytime_confidence(0.95))
    assert (run.query_engine.bound("zoom >= 0").low, run.query_engine.bound("zoom >= 0").high) == (low, high)
    monkeypatch.setattr(
        region_estimator, "raw_mean", lambda *_, **__: region_estimator.RawMean(0.8, 0.75, 0.85, 16, 0, 104)
    )
    (verdict,) = judge([Gate(query="zoom >= 0", at_least=0.8)], run)
    assert (verdict.answer.low, verdict.answer.high, verdict.status) == (0.75, high, "undecided")
    assert "by the surface and by the tests' own trials, which contradict it" in verdict.reason


def test_looks_share_the_risk_however_many_there_are():
    """One at 1, 2, 4, … trials per test."""
    shares = []
    for doublings in range(14):
        outcomes = Outcomes(2**14)
        outcomes.record(0, np.arange(2**doublings), np.ones(2**doublings, bool))
        shares.append((1 - Tomogram(SPACE, outcomes, np.arange(2**14)).estimator.anytime_confidence(0.95)) / 0.05)
    assert sum(shares) == pytest.approx(1, abs=0.02)
    assert shares[:10] == pytest.approx([1 / 11] * 10)


def test_verdicts_as_plain_data():
    (verdict,) = judge([Gate(name="mild", query="zoom > 0", at_least=0.7)], tomogram(INPUTS))
    assert verdict.as_dict() == {
        "name": "mild",
        "query": "zoom > 0",
        "at_least": 0.7,
        "basis": "bound",
        "status": "holds",
        "reason": "between 0.800 and 0.800, for these 200 inputs only",
        "population": "data",
        "robustness": pytest.approx(0.8),
        "low": pytest.approx(0.8),
        "high": pytest.approx(0.8),
    }
    assert judge([], tomogram(INPUTS)) == []


def test_a_gate_that_selects_nothing_is_a_mistake():
    with pytest.raises(InputError, match="selects no test"):
        judge([Gate(query="zoom > 2", at_least=0.7)], tomogram(INPUTS))
