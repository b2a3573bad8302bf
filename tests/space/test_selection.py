from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.space import Space
from testifai.space import diagram as diagrams
from testifai.space import query as queries
from testifai.space.selection import Selection, values_of


def ladder(levels):
    return Perturbation("ladder", lambda batch, parameter, rng: batch, tuple(range(levels)))


def large(axes=15, **options):
    return Space({f"a{number}": ladder(6) for number in range(axes)}, **options)


@st.composite
def spaces(draw):
    """One to four axes, some without their middle severities, application order counting or not."""
    severities = st.sets(st.integers(1, 4), min_size=1, max_size=3)
    chosen = draw(st.lists(severities, min_size=1, max_size=4))
    axes = {f"a{number}": (ladder(5), sorted(one)) for number, one in enumerate(chosen)}
    most = draw(st.one_of(st.none(), st.integers(1, 3)))
    return Space(axes, order_sensitive=draw(st.booleans()) and len(axes) <= 3, max_order=most)


def conditions(space):
    column = st.sampled_from(space.column_names)
    number = st.one_of(st.integers(-1, 9), st.sampled_from([0.5, 2.5]))
    sign = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    several = st.lists(number, min_size=1, max_size=3).map(lambda found: "{" + ", ".join(map(str, found)) + "}")
    atom = st.one_of(
        st.tuples(column, sign, st.one_of(number, column)).map(lambda parts: "{} {} {}".format(*parts)),
        st.tuples(number, sign, column, sign, st.one_of(number, column)).map(
            lambda parts: "{} {} {} {} {}".format(*parts)
        ),
        st.tuples(column, st.sampled_from(["in", "not in"]), several).map(lambda parts: "{} {} {}".format(*parts)),
        *([st.permutations(space.sequenced).map("before({0[0]}, {0[1]})".format)] if len(space.sequenced) > 1 else []),
    )

    def combined(inner):
        both = st.tuples(inner, st.sampled_from(["and", "or"]), inner)
        return st.one_of(both.map(lambda parts: "({}) {} ({})".format(*parts)), inner.map("not ({})".format))

    return st.recursive(atom, combined, max_leaves=8)


@st.composite
def asked(draw):
    space = draw(spaces())
    return space, draw(conditions(space))


def brute(space, text):
    """The ids of what a query selects, by evaluating it on every test."""
    holds = queries.compile(text, space.column_names, space.levels, space.sequenced).evaluate(space.columns())
    return np.flatnonzero(np.broadcast_to(holds, space.shape).reshape(-1))


@settings(deadline=None, max_examples=40)
@given(asked())
def test_a_selection_is_what_the_query_holds_for(case):
    space, text = case
    chosen, expected = Selection(space, text), brute(space, text)
    assert chosen.count == len(expected) == sum(chosen.counts)
    assert chosen.ids().tolist() == expected.tolist()
    assert np.flatnonzero(chosen.contains(np.arange(space.size))).tolist() == expected.tolist()
    drawn = chosen.sample(5, np.random.default_rng(0))
    assert len(set(drawn.tolist())) == min(5, len(expected)) == len(drawn)
    assert set(drawn.tolist()) <= set(expected.tolist())


@settings(deadline=None, max_examples=12)
@given(asked())
def test_conditional_counts_are_those_of_the_tests(case):
    space, text = case
    chosen, expected = Selection(space, text), brute(space, text)
    columns = space.columns_of(space.matrix(np.arange(space.size)))
    for column in space.column_names:
        values, counts = np.unique(columns[column][expected], return_counts=True)
        assert chosen.by(column) == dict(zip(values.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("order_sensitive", [False, True])
def test_every_selected_test_is_equally_likely(order_sensitive):
    """Pearson's chi-square of many single draws, at a level of one in ten thousand."""
    space = Space({name: ladder(4) for name in "abc"}, order_sensitive=order_sensitive)
    chosen = Selection(space, "severity >= 4 and (a > b or c == 2)")
    generator = np.random.default_rng(3)
    many = chosen.count * 12
    drawn = np.concatenate([chosen.sample(1, generator) for _ in range(many)])
    ids, seen = np.unique(drawn, return_counts=True)
    assert ids.tolist() == chosen.ids().tolist()
    statistic = float(((seen - 12) ** 2 / 12).sum())
    degrees = chosen.count - 1
    # Wilson and Hilferty: the cube root of a chi-square over its degrees is close to normal.
    score = ((statistic / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    assert abs(score) < 3.9


def test_pairs_drawn_together_are_equally_likely_too():
    space = Space({name: ladder(3) for name in "ab"})
    chosen = Selection(space, "a > 0")  # six tests, fifteen pairs
    generator = np.random.default_rng(5)
    pairs = [tuple(chosen.sample(2, generator).tolist()) for _ in range(900)]
    _, seen = np.unique(np.array(pairs), axis=0, return_counts=True)
    assert len(seen) == 15
    assert ((seen - 60) ** 2 / 60).sum() < 42.6  # 14 degrees, one in ten thousand


def test_the_whole_of_a_large_space():
    space = large()
    chosen = Selection(space)
    assert chosen.count == space.size == 6**15
    assert chosen.counts == tuple(math.comb(15, order) * 5**order for order in range(16))
    assert chosen.by("a3") == dict.fromkeys(range(6), 6**14)


def test_orders_of_application_are_counted():
    space = large(order_sensitive=True)  # ids beyond 64 bits
    chosen = Selection(space, "order == 12 and a0 == 0")
    assert chosen.count == math.comb(14, 12) * 5**12 * math.factorial(12)
    assert Selection(space).count == space.size > 2**63
    rows = Selection(space).rows(50, np.random.default_rng(0))
    assert Selection(space).holds(rows).all()
    assert [space.canonical(row) for row in rows.tolist()] == [tuple(row) for row in rows.tolist()]


def test_twenty_comparisons_over_fifteen_axes():
    space = large()
    single = " and ".join(f"a{number} <= 4" for number in range(12))
    text = f"{single} and order >= 2 and 5 <= severity <= 40 and (a0 > a1 or a2 < a3) and a4 > 1"
    chosen = Selection(space, text)
    rows = chosen.rows(1000, np.random.default_rng(0))
    assert chosen.holds(rows).all()
    # The complement, counted by itself, is the rest.
    assert chosen.count + Selection(space, f"not ({text})").count == space.size


def test_severity_sums_of_a_large_space_are_a_convolution():
    space = large()
    expected = np.array([1], object)
    for _ in range(15):
        expected = np.convolve(expected, np.ones(6, object))
    assert list(Selection(space).by("severity").values()) == expected.tolist()
    assert values_of(space, "severity") == tuple(range(76))


def test_what_blows_up_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(diagrams, "LARGEST", 1000)
    text = " or ".join(f"(a{one} > 2 and a{other} < 3)" for one, other in zip(range(7), range(8, 15), strict=True))
    with pytest.raises(InputError, match="too many cases to tell apart"):
        Selection(large(), f"severity > 20 and ({text})")


def test_what_is_not_known_of_every_test_is_refused():
    compiled = queries.compile("quality < 1", ["quality"])
    with pytest.raises(InputError, match="quality is not known of every test"):
        Selection(large(), compiled)


def test_too_many_are_not_listed():
    with pytest.raises(InputError, match="too many to list"):
        Selection(large(), "a0 > 0").ids()


def test_equal_keys_of_different_states_are_told_apart(monkeypatch):
    class Zeros:
        def integers(self, low, high, size, dtype):
            return np.zeros(size, dtype)

    with monkeypatch.context() as patched:
        patched.setattr(diagrams.np.random, "default_rng", lambda seed: Zeros())
        chosen = Selection(large(3), "a0 > a1 and severity > 6")
    assert chosen.ids().tolist() == brute(large(3), "a0 > a1 and severity > 6").tolist()


def test_precedences_are_counted_where_nothing_is_listed():
    space = large(order_sensitive=True)
    both = Selection(space, "a0 > 0 and a1 > 0").count
    assert Selection(space, "before(a0, a1)").count * 2 == both
    three = Selection(space, "a0 > 0 and a1 > 0 and a2 > 0").count
    assert Selection(space, "before(a0, a1) and before(a1, a2)").count * 6 == three
    assert Selection(space, "before(a0, a1) and before(a1, a2) and before(a2, a0)").count == 0
    chosen = Selection(space, "before(a3, a2) and not before(a4, a5) and severity > 20")
    assert chosen.holds(chosen.rows(200, np.random.default_rng(0))).all()


def test_precedences_are_drawn_uniformly():
    space = Space({name: ladder(2) for name in "abc"}, order_sensitive=True)
    chosen = Selection(space, "before(b, a)")
    drawn = [int(chosen.sample(1, np.random.default_rng(seed))[0]) for seed in range(400)]
    counts = np.unique(drawn, return_counts=True)[1]
    assert len(counts) == chosen.count == 4  # b a; c b a, b c a, b a c
    assert counts.min() > 70


def test_too_many_precedences_at_once_are_refused():
    with pytest.raises(InputError, match=r"says of 6 axes when they are applied; accepted: before with up to 5"):
        Selection(large(order_sensitive=True), "before(a0, a1) or before(a2, a3) or before(a4, a5)")


def test_a_few_of_very_many_axes_in_sequence():
    space = large(25, order_sensitive=True)  # 25! is beyond 64 bits
    chosen = Selection(space, "before(a0, a1) and order == 3")
    assert chosen.count == 25 * 23 * 5 * 3
    assert chosen.holds(chosen.rows(50, np.random.default_rng(0))).all()
    capped = Space({f"a{axis}": ladder(3) for axis in range(25)}, order_sensitive=True, max_order=2)
    assert (
        Selection(capped, "before(a0, a1) or before(a2, a1)").ids().tolist()
        == brute(capped, "before(a0, a1) or before(a2, a1)").tolist()
    )
