"""Files for others: what is in them, and that equal runs make equal ones."""

import csv
import json

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.present.export import table, write_bytes, write_grid, write_inputs, write_npz, write_table
from testifai.session.assembly import session_of
from testifai.space import Space

SHIFT = Perturbation("shift", lambda rows, by, rng: rows + by, [0.0, 0.1, 0.25, 0.4])
SHAKE = Perturbation("shake", lambda rows, by, rng: rows + by * rng.normal(2), [0.0, 0.1, 0.3])
ROWS = np.random.default_rng(1).random((45, 2))
LABELS = (ROWS.sum(axis=1) > 1).astype(int)


def scores(rows):
    total = rows.sum(axis=1) - 1
    return np.stack([-total, total], axis=1)


def space(**options) -> Space:
    return Space({"shift": (SHIFT, [0, 1, 3]), "shake": SHAKE}, **options)


def full(seed=2, **options) -> ta.Tomogram:
    return ta.scan(scores, (ROWS, LABELS), space(), strategy="full", seed=seed, **options)


def partial() -> ta.Tomogram:
    return ta.scan(scores, (ROWS, LABELS), space(), strategy={"use": "ordered", "max_order": 1}, budget=5 * 20)


def by_hand(sigma, seed=2) -> np.ndarray:
    """The scores of every input under a configuration, in the data's order."""
    return scores(ta.apply({SHIFT: sigma[0], SHAKE: sigma[1]}, ROWS, seed=seed))


def test_csv_and_json_hold_a_row_per_test(tmp_path):
    tomogram = partial()
    write_table(tomogram, tmp_path / "t.csv")
    write_table(tomogram, tmp_path / "t.json")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    objects = json.loads((tmp_path / "t.json").read_text())
    names = ["shift", "shake", "order", "passes", "trials", "estimate", "low", "high", "source"]
    assert list(rows[0]) == list(objects[0]) == names
    assert len(rows) == len(objects) == 9
    for row, one in zip(rows, objects, strict=True):
        sigma = (one["shift"], one["shake"])
        at = tomogram.space.index(sigma)
        measured = one["order"] <= 1
        assert one["order"] == tomogram.space.order(sigma)
        assert one["trials"] == tomogram.trials[at] == (20 if measured else 0)
        assert one["passes"] == tomogram.passes[at]
        assert one["estimate"] == tomogram.estimate[at]
        assert one["low"] == (tomogram.low[at] if measured else None)
        assert one["high"] == (tomogram.high[at] if measured else None)
        assert one["source"] == ("measured" if measured else "predicted")
        assert {name: str(value) if value is not None else "" for name, value in one.items()} == row


def test_tests_nobody_knows_are_marked(tmp_path):
    tomogram = ta.scan(scores, (ROWS, LABELS), space(), strategy={"use": "ordered", "max_order": 1}, surrogate="none")
    _, rows = table(tomogram)
    assert {row[-1] for row in rows} == {"measured", "unknown"}
    assert {tuple(row[5:8]) for row in rows if row[-1] == "unknown"} == {(None, None, None)}


def test_an_order_sensitive_space_has_the_places_in_its_table():
    tomogram = ta.scan(scores, (ROWS, LABELS), space(order_sensitive=True), strategy="full")
    header, rows = table(tomogram)
    assert header[:5] == ["shift", "shake", "shift_place", "shake_place", "order"]
    assert len(rows) == 1 + 4 + 2 * 4
    assert [tuple(row[:4]) for row in rows] == list(tomogram.space.configurations())
    assert [row[4] for row in rows] == [sum(s > 0 for s in row[:2]) for row in rows]


def test_grid_bits_are_the_outcomes_in_the_datas_order(tmp_path):
    write_grid(full(keep=("value",)), tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as grid:
        assert set(grid.files) == {"axes", "inputs", "passes", "margins", "margin_scale"}
        axes, inputs, passes = grid["axes"], grid["inputs"], grid["passes"]
        margins, scale = grid["margins"], grid["margin_scale"]
    assert axes.tolist() == ["shift", "shake"]
    assert int(inputs) == 45
    assert (passes.shape, passes.dtype) == ((3, 3, 6), np.uint8)
    assert (margins.shape, margins.dtype) == ((3, 3, 45), np.int8)
    largest = 0.0
    for sigma in space().configurations():
        at = space().index(sigma)
        outputs = by_hand(sigma)
        passed = outputs.argmax(axis=1) == LABELS
        np.testing.assert_array_equal(np.unpackbits(passes[at])[:45].astype(bool), passed)
        assert not np.unpackbits(passes[at])[45:].any()
        margin = outputs[np.arange(45), LABELS] - outputs[np.arange(45), 1 - LABELS]
        np.testing.assert_allclose(margins[at] / scale, margin, atol=1.001 / float(scale))
        np.testing.assert_array_equal(margins[at] < 0, margin < 0)
        largest = max(largest, np.abs(margin).max())
    assert float(scale) == pytest.approx(127 / largest)


def test_a_grid_without_values_has_no_margins(tmp_path):
    write_grid(full(), tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as grid:
        assert set(grid.files) == {"axes", "inputs", "passes"}


def test_a_grid_needs_everything_measured(tmp_path):
    with pytest.raises(InputError, match="9 of 9 tests are incomplete"):
        write_grid(partial(), tmp_path / "g.npz")
    with pytest.raises(InputError, match="4 of 9 tests are incomplete"):
        write_grid(
            ta.scan(scores, (ROWS, LABELS), space(), strategy={"use": "ordered", "max_order": 1}), tmp_path / "g"
        )
    with pytest.raises(InputError, match="order-sensitive"):
        write_grid(ta.scan(scores, (ROWS, LABELS), space(order_sensitive=True), strategy="full"), tmp_path / "g.npz")
    assert list(tmp_path.iterdir()) == []


def test_inputs_as_a_configuration_shows_them(tmp_path):
    session = session_of(scores, (ROWS, LABELS), space(), seed=2)
    assert write_inputs(session.subject, (3, 2), tmp_path / "x.npz") == 45
    with np.load(tmp_path / "x.npz") as made:
        np.testing.assert_array_equal(made["x"], ta.apply({SHIFT: 3, SHAKE: 2}, ROWS, seed=2))
        np.testing.assert_array_equal(made["y"], LABELS)
    assert write_inputs(session.subject, (0, 1), tmp_path / "few.npz", limit=4) == 4
    with np.load(tmp_path / "few.npz") as made:
        np.testing.assert_array_equal(made["x"], ta.apply({SHAKE: 1}, ROWS, seed=2)[:4])
        assert made["y"].tolist() == LABELS[:4].tolist()
    assert write_inputs(session.subject, (0, 0), tmp_path / "all.npz", limit=1000) == 45
    with pytest.raises(InputError, match="shift = 2 is not a severity"):
        write_inputs(session.subject, (2, 0), tmp_path / "no.npz")
    with pytest.raises(InputError, match=r"written as \.npz"):
        write_inputs(session.subject, (1, 0), tmp_path / "no.csv")


def test_texts_are_exported_as_lines(tmp_path):
    shout = Perturbation("shout", lambda texts, n, rng: [text.upper() + "!" * n for text in texts], [0, 1, 2])
    session = session_of(lambda texts: np.zeros(len(texts), int), (["häh", "was"], ["a", "b"]), Space({"shout": shout}))
    assert write_inputs(session.subject, (2,), tmp_path / "x.jsonl") == 2
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == [{"text": "HÄH!!", "label": 0}, {"text": "WAS!!", "label": 1}]


def test_equal_runs_export_equal_files(tmp_path):
    for name, batch_size in (("a", 3), ("b", 100)):
        tomogram = full(keep=("value",), batch_size=batch_size, store=tmp_path / f"{name}.db")
        write_table(tomogram, tmp_path / f"{name}.csv")
        write_table(ta.open(tmp_path / f"{name}.db"), tmp_path / f"{name}.json")
        write_grid(tomogram, tmp_path / f"{name}.npz")
    for ending in ("csv", "json", "npz"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    write_table(full(seed=3), tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_bytes() != (tmp_path / "a.csv").read_bytes()


def test_an_unknown_ending_and_an_unwritable_place_are_said(tmp_path):
    with pytest.raises(InputError, match=r"cannot tell a format from 't\.xlsx'"):
        write_table(full(), tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="cannot write"):
        write_table(full(), tmp_path / "no" / "t.csv")
    with pytest.raises(InputError, match="cannot write"):
        write_bytes(tmp_path, b"")
    assert list(tmp_path.iterdir()) == []


def test_npz_files_are_numpys(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.array(["x", "yz"]), "c": np.array(2.5)}
    write_npz(tmp_path / "t.npz", arrays)
    with np.load(tmp_path / "t.npz", allow_pickle=False) as read:
        for name, array in arrays.items():
            np.testing.assert_array_equal(read[name], array)
            assert read[name].dtype == array.dtype


def test_half_a_surrogate_is_written_as_its_escape(tmp_path):
    space = ta.Space({"marks": "text.punctuation"})
    session = session_of(lambda batch: [0] * len(batch), (["a \ud800 b", "c"], [0, 0]), space, strategy="full")
    write_inputs(session.subject, (0,), tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == ["a \ud800 b", "c"]
