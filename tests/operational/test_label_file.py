from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.operational import label_file

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
