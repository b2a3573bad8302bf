"""A model whose answers depend on the batch is noticed by `run`, `check`, the report and pytest."""

from __future__ import annotations

import json

import numpy as np
import pytest

import testifai as ta
from testifai.runs.store import Store
from testifai.session.assembly import session_of
from testifai.session.observers import Repeatability, check_repeatability, not_repeatable

WITH_MEAN = "def model(b):\n    s = b[:, 0, 0].astype(float)\n    return (s > s.mean()).astype(int)\n"
SAID = "answers depend on the batch: of 16 clean inputs shown to it in other batches"


def test_commands_and_the_report_say_so(own, command, tmp_path):
    spec = own(WITH_MEAN)
    code, out, err = command("run", spec)
    assert code == 0
    assert SAID in err
    assert SAID in " ".join(out.split())
    run = spec.with_suffix(".db")
    with Store.open(run) as store:
        found = store.get("asked_twice")
    assert found["differ"] == found["decisions"] == 0
    assert 0 < found["batch_flips"] <= found["batch_differ"] <= 16
    assert f"{found['batch_differ']} got another answer, and {found['batch_flips']} another outcome" in err
    page = tmp_path / "report.html"
    command("report", run, "-o", page, "--examples", "0")
    assert "answers depend on the batch" in page.read_text()
    _, out, err = command("check", spec, "--json")
    assert SAID in err
    assert json.loads(out)["asked_twice"] == found


def _scores(rows, by_batch, noise=0.0):
    of_row = rows.reshape(len(rows), -1)[:, :3].astype(float) + 1
    return of_row + by_batch * of_row.mean(axis=0) + noise


@pytest.fixture
def subject():
    rng = np.random.default_rng(0)
    rows, labels = rng.random((40, 3)).astype(np.float32), rng.integers(0, 3, 40)

    def made(model):
        space = ta.Space({"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])})
        return session_of(model, (rows, labels), space).subject

    return made


def test_rounding_of_other_batch_sizes_is_no_difference(subject):
    assert not_repeatable(check_repeatability(subject(lambda rows: _scores(rows, 1e-5)), 16)) == []


def test_one_that_differs_each_time_is_not_blamed_on_the_batch(subject):
    rng = np.random.default_rng(0)
    found = check_repeatability(subject(lambda rows: _scores(rows, 0, rng.random((len(rows), 3)))), 16)
    assert found["differ"] == 16
    assert found["batch_differ"] == found["batch_flips"] == 0


@pytest.mark.parametrize("inputs", [1, 2, 3, 5, 16])
def test_it_needs_no_more_inferences_than_are_reserved(subject, inputs):
    shown = []

    def model(rows):
        shown.append(len(rows))
        return _scores(rows, 1.0)

    found = subject(model)
    observer = Repeatability(found, inputs)
    observer.before_work(None)
    assert sum(shown) <= observer.reserve == 3 * inputs
    assert min(shown) >= min(inputs, 2)  # never one alone, for which a layer may not be made
    assert bool(observer.found["batch_differ"]) == (inputs > 3)  # fewer are one batch
