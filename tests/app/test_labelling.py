"""Labelling without a browser: what comes next, undo, what is told and what is not, who may write."""

from __future__ import annotations

import pytest

pytest.importorskip("flask")

from testifai.app.labelling import KEYS, Labelling, build, keys_of
from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.operational.input_previews import KeptInputs, packed
from testifai.operational.label_file import Classes, Filling

ROWS = "17,photos/dog/1.png,cat,0.9,{},tag\n3,photos/cat/2.png,dog,0.8,,tag\n5,photos/cat/3.png,dog,0.7,,tag\n"
HEADER = "id,where,predicted,confidence,label,selection\n"
TOKEN = "secret-token"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.inputs.zip").write_bytes(packed("tag", from_arrays([f"text {n}" for n in range(20)]), [17, 3, 5]))
    (tmp_path / "a.csv").write_text(HEADER + ROWS.format("dog"))
    return tmp_path / "a.csv"


def open_(path, classes=None, **options):
    classes = classes or Classes(("cat", "dog"))
    return Labelling(Filling(path, classes), KeptInputs(path, "tag"), **options)


def labels(path):
    return Filling(path, Classes(("cat", "dog"))).labels


def test_it_goes_on_where_it_stopped_and_comes_to_an_end(path):
    labelling = open_(path)
    task = labelling.task()
    assert (task["next"], task["labelled"], task["rows"]) == (1, 1, 3)
    assert labelling.answer(1, "cat")["next"] == 2
    assert open_(path).task()["next"] == 2
    assert labelling.answer(2, "dog")["next"] is None
    assert labels(path) == ["dog", "cat", "dog"]


def test_a_label_is_changed_and_the_next_is_where_one_was(path):
    labelling = open_(path)
    labelling.answer(1, "cat")
    assert labelling.answer(0, "cat") == {"next": 2, "rows": 3, "labelled": 2, "put_off": 0}
    assert labels(path) == ["cat", "cat", ""]


def test_what_is_not_known_stays_empty_and_comes_back_at_the_end(path):
    labelling = open_(path)
    assert labelling.answer(1, "") == {"next": 2, "rows": 3, "labelled": 1, "put_off": 1}
    assert labelling.answer(2, "cat")["next"] == 1
    assert labelling.answer(1, "")["next"] == 1
    assert labels(path) == ["dog", "", "cat"]
    assert labelling.answer(1, "dog") == {"next": None, "rows": 3, "labelled": 3, "put_off": 0}


def test_undo_takes_back_labels_changes_and_what_was_put_off(path):
    labelling = open_(path)
    before = path.read_bytes()
    labelling.answer(1, "cat")
    labelling.answer(0, "cat")
    labelling.answer(2, "")
    assert [labelling.undo()["next"] for _ in range(3)] == [2, 0, 1]
    assert path.read_bytes() == before
    assert labelling.task()["next"] == 1
    with pytest.raises(InputError, match="nothing to undo"):
        labelling.undo()


def test_prediction_and_place_are_told_only_where_that_was_asked_for(path):
    assert open_(path).row(1) == {"label": "", "input": {"texts": ["text 3"]}}
    told = open_(path, show_prediction=True, show_path=True).row(1)
    assert (told["predicted"], told["confidence"], told["path"]) == ("dog", "0.8", "photos/cat/2.png")


def test_a_file_that_somebody_changed_is_not_written_but_read_again(path):
    labelling = open_(path)
    labelling.answer(1, "cat")
    theirs = path.read_text().replace("dog,0.7,,", "dog,0.7,dog,")
    path.write_text(theirs)
    for attempt in (lambda: labelling.answer(2, "cat"), labelling.undo):
        with pytest.raises(InputError, match="changed by somebody else"):
            attempt()
    assert path.read_text() == theirs
    assert labelling.task()["next"] is None
    labelling.answer(1, "dog")
    assert labels(path) == ["dog", "dog", "dog"]


def test_without_its_inputs_there_is_nothing_to_label(path):
    path.with_name("a.inputs.zip").unlink()
    with pytest.raises(InputError, match=r"nothing to look at for id 17 \(3 in all\); put a\.inputs\.zip"):
        open_(path)


def test_classes_without_names():
    assert keys_of([str(number) for number in range(12)])[9:] == ["9", "a", "b"]
    assert keys_of(["x"] * len(KEYS))[-1] != ""


def test_any_whole_number_where_the_classes_are_not_known(path):
    path.write_text(HEADER + ROWS.format("4000"))
    labelling = open_(path, Classes())
    assert labelling.task()["classes"] is None
    labelling.answer(1, "12.0")
    assert ",0.8,12," in path.read_text()
    with pytest.raises(InputError, match="whole numbers from 0"):
        labelling.answer(2, "cat")


# -- the server


@pytest.fixture
def client(path):
    client = build(open_(path), TOKEN).test_client()
    assert client.get(f"/?token={TOKEN}").status_code == 200  # by the cookie from now on
    return client


def test_the_page_brings_all_it_needs(client):
    page = client.get("/")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    for name in ("label.css", "label.js"):
        assert f"page/{name}" in page.text
        assert client.get(f"/page/{name}").status_code == 200
    assert "http" not in page.text
    assert "photos/" not in page.text + client.get("/task").text + client.get("/rows/1").text


def test_answers_and_undo(client, path):
    assert client.get("/rows/1").json["input"] == {"texts": ["text 3"]}
    assert client.post("/answer", json={"row": 1, "label": "cat"}).json["next"] == 2
    assert labels(path) == ["dog", "cat", ""]
    assert client.post("/undo", json={}).json["next"] == 1
    assert labels(path) == ["dog", "", ""]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"row": 1, "label": "cow"}, "'cow' is not a class"),
        ({"row": 3, "label": "cat"}, "row 3: there are 3"),
        ({"row": -1, "label": "cat"}, "row -1: there are 3"),
        ({"row": True, "label": "cat"}, "a row and a label"),
        ({"row": "1", "label": "cat"}, "a row and a label"),
        ({"label": "cat"}, "a row and a label"),
        ([], "a row and a label"),
    ],
)
def test_what_is_no_answer_is_one_line(client, path, given, problem):
    before = path.read_bytes()
    reply = client.post("/answer", json=given)
    assert (reply.status_code, problem in reply.json["problem"]) == (409, True)
    assert path.read_bytes() == before


def test_nobody_writes_without_the_token_nor_from_another_page(client, path):
    before = path.read_bytes()
    stranger = build(open_(path), TOKEN).test_client()
    answer = {"row": 1, "label": "cat"}
    assert stranger.post("/answer", json=answer).status_code == 401
    assert stranger.get("/task", headers={"Host": "evil.example"}).status_code == 401
    # What a browser sends for a page of another origin without asking first: forms and plain text, with the cookie.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        for path_ in ("/answer", "/undo"):
            assert client.post(path_, data='{"row": 1, "label": "cat"}', content_type=kind).status_code == 415
    leave = client.options("/answer", headers={"Origin": "http://127.0.0.1:1", "Access-Control-Request-Method": "POST"})
    assert "Access-Control-Allow-Origin" not in leave.headers
    assert client.get("/answer").status_code == 405
    assert client.get("/page/../security.py").status_code == 404
    assert path.read_bytes() == before
