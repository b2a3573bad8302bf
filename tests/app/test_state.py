"""Which view an address asks for, what is remembered, and what is refused."""

from __future__ import annotations

import shutil

import pytest

from testifai.app.state import Memory, Runs, add, as_toml, known, read_address
from testifai.errors import InputError
from testifai.runs import trusted_runs
from testifai.runs.store import Store
from testifai.spec.parsing import Gate


def test_address(runs):
    view = read_address(
        "?run=1&against=0&view=compare&axes=noise,zoom,noise&at=blur:4&query=zoom%20%3E%202&test=7", runs
    )
    assert (view.run, view.against, view.view, view.query, view.test) == (1, 0, "compare", "zoom > 2", 7)
    assert view.at == {"blur": 4}
    assert view.axes == ("noise", "zoom", "brightness")


@pytest.mark.parametrize(
    "search",
    [
        None,
        "",
        "?run=9&against=-1&view=x&axes=../x,,&test=99999999999999999999",
        "?run=١&test=1e3&at=blur:3,x:1,:,blur",
    ],
)
def test_an_address_that_does_not_fit_is_left_out(runs, search):
    view = read_address(search, runs)
    assert (view.run, view.against, view.view, view.at, view.test) == (0, 1, "space", {}, None)
    assert view.axes == ("brightness", "zoom", "blur")


def test_answers_are_those_of_the_tomogram_and_remembered(runs):
    answer = runs.answer(1, "zoom >= 2")
    assert answer == runs.tomograms[1].query("zoom >= 2")
    assert runs.answer(1, "zoom >= 2") is answer


def test_memory_forgets_the_oldest():
    memory, made = Memory(2), []
    for key in (1, 2, 1, 3, 1):
        memory.get(key, lambda key=key: made.append(key))
    assert made == [1, 2, 3, 1]


def test_runs_of_other_spaces_are_refused(folder, tmp_path, monkeypatch):
    from testifai import cli

    spec = (folder / "a.toml").read_text().replace("[0, 2, 4]", "[0, 2]")
    (tmp_path / "c.toml").write_text(spec)
    for name in ("lenet5.onnx", "digits.npz"):
        shutil.copy(folder / name, tmp_path / name)
    monkeypatch.setattr("sys.argv", ["testifai", "run", str(tmp_path / "c.toml"), "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    with pytest.raises(InputError, match=r"c\.db has other axes or severities than a\.db"):
        Runs([folder / "a.db", tmp_path / "c.db"])


def test_missing_data_is_told_each_time(folder, tmp_path):
    shutil.copy(folder / "a.db", tmp_path / "a.db")
    with Store.create_or_open(tmp_path / "a.db") as store:
        store.put(folder=str(tmp_path))
        trusted_runs.remember(store)
    moved = Runs([tmp_path / "a.db"])
    for _ in range(2):
        with pytest.raises(InputError, match=r"(lenet5\.onnx|digits\.npz) does not exist"):
            moved.session(0)


def test_saved_queries_are_gates():
    import tomllib

    saved = add(add(None, " mild ", "a <= 1", 1), 'odd "\\\x7f\n', 'b == "x"', 0.25)
    saved = add(saved, "mild", "a <= 2", 0.5)
    gates = [Gate(**gate) for gate in tomllib.loads(as_toml(saved))["gate"]]
    assert [(gate.name, gate.query, gate.at_least) for gate in gates] == [
        ('odd "\\\x7f', 'b == "x"', 0.25),
        ("mild", "a <= 2", 0.5),
    ]


@pytest.mark.parametrize(("name", "least"), [("", 0.5), (None, 0.5), ("x", None), ("x", 1.5), ("x", True), ("x", "1")])
def test_what_cannot_be_saved(name, least):
    with pytest.raises(InputError, match=r"^(name|at least): "):
        add([], name, "a > 1", least)


def test_what_a_browser_holds_is_not_trusted():
    assert known([1, {"name": 3, "query": "a", "at_least": 1}, {"name": "x"}, None]) == known("x") == known(None) == []
