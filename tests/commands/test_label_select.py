"""testifai label select and testifai label estimate, through the entry point."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import types

import numpy as np
import pytest

from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel

SPEC = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "stream.npz"
[space]
zoom = "mnist_c.zoom"
[scan]
seed = 4
"""
COUNT = 400


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A folder with a model, unlabelled digits and a spec."""
    folder = tmp_path_factory.mktemp("operational")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    np.savez(folder / "stream.npz", x=demo_data().inputs[:COUNT])
    (folder / "spec.toml").write_text(SPEC)
    return folder


def fill(path, rows=None, label=lambda example: int(demo_data().labels[example])):
    with open(path, newline="") as file:
        table = list(csv.DictReader(file))
    for row in table[:rows]:
        row["label"] = label(int(row["id"]))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)


def test_from_selection_to_estimate(command, folder):
    code, out, err = command("label", "select", "spec.toml", "--tests", 60, "--technique", "confidence", "-o", "a.csv")
    assert (code, err) == (0, "")
    assert "Wrote 60 of 400 examples to a.csv" in out
    assert "a.html" in out
    assert "testifai label estimate a.csv" in out
    fill("a.csv", 20)
    code, out, _ = command("label", "estimate", "a.csv")
    assert code == 0
    assert "Accuracy so far" in out
    assert "40 rows are still empty" in out
    fill("a.csv")
    code, out, _ = command("label", "estimate", "a.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["labels"], found["remaining"], found["size"], found["technique"]) == (60, 0, 400, "confidence")
    assert found["low"] <= found["accuracy"] <= found["high"]
    assert len(found["failing"]) == found["failures"] == sum(pair["count"] for pair in found["confusions"])
    assert "verdict" not in found


def test_the_default_technique_goes_all_the_way(command, folder):
    """However many rounds it takes, the same command and filling in come to an end with all labels."""
    for _ in range(20):
        code, _, err = command("label", "select", "spec.toml", "--tests", 60)
        if code:
            break
        for file in sorted(folder.glob("to_label*.csv")):
            fill(file)
    assert code == 2
    assert "has all its labels" in err
    code, out, _ = command("label", "estimate", "to_label.csv", "--json")
    found = json.loads(out)
    assert (code, found["technique"], found["used"], found["next_round"]) == (0, "balanced", 60, False)
    predicted = OnnxModel(demo_model_path())(demo_data().inputs[:COUNT]).argmax(axis=1)
    truth = (predicted == demo_data().labels[:COUNT]).mean()
    # An interval misses now and then; by this much it never should.
    assert found["low"] - 0.05 <= truth <= found["high"] + 0.05


def test_select_says_what_it_did_as_json(command, folder):
    code, out, _ = command("label", "select", "spec.toml", "-n", 10, "--technique", "srs", "--json")
    found = json.loads(out)
    assert code == 0
    assert {name: found[name] for name in ("out", "sheet", "rows", "tests", "size", "seed", "technique")} == {
        "out": "to_label.csv", "sheet": "to_label.html", "rows": 10, "tests": 10, "size": 400, "seed": 4,
        "technique": "srs",
    }  # fmt: skip


def test_the_same_spec_and_seed_choose_the_same(command, folder):
    for name in ("a", "b"):
        command("label", "select", "spec.toml", "-n", 30, "--technique", "confidence", "-o", f"{name}.csv")
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    assert (folder / "a.selection.npz").read_bytes() == (folder / "b.selection.npz").read_bytes()
    command("label", "select", "spec.toml", "-n", 30, "--technique", "confidence", "-o", "c.csv", "--seed", 5)
    assert (folder / "a.csv").read_bytes() != (folder / "c.csv").read_bytes()


@pytest.mark.parametrize(
    ("wrong", "require", "code", "status"), [(0, 0.9, 0, "pass"), (200, 0.9, 1, "fail"), (7, 0.955, 1, "undecided")]
)
def test_the_release_rule(command, folder, wrong, require, code, status):
    command("label", "select", "spec.toml", "-n", 200, "--technique", "srs", "-o", "a.csv")
    with open("a.csv", newline="") as file:
        table = list(csv.DictReader(file))
    mistaken = {int(row["id"]) for row in table[:wrong]}
    predicted = {int(row["id"]): int(row["predicted"]) for row in table}
    fill("a.csv", label=lambda example: (predicted[example] + (example in mistaken)) % 10)
    left, out, _ = command("label", "estimate", "a.csv", "--require", require)
    assert left == code
    assert status.upper() in out
    left, out, _ = command("label", "estimate", "a.csv", "--require", require, "--json")
    verdict = json.loads(out)["verdict"]
    assert (left, verdict["status"]) == (code, status)
    if status == "undecided":
        assert 0 < verdict["more_labels"] <= 200
        assert "more labels needed" in command("label", "estimate", "a.csv", "--require", require)[1]
    else:
        assert verdict["more_labels"] is None


def test_rounds(command, folder, monkeypatch):
    class TwoRounds:
        name = "two"

        def plan(self, frame, tests, rng):
            order = rng.permutation(frame.size)
            yield order[:8]
            yield order[8:tests]
            return {}

        def estimate(self, frame, sample):
            return 1 - sample.failed.mean(), 0.0, 1.0

    import testifai.operational

    module = types.ModuleType("two_rounds")
    module.TwoRounds = TwoRounds
    monkeypatch.setitem(sys.modules, "two_rounds", module)
    monkeypatch.setitem(testifai.operational.TECHNIQUES._own, "two", "two_rounds:TwoRounds")
    select = ("label", "select", "spec.toml", "-n", 20, "--technique", "two", "-o", "a.csv")
    assert "round 1" in command(*select)[1]
    assert "waits for labels: 8 are empty" in command(*select)[2]
    fill("a.csv")
    assert "the same testifai label select command" in command("label", "estimate", "a.csv")[1]
    code, out, _ = command(*select)
    assert (code, "Wrote 12 of 400 examples to a.2.csv" in out) == (0, True)
    fill("a.2.csv")
    assert json.loads(command("label", "estimate", "a.csv", "--json")[1])["used"] == 20
    code, _, err = command(*select)
    assert (code, "has all its labels" in err) == (2, True)


def test_names_of_classes(command, folder):
    names = [f"digit {n}" for n in range(10)]
    (folder / "names.txt").write_text("\n".join(names) + "\n", encoding="utf-8-sig")
    for name, given in (("a", ",".join(names)), ("b", "names.txt")):
        code, _, _ = command(
            "label", "select", "spec.toml", "-n", 5, "--technique", "srs", "-o", f"{name}.csv", "--classes", given
        )
        assert code == 0
        assert (folder / f"{name}.csv").read_text().count(",digit ") == 5
    fill("a.csv", label=lambda example: f"Digit {demo_data().labels[example]}")
    assert json.loads(command("label", "estimate", "a.csv", "--json")[1])["labels"] == 5


def test_labels_from_before(command, folder):
    command("label", "select", "spec.toml", "-n", 20, "--technique", "srs", "-o", "a.csv")
    fill("a.csv")
    command("label", "select", "spec.toml", "-n", 30, "--technique", "srs", "-o", "b.csv", "--known", "a.csv")
    found = json.loads(command("label", "estimate", "b.csv", "--json")[1])
    assert (found["labels"], found["remaining"]) == (20, 10)
    np.savez(folder / "stream.npz", x=demo_data().inputs[:300])
    code, _, err = command(
        "label", "select", "spec.toml", "-n", 30, "-o", "c.csv", "--known", "a.csv", "--technique", "srs"
    )
    assert (code, "was selected from other data" in err) == (2, True)


def test_surprise_with_training_data_and_a_layer(command, folder):
    np.savez(folder / "train.npz", x=demo_data().inputs[COUNT:])
    arguments = ("label", "select", "spec.toml", "-n", 10, "--technique", "dsa", "--train", "train.npz")
    code, _, err = command(*arguments, "--layer", "nowhere")
    assert (code, "makes no tensor 'nowhere'" in err) == (2, True)
    assert command(*arguments)[0] == 0
    code, _, err = command("label", "select", "spec.toml", "-n", 10, "--technique", "lsa", "-o", "b.csv")
    assert (code, "name them with --train" in err) == (2, True)


def test_a_threshold_that_suspects_nobody_is_told_and_a_quantile_is_taken(command, folder, caplog):
    arguments = ("label", "select", "spec.toml", "-n", 20, "--technique", "confidence", "--threshold")
    assert command(*arguments, "0.95")[0] == 0
    (told,) = caplog.messages
    assert "0 of 400 examples" in told
    assert told.endswith('try threshold = "q0.9"')
    assert command(*arguments, "q0.9", "--share", 0.5, "-o", "b.csv")[0] == 0
    assert command(*arguments, "q0.9", "--share", "auto", "-o", "c.csv")[0] == 0
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("-n", 401), "401 is more than the 400 examples"),
        (("-n", 0), "tests: must be a whole number, at least 1, got 0"),
        (("--technique", "magic"), "technique: 'magic' is not known; known: balanced"),
        (("--technique", "srs", "--threshold", 0.5), "technique: srs has no option 'threshold'; known: replacement"),
        (("--technique", "dsa", "--share", 1), "share: must be a number, at least 0 and below 1, got 1.0"),
        (("--technique", "dsa", "--threshold", "q90"), "threshold: 'q90' is not accepted; a number is, or a quantile"),
        (("-o", "a.xlsx"), "a name that ends in .csv"),
        (("-o", "none/a.csv"), "the folder none does not exist"),
        (("-o", "mine.csv"), "mine.csv exists and is never overwritten"),
        (("--classes", "cat"), "names with commas"),
        (("--classes", "cat,dog"), "2 names for a model with 10 classes"),
        (("--known", "none.csv"), "none.csv does not exist"),
        (("--train", "none.npz", "--technique", "dsa"), "none.npz does not exist"),
        (("--seed", -1), "'--seed'"),
    ],
)
def test_what_cannot_be_selected(command, folder, options, problem):
    (folder / "mine.csv").write_text("my own\n")
    technique = () if "--technique" in options else ("--technique", "srs")
    before = sorted(folder.iterdir())
    code, out, err = command("label", "select", "spec.toml", *technique, *options)
    assert (code, out) == (2, "")
    assert problem in err
    assert len(err.splitlines()) == 1
    assert sorted(folder.iterdir()) == before
    assert (folder / "mine.csv").read_text() == "my own\n"


def test_another_selection_under_the_same_name(command, folder):
    arguments = ("label", "select", "spec.toml", "-o", "a.csv", "--technique")
    command(*arguments, "srs", "-n", 20)
    before = (folder / "a.csv").read_bytes()
    for changed, problem in (
        (("srs", "-n", 21), "tests was 20, now 21"),
        (("srs", "-n", 20, "--seed", 1), "seed was 4, now 1"),
        (("confidence", "-n", 20), "technique was"),
    ):
        code, _, err = command(*arguments, *changed)
        assert (code, problem in err) == (2, True)
    assert (folder / "a.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda lines: [*lines, lines[1]], "is in line 2 already"),
        (lambda lines: [lines[0], lines[1].replace(",,", ",cat,"), *lines[2:]], "label 'cat' is not a class"),
        (lambda lines: [lines[0], lines[1].replace(",,", ",10,"), *lines[2:]], "accepted: 0 … 9"),
        (lambda lines: [lines[0].replace("label", "lab"), *lines[1:]], "no column 'label'"),
        (lambda lines: [], "is empty"),
    ],
)
def test_files_that_cannot_be_read(command, folder, change, problem):
    command("label", "select", "spec.toml", "-n", 5, "--technique", "srs", "-o", "a.csv")
    lines = (folder / "a.csv").read_text().splitlines()
    (folder / "a.csv").write_text("\n".join(change(lines)))
    code, out, err = command("label", "estimate", "a.csv")
    assert (code, out) == (2, "")
    assert problem in err
    assert len(err.splitlines()) == 1


def test_other_mistakes_with_estimate(command, folder):
    assert "does not exist" in command("label", "estimate", "none.csv")[2]
    (folder / "own.csv").write_text("id,label\n1,2\n")
    assert "own.selection.npz is not beside it" in command("label", "estimate", "own.csv")[2]
    assert "--selection" in command("label", "estimate", "own.csv")[2]
    command("label", "select", "spec.toml", "-n", 5, "--technique", "srs", "-o", "a.csv")
    code, _, err = command("label", "estimate", "a.csv", "--require", 95)
    assert (code, "require: must be a number, above 0 and at most 1" in err) == (2, True)
    code, out, _ = command("label", "estimate", "a.csv", "--require", 0.95)
    assert (code, "No estimate yet" in out, "UNDECIDED" in out) == (1, True, True)
