"""A table of texts, or of pairs, from init to report, through the entry point."""

from __future__ import annotations

import csv
import json
import shutil
import sys

import pytest

from testifai import cli, data
from testifai.runs import trusted_runs
from testifai.runs.store import Store
from testifai.spec.parsing import read

MODEL = '''
import numpy as np


def shared_words(pairs):
    """Scores: whether two questions have most of their words in common."""
    return np.array([[0.5, _share(first, second)] for first, second in pairs])


def _share(first, second):
    one, other = set(first.lower().split()), set(second.lower().split())
    return len(one & other) / max(1, len(one | other))


def polite(texts):
    return np.array(["thank" in text.lower() for text in texts]).astype(int)
'''
SUBJECTS = ["English", "a second language", 'the "old" piano', "chess, and go", "7 card games", "mathematics\nat home"]
PLACES = ["school", "home", "work", "the 👍🏽 shop", "university"]


def pairs() -> list[tuple[str, str, int]]:
    found = []
    for subject in SUBJECTS:
        for place in PLACES:
            asked = f"What is the best way to learn {subject} at {place}?"
            found.append((asked, f"What is the best way to learn {subject} fast at {place}?", 1))
            found.append((asked, f"Why do people not talk about {subject} when they are young?", 0))
    return found


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A folder with a model in code, a table of pairs, one of texts, and the finished run of a spec that init wrote."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "text_models_of_this_test.py").write_text(MODEL)
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("id", "question1", "question2", "is_duplicate"), *((7, *row) for row in pairs())])
    lines = [{"text": f"Thank you for {place}." if n % 2 else f"Not {place} again!", "label": n % 2}
             for n, place in enumerate(PLACES * 12)]  # fmt: skip
    (folder / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert call("init", "text_models_of_this_test:shared_words", "pairs.csv", "-o", "pairs.toml") == 0
        assert call("run", "pairs.toml") == 0
    return folder


@pytest.fixture(autouse=True, scope="module")
def _no_module_left_behind():
    yield
    sys.modules.pop("text_models_of_this_test", None)


@pytest.fixture
def folder(ready, tmp_path, monkeypatch):
    shutil.copytree(ready, tmp_path, dirs_exist_ok=True)
    with Store.create_or_open(tmp_path / "pairs.db") as store:
        store.put(folder=str(tmp_path))
        trusted_runs.remember(store)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return left.value.code


def test_what_init_saw_and_wrote(folder, command):
    code, out, _ = command("init", "text_models_of_this_test:shared_words", "pairs.csv", "-o", "again.toml")
    assert code == 0
    assert "Data: 60 pairs of texts, 2 classes. Model: returns scores." in out
    assert "Clean accuracy on 60 inputs: 1.000" in out
    assert (folder / "again.toml").read_text() == (folder / "pairs.toml").read_text().replace(
        "pairs.toml", "again.toml"
    )
    spec = read(folder / "pairs.toml")
    assert (spec.data.csv, spec.data.text, spec.data.label) == ("pairs.csv", ["question1", "question2"], "is_duplicate")
    assert spec.data.side == "both"
    assert [part.use for part in spec.axes().values()] == ["text.typo", "text.synonym", "text.punctuation"]
    assert not (folder / "perturbations.py").exists()


def test_check_knows_the_texts_without_a_place(command):
    code, out, _ = command("check", "pairs.toml", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["inputs"], found["tests"], found["clean_accuracy"]) == (60, 72, 1.0)
    assert set(found["room"]) == {"typo", "synonym", "punctuation"}
    assert found["room"]["typo"] == {"inputs": 60, "asked": 5, "short": 0, "untouched": 0}
    assert command("check", "pairs.toml")[0] == 0


def test_the_run_can_be_shown_queried_and_exported(folder, command):
    for arguments in (["show", "pairs.db"], ["query", "pairs.db", "typo > 2"], ["show", "pairs.db", "--json"]):
        assert command(*arguments)[0] == 0
    assert json.loads(command("query", "pairs.db", "order == 0", "--json")[1])["robustness"] == 1.0
    hard = json.loads(command("query", "pairs.db", "typo == 5 and synonym == 5", "--json")[1])
    assert hard["robustness"] < 1.0
    assert command("export", "pairs.db", "-o", "table.csv")[0] == 0
    with (folder / "table.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 72
    assert command("export", "pairs.db", "--inputs", "2,0,0", "-o", "shown.jsonl", "--limit", "5")[0] == 0
    shown = data.load("jsonl", folder / "shown.jsonl")
    original = data.load("csv", folder / "pairs.csv")
    assert len(shown) == 5
    for (one, other), (first, second) in zip(shown.inputs, original.inputs[:5], strict=True):
        assert one != first
        assert other != second
    assert shown.labels.tolist() == original.labels[:5].tolist()


def test_one_side_is_another_run(folder, command):
    text = (folder / "pairs.toml").read_text().replace('side = "both"', 'side = "first"')
    (folder / "pairs.toml").write_text(text)
    code, _, error = command("run", "pairs.toml")
    assert code == 2
    assert "belongs to another run: data" in error
    assert command("run", "pairs.toml", "--out", "first.db")[0] == 0
    assert command("export", "first.db", "--inputs", "2,0,0", "-o", "shown.jsonl")[0] == 0
    shown = data.load("jsonl", folder / "shown.jsonl").inputs
    original = data.load("csv", folder / "pairs.csv").inputs
    assert [pair[1] for pair in shown] == [pair[1] for pair in original]
    assert all(one[0] != other[0] for one, other in zip(shown, original, strict=True))


def test_a_report_shows_failing_texts(folder, command):
    code, _, error = command("report", "pairs.db", "-o", "report.html", "--md", "report.md")
    assert code == 0
    assert "not shown" not in error
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "taken for" in page
    # What an edit changed is marked in the middle of a text: which words stay together depends on the edits.
    assert any(words in page for words in ("What is", "the best", "best way", "way to", "to learn"))


def test_single_texts_from_lines_of_json(folder, command):
    assert command("init", "text_models_of_this_test:polite", "texts.jsonl", "-o", "texts.toml")[0] == 0
    spec = read(folder / "texts.toml")
    assert (spec.data.jsonl, spec.data.text, spec.data.label, spec.data.side) == ("texts.jsonl", "text", "label", None)
    assert command("run", "texts.toml")[0] == 0
    assert json.loads(command("query", "texts.db", "order == 0", "--json")[1])["robustness"] == 1.0
    assert command("report", "texts.db")[0] == 0
    assert command("export", "texts.db", "--inputs", "1,0,0", "-o", "shown.jsonl")[0] == 0
    assert all(isinstance(text, str) for text in data.load("jsonl", folder / "shown.jsonl").inputs)


TEXT, SIDE = 'text = ["question1", "question2"]', 'side = "both"'


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({TEXT: 'text = ["question1", "question3"]'}, "has no column 'question3' for text; did you mean 'question"),
        ({TEXT: 'text = ["question1", "is_duplicate"]'}, "column 'is_duplicate' cannot be both text and label"),
        ({TEXT: 'text = ["a", "b", "c"]'}, "give one column, or two for pairs of texts"),
        ({TEXT: 'text = "question1"', SIDE: 'side = "second"'}, "side 'second' is for pairs of texts"),
        ({SIDE: 'side = "left"'}, "data.side: should be 'first', 'second' or 'both', got 'left'"),
        ({'"pairs.csv"': '"none.csv"'}, "none.csv does not exist"),
        ({'csv = "pairs.csv"': 'npz = "pairs.csv"'}, "unknown key 'data.text' for npz (csv, tsv and jsonl take it)"),
        ({":shared_words": ":polite"}, "model: raised AttributeError: 'tuple' object has no attribute 'lower'"),
    ],
)
def test_mistakes_are_one_line(folder, command, changes, words):
    text = (folder / "pairs.toml").read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (folder / "wrong.toml").write_text(text)
    code, _, error = command("run", "wrong.toml")
    assert code == 2
    assert words in error
    assert len([line for line in error.strip().splitlines() if not line.startswith("note:")]) == 1
