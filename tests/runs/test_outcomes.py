import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes, visiting_order

INPUTS = 37
rows = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, INPUTS - 1), unique=True, max_size=10)), max_size=12
)


def truth(configuration: int, place: int) -> bool:
    return (configuration * 7 + place * 13) % 5 < 3


def record(outcomes: Outcomes, listed) -> None:
    for configuration, places in listed:
        passed = np.array([truth(configuration, place) for place in places], bool)
        outcomes.record(configuration, np.array(places, np.intp), passed)


def facts(outcomes: Outcomes):
    return {i: tuple(bits.tobytes() for bits in outcomes.bits(i)) for i in outcomes}


@settings(max_examples=30, deadline=None)
@given(rows)
def test_counts_equal_a_set_of_pairs(listed):
    outcomes = Outcomes(INPUTS)
    record(outcomes, listed)
    pairs = {(configuration, place) for configuration, places in listed for place in places}
    passes, trials = outcomes.counts([0, 1, 2, 3])
    for configuration in range(4):
        own = [place for c, place in pairs if c == configuration]
        assert trials[configuration] == len(own)
        assert passes[configuration] == sum(truth(configuration, place) for place in own)
    assert outcomes.total() == len(pairs)


@settings(max_examples=30, deadline=None)
@given(rows, rows, rows)
def test_merging_is_associative_and_does_not_care_about_order(one, two, three):
    def made(*parts):
        outcomes = Outcomes(INPUTS)
        for part in parts:
            record(outcomes, part)
        return outcomes

    left = made(one)
    left.merge(made(two))
    left.merge(made(three))
    right = made(two)
    right.merge(made(three))
    other = made(three)
    other.merge(made(one))
    other.merge(right)
    assert facts(left) == facts(other) == facts(made(one, two, three))


@settings(max_examples=30, deadline=None)
@given(rows, st.lists(st.integers(0, INPUTS - 1), unique=True))
def test_counts_among_a_part_of_the_inputs(listed, part):
    outcomes = Outcomes(INPUTS)
    record(outcomes, listed)
    mask = np.isin(np.arange(INPUTS), part)
    _, trials = outcomes.counts([0, 1, 2, 3], np.packbits(mask))
    places = np.arange(INPUTS)
    assert trials.tolist() == [int(outcomes.attempted(i, places)[mask].sum()) for i in range(4)]


def test_a_contradiction_is_refused():
    one, two = Outcomes(INPUTS), Outcomes(INPUTS)
    one.record(1, np.array([3]), np.array([True]))
    two.record(1, np.array([3]), np.array([False]))
    with pytest.raises(InputError, match="contradict"):
        one.merge(two)
    with pytest.raises(InputError, match="37 and 5"):
        one.merge(Outcomes(5))


def test_kept_values_travel_with_a_merge():
    one, two = Outcomes(4), Outcomes(4)
    one.record(0, np.array([1]), np.array([True]), {"value": np.array([2.5], np.float32)})
    two.record(0, np.array([3]), np.array([False]), {"value": np.array([-1.0], np.float32)})
    one.merge(two)
    np.testing.assert_array_equal(one.kept(0, "value"), np.array([np.nan, 2.5, np.nan, -1.0], np.float32))


def test_visiting_order_is_a_permutation_that_depends_on_the_seed():
    assert sorted(visiting_order(100, 3)) == list(range(100))
    assert (visiting_order(100, 3) == visiting_order(100, 3)).all()
    assert (visiting_order(100, 3) != visiting_order(100, 4)).any()


def test_an_interrupt_while_recording_leaves_no_trial_without_its_outcome(monkeypatch):
    """Ctrl-C may come between any two steps: what is marked as tried has its outcome by then."""
    from testifai.support import bits as module

    set_bits = module.put
    for survived in range(2):
        outcomes, calls = Outcomes(16), []

        def interrupted(bits, places, flags=None, *, calls=calls, survived=survived):
            if len(calls) == survived:
                raise KeyboardInterrupt
            calls.append(1)
            set_bits(bits, places, flags)

        monkeypatch.setattr(module, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            outcomes.record(3, np.array([1, 4]), np.array([True, False]))
        attempted, _ = outcomes.bits(3)
        assert not attempted.any()


def test_single_outcomes_of_some_inputs_are_numbered_among_those():
    outcomes = Outcomes(20)
    outcomes.record(3, np.array([1, 4, 7, 19]), np.array([True, False, True, True]))
    among = np.packbits(np.isin(np.arange(20), [4, 5, 19]))
    trials = outcomes.single(np.array([3]), among)
    assert (trials.place.tolist(), trials.passed.tolist(), trials.inputs) == ([0, 2], [False, True], 3)
