"""What is known of columns."""

import numpy as np
import pytest

from testifai.data.table_columns import Column, learn, spread, unnamed
from testifai.errors import InputError


def test_the_spread_of_normal_numbers_is_their_standard_deviation_whatever_a_few_wild_ones_are():
    numbers = np.random.default_rng(0).normal(3, 2, 20_000)
    assert spread(numbers) == pytest.approx(2, rel=0.03)
    numbers[:50] = 1e9
    assert spread(numbers) == pytest.approx(2, rel=0.03)


def test_where_the_quartiles_agree_the_spread_is_the_standard_deviation():
    numbers = np.array([0.0] * 95 + [10.0] * 5)
    assert spread(numbers) == pytest.approx(numbers.std())
    assert spread(np.ones(4)) == 0
    assert spread(np.full(3, np.nan)) == 0


def test_missing_values_and_categories_have_no_part_in_the_spread():
    rows = np.array([[1.0, 0], [np.nan, 1], [3.0, 1]])
    table = learn([Column("a"), Column("b", "category", ("x", "y"))], rows)
    assert [column.spread for column in table.columns] == [pytest.approx(1 / 1.349), 0.0]


def test_rows_that_stand_for_all_come_from_all_over_the_table():
    table = unnamed(np.arange(10_000.0)[:, None])
    assert len(table.sample) == 512
    assert table.sample[[0, -1], 0].tolist() == [0, 9999]


def test_an_unknown_column_is_one_line():
    with pytest.raises(InputError, match=r"the data have no column 'x9'; .*x1"):
        unnamed(np.ones((3, 2))).places(["x0", "x9"])


def test_tables_with_other_names_kinds_or_markers_are_told_apart():
    rows = np.ones((3, 1))
    tables = [
        learn([Column("a")], rows),
        learn([Column("b")], rows),
        learn([Column("a", "whole")], rows),
        learn([Column("a")], rows, -1),
    ]
    assert len({table.identity() for table in tables}) == 4
