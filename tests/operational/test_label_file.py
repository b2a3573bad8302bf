"""Tests of operational.label_file."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.operational import label_file
from testifai.operational.label_file import ChangedError, Classes, Filling, read_filled, selection_of, table, write_new

TEXT = 'id,label,note\n17,dog,"a, ""b"""\n3,,\n'

GAPS = '\n"",""\nid,label,x\n1,,"two\nlines"\n"","",""\n'


def changed(tmp_path, content, row, cell):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    file = label_file.read(path)
    return file.changed(row, file.column("label"), cell)


@pytest.mark.parametrize(
    ("text", "encoding", "after"),
    [
        (TEXT, "utf-8", TEXT.replace("3,,", "3,frog,")),
        (TEXT, "utf-8-sig", TEXT.replace("3,,", "3,frog,")),
        (TEXT.replace("\n", "\r\n"), "utf-8", TEXT.replace("3,,", "3,frog,").replace("\n", "\r\n")),
        (TEXT.replace("\n", "\r"), "utf-8", TEXT.replace("3,,", "3,frog,").replace("\n", "\r")),
        ("sep=;\nid;label\n1;\n\n3;;\n", "utf-8", "sep=;\nid;label\n1;\n\n3;frog;\n"),
        ("id\tlabel\n1\tä\n3\t\n", "utf-16", "id\tlabel\n1\tä\n3\tfrog\n"),
        ("id,label\n1,ä\n3,\n", "cp1252", "id,label\n1,ä\n3,frog\n"),
        ('"id","label"\n"1",""\n"3",""\n', "utf-8", '"id","label"\n"1",""\n"3","frog"\n'),
        (GAPS + "3", "utf-8", GAPS + "3,frog"),
        ("note,label,id\n\" odd \" quote,,1\n,,3", "utf-8", "note,label,id\n\" odd \" quote,,1\n,frog,3"),
    ],
)  # fmt: skip
def test_one_cell_changes_and_no_other_byte(tmp_path, text, encoding, after):
    assert changed(tmp_path, text.encode(encoding), 1, "frog").decode(encoding) == after


def test_bytes_that_are_no_letters_stay(tmp_path):
    assert changed(tmp_path, b"id,label,x\n1,,\x81\xff\n", 0, "dog") == b"id,label,x\n1,dog,\x81\xff\n"


def test_what_needs_quotes_gets_them(tmp_path):
    assert changed(tmp_path, b"id,label\n1,\n", 0, 'a, "b"') == b'id,label\n1,"a, ""b"""\n'


def test_letters_that_the_file_cannot_hold(tmp_path):
    with pytest.raises(InputError, match="save it as UTF-8 first"):
        changed(tmp_path, "id,label,x\n1,,ä\n".encode("cp1252"), 0, "猫")
    with pytest.raises(InputError, match="letters that cannot be read"):
        changed(tmp_path, "id,label\n1,\n".encode("utf-16") + b"x", 0, "dog")


CELLS = st.text(st.sampled_from('ab"\n,; ä'), max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4),
    place=st.integers(0, 3),
    label=CELLS,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_whatever_is_around_it(rows, place, label, quoting, ends, tmp_path_factory):
    place %= len(rows)
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=quoting, lineterminator=ends)
    table = [["note", "label", "more", "id"], *([one, "", two, number] for number, (one, two) in enumerate(rows))]
    writer.writerows(table)
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(buffer.getvalue().encode())
    table[place + 1][1] = label
    found = csv.reader(io.StringIO(label_file.read(path).changed(place, 1, label).decode(), newline=""))
    assert list(found) == [[str(cell) for cell in row] for row in table]


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


TEXT_LABELLING = "id,label,note\n17,dog,\n3,,\n40,2.0,late\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TEXT_LABELLING, "utf-8"),
        (TEXT_LABELLING, "utf-8-sig"),
        (TEXT_LABELLING.replace("\n", "\r\n"), "utf-8-sig"),
        (TEXT_LABELLING.replace("\n", "\r"), "utf-8"),
        (TEXT_LABELLING.replace(",", ";"), "utf-8"),
        ("sep=;\r\n" + TEXT_LABELLING.replace(",", ";").replace("\n", "\r\n"), "utf-8-sig"),
        (TEXT_LABELLING.replace(",", "\t"), "utf-16"),
        (TEXT_LABELLING.replace("late", "sp\u00e4t"), "cp1252"),
        (TEXT_LABELLING.upper(), "utf-8"),
        ("\n" + TEXT_LABELLING + "\n\n,,\n", "utf-8"),
        ("note,LABEL , id\nlate,Frog,40\n,, 3\n, DOG ,17.0\n", "utf-8"),
        (TEXT_LABELLING.replace("17,dog,", '17,dog,"a note\nof two lines"'), "utf-8"),
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


ANIMALS_FILLING = Classes(("cat", "dog", "=frog"))
CONTENT = "id,mine,label\n17,x,dog\n3,y,\n5,z,\n"


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.csv"
    made.write_text(CONTENT)
    return made


def test_labels_are_kept_changed_and_taken_away(path):
    file = Filling(path, ANIMALS_FILLING)
    assert (file.examples, file.labels) == ((17, 3, 5), ["dog", "", ""])
    file.put(1, "Cat")
    file.put(0, "=frog")
    assert path.read_text() == "id,mine,label\n17,x,'=frog\n3,y,cat\n5,z,\n"  # no formula for a spreadsheet
    assert Filling(path, ANIMALS_FILLING).labels == file.labels == ["=frog", "cat", ""]
    file.put(0, "dog")
    file.put(1, "")
    assert path.read_text() == CONTENT


def test_what_is_no_class_is_refused_and_nothing_is_written(path):
    with pytest.raises(InputError, match="'cow' is not a class"):
        Filling(path, ANIMALS_FILLING).put(1, "cow")
    assert path.read_text() == CONTENT


def test_nothing_is_written_over_what_was_not_read(path):
    one, other = Filling(path, ANIMALS_FILLING), Filling(path, ANIMALS_FILLING)
    other.put(1, "cat")
    with pytest.raises(ChangedError, match=r"^a\.csv was changed by somebody else meanwhile"):
        one.put(2, "dog")
    assert path.read_text() == CONTENT.replace("y,", "y,cat")
    assert one.refresh()
    assert not one.refresh()
    one.put(2, "dog")
    assert Filling(path, ANIMALS_FILLING).labels == ["dog", "cat", "dog"]
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        one.put(2, "cat")


def test_a_disk_that_is_full_costs_nothing(path, monkeypatch):
    file = Filling(path, ANIMALS_FILLING)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(InputError, match="No space left"):
        file.put(1, "cat")
    monkeypatch.undo()
    assert (path.read_text(), file.labels[1]) == (CONTENT, "")
    file.put(1, "cat")
    assert [one.name for one in path.parent.iterdir()] == ["a.csv"]


def test_a_link_stays_one_and_others_may_read_as_before(path, tmp_path):
    path.chmod(0o664)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    Filling(link, ANIMALS_FILLING).put(1, "cat")
    assert link.is_symlink()
    assert "3,y,cat" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o664


def test_a_file_without_rows(path):
    path.write_text("id,label\n")
    with pytest.raises(InputError, match="has no row to label"):
        Filling(path, ANIMALS_FILLING)


WRITER = """
import sys
from pathlib import Path
from testifai.operational.label_file import Filling
from testifai.operational.label_file import Classes
file = Filling(Path(sys.argv[1]), Classes(("cat", "dog")))
print("ready", flush=True)
while True:
    for name in ("cat", "dog"):
        for row in range(len(file.labels)):
            file.put(row, name)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_at_any_moment_the_file_is_whole(path):
    rows = 200
    path.write_text("id,label\n" + "".join(f"{row},\n" for row in range(rows)))
    for pause in (0.05, 0.13):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(Filling(path, Classes(("cat", "dog"))).labels) == rows
