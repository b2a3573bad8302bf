"""What is known of columns."""

import numpy as np
import pytest

from testifai.data.table_columns import Column, Columns, choose, learn, spread, unnamed
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


@pytest.mark.parametrize(
    ("names", "text", "label"),
    [
        ("text label", ("text",), "label"),
        ("id Text Label", ("Text",), "Label"),
        ("id qid1 qid2 question1 question2 is_duplicate", ("question1", "question2"), "is_duplicate"),
        ("idx sentence1 sentence2 label", ("sentence1", "sentence2"), "label"),
        ("premise hypothesis label", ("premise", "hypothesis"), "label"),
        ("question sentence label", ("question", "sentence"), "label"),
        ("text_a text_b gold_label", ("text_a", "text_b"), "gold_label"),
        ("sentence", ("sentence",), None),
        ("what_they_said", ("what_they_said",), None),
        ("id what_they_said category", ("what_they_said",), "category"),
        ("author_id text stars", ("text",), None),
    ],
)
def test_usual_names_are_known(names, text, label):
    assert choose(names.split(), None, None, "x.csv") == Columns(text, label)


def test_what_is_told_comes_first():
    names = ["text", "title", "label", "stars"]
    assert choose(names, "title", "stars", "x.csv") == Columns(("title",), "stars")
    assert choose(names, ["title", "text"], None, "x.csv") == Columns(("title", "text"), "label")
    assert choose(names, ["label"], None, "x.csv") == Columns(("label",), None)
    assert choose(["text", "sentence"], None, "sentence", "x.csv") == Columns(("text",), "sentence")


@pytest.mark.parametrize(
    ("names", "text", "label", "message"),
    [
        ("text sentence label", None, None, "which column holds the texts is not clear; set text (columns, as the "),
        ("a b c", None, None, "the first line names them: a, b, c)"),
        ("text question1 question2", None, None, "is not clear; set text"),
        ("text text label", None, None, "is not clear; set text"),
        ("text label sentiment", None, None, "which column holds the labels is not clear; set label"),
        ("text label", "txt", None, "x.csv has no column 'txt' for text; did you mean 'text'?"),
        ("text label", "text", "lable", "x.csv has no column 'lable' for label; did you mean 'label'?"),
        ("text text label", "text", None, "x.csv has several columns 'text'; rename all but one of them"),
        ("text label", "label", "label", "column 'label' cannot be both text and label"),
        ("text label", [], None, "text = [] is not accepted; give one column, or two for pairs of texts"),
        ("a b c", ["a", "b", "c"], None, "give one column, or two"),
        ("a b c", ["a", 3], None, "give one column, or two"),
        ("text;label", None, None, "separated by semicolons; accepted: commas in a .csv file, tabs in a .tsv file"),
        ("text,label", None, None, "separated by commas; accepted: commas in a .csv"),
        ("What?", None, None, "is not clear; set text (columns, as the first line names them: What?)"),
    ],
)
def test_what_cannot_be_told_is_said_in_one_line(names, text, label, message):
    with pytest.raises(InputError) as caught:
        choose(names.split(), text, label, "x.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_names_does_not_fill_the_screen():
    long = ["A text that was meant to be the first of the data, not a name. " * 9, *map(str, range(1000))]
    with pytest.raises(InputError, match=r"… 1001 in all\)$") as caught:
        choose(long, None, None, "x.csv")
    assert len(str(caught.value)) < 400


def test_a_text_is_no_name():
    with pytest.raises(InputError, match="is not clear"):
        choose(["A file of one text per line without a line of names."], None, None, "x.csv")
    assert choose(["what people said"], None, None, "x.csv").text == ("what people said",)
