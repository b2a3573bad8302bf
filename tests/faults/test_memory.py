"""Memory in proportion to outcomes: rows of few outcomes say what rows of bits say, in little room."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.runs.reader import BLOCK
from testifai.runs.rows import DenseOutcomes, SparseOutcomes
from testifai.runs.store import Store
from testifai.support import bits

INPUTS = 2_500
places = st.lists(st.integers(0, INPUTS - 1), max_size=90)
records = st.lists(st.tuples(st.integers(0, 2), places, st.sampled_from(["", "value", "predicted"])), max_size=12)


class Plain:
    """The same, one flag and one value an input."""

    def __init__(self) -> None:
        self.tried, self.won = np.zeros((3, INPUTS), bool), np.zeros((3, INPUTS), bool)
        self.kept = {name: np.full((3, INPUTS), np.nan, np.float32) for name in ("value", "predicted")}

    def record(self, test, at, passed, kept):
        self.tried[test, at] = True
        self.won[test, at[passed]] = True
        for name, values in kept.items():
            self.kept[name][test, at] = values


def passes(at: np.ndarray) -> np.ndarray:
    return at * 7 % 3 > 0


def check(outcomes: Outcomes, plain: Plain, among: np.ndarray) -> None:
    everyone, mask = np.arange(INPUTS), bits.pack(among)
    for test in range(3):
        np.testing.assert_array_equal(outcomes.attempted(test, everyone), plain.tried[test])
        np.testing.assert_array_equal(outcomes.passed(test, everyone[::-1]), plain.won[test][::-1])
        for name in outcomes.kept_names():
            np.testing.assert_array_equal(outcomes.kept(test, name), plain.kept[name][test])
        if test in outcomes:
            tried, won = outcomes.bits(test)
            np.testing.assert_array_equal(bits.unpack(tried, INPUTS), plain.tried[test])
            np.testing.assert_array_equal(bits.unpack(won, INPUTS), plain.won[test])
            for start in range(0, INPUTS, BLOCK):
                part = slice(start, min(start + BLOCK, INPUTS))
                tried, won = outcomes.span(test, start, start + BLOCK)
                np.testing.assert_array_equal(bits.unpack(tried, part.stop - start), plain.tried[test, part])
                np.testing.assert_array_equal(bits.unpack(won, part.stop - start), plain.won[test, part])
                for name in outcomes.kept_names():
                    expected = plain.kept[name][test, part][plain.tried[test, part]]
                    np.testing.assert_array_equal(outcomes.kept_span(test, name, start, start + BLOCK), expected)
    won, tried = outcomes.counts([0, 1, 2])
    assert (won.tolist(), tried.tolist()) == (plain.won.sum(1).tolist(), plain.tried.sum(1).tolist())
    won, tried = outcomes.counts([0, 1, 2], mask)
    assert won.tolist() == (plain.won & among).sum(1).tolist()
    assert tried.tolist() == (plain.tried & among).sum(1).tolist()
    assert outcomes.total() == plain.tried.sum()
    ids = np.array(sorted(outcomes), np.int64)
    if len(ids) and among.any():
        single = outcomes.single(ids, mask, "value")
        test, at = np.nonzero((plain.tried & among)[ids])
        np.testing.assert_array_equal(single.test, test)
        np.testing.assert_array_equal(np.flatnonzero(among)[single.place], at)
        np.testing.assert_array_equal(single.passed, plain.won[ids][test, at])
        np.testing.assert_array_equal(single.value, plain.kept["value"][ids][test, at])


@settings(max_examples=50)
@given(records, st.integers(0, 3))
def test_lists_and_bits_say_the_same(listed, seed):
    """Rows of up to 78 of 2,500 inputs are lists (312 with values), and more are bits: both are met, and the change."""
    outcomes, plain = Outcomes(INPUTS), Plain()
    before = held = None
    for number, (test, chosen, name) in enumerate(listed):
        at = np.array(chosen, np.intp)
        # Of a place named twice the last value counts, and it passed if it did once.
        kept = {name: np.arange(len(at), dtype=np.float32) + number} if name else {}
        outcomes.record(test, at, passes(at), kept)
        plain.record(test, at, passes(at), kept)
        if number == len(listed) // 2:
            before, held = outcomes.snapshot(), [outcomes.total(), *map(list, outcomes.counts([0, 1, 2]))]
    check(outcomes, plain, np.random.default_rng(seed).random(INPUTS) < 0.5)
    if before is not None:
        assert [before.total(), *map(list, before.counts([0, 1, 2]))] == held
        before.merge(outcomes)
        check(before, plain, np.ones(INPUTS, bool))


@settings(max_examples=25)
@given(records)
def test_a_run_file_holds_the_same_and_only_blocks_that_were_touched(tmp_path_factory, listed):
    outcomes, plain = Outcomes(INPUTS), Plain()
    path = tmp_path_factory.mktemp("runs") / "run.db"
    with Store.create_or_open(path) as store:
        for test, chosen, name in listed:
            at = np.array(chosen, np.intp)
            kept = {name: at.astype(np.float32)} if name else {}
            if len(at):
                store.touch(test, at)
            outcomes.record(test, at, passes(at), kept)
            plain.record(test, at, passes(at), kept)
        store.save(outcomes)
        blocks = store._connection.execute("SELECT configuration, block FROM outcomes").fetchall()
    assert set(blocks) == {(test, at // BLOCK) for test, at in np.argwhere(plain.tried).tolist()}
    with Store.open(path) as store:
        check(store.load(INPUTS), plain, np.ones(INPUTS, bool))


def test_a_contradiction_is_refused_in_lists_too():
    one, two = Outcomes(INPUTS), Outcomes(INPUTS)
    one.record(1, np.array([3, 9]), np.array([True, True]))
    two.record(1, np.array([9, 11]), np.array([False, True]))
    with pytest.raises(InputError, match="1 inputs passed in one run and failed in the other"):
        one.merge(two)


def peak(make) -> int:
    tracemalloc.start()
    try:
        made = make()
        assert made is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_few_outcomes_of_many_tests_on_many_inputs_take_little():
    """A twentieth of 46,656 tests on 200,000 inputs: 115 MB as bits; and a row that fills up becomes bits."""
    tests, inputs, drawn = 2_333, 200_000, np.random.default_rng(0)

    def make() -> Outcomes:
        outcomes = Outcomes(inputs)
        for test in range(tests):
            at = drawn.integers(0, inputs, 5)
            outcomes.record(test, at, at % 2 == 0, {"value": at.astype(np.float32)})
        return outcomes

    assert peak(make) < 4e6
    outcomes = make()
    assert isinstance(outcomes._rows[0], SparseOutcomes)
    outcomes.record(0, np.arange(inputs // 4), np.ones(inputs // 4, bool))
    assert isinstance(outcomes._rows[0], DenseOutcomes)


def test_reading_a_run_file_and_merging_take_as_little(tmp_path):
    inputs, outcomes = 200_000, Outcomes(200_000)
    with Store.create_or_open(tmp_path / "run.db") as store:
        for test in range(500):
            at = np.array([test * 391, 7 * test])
            store.touch(test, at)
            outcomes.record(test, at, at % 2 == 0, {"value": at.astype(np.float32)})
        store.save(outcomes)
    with Store.open(tmp_path / "run.db") as store:
        assert peak(lambda: store.load(inputs)) < 2e6
    with Store.open(tmp_path / "run.db") as store, Store.create_or_open(tmp_path / "merged.db") as merged:
        merged.import_run(store, Outcomes(inputs))
        rows = merged._connection.execute("SELECT count(*) FROM outcomes").fetchone()[0]
    assert rows <= 1000


def test_a_million_tests_of_one_outcome_are_no_matter():
    def make() -> Outcomes:
        outcomes, one, passed = Outcomes(10_000), np.array([0]), np.array([True])
        for test in range(20_000):
            one[0] = test % 10_000
            outcomes.record(test, one, passed)
        return outcomes

    assert peak(make) / 20_000 < 400  # bytes a test; bits took 2,700
