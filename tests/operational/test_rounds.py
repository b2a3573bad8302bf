from __future__ import annotations

import csv
import sys
import types

import cv2
import numpy as np
import pytest

from testifai.data import from_arrays, load
from testifai.errors import InputError
from testifai.operational import rounds
from testifai.operational.answer import answer
from testifai.operational.input_previews import data_uri
from testifai.operational.selection import choose

RNG = np.random.default_rng(0)
SCORES = RNG.dirichlet(np.ones(3), 300)
TRUTH = RNG.integers(0, 3, 300)
PREDICTED = SCORES.argmax(axis=1)
IMAGES = RNG.integers(0, 256, (300, 6, 6), dtype=np.uint8)
IMAGES[:, 0, 0], IMAGES[:, 0, 1] = np.arange(300) // 256, np.arange(300) % 256
NAMES = ("cat", "dog", "frog")


def model(images):
    return SCORES[images[:, 0, 0].astype(int) * 256 + images[:, 0, 1]]


class ThreeRounds:
    """Tens, in an order that depends on the labels so far."""

    name = "three"

    def plan(self, frame, tests, rng):
        left = rng.permutation(frame.size)
        for _ in range(tests // 10):
            failed = yield left[:10]
            left = np.roll(left[10:], int(failed.sum()))
        return {}

    def estimate(self, frame, sample):
        rate = 1 - sample.failed.mean()
        return rate, rate - 0.1, rate + 0.1


@pytest.fixture(autouse=True)
def _three_rounds(monkeypatch):
    module = types.ModuleType("three_rounds")
    module.ThreeRounds = ThreeRounds
    monkeypatch.setitem(sys.modules, "three_rounds", module)
    monkeypatch.setitem(sys.modules["testifai.operational"].TECHNIQUES._own, "three", "three_rounds:ThreeRounds")


def begin(tmp_path, data=None, **options):
    data = from_arrays(IMAGES, None, NAMES, name="x.npz") if data is None else data
    chosen = choose(model, data, **{"technique": "srs", "tests": 30, **options})
    out = tmp_path / "to_label.csv"
    return chosen, data, out, rounds.write_first(chosen, data, out)


def fill(path, to=None, rows=None, change=lambda table: table):
    """Fill in the first rows, perhaps into a copy."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    for row in table[:rows]:
        row["label"] = NAMES[TRUTH[int(row["id"])]]
    table = change(table)
    with (to or path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, table[0].keys(), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(table)


def test_what_is_written(tmp_path):
    chosen, _, out, written = begin(tmp_path)
    assert (written.number, written.path, written.sheet, written.examples) == (1, out, tmp_path / "to_label.html", 30)
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["id", "where", "predicted", "confidence", "label", "selection"]
    assert [int(row["id"]) for row in table] == chosen.first.tolist()
    for row in table:
        example = int(row["id"])
        assert row["where"] == f"x.npz[{example}]"
        assert row["predicted"] == NAMES[PREDICTED[example]]
        assert float(row["confidence"]) == pytest.approx(SCORES[example].max(), abs=1e-4)
        assert (row["label"], row["selection"]) == ("", chosen.tag)
    page = (tmp_path / "to_label.html").read_text()
    assert page.count("<img") == 30
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "to_label.csv", "to_label.html", "to_label.inputs.zip", "to_label.selection.npz",
    ]  # fmt: skip


def test_filled_and_read_back(tmp_path):
    _, _, out, _ = begin(tmp_path)
    fill(out)
    found = answer(rounds.collect([out]))
    ids = rounds.collect([out]).selection.first
    assert found.accuracy == pytest.approx((PREDICTED == TRUTH)[ids].mean())
    assert [one.example for one in found.failing] == sorted(ids[(PREDICTED != TRUTH)[ids]].tolist())
    pairs = {(one.label, one.predicted) for one in found.failing}
    assert {(label, predicted) for label, predicted, _ in found.confusions} == pairs
    assert sum(count for _, _, count in found.confusions) == len(found.failing)
    assert (found.labels, found.used, found.planned, found.waiting, found.more_rounds) == (30, 30, 30, (), False)


def test_a_half_filled_file(tmp_path):
    chosen, _, out, _ = begin(tmp_path)
    fill(out, rows=12)
    found = answer(rounds.collect([out]), 0.5)
    first = chosen.first[:12]
    assert found.accuracy == pytest.approx((PREDICTED == TRUTH)[first].mean())
    assert (found.used, found.labels, found.waiting) == (12, 12, tuple(chosen.first[12:].tolist()))
    assert found.as_dict()["remaining"] == 18
    lines = " ".join(found.lines(out))
    assert "so far" in lines
    assert f"18 rows are still empty, the first is id {chosen.first[12]}" in lines


def test_labels_after_a_gap_wait_for_it(tmp_path):
    chosen, _, out, _ = begin(tmp_path)

    def forget(table):
        table[5]["label"] = ""
        return table

    fill(out, change=forget)
    found = answer(rounds.collect([out]))
    assert (found.used, found.labels, found.waiting) == (5, 29, (int(chosen.first[5]),))
    assert "24 labels after it" in " ".join(found.lines(out))


def test_an_empty_file_says_what_to_do(tmp_path):
    chosen, _, out, _ = begin(tmp_path)
    found = answer(rounds.collect([out]), 0.9)
    assert np.isnan(found.accuracy)
    assert found.as_dict()["accuracy"] is None
    assert found.verdict.status == "undecided"
    assert "No estimate yet" in found.lines(out)[0]
    del chosen


def test_rows_in_another_order_or_without_other_columns(tmp_path):
    _, _, out, _ = begin(tmp_path)
    fill(out)
    expected = answer(rounds.collect([out])).as_dict()
    fill(out, change=lambda table: table[::-1])
    assert answer(rounds.collect([out])).as_dict() == expected
    fill(out, change=lambda table: [{"label": row["label"], "id": row["id"]} for row in table])
    found = answer(rounds.collect([out])).as_dict()
    assert (found["accuracy"], found["failures"]) == (expected["accuracy"], expected["failures"])


def test_a_renamed_copy_finds_its_selection(tmp_path):
    _, _, out, _ = begin(tmp_path)
    begin_other = tmp_path / "other"
    begin_other.mkdir()
    begin(begin_other, seed=5)
    (begin_other / "to_label.selection.npz").rename(tmp_path / "a.selection.npz")
    copy = tmp_path / "Re to_label (1).csv"
    fill(out, to=copy)
    assert answer(rounds.collect([copy])).used == 30  # the empty original is passed over
    moved = tmp_path / "mail"
    moved.mkdir()
    copy.rename(moved / copy.name)
    with pytest.raises(InputError, match="is not beside it; name the file that select wrote with --selection"):
        rounds.collect([moved / copy.name])
    assert answer(rounds.collect([moved / copy.name], tmp_path / "to_label.selection.npz")).used == 30
    with pytest.raises(InputError, match="name its own with --selection"):
        rounds.collect([moved / copy.name], tmp_path / "a.selection.npz")


def test_nothing_is_overwritten(tmp_path):
    chosen, data, out, _ = begin(tmp_path)
    fill(out)
    filled = out.read_bytes()
    with pytest.raises(InputError, match="exists and is never overwritten"):
        rounds.write_first(chosen, data, out)
    other = choose(model, data, technique="srs", tests=30, seed=9)
    with pytest.raises(InputError, match="belongs to another selection and is never overwritten"):
        rounds.write_first(other, data, out)
    assert out.read_bytes() == filled


def test_a_sheet_in_the_way_leaves_nothing_behind(tmp_path):
    (tmp_path / "to_label.html").write_text("mine")
    with pytest.raises(InputError, match=r"to_label\.html exists and is never overwritten"):
        rounds.check_out(tmp_path / "to_label.csv")
    with pytest.raises(InputError, match=r"to_label\.html exists and is never overwritten"):
        begin(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["to_label.html"]


def test_a_lost_table_is_written_again(tmp_path):
    chosen, data, out, _ = begin(tmp_path)
    content = out.read_bytes()
    out.unlink()
    rounds.write_first(chosen, data, out)
    assert out.read_bytes() == content


def test_rounds_follow_each_other(tmp_path):
    chosen, data, out, written = begin(tmp_path, technique="three")
    assert written.examples == 10
    with pytest.raises(InputError, match="waits for labels: 10 are empty"):
        rounds.write_next(rounds.collect([out]), data, out)
    fill(out, rows=9)
    with pytest.raises(InputError, match="waits for labels: 1 are empty"):
        rounds.write_next(rounds.collect([out]), data, out)
    for number in (2, 3):
        fill(rounds.round_path(out, number - 1))
        found = answer(rounds.collect([out]))
        assert found.more_rounds
        assert "the same testifai label select command" in found.lines(out)[-1]
        written = rounds.write_next(rounds.collect([out]), data, out)
        assert (written.number, written.path.name, written.examples) == (number, f"to_label.{number}.csv", 10)
        assert written.sheet.name == f"to_label.{number}.html"
        found = answer(rounds.collect([written.path]))  # any of the files will do
        assert (found.used, len(found.waiting), found.more_rounds) == (10 * (number - 1), 10, False)
    fill(out.with_name("to_label.3.csv"))
    found = answer(rounds.collect([out]))
    assert (found.used, found.planned, found.waiting) == (30, 30, ())
    with pytest.raises(InputError, match="has all its labels"):
        rounds.write_next(rounds.collect([out]), data, out)
    ids = chosen.replay(dict(enumerate((PREDICTED != TRUTH).tolist()))).sample.selected
    assert found.accuracy == pytest.approx((PREDICTED == TRUTH)[ids].mean())


def test_rounds_pasted_into_one_file(tmp_path):
    _, data, out, _ = begin(tmp_path, technique="three")
    fill(out)
    second = rounds.write_next(rounds.collect([out]), data, out).path
    fill(second)
    lines = second.read_text().splitlines()[1:]
    second.unlink()
    out.write_text(out.read_text() + "\n".join(lines) + "\n")
    assert answer(rounds.collect([out])).used == 20
    assert rounds.write_next(rounds.collect([out]), data, out).number == 3


def test_the_same_row_in_two_files(tmp_path):
    _, data, out, _ = begin(tmp_path, technique="three")
    fill(out)
    second = rounds.write_next(rounds.collect([out]), data, out).path
    second.write_text(second.read_text() + out.read_text().splitlines()[1] + "\n")
    with pytest.raises(InputError, match=r"is in to_label\.csv too|is in to_label\.2\.csv too"):
        rounds.collect([out, second])


def test_rows_that_were_not_asked_for(tmp_path):
    chosen, _, out, _ = begin(tmp_path)
    strange = next(example for example in range(300) if example not in chosen.first)
    out.write_text(out.read_text() + f"{strange},,cat,0.5,cat,\n")
    with pytest.raises(InputError, match=f"id {strange} .1 in all. is not among the examples"):
        rounds.collect([out])


def test_labels_known_from_before_are_filled_in(tmp_path):
    chosen, data, out, _ = begin(tmp_path)
    fill(out)
    known = rounds.collect([out]).labels
    more = choose(model, data, technique="srs", tests=50)
    rounds.write_first(more, data, tmp_path / "more.csv", known)
    found = answer(rounds.collect([tmp_path / "more.csv"]))
    # A longer simple random sample with the same seed begins with the shorter one.
    assert (found.labels, found.used, len(found.waiting)) == (30, 30, 20)
    del chosen


def test_texts_and_tables_are_shown_in_the_table(tmp_path):
    texts = [f"text {n}" for n in range(20)]
    texts[3] = "=cmd|' /C calc'!A0"
    chosen = choose(lambda batch: [len(text) % 2 for text in batch], from_arrays(texts), technique="srs", tests=20)
    written = rounds.write_first(chosen, from_arrays(texts), tmp_path / "texts.csv")
    assert written.sheet is None
    with (tmp_path / "texts.csv").open(newline="") as file:
        shown = {int(row["id"]): row["input"] for row in csv.DictReader(file)}
    assert shown[0] == "text 0"
    assert shown[3].startswith("'=cmd")
    data = from_arrays(SCORES)
    rounds.write_first(choose(lambda rows: rows, data, technique="srs", tests=5), data, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        row = next(iter(csv.DictReader(file)))
    assert [float(value) for value in row["input"].strip("[]").split(",")] == pytest.approx(
        SCORES[int(row["id"])].tolist(), abs=1e-5
    )


def test_files_of_a_folder_are_named(tmp_path):
    folder = tmp_path / "stream"
    folder.mkdir()
    for n in range(6):
        cv2.imwrite(str(folder / f"{n}.png"), IMAGES[n])
    data = load("folder", folder)
    assert data.labels is None
    small = load("folder", folder, size=[3, 3])
    rounds.write_first(
        choose(lambda batch: batch[:, 0, 1] % 3, small, technique="srs", tests=1), small, tmp_path / "s.csv"
    )
    example = int((tmp_path / "s.csv").read_text().splitlines()[1].split(",")[0])
    # People see the file itself, not what is left of it in the model's size.
    assert data_uri(IMAGES[example]) in (tmp_path / "s.html").read_text()
    chosen = choose(lambda batch: batch[:, 0, 1] % 3, data, technique="srs", tests=4)
    rounds.write_first(chosen, data, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        assert all(row["where"] == f"stream/{row['id']}.png" for row in csv.DictReader(file))


@pytest.mark.parametrize("name", ["a.txt", "none/a.csv"])
def test_places_where_nothing_can_be_written(tmp_path, name):
    with pytest.raises(InputError, match="out: "):
        rounds.check_out(tmp_path / name)
