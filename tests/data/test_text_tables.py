from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai import data
from testifai.data.table_columns import Columns
from testifai.data.text_tables import columns
from testifai.errors import InputError
from testifai.present.export import write_inputs  # what is written there can be read here

LONG = 100_000


def written(tmp_path, content: str | bytes, name: str = "x.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def load(tmp_path, content: str | bytes, name: str = "x.csv", **options):
    path = written(tmp_path, content, name)
    return data.load(data.recognise(path), path, **options)


def refused(tmp_path, content: str | bytes, name: str = "x.csv", **options) -> str:
    with pytest.raises(InputError) as caught:
        load(tmp_path, content, name, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_table_of_texts(tmp_path):
    found = load(tmp_path, 'id,text,label\n1,"Hello, ""you""\nthere",1\n\n2,,0\n3, spaces kept ,1\n')
    assert found.inputs == ['Hello, "you"\nthere', "", " spaces kept "]
    assert found.labels.tolist() == [1, 0, 1]
    assert found.classes is None
    assert found.name == "x.csv"


def test_a_table_of_pairs_with_a_side(tmp_path):
    content = "question1,question2,is_duplicate\na,b,0\nc,d,1\n"
    assert load(tmp_path, content).inputs == [("a", "b"), ("c", "d")]
    assert load(tmp_path, content).side == "both"
    found = load(tmp_path, content, text=["question2", "question1"], side="first")
    assert found.inputs == [("b", "a"), ("d", "c")]
    assert found.side == "first"
    assert load(tmp_path, content, text="question2").inputs == ["b", "d"]
    assert "for pairs of texts" in refused(tmp_path, content, text="question2", side="first")
    assert "side: should be 'first', 'second' or 'both', got 'left'" in refused(tmp_path, content, side="left")


@pytest.mark.parametrize(
    ("cells", "labels", "classes"),
    [
        (["0", "1", "1"], [0, 1, 1], None),
        (["3", " 3", "-1"], [3, 3, -1], None),
        (["1.0", "0.0", "1.0"], [1, 0, 1], None),
        (["0.5", "1", "2e-1"], [0.5, 1.0, 0.2], None),
        (["spam", "ham", "spam"], [1, 0, 1], ("ham", "spam")),
        (["True", "False", "True"], [1, 0, 1], ("False", "True")),
        (["nan", "inf", "x"], [1, 0, 2], ("inf", "nan", "x")),
        (["1", "two", "1"], [0, 1, 0], ("1", "two")),
        (["9" * 40, "1", "1"], [1, 0, 0], ("1", "9" * 40)),
    ],
)
def test_labels_are_numbers_or_words(tmp_path, cells, labels, classes):
    found = load(tmp_path, "text,label\n" + "".join(f"t,{cell}\n" for cell in cells))
    assert found.labels.tolist() == pytest.approx(labels)
    assert found.classes == classes


def test_without_labels(tmp_path):
    assert load(tmp_path, "text\nHello\n").labels is None


def test_line_ends_and_a_byte_order_mark(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        content = end.join(["text,label", '"one\u2028line",0', "two,1"])
        for mark in (b"", b"\xef\xbb\xbf"):
            assert load(tmp_path, mark + content.encode()).inputs == ["one\u2028line", "two"]


def test_tabs_with_and_without_quotes(tmp_path):
    quoted = 'text\tlabel\n"a ""b""\tc"\t1\nplain\t0\n'
    assert load(tmp_path, quoted, "x.tsv").inputs == ['a "b"\tc', "plain"]
    bare = 'text\tlabel\n"To be" is a quote\t1\n5" wide\t0\n"never closed\t1\n'
    assert load(tmp_path, bare, "x.tsv").inputs == ['"To be" is a quote', '5" wide', '"never closed']


def test_lines_of_json(tmp_path):
    lines = [
        {"text": "a\n\u2028b", "label": "yes"},
        {"label": "no", "text": ""},
        {"text": "👍🏽", "label": "no", "more": 1},
    ]
    content = "\n \n".join(json.dumps(line, ensure_ascii=number % 2 == 0) for number, line in enumerate(lines))
    found = load(tmp_path, content, "x.jsonl")
    assert found.inputs == ["a\n\u2028b", "", "👍🏽"]
    assert found.labels.tolist() == [1, 0, 0]
    assert found.classes == ("no", "yes")
    assert load(tmp_path, content, "x.ndjson").inputs == found.inputs


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 2, 1], [0, 2, 1]),
        ([True, False, True], [1, 0, 1]),
        (["1", "0", "2"], [1, 0, 2]),
        ([0.5, 1, 0.25], [0.5, 1, 0.25]),
        ([["a"], [], ["a", "b"]], [[1, 0], [0, 0], [1, 1]]),
    ],
)
def test_labels_in_json(tmp_path, labels, expected):
    content = "\n".join(json.dumps({"text": "t", "label": label}) for label in labels)
    assert load(tmp_path, content, "x.jsonl").labels.tolist() == expected


def test_pairs_in_json(tmp_path):
    two = '{"premise": "a", "hypothesis": "b"}\n{"premise": "c", "hypothesis": "d"}\n'
    one = '{"text": ["a", "b"]}\n{"text": ["c", "d"]}\n'
    for content in (two, one):
        found = load(tmp_path, content, "x.jsonl", side="second")
        assert found.inputs == [("a", "b"), ("c", "d")]
        assert found.side == "second"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"", "x.csv does not begin with a line of column names"),
        ("x.csv", b"\n\n", "does not begin with a line of column names"),
        ("x.csv", b"text,label\n", "x.csv: has no rows"),
        ("x.csv", b"text,label\na,0\nb\n", "x.csv: line 3 has 1 cells for 2 columns; a cell with a separator"),
        ("x.csv", b'text,label\n"a\nb",0\nb,1,2\n', "x.csv: line 4 has 3 cells for 2 columns"),
        ("x.csv", b"text,label\na,0\nb,\n", "x.csv: line 3 has no label"),
        ("x.csv", b'text,label\n"a,0\nb,1\n', "is not quoted properly (unexpected end of data)"),
        ("x.csv", b'text,label\na,0\n"b"c,1\n', "x.csv: line 3 is not quoted properly"),
        ("x.csv", b"text,label\na,0\nna\xefve,1\n", "x.csv: line 3 (byte 0xef) is not UTF-8; save the file as UTF-8"),
        ("x.csv", "text,label\na,0\n".encode("utf-16"), "iconv -f UTF-16 -t utf-8 x.csv > new.csv"),
        ("x.csv", b"a,b,c\none of the texts here,two,3\n", "which column holds the texts is not clear"),
        ("x.tsv", b"text\tlabel\na\t0\nb\n", "x.tsv: line 3 has 1 cells for 2 columns"),
        ("x.tsv", b"text\tlabel\nna\xefve\t1\n", "x.tsv: line 2 (byte 0xef) is not UTF-8"),
        ("x.jsonl", b"", "x.jsonl is empty; a JSON object on every line"),
        ("x.jsonl", b'{"text": "a"}\n{"text": \n', "x.jsonl: line 2 is not JSON (Expecting value"),
        ("x.jsonl", b'[\n{"text": "a"}\n]', "a whole list of objects is not accepted"),
        ("x.jsonl", b'["a"]\n', "line 1 is a list; one JSON object on every line"),
        ("x.jsonl", b"3\n", "line 1 is a number; one JSON object"),
        ("x.jsonl", b"[" * 100_000, "line 1 is n"),
        ("x.jsonl", b'{"text": ' + b"9" * 5000 + b"}", "line 1 is not JSON (Exceeds the limit"),
        ("x.jsonl", b'{"text": "a"}\n{"txt": "b"}\n', "line 2: text is missing (found: txt); every line needs one"),
        ("x.jsonl", b'{"text": "a"}\n{"text": null}\n', "line 2: text is null; every line needs one"),
        ("x.jsonl", b'{"text": 3}\n', "line 1: text is a number; a text is accepted"),
        ("x.jsonl", b'{"text": ["a"]}\n', "line 1: text is a list; a text is accepted, or a list of two"),
        ("x.jsonl", b'{"text": "a"}\n{"text": ["a", "b"]}\n', "text holds a text on some lines and a pair on others"),
        ("x.jsonl", b'{"text": "\\ud83d"}\n', "line 1: text holds half a character (\\ud83d); write both halves"),
        ("x.jsonl", b'{"text": "a", "label": 1}\n{"text": "b", "label": "x"}\n', "numbers on some lines and words"),
        ("x.jsonl", b'{"text": "a", "label": {}}\n', "line 1: label is {}; a number, a word"),
        ("x.jsonl", b'{"text": "a", "label": 1e40}\n', "line 1: label is 1e+40; a number, a word"),
        ("x.jsonl", b'{"text": "a", "label": NaN}\n', "line 1: label is NaN; a number, a word"),
        ("x.jsonl", b'{"text": "a", "label": " "}\n', "line 1: label is"),
        ("x.jsonl", b'{"text": "a"}\n{"text": "\xe9"}\n', "x.jsonl: line 2 (byte 0xe9) is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, name, content, message):
    assert message in refused(tmp_path, content, name)


def test_what_is_no_file(tmp_path):
    for kind in ("csv", "tsv", "jsonl"):
        with pytest.raises(InputError, match=r"data: .*none\.x does not exist"):
            data.load(kind, "none.x", folder=tmp_path)
        with pytest.raises(InputError, match="is not a file"):
            data.load(kind, tmp_path)
        with pytest.raises(
            InputError, match=rf"unknown key 'data\.x' for {kind} \(npz takes it\); known: label, side, text"
        ):
            data.load(kind, tmp_path, x="y")


def test_cells_of_any_length_and_the_limit_of_others_is_left_alone(tmp_path):
    limit = csv.field_size_limit()
    long = 'Is "this" long? 👍🏽 ' * (LONG // 18)
    with io.StringIO(newline="") as file:
        csv.writer(file).writerows([["text", "label"], [long, 1]])
        assert load(tmp_path, file.getvalue()).inputs == [long]
    refused(tmp_path, "text,label\n" + long)
    assert csv.field_size_limit() == limit
    assert load(tmp_path, json.dumps({"text": long}), "x.jsonl").inputs == [long]


# A file holds characters, not halves of them.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
words = texts.filter(str.strip)


@given(st.lists(st.tuples(texts, texts, words), min_size=1, max_size=8), st.sampled_from(["csv", "tsv", "jsonl"]))
@settings(deadline=None, max_examples=50)
def test_what_other_programs_write_is_read_as_it_was(tmp_path_factory, rows, kind):
    path = tmp_path_factory.mktemp("tables") / f"x.{kind}"
    with path.open("w", encoding="utf-8", newline="") as file:
        if kind == "jsonl":
            for one, other, label in rows:
                file.write(json.dumps({"a1": one, "a2": other, "label": label}, ensure_ascii=len(one) % 2 == 0) + "\n")
        else:
            # Quotes around every cell: what needs them and what a tab-separated file means by them is no question.
            writer = csv.writer(file, delimiter="," if kind == "csv" else "\t", quoting=csv.QUOTE_ALL)
            writer.writerows([["a1", "a2", "label"], *rows])
    found = data.load(kind, path)
    assert found.inputs == [(one, other) for one, other, _ in rows]
    labels = [label.strip() for *_, label in rows]
    if found.classes is not None:
        assert [found.classes[label] for label in found.labels] == labels
    else:
        assert found.labels.tolist() == pytest.approx([float(label) for label in labels])


def outcome(kind, path) -> str | list[str]:
    try:
        return data.load(kind, path).inputs
    except InputError as error:
        return str(error)


@given(st.binary(max_size=60), st.sampled_from(["csv", "tsv", "jsonl"]))
@settings(deadline=None, max_examples=40)
def test_any_bytes_are_a_data_set_or_one_line(tmp_path_factory, content, kind):
    path = tmp_path_factory.mktemp("tables") / f"x.{kind}"
    for begin in (b"", b"text,label\n", b"text\tlabel\n", b'{"text": "'):
        path.write_bytes(begin + content)
        found = outcome(kind, path)
        assert len(found.splitlines()) == 1 if isinstance(found, str) else all(isinstance(text, str) for text in found)


def test_a_large_table_is_quick(tmp_path):
    rows = [
        ["question1", "question2", "is_duplicate"],
        *([f"What is {n}, and why?", f"Why {n}?", n % 2] for n in range(5_000)),
    ]
    with io.StringIO(newline="") as file:
        csv.writer(file).writerows(rows)
        path = written(tmp_path, file.getvalue())
    took = []
    for _ in range(3):
        begin = time.process_time()
        assert len(data.load("csv", path)) == 5_000
        took.append(time.process_time() - begin)
    # Measured 0.05 s; the machine that runs this may be slow, and may collect garbage of others meanwhile.
    assert min(took) < 0.5


def test_exported_inputs_can_be_read_again(tmp_path):
    import testifai as ta
    from testifai.engine.subject import ShownInputs

    pairs = [("What is it?", "Why not?"), ("", "שלום עולם")]
    for inputs in (pairs, ["What is it?", "Why not?"]):
        given_data = data.from_arrays(inputs, ["yes", "no"])
        subject = ShownInputs(given_data, ta.Space({"typo": "text.typo"}), np.array([1, 0]))
        write_inputs(subject, (0,), tmp_path / "x.jsonl")
        assert data.load("jsonl", tmp_path / "x.jsonl").inputs == inputs


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", 'id,"question1",question2,label\n\xff'),
        ("x.tsv", "id\tquestion1\tquestion2\tlabel\n"),
        ("x.jsonl", '\n{"id": 1, "question1": "a", "question2": "b", "label": 0}\nnot looked at'),
    ],
)
def test_columns_are_known_from_the_first_line(tmp_path, name, content):
    path = written(tmp_path, content, name)
    assert columns(data.recognise(path), path) == Columns(("question1", "question2"), "label")


def test_question_pairs_of_quora():
    path = Path(os.environ.get("TESTIFAI_DATA", "../shared")) / "data" / "qqp_dev.csv"
    if not path.is_file():
        pytest.skip(f"no {path} (set TESTIFAI_DATA)")
    begin = time.process_time()
    found = data.load("csv", path)
    assert time.process_time() - begin < 5
    # The same by hand: quotes in this file are doubled, and twice where a question is a quotation.
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert found.inputs == [(row["question1"], row["question2"]) for row in rows]
    assert found.labels.tolist() == [int(row["is_duplicate"]) for row in rows]
    assert len(found) == 20_212
