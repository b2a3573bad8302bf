"""The suite tabular: what each perturbation does to which columns, and the contract."""

import numpy as np
import pytest

import testifai as ta
from testifai.data.table_columns import Column, learn
from testifai.errors import InputError
from testifai.perturb import Rows, describe, get, names, rebuild
from testifai.testing import check_perturbation, example_table

SUITE = names("tabular")
ROWS, TABLE = example_table()
LEVEL, AMOUNT, COUNT, MEMBER, CITY = range(5)
SPREAD = np.array([column.spread for column in TABLE.columns])


def changed(name, severity=3, *columns, rows=ROWS):
    perturbation = get(f"tabular.{name}")
    return (perturbation.on(*columns) if columns else perturbation).apply(rows, severity, table=TABLE)


def same(one, other):
    return (one == other) | (np.isnan(one) & np.isnan(other))


@pytest.mark.parametrize("name", SUITE)
def test_contract(name):
    check_perturbation(name)


@pytest.mark.parametrize("name", SUITE)
def test_only_chosen_columns_change_and_only_those_of_a_fitting_kind(name):
    columns = ("city", "member") if name == "tabular.swap" else ("amount", "count")
    touched = ~same(changed(name.removeprefix("tabular."), 3, *columns), ROWS)
    inside = TABLE.places(columns)
    assert touched[:, inside].any(axis=0).all()
    assert not np.delete(touched, inside, axis=1).any()


@pytest.mark.parametrize("name", SUITE)
def test_kinds_of_columns_are_kept(name):
    for severity in (1, 3):
        made = changed(name.removeprefix("tabular."), severity)
        whole = made[:, [COUNT, MEMBER, CITY]]
        assert np.isnan(whole).any() or (whole == np.floor(whole)).all()
        assert set(np.unique(made[:, CITY][~np.isnan(made[:, CITY])])) <= {0, 1, 2}
        assert set(np.unique(made[:, MEMBER][~np.isnan(made[:, MEMBER])])) <= {0, 1}


@pytest.mark.parametrize("name", SUITE)
def test_what_is_missing_stays_missing_but_for_values_of_another_row(name):
    made = changed(name.removeprefix("tabular."), 3)
    if name != "tabular.stale":
        assert np.isnan(made[np.isnan(ROWS)]).all()


def test_noise_has_the_standard_deviation_it_says():
    off = changed("noise", 4)[:, :3] - ROWS[:, :3]
    np.testing.assert_allclose(np.nanstd(off, axis=0), 0.7 * SPREAD[:3], rtol=0.1)


def test_drift_is_the_same_for_all():
    off = changed("drift", 3)[:, [LEVEL, AMOUNT]] - ROWS[:, [LEVEL, AMOUNT]]
    np.testing.assert_allclose(off[~np.isnan(off).any(axis=1)], np.tile(0.7 * SPREAD[:2], (399, 1)))


def test_one_number_of_each_input_is_in_a_wrong_unit():
    made = changed("unit", 2, "level", "amount")
    factor = (made[:, :2] / ROWS[:, :2])[~np.isnan(ROWS[:, 1])]
    assert ((~np.isclose(factor, 1)).sum(axis=1) == 1).all()
    wrong = factor[~np.isclose(factor, 1)]
    assert (np.isclose(wrong, 100) | np.isclose(wrong, 0.01)).all()
    assert 0.4 < np.isclose(wrong, 100).mean() < 0.6


def test_rounding_is_to_multiples_of_its_step():
    share = changed("rounding", 4, "level")[:, LEVEL] / (1.5 * SPREAD[LEVEL])
    np.testing.assert_allclose(share, np.rint(share), atol=1e-9)


def test_a_column_without_spread_is_left_alone():
    rows = np.column_stack([np.full(20, 7.0), np.arange(20.0)])
    table = learn([Column("flat"), Column("other")], rows)
    for name in ("noise", "drift", "rounding", "outlier"):
        made = get(f"tabular.{name}").apply(rows, 3, table=table)
        assert (made[:, 0] == 7).all()


@pytest.mark.parametrize(("severity", "share"), [(1, 0.05), (3, 0.2), (5, 0.5)])
def test_shares_of_values_are_missing_swapped_or_stale(severity, share):
    holes = np.isnan(changed("missing", severity))[~np.isnan(ROWS)]
    assert holes.mean() == pytest.approx(share, abs=0.03)
    made = changed("swap", severity)
    assert (made != ROWS)[:, MEMBER].mean() == pytest.approx(share, abs=0.06)
    assert (made != ROWS)[~np.isnan(ROWS[:, CITY]), CITY].mean() == pytest.approx(share, abs=0.06)
    stale = changed("stale", severity)
    assert (~same(stale, ROWS))[:, LEVEL].mean() == pytest.approx(share, abs=0.06)
    assert set(stale[:, LEVEL]) <= {*ROWS[:, LEVEL], *TABLE.sample[:, LEVEL]}


def test_outliers_are_so_many_spreads_off_in_one_column():
    off = ((changed("outlier", 5) - ROWS) / np.where(SPREAD > 0, SPREAD, 1))[:, :2]
    there = off[~np.isnan(off).any(axis=1)]
    assert set(np.round(np.abs(there[there != 0]), 6)) == {20.0}
    assert ((there != 0).sum(axis=1) <= 1).all()


def test_columns_are_part_of_what_a_perturbation_and_a_space_are():
    chosen = get("tabular.noise").on("level", "count")
    assert describe(chosen)["columns"] == ["level", "count"]
    assert rebuild(describe(chosen)).columns == ("level", "count")
    space = ta.Space({"noise": chosen, "all": "tabular.noise"})
    again = ta.Space.from_description(space.describe())
    assert [axis.perturbation.columns for axis in again.axes] == [("level", "count"), None]
    assert space != ta.Space({"noise": "tabular.noise", "all": "tabular.noise"})


def test_a_perturbation_of_ones_own_gets_columns_by_name():
    @ta.perturbation("late_raise", severities=[0, 0.1, 0.5], table=True)
    def late_raise(rows: Rows, share, rng):
        """Amounts of members are too low."""
        assert rows.column("city").values == ("Bonn", "Köln", "Ulm")
        return rows.replaced({"amount": np.where(rows["member"] == 1, rows["amount"] * (1 - share), rows["amount"])})

    check_perturbation(late_raise)
    made = late_raise.apply(ROWS, 2, table=TABLE)
    members = ROWS[:, MEMBER] == 1
    np.testing.assert_allclose(made[members, AMOUNT], ROWS[members, AMOUNT] / 2)
    assert same(made[~members], ROWS[~members]).all()


def test_tables_of_float32_and_of_whole_numbers_keep_their_dtype():
    for dtype in (np.float32, np.int64):
        rows = np.arange(60, dtype=dtype).reshape(20, 3)
        table = ta.data.wrap(rows).table
        made = get("tabular.noise").apply(rows, 5, table=table)
        assert made.dtype == dtype
        assert (made != rows).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: changed("noise", 1, "city"), r"none of city \(category\) is of kind number or whole"),
        (lambda: changed("swap", 1, "level"), r"none of level \(number\) is of kind boolean or category"),
        (lambda: changed("noise", 1, "levl"), "the data have no column 'levl'; did you mean 'level'"),
        (lambda: get("tabular.noise").on("a", "a"), r"columns is \['a', 'a'\]; give names, each once"),
        (lambda: get("tabular.noise").on(), r"columns is \[\]"),
        (lambda: get("mnist_c.zoom").on("a"), "takes no columns; those of the suite tabular do"),
        (lambda: get("tabular.noise").apply(ROWS, 1), "needs to know the columns of this batch, 5 of them"),
        (lambda: get("tabular.noise").apply(np.zeros((2, 8, 8)), 1, table=TABLE), "is for tables"),
        (lambda: get("tabular.noise").apply(["a", "b"], 1, table=TABLE), "is for tables"),
        (
            lambda: get("tabular.missing").apply(
                np.ones((9, 3), int), 5, table=ta.data.wrap(np.ones((9, 3), int)).table
            ),
            "inputs of dtype int64 have no missing values; convert them to float64",
        ),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
