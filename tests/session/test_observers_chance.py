"""Clean accuracy that is no better than guessing is warned about before and in a run, by one rule."""

import logging

import numpy as np
import pytest

import testifai as ta
from testifai.session.assembly import session_of
from testifai.session.dry_run import estimate
from testifai.session.observers import near_chance

LABELS = np.arange(600) % 10
ROWS = LABELS[:, None].astype(float)
SPACE = ta.Space({"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])})


def guesses(x):
    return np.zeros(len(x), int)


def knows(x):
    return np.round(x[:, 0]).astype(int)


@pytest.mark.parametrize(("passes", "trials", "warned"), [(100, 1000, True), (119, 1000, True), (121, 1000, False)])
def test_the_lower_end_of_the_exact_interval_decides(passes, trials, warned):
    assert (near_chance(passes, trials, LABELS, 10) is not None) == warned


def test_what_cannot_be_told_is_not_said():
    assert near_chance(0, 49, LABELS, 10) is None
    assert near_chance(0, 500, None, 10) is None
    assert near_chance(0, 500, LABELS, None) is None
    assert near_chance(0, 500, np.zeros((600, 3), int), 3) is None


def test_a_dry_run_warns_too():
    fed_wrongly = estimate(session_of(guesses, (ROWS, LABELS), SPACE))
    assert fed_wrongly.clean_inputs >= 500
    assert fed_wrongly.near_chance.startswith("clean accuracy is 0.1")
    assert estimate(session_of(knows, (ROWS, LABELS), SPACE)).near_chance is None


def test_a_run_warns_once_and_again_when_it_is_continued(tmp_path, caplog):
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="testifai"):
            ta.scan(guesses, (ROWS, LABELS), SPACE, store=tmp_path / "run.db")
        assert [record.message.startswith("clean accuracy is 0.1") for record in caplog.records].count(True) == 1
