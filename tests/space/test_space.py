from __future__ import annotations

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import Perturbation, perturbation, resolve
from testifai.space import ENUMERABLE, Space, query


def same(batch, parameter, rng):
    return batch


def made(severities=6, name="made"):
    return Perturbation(name, same, tuple(range(0, 10 * severities, 10)))


def grid(*levels, **options):
    return Space({f"a{j}": made(m) for j, m in enumerate(levels)}, **options)


THREE = grid(6, 6, 6)
THREE_ORDERED = grid(6, 6, 6, order_sensitive=True)

# No deadline: a slow machine must not fail the tests.
some = settings(max_examples=20, deadline=None)
small_spaces = st.builds(
    lambda axes, ordered, cap: Space(
        {f"a{j}": (made(6), sorted(chosen)) for j, chosen in enumerate(axes)}, order_sensitive=ordered, max_order=cap
    ),
    st.lists(st.sets(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=4),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 4)),
)


def brute_force(space):
    """Every configuration from the definition: the product, and every order of application."""
    for severities in itertools.product(*(axis.severities for axis in space.axes)):
        active = [j for j, severity in enumerate(severities) if severity]
        if len(active) > space.max_order:
            continue
        if not space.order_sensitive:
            yield severities
            continue
        for sequence in itertools.permutations(active):
            places = [0] * len(severities)
            for place, j in enumerate(sequence, start=1):
                places[j] = place
            yield (*severities, *places)


class TestAxes:
    def test_all_severities_of_a_builtin_by_default(self):
        axis = Space({"zoom": "mnist_c.zoom"}).axes[0]
        table = resolve("mnist_c.zoom").severities
        assert (axis.name, axis.perturbation) == ("zoom", resolve("mnist_c.zoom"))
        assert axis.severities == tuple(range(len(table)))
        assert axis.levels == {}

    def test_zero_is_added_and_severities_are_sorted(self):
        assert Space({"zoom": (made(), [5, 1, 3])}).axes[0].severities == (0, 1, 3, 5)

    def test_numpy_integers_become_plain(self):
        assert all(type(s) is int for s in Space({"zoom": (made(), np.array([1, 3]))}).axes[0].severities)

    def test_named_severities(self):
        space = Space({"blur": (made(), {"low": 1, "off": 0, "high": 5}), "zoom": made()})
        assert space.axes[0].severities == (0, 1, 5)
        assert space.axes[0].levels == {"low": 1, "high": 5}
        assert space.levels == {"blur": {"off": 0, "low": 1, "high": 5}, "zoom": {"off": 0}}

    def test_named_severities_in_a_query(self):
        space = Space({"blur": (made(), {"low": 1, "high": 5}), "zoom": made()})
        compiled = query.compile("blur > low and zoom == off", space.names, space.levels)
        selected = np.argwhere(np.broadcast_to(compiled.evaluate(space.columns()), space.shape))
        assert [tuple(row) for row in selected.tolist()] == [space.index((5, 0))]

    @pytest.mark.parametrize("name", ["order", "severity", "quality", "label", "off", "and", "OR", "Not", "IN"])
    def test_reserved_axis_names(self, name):
        with pytest.raises(InputError, match="reserved word; accepted"):
            Space({name: made()})

    @pytest.mark.parametrize("name", ["", "2d", "motion blur", "a-b", "a\nb", 3, None])
    def test_axis_names_are_identifiers(self, name):
        with pytest.raises(InputError, match="not an identifier; accepted"):
            Space({name: made()})

    @pytest.mark.parametrize("name", ["lambda", "True", "class"])
    def test_python_keywords(self, name):
        with pytest.raises(InputError, match="reserved word"):
            Space({name: made()})

    @pytest.mark.parametrize(
        ("chosen", "said"),
        [
            ([0, 9], "severity 9 does not exist; accepted: 0 to 5"),
            ([-1], "severity -1 does not exist"),
            ([1, 1], "severity 1 is given twice"),
            ([1.0], "severity 1.0 does not exist"),
            ([True, 2], "severity True does not exist"),
            (["1"], "severity '1' does not exist"),
            ([], "no severity other than 0"),
            ([0], "no severity other than 0"),
            ("12", "severities '12' are not a list"),
            (3, "severities 3 are not a list"),
            ({}, "no severity other than 0"),
            ({"low": 1, "mild": 1}, "severity 1 is given twice"),
            ({"low": 9}, "severity 9 does not exist"),
            ({"low": [1]}, r"severity \[1\] does not exist"),
        ],
    )
    def test_chosen_severities(self, chosen, said):
        with pytest.raises(InputError, match=f"^space: axis 'zoom': {said}"):
            Space({"zoom": (made(), chosen)})

    @pytest.mark.parametrize(
        "level", ["zoom", "blur", "order", "label", "off", "AND", "None", "", " ", 'a"b', "a\nb", 3]
    )
    def test_level_names(self, level):
        with pytest.raises(InputError, match=r"^space: axis 'blur': level name .*accepted: text") as caught:
            Space({"blur": (made(), {level: 2}), "zoom": made()})
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("axes", [{}, None, [], "zoom", [("zoom", "mnist_c.zoom")]])
    def test_no_axes(self, axes):
        with pytest.raises(InputError, match="no axes; accepted"):
            Space(axes)

    @pytest.mark.parametrize("given", [None, 3, same, (made(),), (made(), [1], [2]), (3, [1])])
    def test_what_an_axis_may_be(self, given):
        with pytest.raises(InputError, match=r"^space: axis 'zoom': .*accepted: a p"):
            Space({"zoom": given})

    def test_unknown_perturbation_names_the_axis(self):
        with pytest.raises(InputError, match=r"^space: axis 'a': .*mnist_c\.zoom") as caught:
            Space({"a": "mnist_c.zom"})
        assert "\n" not in str(caught.value)


class TestCounts:
    def test_published_counts(self):
        # The TestifAI paper's example: 216 tests, 916 where the application order counts.
        assert [THREE.count(t) for t in range(4)] == [1, 15, 75, 125]
        assert (THREE.size, len(THREE), THREE.count(), THREE.shape) == (216, 216, 216, (6, 6, 6))
        assert [THREE_ORDERED.count(t) for t in range(4)] == [1, 15, 2 * 75, 6 * 125]
        assert (THREE_ORDERED.size, len(THREE_ORDERED), THREE_ORDERED.shape) == (916, 916, (916,))

    def test_beyond_the_highest_order_there_is_nothing(self):
        assert THREE.count(4) == THREE.count(99) == 0

    @pytest.mark.parametrize("order", [-1, 1.5, True, "2"])
    def test_bad_order(self, order):
        for asked in (THREE.count, THREE.configurations, THREE.ids_up_to):
            with pytest.raises(InputError, match=r"^order: .*accepted: a whole number from 0 to 3"):
                asked(order)

    def test_huge_spaces_are_counted_exactly(self):
        assert grid(*[6] * 40).size == 6**40
        ordered = grid(*[6] * 20, order_sensitive=True)
        assert ordered.size == sum(math.perm(20, t) * 5**t for t in range(21))
        assert bool(ordered)

    @some
    @given(small_spaces)
    def test_counts_agree_with_brute_force(self, space):
        orders = [sum(map(bool, sigma[: len(space.axes)])) for sigma in brute_force(space)]
        assert [space.count(t) for t in range(len(space.axes) + 2)] == [
            orders.count(t) for t in range(len(space.axes) + 2)
        ]
        assert space.size == len(orders)


class TestEnumeration:
    @some
    @given(small_spaces, st.integers(0, 4))
    def test_every_configuration_once_by_order(self, space, max_order):
        k = len(space.axes)
        found = list(space.configurations())
        assert sorted(found) == sorted(brute_force(space))

        def key(sigma):
            subset = tuple(j for j in range(k) if sigma[j])
            return len(subset), subset, sigma

        assert found == sorted(found, key=key)
        assert list(space.configurations(max_order)) == [s for s in found if space.order(s) <= max_order]

    @some
    @given(small_spaces)
    def test_ids_up_to_follows_configurations(self, space):
        for max_order in [None, *range(len(space.axes) + 1)]:
            ids = space.ids_up_to(max_order)
            assert ids.dtype == np.int64
            assert ids.tolist() == space.ids(list(space.configurations(max_order))).tolist()

    def test_low_orders_of_a_large_space(self):
        space = grid(*[6] * 15)
        found = list(space.configurations(max_order=2))
        assert len(found) == 1 + 75 + 2625
        assert space.ids_up_to(2).tolist() == [space.id(sigma) for sigma in found]

    def test_configurations_is_lazy(self):
        assert list(itertools.islice(grid(*[6] * 30).configurations(), 2)) == [(0,) * 30, (1,) + (0,) * 29]

    def test_too_many_ids(self):
        with pytest.raises(InputError, match="too many to enumerate"):
            grid(*[6] * 15).ids_up_to(8)


class TestIds:
    @some
    @given(small_spaces)
    def test_ids_are_dense_and_invertible(self, space):
        every = list(brute_force(space))
        ids = space.ids(every).tolist()
        assert sorted(ids) == list(range(space.size))
        assert space.matrix(ids).tolist() == [list(sigma) for sigma in every]
        for sigma, number in list(zip(every, ids, strict=True))[::7]:
            assert space.id(sigma) == number
            assert space.configuration(number) == sigma
        assert space.id((0,) * len(space.axes)) == 0

    @some
    @given(small_spaces)
    def test_id_is_the_flat_position(self, space):
        for sigma in itertools.islice(brute_force(space), 50):
            assert np.ravel_multi_index(space.index(sigma), space.shape) == space.id(sigma)

    def test_grid_index_is_by_position_not_severity(self):
        space = Space({"zoom": made(), "blur": (made(), [0, 1, 3, 5])})
        assert space.index((2, 5)) == (2, 3)
        assert space.id((2, 5)) == 2 * 4 + 3

    @some
    @given(st.data())
    def test_round_trip_beyond_64_bits(self, data):
        space = data.draw(st.sampled_from([grid(*[6] * 40), grid(*[4] * 22, order_sensitive=True)]))
        number = data.draw(st.integers(0, space.size - 1))
        assert space.id(space.configuration(number)) == number
        assert space.matrix([number, 0])[0].tolist() == list(space.configuration(number))

    def test_ids_on_both_sides_of_64_bits(self):
        space = grid(*[6] * 40)
        assert space.matrix([2**63, 5])[0].tolist() == list(space.configuration(2**63))
        with pytest.raises(InputError, match=r"^id: 1\.5 is not a test"):
            space.matrix([2**63, 1.5])

    def test_low_orders_keep_small_ids_in_a_huge_ordered_space(self):
        space = grid(*[6] * 20, order_sensitive=True)
        found = list(space.configurations(max_order=2))
        assert space.size > 2**63
        assert space.ids(found).tolist() == list(range(len(found))) == space.ids_up_to(2).tolist()

    def test_ids_that_do_not_fit(self):
        space = grid(*[6] * 40)
        with pytest.raises(InputError, match="too many for 64-bit ids"):
            space.ids([(5,) * 40])

    @pytest.mark.parametrize("space", [THREE, THREE_ORDERED])
    @pytest.mark.parametrize("number", [-1, 916, 1.0, "0", None, True, np.int64(-5)])
    def test_bad_id(self, space, number):
        with pytest.raises(InputError, match=r"^id: .* accepted: 0 to"):
            space.configuration(number)
        with pytest.raises(InputError, match=r"^id: .* accepted: 0 to"):
            space.matrix([number])

    def test_nothing_in_nothing_out(self):
        assert THREE.matrix([]).shape == (0, 3)
        assert THREE.ids([]).shape == (0,)
        assert THREE_ORDERED.ids(np.empty((0, 6), int)).dtype == np.int64


class TestConfigurations:
    def test_places_default_to_axis_order(self):
        assert THREE_ORDERED.canonical((2, 0, 5)) == (2, 0, 5, 1, 0, 2)
        assert THREE_ORDERED.id((2, 0, 5)) == THREE_ORDERED.id((2, 0, 5, 1, 0, 2))
        assert THREE_ORDERED.ids([(2, 0, 5)]).tolist() == THREE_ORDERED.ids([(2, 0, 5, 1, 0, 2)]).tolist()

    def test_steps_in_application_order(self):
        assert THREE.steps((2, 0, 5)) == ((0, 2), (2, 5))
        assert THREE_ORDERED.steps((2, 0, 5, 2, 0, 1)) == ((2, 5), (0, 2))
        assert THREE_ORDERED.steps((1, 2, 3, 3, 1, 2)) == ((1, 2), (2, 3), (0, 1))
        assert THREE.steps((0, 0, 0)) == THREE_ORDERED.steps((0, 0, 0)) == ()

    def test_order(self):
        assert [THREE.order(s) for s in [(0, 0, 0), (0, 4, 0), (1, 2, 3)]] == [0, 1, 3]
        assert THREE_ORDERED.order((2, 0, 5, 2, 0, 1)) == 2

    @pytest.mark.parametrize(
        ("sigma", "said"),
        [
            ((1, 2), "has 2 entries; accepted: 3 severities"),
            ((1, 2, 3, 4), "has 4 entries"),
            (5, "has 1 entries"),
            ((1, 9, 3), "a1 = 9 is not a severity; accepted: 0, 1, 2, 3, 4, 5"),
            ((1, 2, -1), "a2 = -1 is not"),
            ((1.0, 2, 3), "a0 = 1.0 is not"),
            ((True, 2, 3), "a0 = True is not"),
            ((np.int64(7), 2, 3), "a0 = 7 is not"),
            (("1\n", 2, 3), r"a0 = '1\\n' is not"),
        ],
    )
    @pytest.mark.parametrize("space", [THREE, THREE_ORDERED])
    def test_bad_severities(self, space, sigma, said):
        for asked in (space.id, space.index, space.order, space.steps, space.canonical):
            with pytest.raises(InputError, match=f"^sigma: .*{said}"):
                asked(sigma)

    @pytest.mark.parametrize(
        ("sigma", "said"),
        [
            ((2, 0, 5, 1, 0, 1), "place of a2 = 1; accepted: 2"),
            ((2, 0, 5, 1, 0, 3), "place of a2 = 3; accepted: 2"),
            ((2, 0, 5, 1, 2, 2), "place of a1 = 2; accepted: 0, as the axis is off"),
            ((2, 0, 5, 0, 0, 1), "place of a0 = 0; accepted: 1, 2"),
        ],
    )
    def test_bad_places(self, sigma, said):
        with pytest.raises(InputError, match=said):
            THREE_ORDERED.id(sigma)
        with pytest.raises(InputError, match=said):
            THREE_ORDERED.ids([(0, 0, 0, 0, 0, 0), sigma])

    @pytest.mark.parametrize(
        "rows",
        [
            [(1, 2)],
            [(1, 2), (1, 2, 3)],
            [(1.0, 2.0, 3.0)],
            (1, 2, 3),
            [("a", "b", "c")],
            [(1, 2, 9)],
            [(1, 2, -3)],
        ],
    )
    def test_bad_rows(self, rows):
        for space in (THREE, THREE_ORDERED):
            with pytest.raises(InputError, match=r"^sigma: .*accepted"):
                space.ids(rows)


class TestColumns:
    @some
    @given(small_spaces)
    def test_columns_say_what_the_configurations_are(self, space):
        columns = space.columns()
        pairs = list(itertools.permutations(space.sequenced, 2))
        assert list(columns) == [*space.column_names, *(f"before({a}, {b})" for a, b in pairs)]
        full = {name: np.broadcast_to(column, space.shape).reshape(-1) for name, column in columns.items()}
        for number in range(space.size):
            sigma = space.configuration(number)
            severities = sigma[: len(space.axes)]
            assert tuple(full[name][number] for name in space.names) == severities
            assert full["order"][number] == space.order(sigma)
            assert full["severity"][number] == sum(severities)
            applied = [space.names[axis] for axis, _ in space.steps(sigma)]
            for a, b in pairs:
                first = a in applied and b in applied and applied.index(a) < applied.index(b)
                assert full[f"before({a}, {b})"][number] == first

    def test_grid_columns_are_an_open_mesh_of_small_numbers(self):
        columns = grid(10, 10, 10, 10, 10, 10).columns()
        assert columns["a2"].shape == (1, 1, 10, 1, 1, 1)
        assert columns["severity"].dtype == np.int8
        assert columns["severity"].max() == 54
        assert columns["severity"] is columns["severity"]

    def test_the_type_holds_the_severity_sum(self):
        wide = Space({"a": (made(201), [200]), "b": (made(201), [200])})
        assert wide.columns()["severity"].max() == 400

    def test_too_large(self):
        space = grid(*[6] * 10)
        assert space.size > ENUMERABLE
        with pytest.raises(InputError, match=r"too many to enumerate .*use predict"):
            space.columns()


class TestDescription:
    def test_round_trip_of_a_registered_perturbation(self):
        space = Space({"zoom": ("mnist_c.zoom", {"low": 1, "high": 5})}, order_sensitive=True)
        read = Space.from_description(json.loads(json.dumps(space.describe())))
        assert read == space
        assert read.axes[0].perturbation is space.axes[0].perturbation
        assert read.levels == space.levels

    @pytest.mark.parametrize(
        "parameter",
        [None, 1, 2.5, "text", (1, 2), {"gain": 1.5}, np.float32(0.5), np.arange(3), b"raw", {1, 2}],
    )
    def test_round_trip_without_the_code(self, parameter):
        space = Space({"mine": (Perturbation("mine", same, [None, 0, parameter]), [2])})
        written = json.loads(json.dumps(space.describe()))
        read = Space.from_description(written)
        assert read == space
        assert read.describe() == written
        assert read.axes[0].severities == (0, 2)
        with pytest.raises(InputError, match="code of 'mine' is not loaded"):
            read.axes[0].perturbation.function(np.zeros(3), parameter, None)
        assert pickle.loads(pickle.dumps(read)) == space

    def test_a_changed_table_is_not_taken_for_the_described_one(self):
        perturbation("test_space.changing", severities=[0, 1, 2])(same)
        written = Space({"a": "test_space.changing"}).describe()
        written["axes"][0]["parameters"] = [0, 1, 7]
        read = Space.from_description(written)
        assert read.describe() == written
        assert read != Space({"a": "test_space.changing"})
        with pytest.raises(InputError, match="not loaded"):
            read.axes[0].perturbation.function(None, 7, None)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda d: d.pop("axes"),
            lambda d: d.pop("order_sensitive"),
            lambda d: d.update(axes=[]),
            lambda d: d.update(axes=3),
            lambda d: d["axes"][0].pop("levels"),
            lambda d: d["axes"][0].update(severities=[]),
            lambda d: d["axes"][0].update(severities="abc"),
            lambda d: d["axes"][0].update(parameters=[1]),
            lambda d: d["axes"][0].update(severities=[0, 10**12], parameters=[0, 1]),
            lambda d: d["axes"][0].update(severities=[0, -3], parameters=[0, 1]),
            lambda d: d["axes"][0].update(name=["x"]),
            lambda d: d["axes"][0].update(perturbation=None),
        ],
    )
    def test_damaged_description(self, damage):
        written = THREE.describe()
        damage(written)
        with pytest.raises(InputError) as caught:
            Space.from_description(written)
        assert "\n" not in str(caught.value)

    def test_equality(self):
        assert grid(3, 4) == grid(3, 4)
        assert hash(grid(3, 4)) == hash(grid(3, 4))
        assert grid(3, 4) != grid(3, 4, order_sensitive=True)
        assert grid(3, 4) != grid(4, 3)
        assert Space({"a": made(3), "b": made(3)}) != Space({"b": made(3), "a": made(3)})
        assert Space({"a": made(3, "p")}) != Space({"a": made(3, "q")})
        assert grid(3) != "grid"

    def test_repr(self):
        assert repr(Space({"zoom": (made(), [1, 3])})) == "Space(zoom: made [0, 1, 3])"
        assert repr(grid(2, order_sensitive=True)) == "Space(a0: made [0, 1]; order-sensitive)"


class TestCap:
    """A space of at most so many axes at once."""

    def test_it_holds_nothing_else(self):
        space = grid(3, 3, 3, max_order=1)
        assert (space.size, space.shape, space.max_order) == (7, (7,), 1)
        assert all(space.order(sigma) <= 1 for sigma in space.configurations())
        with pytest.raises(InputError, match=r"has 2 axes on; accepted in this space: up to 1"):
            space.id((1, 1, 0))
        with pytest.raises(InputError, match="has 3 axes on"):
            space.ids([[0, 0, 1], [1, 1, 1]])

    def test_a_cap_that_leaves_out_nothing_is_none(self):
        assert grid(3, 3, max_order=2) == grid(3, 3)
        assert grid(3, 3, max_order=7).describe() == grid(3, 3).describe()

    def test_it_is_written_down_and_read_back(self):
        space = grid(3, 3, 3, max_order=2, order_sensitive=True)
        assert Space.from_description(space.describe()) == space != grid(3, 3, 3, order_sensitive=True)
        assert "at most 2 at once" in repr(space)

    def test_hundreds_of_axes_have_small_numbers(self):
        space = grid(*[6] * 300, max_order=2)
        assert space.size == 1 + 300 * 5 + 300 * 299 // 2 * 25
        ids = np.array([0, 1, space.size - 1])
        assert np.array_equal(space.ids(space.matrix(ids)), ids)

    @pytest.mark.parametrize("given", [0, -1, 1.5, True, "2"])
    def test_what_is_no_order(self, given):
        with pytest.raises(InputError, match="max_order"):
            grid(3, 3, max_order=given)

    def test_a_whole_suite_is_its_published_perturbations_one_by_one(self):
        space = Space.suite("cifar_c")
        assert (len(space.axes), space.size, space.axes[0].perturbation.name) == (15, 76, "cifar_c.gaussian_noise")
        assert set(Space.suite("cifar_c", extra=True).names) - set(space.names) == {
            "speckle_noise", "gaussian_blur", "spatter", "saturate",
        }  # fmt: skip
        assert Space.suite("mnist_c", max_order=None).max_order == len(Space.suite("mnist_c").axes)
        with pytest.raises(InputError, match="suite 'cifar' is not known"):
            Space.suite("cifar")
