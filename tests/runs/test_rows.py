"""Boxes of trials: kept in memory and in the run file, whatever the order in which they come."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.data.annotations import pack
from testifai.errors import InputError
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store

INPUTS = 2500


def boxes_of(place, configuration=0):
    """Some boxes for each place, none for every fifth."""
    count = place % 5
    return np.column_stack([np.full((count, 4), place), np.full(count, 0.5), np.arange(count) + configuration])


def record(outcomes, configuration, places):
    packed = pack([boxes_of(place, configuration) for place in places.tolist()], 6)
    passed = places % 2 == 0
    outcomes.record(configuration, places, passed, {"value": passed.astype(np.float32), "detections": packed})


def holds(outcomes, configuration, places):
    found = outcomes.boxes("detections", configuration, places)
    return all(np.array_equal(rows, boxes_of(place, configuration)) for rows, place in zip(found, places, strict=True))


def saved(path, *parts):
    """A file made in some goes: of each, a configuration and places."""
    for configuration, places in parts:
        with Store.create_or_open(path) as store:
            outcomes = store.load(INPUTS)
            record(outcomes, configuration, places)
            store.touch(configuration, places)
            store.save(outcomes)


def test_boxes_come_back_by_place():
    outcomes = Outcomes(INPUTS)
    shuffled = np.random.default_rng(0).permutation(INPUTS)
    for places in np.array_split(shuffled[:900], 7):
        record(outcomes, 3, places)
    assert holds(outcomes, 3, shuffled[:900])
    assert not any(map(len, outcomes.boxes("detections", 3, shuffled[900:])))
    assert not any(map(len, outcomes.boxes("detections", 4, shuffled)))
    assert outcomes.kept_names() == ("value",)
    assert outcomes.boxes_names() == ("detections",)


def test_a_snapshot_keeps_what_was_known_then():
    outcomes = Outcomes(INPUTS)
    record(outcomes, 0, np.arange(10))
    before = outcomes.snapshot()
    record(outcomes, 0, np.arange(10, 20))
    assert holds(outcomes, 0, np.arange(20))
    assert not any(map(len, before.boxes("detections", 0, np.arange(10, 20))))


def test_a_run_continued_has_the_boxes_of_both_goes(tmp_path):
    odd, even = np.arange(1, INPUTS, 2), np.arange(0, INPUTS, 2)
    saved(tmp_path / "run.db", (0, odd), (0, even), (2, odd))
    with Store.open(tmp_path / "run.db") as store:
        outcomes = store.load(INPUTS)
    assert holds(outcomes, 0, np.arange(INPUTS))
    assert holds(outcomes, 2, odd)


def test_parts_that_overlap_have_each_box_once(tmp_path):
    saved(tmp_path / "one.db", (0, np.arange(1500)))
    saved(tmp_path / "two.db", (0, np.arange(1000, INPUTS)))
    saved(tmp_path / "both.db", (5, np.arange(3)))
    with Store.create_or_open(tmp_path / "both.db") as both:
        outcomes = both.load(INPUTS)
        for name in ("one.db", "two.db"):
            with Store.open(tmp_path / name) as part:
                both.import_run(part, outcomes)
    with Store.open(tmp_path / "both.db") as store:
        assert holds(store.load(INPUTS), 0, np.arange(INPUTS))


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 6), np.float32), np.full((1, 7), np.nan, np.float32), np.full((1, 7), 2000, np.float32)],
)
def test_what_are_no_boxes_is_damage(tmp_path, array):
    saved(tmp_path / "run.db", (0, np.arange(10)))
    with Store.create_or_open(tmp_path / "run.db") as store:
        store.put_blocks([("boxes/detections/0", 0, array)])
    with Store.open(tmp_path / "run.db") as store, pytest.raises(InputError, match=r"damaged.*holds no boxes"):
        store.load(INPUTS)


@pytest.mark.parametrize(("key", "block"), [("boxes/detections/7", 0), ("boxes/detections/0", 1)])
def test_boxes_without_outcomes_are_damage(tmp_path, key, block):
    saved(tmp_path / "run.db", (0, np.arange(10)))
    with Store.create_or_open(tmp_path / "run.db") as store:
        store.put_blocks([(key, block, np.ones((1, 7), np.float32))])
    with Store.open(tmp_path / "run.db") as store, pytest.raises(InputError, match="boxes of configuration"):
        store.load(INPUTS)


def test_a_reader_sees_one_state_while_another_process_writes(tmp_path, monkeypatch):
    saved(tmp_path / "run.db", (0, np.arange(10)))
    load_boxes = Store._load_boxes

    def after_another_save(store, outcomes, tests):
        if store._lock is None:
            saved(tmp_path / "run.db", (0, np.arange(10, 20)), (1, np.arange(5)))
        load_boxes(store, outcomes, tests)

    monkeypatch.setattr(Store, "_load_boxes", after_another_save)
    with Store.open(tmp_path / "run.db") as store:
        outcomes = store.load(INPUTS)
    assert outcomes.total() == 10
    assert holds(outcomes, 0, np.arange(10))
    monkeypatch.undo()
    with Store.open(tmp_path / "run.db") as store:
        assert store.load(INPUTS).total() == 25
