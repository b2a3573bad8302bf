import sys
import types

import numpy as np

import testifai as ta
from testifai.runs.outcomes import Outcomes
from testifai.support.progress import Pace, Step, bar, heard, note
from testifai.tomogram import EstimatorSettings


def test_what_is_being_done_is_told_to_who_listens_and_to_nobody_else():
    told = []
    note("nobody hears this")
    with heard(told.append):
        note("fitting")
    note("nor this")
    assert told == ["fitting"]


def test_a_tomogram_says_that_it_is_fitted_and_estimated():
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(4))
    space, outcomes = ta.Space({"a": keep, "b": keep}), Outcomes(50)
    for test in range(0, 16, 2):
        outcomes.record(test, np.arange(20), np.arange(20) >= test)
    told = []
    with heard(told.append):
        ta.Tomogram(space, outcomes, np.arange(50), settings=EstimatorSettings(surrogate="process")).query("order >= 0")
    assert "fitting 8 tests" in told
    assert "estimating 16 tests" in told


class FakeIPython:
    """As much of IPython as a bar uses; what is displayed is kept."""

    def __init__(self, kernel):
        self.shown = []
        self.display = types.SimpleNamespace(display=self.show)
        self.get_ipython = lambda: types.SimpleNamespace(kernel=kernel)

    def show(self, data, *, raw, display_id):
        assert raw
        assert display_id is True
        self.shown.append([data])
        return types.SimpleNamespace(update=lambda data, raw: self.shown[-1].append(data))


def scanned():
    keep = ta.Perturbation("keep", lambda batch, parameter, rng: batch, range(3))
    rows = np.linspace(0, 1, 50)[:, None]
    data = rows, np.ones(50, int)
    return ta.scan(lambda x: (x[:, 0] > 0.5).astype(int), data, ta.Space({"a": keep}), strategy="full", progress=True)


def test_a_bar_in_a_notebook_is_one_that_changes(monkeypatch):
    ipython = FakeIPython(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr("testifai.support.progress.BETWEEN", 0.0)
    scanned()
    (bar,) = ipython.shown
    assert len(bar) > 1
    assert bar[-1]["text/plain"] == "3 tests, 150 of 150 inferences, done"
    assert '<progress value="150" max="150"' in bar[-1]["text/html"]


def test_what_is_being_done_is_shown_in_the_notebook_and_escaped(monkeypatch):
    ipython = FakeIPython(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr("testifai.support.progress.BETWEEN", 0.0)
    with bar() as show:
        show(Step(10, 100, 2, where="<node>"))
        note("fitting")
    first, fitting, _ = ipython.shown[0]
    assert "&lt;node&gt;" in first["text/html"]
    assert fitting["text/plain"] == "2 tests, 10 of 100 inferences, fitting"


def test_drawings_are_not_sent_faster_than_they_are_seen(monkeypatch):
    ipython = FakeIPython(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr("testifai.support.progress.BETWEEN", 3600.0)
    with bar() as show:
        for done in range(50):
            show(Step(done, 50, 1))
    assert len(ipython.shown[0]) == 2  # the first and the last


def test_a_terminal_that_runs_ipython_is_no_notebook(monkeypatch):
    ipython = FakeIPython(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    scanned()
    assert ipython.shown == []


def test_ipython_is_not_loaded_for_a_bar(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    scanned()
    assert "IPython" not in sys.modules


def test_the_pace_leaves_out_what_was_done_before(monkeypatch):
    clock = iter([0.0, 2.0, 4.0, 4.0])
    monkeypatch.setattr("testifai.support.progress.time.monotonic", lambda: next(clock))
    pace = Pace()
    assert pace.words(Step(1_000, 3_000, 1)) == ""
    assert pace.words(Step(2_000, 3_000, 1, where="2 machines")) == "250/s, 2 machines"
    assert pace.left(Step(2_000, 3_000, 1)) == "0:00:04 left"
