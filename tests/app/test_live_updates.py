"""Runs that grow, end, are stopped, replaced or deleted while somebody looks at them."""

from __future__ import annotations

import json
import shutil

import pytest

pytest.importorskip("dash")

from tests.app.growing import Growing

from testifai.app import callbacks, live_updates
from testifai.app.live_updates import Follower
from testifai.app.server import build
from testifai.app.state import Runs
from testifai.session.stored_runs import open_measured

QUERY = "zoom >= 2"


@pytest.fixture
def growing(folder, tmp_path):
    """A run of which 20 of 54 tests are measured."""
    made = Growing(folder / "a.db", tmp_path / "run.db")
    made.grow(20)
    yield made
    made.stop()


@pytest.fixture
def runs(growing):
    return Runs([growing.path])


@pytest.fixture
def follower(runs):
    return Follower(runs)


def test_what_is_new_is_taken_up(growing, runs, follower):
    before = runs.answer(0, QUERY)
    assert runs.growing(0)
    assert "1,200 inferences so far, as of " in follower.told()["words"]
    growing.grow(10)
    follower.look()
    assert runs.revision == follower.told()["revision"] == 1
    assert "1,800 inferences so far, as of " in follower.told()["words"]
    assert follower.told()["words"].endswith(" · following")
    now = runs.answer(0, QUERY)
    assert now.robustness == open_measured(growing.path).query(QUERY).robustness != before.robustness
    assert runs.tomogram(0).estimator.measured == 30


def test_the_last_questions_are_answered_before_a_page_asks_again(growing, runs, follower, monkeypatch):
    runs.answer(0, QUERY)
    growing.grow(5)
    follower.look()
    monkeypatch.setattr(type(runs.tomograms[0]), "query", lambda *_, **__: pytest.fail("asked on the request's time"))
    assert runs.ready(0)
    runs.answer(0, QUERY)


def test_figures_are_drawn_anew(growing, runs, follower):
    from testifai.app.callbacks import looks, wish
    from testifai.app.figures import of_view

    data = {"run": 0, "against": 0, "view": "pairs", "query": QUERY, "axes": [], "at": {}, "dark": False, "revision": 0}
    before = of_view(runs, wish(runs, data), dark=False)
    growing.grow(10)
    follower.look()
    assert looks(runs, data) != looks(runs, {**data, "revision": runs.revision})
    assert of_view(runs, wish(runs, data), dark=False)[0][1] != before[0][1]


def test_a_file_that_did_not_change_is_not_read_again(growing, runs, follower, monkeypatch):
    growing.grow(1)
    follower.look()
    monkeypatch.setattr(live_updates, "read_run", lambda *_: pytest.fail("read again"))
    words = follower.told()["words"]
    follower.look()
    assert follower.told()["words"] == words  # as of when it was read


def test_a_run_that_ends(growing, runs, follower):
    growing.finish()
    follower.look()
    assert follower.told() == {"revision": 1, "words": "3,240 inferences · finished", "kind": "finished"}
    assert not runs.growing(0)
    follower.look()
    assert follower.told()["kind"] == "finished"


def test_a_run_that_was_finished_says_so_from_the_start(folder):
    runs = Runs([folder / "a.db", folder / "b.db"])
    told = Follower(runs).told()
    assert told["words"] == "a.db: 3,240 inferences · finished\nb.db: 3,240 inferences · finished"


def test_a_run_whose_process_is_gone_no_longer_grows(growing, runs, follower):
    growing.stop()
    follower.look()
    told = follower.told()
    assert told["kind"] == "still"
    assert told["words"].startswith("1,200 inferences, as of ")
    assert told["words"].endswith(" · it no longer grows")


def test_a_stopped_run_that_is_continued(growing, folder, runs, follower):
    growing.stop()
    follower.look()
    shutil.copy(folder / "a.db", growing.path)  # all of it
    follower.look()
    assert follower.told()["words"] == "3,240 inferences · finished"
    assert runs.tomogram(0).estimator.measured == 54


def test_a_deleted_run_is_still_shown(growing, runs, follower, folder):
    growing.stop()
    growing.path.unlink()
    follower.look()
    told = follower.told()
    assert told["kind"] == "lost"
    assert told["words"].endswith(" · run.db is gone: this is what it held")
    assert runs.answer(0, QUERY).tests
    shutil.copy(folder / "a.db", growing.path)
    follower.look()
    assert follower.told()["kind"] == "finished"


def test_another_run_in_its_place_is_not_taken_for_it(growing, runs, follower, folder):
    growing.stop()
    before = runs.answer(0, QUERY)
    shutil.copy(folder / "b.db", growing.path)
    for _ in range(2):
        follower.look()
        assert "run.db holds another run now: start testifai explore again" in follower.told()["words"]
    assert runs.answer(0, QUERY) == before
    assert runs.revision == 0


@pytest.mark.parametrize("content", [b"", b"not a run at all", b"SQLite format 3\0" + b"\1" * 5000])
def test_whatever_lies_in_its_place_is_one_line(growing, runs, follower, content):
    growing.stop()
    growing.path.write_bytes(content)
    follower.look()
    told = follower.told()
    assert told["kind"] == "lost"
    assert "run.db" in told["words"]
    assert "\n" not in told["words"]


def test_what_nobody_thought_of_is_one_line_too(growing, runs, follower, monkeypatch):
    growing.grow(1)
    monkeypatch.setattr(live_updates, "read_run", lambda *_: 1 / 0)
    follower.look()
    assert follower.told()["words"].endswith("run.db could not be read again (ZeroDivisionError)")


def test_bounds_for_whoever_looks_again_and_again(growing, runs):
    assert callbacks._watched(runs, 0, QUERY) is None  # most of it is predicted by a method without bounds
    assert callbacks._watched(runs, 0, "order == 0") is None  # exact, and so however often one looks
    growing.grow(34, inputs=30)
    Follower(runs).look()
    shown = str(callbacks._watched(runs, 0, QUERY))
    one, many = runs.answer(0, QUERY), runs.bound(0, QUERY)
    assert f"{many.low:.3f} … {many.high:.3f}" in shown
    assert "right for one look" in shown
    assert many.low < one.low < one.high < many.high
    growing.finish()
    Follower(runs).look()
    assert callbacks._watched(runs, 0, QUERY) is None


def test_the_page_is_told_by_a_request_that_needs_the_token_too(runs):
    told = json.loads(build(runs).server.test_client().get("/following").text)
    assert {"session", "revision", "words", "kind"} == told.keys()
    stranger = build(runs, "secret-token").server.test_client()
    assert stranger.get("/following").status_code == 401
    assert stranger.get("/following?token=secret-token").status_code == 200
