"""A run file read again while it grows: as if it were read whole, for the price of what is new."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.runs import store as module
from testifai.runs.outcomes import Outcomes
from testifai.runs.reader import Loaded, Signature
from testifai.runs.store import Store

INPUTS = 3000


@pytest.fixture
def writer(tmp_path):
    """Makes outcomes of a test on some places in a run file."""
    outcomes, draw = Outcomes(INPUTS), np.random.default_rng(5)
    with Store.create_or_open(tmp_path / "run.db") as opened:

        def write(test, places):
            new = np.asarray(places)[~outcomes.attempted(test, np.asarray(places))]
            values = {"value": draw.normal(size=len(new)).astype(np.float32)}
            outcomes.record(test, new, draw.random(len(new)) < 0.5, values)
            opened.touch(test, new)
            opened.save(outcomes)

        write.path = tmp_path / "run.db"
        write.store = opened
        yield write


def read(path, before=None):
    with Store.open(path) as opened:
        return opened.load(INPUTS, None, before).snapshot()


def same(one, other):
    assert sorted(one) == sorted(other)
    for test in one:
        assert all(map(np.array_equal, one.bits(test), other.bits(test)))
        assert np.array_equal(one.kept(test, "value"), other.kept(test, "value"), equal_nan=True)


def test_it_is_as_if_the_file_was_read_whole(writer):
    loaded, earlier = Loaded(), []
    draw = np.random.default_rng(2)
    for _ in range(12):
        writer(int(draw.integers(6)), draw.choice(INPUTS, int(draw.integers(1, 900)), replace=False))
        found = read(writer.path, loaded)
        same(found, read(writer.path))
        earlier.append((found, found.total()))
    assert [found.total() for found, _ in earlier] == [
        total for _, total in earlier
    ]  # nothing is added to what is shown


def test_only_what_is_new_is_checked(writer, monkeypatch):
    loaded = Loaded()
    for test in range(20):
        writer(test, np.arange(INPUTS))
    read(writer.path, loaded)
    writer(20, np.arange(10))
    checked = []
    monkeypatch.setattr(module, "checksum", lambda *cells: checked.append(cells) or module.sealed(*cells)[-1])
    assert read(writer.path, loaded).total() == 20 * INPUTS + 10
    assert len(checked) == 2  # its outcomes, and the values kept of them


def test_new_damage_is_noticed(writer):
    loaded = Loaded()
    writer(0, np.arange(10))
    read(writer.path, loaded)
    writer(1, np.arange(10))
    writer.store._connection.execute("UPDATE outcomes SET crc = crc + 1 WHERE configuration = 1")
    with pytest.raises(InputError, match="damaged"):
        read(writer.path, loaded)


def test_signature(writer, tmp_path):
    assert Signature.of(tmp_path / "none.db") is None
    before = Signature.of(writer.path)
    assert Signature.of(writer.path) == before
    writer(0, np.arange(10))
    now = Signature.of(writer.path)
    assert now != before
    assert now.file == before.file
