from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.operational.label_file import Classes, read_filled, selection_of, table, write_new

ANIMALS = Classes(("cat", "dog", "frog"))
HEADER = ["id", "where", "predicted", "confidence", "label", "selection"]
ROWS = [[17, "x.npz[17]", "cat", "0.9", "dog", "abc"], [3, "x.npz[3]", "dog", "0.8", "", "abc"]]


def save(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "filled.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_what_was_written_is_read_back(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(table(HEADER, ROWS))
    found = read_filled(path, ANIMALS)
    assert (found.labels, found.empty) == ({17: 1}, (3,))
    assert found.where == {17: "x.npz[17]", 3: "x.npz[3]"}
    assert found.examples == {3, 17}
    assert selection_of(path) == "abc"


TEXT = "id,label,note\n17,dog,\n3,,\n40,2.0,late\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TEXT, "utf-8"),
        (TEXT, "utf-8-sig"),
        (TEXT.replace("\n", "\r\n"), "utf-8-sig"),
        (TEXT.replace("\n", "\r"), "utf-8"),
        (TEXT.replace(",", ";"), "utf-8"),
        ("sep=;\r\n" + TEXT.replace(",", ";").replace("\n", "\r\n"), "utf-8-sig"),
        (TEXT.replace(",", "\t"), "utf-16"),
        (TEXT.replace("late", "sp\u00e4t"), "cp1252"),
        (TEXT.upper(), "utf-8"),
        ("\n" + TEXT + "\n\n,,\n", "utf-8"),
        ("note,LABEL , id\nlate,Frog,40\n,, 3\n, DOG ,17.0\n", "utf-8"),
        (TEXT.replace("17,dog,", '17,dog,"a note\nof two lines"'), "utf-8"),
    ],
)
def test_whatever_spreadsheets_make_of_it(tmp_path, text, encoding):
    found = read_filled(save(tmp_path, text, encoding), ANIMALS)
    assert found.labels == {17: 1, 40: 2}
    assert found.empty == (3,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("id,lbl\n1,cat\n", r"no column 'label'; found: id, lbl"),
        ("id,label,label\n1,cat,cat\n", "several columns 'label'"),
        ("id,label\n1,cat\n1,cat\n", "line 3: id 1 is in line 2 already"),
        ('id,label,n\n1,cat,"a\nb"\n2,dog,\n1,cat,\n', "line 5: id 1 is in line 2 already"),
        ("id,label\n1,cta\n", r"line 2 \(id 1\): label 'cta' is not a class; did you mean 'cat'"),
        ("id,label\n1,3\n", "label '3' is not a class; accepted: cat, dog, frog"),
        ("id,label\n1,-1\n", "label '-1' is not a class"),
        ("id,label\n1,0.5\n", "label '0.5' is not a class"),
        ("id,label\nx7,cat\n", "line 2: id 'x7' is not the number of an example"),
        ("id,label\n,cat\n", "line 2: id '' is not the number"),
        ("PK\x03\x04", "is a workbook"),
        ("id\0label", "is not a text file"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read_filled(save(tmp_path, text), ANIMALS)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_filled(tmp_path / "none.csv", ANIMALS)
    with pytest.raises(InputError, match="cannot read"):
        read_filled(tmp_path, ANIMALS)


def test_rows_of_two_selections_are_kept_apart(tmp_path):
    with pytest.raises(InputError, match="different selections"):
        selection_of(save(tmp_path, "id,label,selection\n1,,a\n2,,b\n"))
    assert selection_of(save(tmp_path, "id,label\n1,\n")) is None
    assert selection_of(save(tmp_path, "id,label,selection\n1,,\n2,,b\n")) == "b"


def test_numbers_that_are_names_are_names():
    digits = Classes(("7", "10", "2"))
    assert [digits.number(text) for text in ("7", "10", "2", "2.0", "10.00")] == [0, 1, 2, 2, 1]
    with pytest.raises(InputError, match="accepted: 7, 10, 2"):
        digits.number("0")  # the class number 0 would be the name 7: too easily a mistake
    assert digits.text(1) == "10"


def test_classes_without_names_or_number():
    assert Classes(None, 10).number("9") == 9
    with pytest.raises(InputError, match="accepted: 0 … 9"):
        Classes(None, 10).number("10")
    assert Classes().number("4000") == 4000
    with pytest.raises(InputError, match="whole numbers from 0"):
        Classes().number("cat")
    many = Classes(tuple(f"sign {n}" for n in range(43)))
    with pytest.raises(InputError, match="the 43 class names") as caught:
        many.number("stop")
    assert len(str(caught.value)) < 150


def test_names_alike_but_for_case_need_their_case():
    classes = Classes(("us", "US"))
    assert (classes.number("US"), classes.number("us")) == (1, 0)
    with pytest.raises(InputError):
        classes.number("Us")


def as_written(text):
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return plain.encode("utf-8", "replace").decode()


NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


@settings(max_examples=200, deadline=None)
@example(texts=["'=", "+0", "-1.5e3", "''\t", "\t", "'", " =", "' ="])
@given(texts=st.lists(st.text(st.characters() | st.sampled_from("=\r\n\0\";,'@-\t")), min_size=1, max_size=5))
def test_tables_come_back_and_never_run(texts, tmp_path_factory):
    content = table(["id", "where", "label"], [[n, text, "dog"] for n, text in enumerate(texts)])
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    for (_, cell, _), text in zip(rows[1:], texts, strict=True):
        assert cell in (as_written(text), "'" + as_written(text))
        assert (
            cell.startswith("'")
            or re.fullmatch(NUMBER, cell, re.ASCII)
            or not cell.lstrip().startswith(("=", "+", "-", "@"))
        )
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_bytes(content)
    found = read_filled(path, ANIMALS)
    assert found.labels == dict.fromkeys(range(len(texts)), 1)
    assert found.where == {n: as_written(text).strip() for n, text in enumerate(texts)}


def test_a_mark_only_where_excel_needs_it():
    assert table(["id"], [["plain"]]).startswith(b"id")
    assert table(["id"], [["Katze \u00fc"]]).startswith(b"\xef\xbb\xbfid")


def test_a_name_with_a_sign_comes_back(tmp_path):
    classes = Classes(("-1", "+1"))
    path = tmp_path / "a.csv"
    path.write_bytes(table(["id", "label"], [[0, "-1"], [1, "+1"]]))
    assert read_filled(path, classes).labels == {0: 0, 1: 1}


def test_nothing_is_overwritten(tmp_path):
    path = tmp_path / "a.csv"
    write_new(path, b"one")
    write_new(path, b"one")
    with pytest.raises(InputError, match="exists and is never overwritten"):
        write_new(path, b"two")
    assert path.read_bytes() == b"one"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(InputError, match="cannot write"):
        write_new(tmp_path / "none" / "a.csv", b"one")
