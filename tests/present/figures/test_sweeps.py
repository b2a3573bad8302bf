"""Sweeps read back from a run file as they were stored."""

from __future__ import annotations

import numpy as np

from testifai.present.figures.sweeps import crossed, sweep_text
from testifai.runs.store import Store
from testifai.sweeps import sweep
from testifai.sweeps.probe import SweepBatch
from testifai.sweeps.storage import SweepRecord, finished, sweeps_in


def stored_sweeps(path):
    with Store.open(path) as store:
        return finished(sweeps_in(store))


def test_finished_sweeps_are_found(tmp_path):
    found = sweep(lambda level: 1 - level / 2, 0, 1)
    with Store.create_or_open(tmp_path / "run.db") as store:
        for name in ("classic.noise", "mnist_c.blur", "classic.unfinished"):
            record = SweepRecord(store, name, {"seed": 0})
            with record.saving():
                record.add(SweepBatch(0.25, 0, np.ones(3, bool)))
            if name != "classic.unfinished":
                record.finish([found])
    stored = stored_sweeps(tmp_path / "run.db")
    assert stored == {"classic.noise": [found.as_dict()], "mnist_c.blur": [found.as_dict()]}
    assert f"on {100 * found.robustness:.1f} %" in sweep_text(stored["mnist_c.blur"][0])


def test_a_run_without_sweeps(run_folder):
    assert stored_sweeps(run_folder / "spec.db") == {}


def test_words_without_a_bound():
    words = sweep_text({"threshold": 0.8, "robustness": 0.4, "bound": None, "inferences": 0, "evaluations": 20})
    assert "40.0 % of the levels" in words


def test_crossings_in_words():
    assert [crossed(levels) for levels in ([0.25, 0.5], [], [1, 2, 3, 4, 5])] == [
        "0.25, 0.5", "never", "1, 2, 3, 4 …",
    ]  # fmt: skip
