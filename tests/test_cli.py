"""Every command, with and without --json, through the entry point."""

import json
import logging
import shutil

import numpy as np
import pytest
from typer.main import get_command

import testifai
from testifai import cli
from testifai.commands import example as demo
from testifai.data.sample import demo_data
from testifai.perturb import registry

SPEC = """
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 2, 5] }
zoom = { use = "mnist_c.zoom", severities = { near = 1, far = 5 } }
blur = { use = "mnist_c.motion_blur", severities = [0, 3] }
[scan]
strategy = "STRATEGY"
population = "data"
surrogate = "independence"
"""
GATE = """
[[gate]]
name = "GATE"
query = "zoom <= 1 and brightness <= 2 and order <= 2"
at_least = AT_LEAST
basis = "estimate"
"""


@pytest.fixture(scope="module")
def ready(digits):
    """A folder with a model, digits, specs and their finished runs."""
    specs = {strategy: SPEC.replace("STRATEGY", strategy) for strategy in ("ordered", "full")}
    folder = digits(80, **specs)
    for strategy in specs:
        assert call(["run", folder / f"{strategy}.toml"]) == 0
    return folder


@pytest.fixture
def folder(ready, tmp_path):
    """The same without the run, to write into."""
    for name in ("lenet5.onnx", "digits.npz", "ordered.toml"):
        shutil.copy(ready / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def gone_on(ready, folder):
    """That folder with the finished run, with which the spec goes on."""
    shutil.copy(ready / "ordered.db", folder / "ordered.db")
    return folder


def call(arguments: list) -> int:
    """The exit code of a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return left.value.code


@pytest.fixture
def command(capsys):
    """Run a command: exit code, standard output, standard error."""

    def run(*arguments) -> tuple[int, str, str]:
        capsys.readouterr()
        code = call(list(arguments))
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return run


@pytest.fixture
def asked(command):
    """Run a command that must succeed with --json: its output, read."""

    def run(*arguments, code: int = 0):
        found, out, _ = command(*arguments, "--json")
        assert found == code
        return json.loads(out)

    return run


# -- the program --------------------------------------------------------------------------------------------------


def test_version_and_help(command):
    assert command("--version") == (0, f"testifai {testifai.__version__}\n", "")
    for arguments in ((), ("--help",), ("-h",), ("-v",)):
        code, out, _ = command(*arguments)
        assert code == 0
        for name in ("demo", "init", "run", "query", "show", "export", "check", "list", "label", "compare"):
            assert f"  {name} " in out
        assert [line for line in out.splitlines() if line.endswith(":")] == [
            "Options:", "Start:", "Results:", "Methods:",
        ]  # fmt: skip
        assert max(map(len, out.splitlines())) <= 80
    assert "SPEC.toml" in command("run", "--help")[1]


def test_help_of_every_command_is_short():
    def summaries(group):
        for name in group.list_commands(None):
            one = group.get_command(None, name)
            yield name, one.help.splitlines()[0]
            yield from summaries(one) if hasattr(one, "commands") else ()

    found = dict(summaries(get_command(cli.app)))
    assert len(found) == 14 + 3 + 3
    assert [name for name, line in found.items() if len(line) > 60 or ";" in line or not line.endswith(".")] == []


def test_verbose_is_welcome_anywhere(command, ready):
    expected = command("query", ready / "full.db", "zoom > 0", "--json")
    for arguments in (
        ("-v", "query", ready / "full.db", "zoom > 0", "--json"),
        ("query", "-v", ready / "full.db", "zoom > 0", "--json"),
        ("query", ready / "full.db", "zoom > 0", "--json", "--verbose"),
    ):
        assert command(*arguments)[:2] == expected[:2]


def test_a_value_that_looks_like_verbose_is_a_value(command, ready, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("export", ready / "full.db", "-o", "-v")[2].startswith(
        "error: export: cannot tell a format from '-v'"
    )
    assert command("show", "--", "-v")[2].startswith("error: run file: -v does not exist")


def test_verbose_says_where_a_mistake_came_from(ready, caplog, command):
    with caplog.at_level(logging.DEBUG, logger="testifai"):
        command("query", ready / "full.db", "zom > 0")
        assert caplog.records == []
        command("query", ready / "full.db", "zom > 0", "-v")
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_quiet_by_default(command, ready):
    assert command("query", ready / "full.db", "zoom > 0")[2] == ""
    assert command("show", ready / "full.db", "--json")[2] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["qury"], "qury"),
        (["query"], "RUN.db"),
        (["run", "nothing.toml"], "nothing.toml does not exist"),
        (["query", "nothing.db", "zoom > 0"], "nothing.db does not exist"),
        (["query", "RUN", "zoom > 9"], "selects no test"),
        (["query", "RUN", "zom > 0"], "did you mean 'zoom'"),
        (["query", "RUN", "zoom > 0", "--inputs", "label == 77"], "selects no input"),
        (["query", "RUN", "zoom > 0", "--inputs", "lbel == 7"], "did you mean 'label'"),
        (["query", "RUN", "zoom > 0", "--jsn"], "--jsn"),
        (["show", "digits.npz"], "digits.npz"),
        (["export", "RUN", "-o", "t.xlsx"], "use .csv or .json"),
        (["export", "RUN"], "--out"),
        (["export", "RUN", "-o", "t.npz", "--inputs", "1,x"], "a configuration is severities with commas"),
        (["export", "RUN", "-o", "t.npz", "--inputs", "1,0,0"], "brightness = 1 is not a severity"),
        (["export", "PARTIAL", "-o", "t.npz", "--grid"], "tests are incomplete"),
        (["export", "RUN", "-o", "t.npz", "--inputs", "0,0,0", "--limit", "0"], "--limit"),
        (["run", "SPEC", "--part", "3"], "part: expected I/N such as 1/3, got '3'"),
        (["run", "SPEC", "--part", "4/3"], "got 4/3"),
        (["init", "model.pt", "DATA", "-o", "new.toml"], "model.pt does not exist"),
        (["init", "DATA", "DATA", "-o", "new.toml"], "neither an .onnx file nor"),
        (["init", "lenet5.onnx", "DATA", "-o", "SPEC"], "exists; choose another name"),
        (["list", "perturbations", "--preview", "sheet.pdf"], "not a picture"),
        (["list", "perturbations", "imagenetc"], "did you mean 'imagenet_c'"),
        (["list", "perturbations", "--image", "photo.png"], "--image needs --preview SHEET.png"),
        (["list", "perturbations", "--sigma", "mnist_c.zoom=1"], "--sigma needs --preview SHEET.png"),
        (["list", "perturbations", "--preview", "sheet.png", "--image", "photo.png"], "cannot read photo.png"),
        (["list", "perturbations", "--preview", "sheet.png", "--image", "DATA"], "is not an image"),
        (
            ["list", "perturbations", "--preview", "sheet.png", "--sigma", "mnist_c.zoom"],
            "is not perturbation=severity",
        ),
        (
            ["list", "perturbations", "mnist_c", "--preview", "s.png", "--sigma", "mnist_c.zoom=1"],
            "leave out the suite",
        ),
        (["run", "SPEC", "--merge", "nothing.db", "-o", "out.db"], "nothing.db"),
        (["run", "SPEC", "RUN"], "add --merge to merge partial runs"),
        (["run", "SPEC", "--merge", "RUN", "--part", "1/2"], "--part cannot be combined with --merge"),
        (["show", "RUN", "--independence", "--validity"], "--validity cannot be combined with --independence"),
        (["show", "RUN", "--examples", "sheet.png"], "--examples needs --validity"),
        (["merge", "RUN"], "no command 'merge'; did you mean 'run --merge'?"),
        (["label", "slect"], "no command 'slect'; did you mean 'select'?"),
        (["compare", "RUN"], "B.db"),
        (["compare", "RUN", "nothing.db"], "nothing.db does not exist"),
        (["compare", "RUN", "PARTIAL", "--query", "zom > 0"], "did you mean 'zoom'"),
        (["compare", "RUN", "PARTIAL", "-q", "zoom > 0", "-q", "zoom > 9"], "selects no test"),
        (["compare", "RUN", "PARTIAL", "--inputs", "label == 77"], "selects no input"),
        (["check", "digits.npz"], "digits.npz"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, words, ready, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {"RUN": "full.db", "PARTIAL": "ordered.db", "SPEC": "ordered.toml", "DATA": "digits.npz"}
    known |= {name: name for name in ("digits.npz", "lenet5.onnx")}
    arguments = [str(ready / known[word]) if word in known else word for word in arguments]
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_with_json_a_mistake_is_the_same_line(ready, command):
    for arguments in (("qury",), ("run", "nothing.toml"), ("query", ready / "full.db", "zom > 0")):
        code, out, err = command(*arguments, "--json")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err == command(*arguments)[2]


# -- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory):
    """The folder of a demo on few digits, and its result."""
    data, folder = demo_data(), tmp_path_factory.mktemp("demo")
    few = testifai.data.from_arrays(data.inputs[:30], data.labels[:30])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "BUDGET", 1_300)
        patch.setattr(demo, "demo_data", lambda: few)
        return folder, demo.run(folder)


def test_demo(command, asked, small_demo, monkeypatch):
    folder, result = small_demo
    monkeypatch.setattr(demo, "run", lambda out, show: result)
    code, out, _ = command("demo", "--out", folder)
    assert code == 0
    for name in ("Q1", "Q8", "Q12", "times fewer inferences", "Worst region found", "testifai init MODEL.onnx"):
        assert name in out
    assert f"The report: {folder / 'digits.html'}" in out
    assert (folder / "digits.html").read_text(encoding="utf-8").startswith("<!")
    monkeypatch.setattr("testifai.report.page.render", lambda contents: "<!doctype html>")
    found = asked("demo", "--out", folder)
    measured = [query["measured"] for query in found["published"]["queries"]]
    assert measured == [19, 15, 15, 9, 15, 9, 9, 0, 7, 37, 61, 91]
    assert found["inputs"] == 30
    assert found["report"] == str(folder / "digits.html")


def test_init_check_and_run_follow_each_other(folder, command, asked):
    out = folder / "mine.toml"
    code, printed, _ = command("init", folder / "lenet5.onnx", folder / "digits.npz", "-o", out)
    assert code == 0
    assert "Data: 80 images of 28 x 28, 10 classes." in printed
    assert "Next: testifai check" in printed
    found = asked("check", out)
    assert (found["tests"], found["inputs"]) == (6 * 4 * 3, 80)
    found = asked("run", out)
    assert found["gates"] == []
    assert (folder / "mine.db").exists()


def test_init_as_json_and_into_the_current_folder(folder, asked, monkeypatch):
    monkeypatch.chdir(folder)
    found = asked("init", "lenet5.onnx", "digits.npz")
    assert found["spec"] == "testifai.toml"
    assert found["model"] == {"onnx": "lenet5.onnx", "scale": "unit"}
    assert (folder / "testifai.toml").exists()


def test_run_saves_beside_the_spec_and_continues(gone_on, command, asked):
    spec = gone_on / "ordered.toml"
    code, out, _ = command("run", spec, "--out", gone_on / "other.db")
    assert code == 0
    assert "clean accuracy" in out
    assert f"Saved in {gone_on / 'other.db'}. Next: testifai query" in " ".join(out.split())
    found = asked("run", spec)
    keys = {"axes", "tests", "measured", "tried", "inputs", "inferences", "base", "clean", "run", "gates"}
    assert set(found) == keys | {"finished", "planned", "done", "population", "complete", "partial", "unrun"}
    assert found["axes"] == {"brightness": [0, 2, 5], "zoom": [0, 1, 5], "blur": [0, 3]}
    assert (found["tests"], found["measured"], found["inputs"]) == (18, 14, 80)
    assert found["inferences"] == 14 * 80
    assert found["run"] == str(gone_on / "ordered.db")


def test_a_changed_spec_is_refused(gone_on, command):
    spec = gone_on / "ordered.toml"
    spec.write_text(spec.read_text() + "seed = 5\n")
    code, _, err = command("run", spec)
    assert code == 2
    assert "seed" in err


@pytest.mark.parametrize(("at_least", "status", "expected"), [("0.1", "holds", 0), ("1.0", "fails", 1)])
def test_gates_decide_the_exit_code(gone_on, command, asked, at_least, status, expected):
    spec = gone_on / "ordered.toml"
    spec.write_text(spec.read_text() + GATE.replace("AT_LEAST", at_least).replace("GATE", "mild"))
    code, out, _ = command("run", spec)
    assert code == expected
    assert f"{status}  mild: zoom <= 1" in out
    (gate,) = asked("run", spec, code=expected)["gates"]
    assert (gate["name"], gate["status"], gate["at_least"]) == ("mild", status, float(at_least))


def test_an_undecided_gate_exits_with_1_and_says_so(folder, command, asked):
    spec = folder / "ordered.toml"
    forest = spec.read_text().replace('surrogate = "independence"\n', "")
    spec.write_text(forest + '[[gate]]\nquery = "order == 3"\nat_least = 0.1\n')
    code, out, _ = command("run", spec)
    assert code == 1
    assert "undecided" in out
    assert "not enough runs in this region: 0 of 30 different inputs" in " ".join(out.split())
    assert asked("query", folder / "ordered.db", "order == 3")["low"] is None


def test_a_gate_that_cannot_be_asked_is_refused_before_anything_is_run(folder, command):
    spec = folder / "ordered.toml"
    spec.write_text(spec.read_text() + '[[gate]]\nquery = "zom > 1"\nat_least = 0.1\n')
    for name in ("run", "check"):
        code, _, err = command(name, spec)
        assert code == 2
        assert "did you mean 'zoom'" in err
    assert not (folder / "ordered.db").exists()


def test_parts_are_merged(folder, command, asked, ready):
    for own in (1, 2):
        assert command("run", folder / "ordered.toml", "--part", f"{own}/2", "-o", folder / f"{own}.db")[0] == 0
    merge = (folder / "ordered.toml", "--merge", folder / "1.db", folder / "2.db")
    code, out, _ = command("run", *merge, "-o", folder / "both.db")
    assert code == 0
    assert "Merged 2 runs" in out
    (folder / "both.db").unlink()
    found = asked("run", *merge, "-o", folder / "both.db")
    assert found["inferences"] == 14 * 80
    assert asked("query", folder / "both.db", "zoom > 0") == asked("query", ready / "ordered.db", "zoom > 0")
    other = folder / "other.toml"
    other.write_text((folder / "ordered.toml").read_text().replace("[0, 3]", "[0, 4]"))
    assert "is not a part of" in command("run", other, *merge[1:])[2]


def test_query_as_json_has_the_keys_of_the_contract(asked, ready):
    found = asked("query", ready / "ordered.db", "zoom == far and blur == 0")
    keys = ["robustness", "low", "high", "drop", "tests", "measured", "inferred", "worst"]
    assert list(found) == [*keys, "complete", "partial", "unrun", "population", "finished", "planned", "done"]
    assert (found["tests"], found["measured"], found["inferred"]) == (3, 3, 0)
    assert list(found["worst"][0]) == ["configuration", "estimate", "low", "high"]
    tomogram = testifai.open(ready / "ordered.db")
    answer = tomogram.query("zoom == 5 and blur == 0")
    assert found == json.loads(json.dumps({**answer.as_dict(), "finished": True, "planned": 1120, "done": 1120}))
    assert found["robustness"] == pytest.approx(tomogram.estimate[:, 2, 0].mean())
    assert found["drop"] == pytest.approx(found["robustness"] - tomogram.base)


def test_query_for_people(command, ready):
    code, out, _ = command("query", ready / "full.db", "zoom > 0 and blur == 3", "--inputs", "label in {3, 5}")
    assert code == 0
    found = testifai.open(ready / "full.db").query("zoom > 0 and blur == 3", "label in {3, 5}")
    assert f"{found.robustness:.3f}" in out
    assert "6 tests: 6 run on all inputs, 0 on some, 0 not run" in out
    assert "worst tests" in out


def test_show(command, asked, ready):
    code, out, _ = command("show", ready / "full.db")
    assert code == 0
    for words in ("by order", "by axis and severity", "by class", "worst tests"):
        assert words in out
    found = asked("show", ready / "full.db")
    tomogram = testifai.open(ready / "full.db")
    assert found["by_order"]["2"] == json.loads(json.dumps(tomogram.query("order == 2").as_dict()))
    assert found["by_severity"]["zoom"]["5"]["robustness"] == tomogram.query("zoom == 5").robustness
    assert set(found["by_class"]) == set(map(str, np.unique(demo_data().labels[:80])))
    assert found["environment"]["testifai"] == testifai.__version__


def test_export_a_table(ready, tmp_path, command, asked):
    assert command("export", ready / "full.db", "-o", tmp_path / "t.csv")[0] == 0
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 19
    assert asked("export", ready / "full.db", "-o", tmp_path / "t.json") == {"out": str(tmp_path / "t.json")}
    assert len(json.loads((tmp_path / "t.json").read_text())) == 18


def test_export_a_grid(ready, tmp_path, command):
    code, out, _ = command("export", ready / "full.db", "-o", tmp_path / "g.npz", "--grid")
    assert (code, out) == (0, f"Wrote the grid to {tmp_path / 'g.npz'}\n")
    with np.load(tmp_path / "g.npz") as grid:
        assert grid["passes"].shape == (3, 3, 2, 10)
        counts = np.unpackbits(grid["passes"], axis=-1).sum(axis=-1)
    np.testing.assert_array_equal(counts, testifai.open(ready / "full.db").passes)


def test_export_inputs(ready, folder, tmp_path, command):
    code, out, _ = command("export", ready / "full.db", "-o", tmp_path / "x.npz", "--inputs", "2,5,0", "--limit", "6")
    assert code == 0
    assert "Wrote 6 inputs of configuration 2,5,0" in out
    digits = demo_data().inputs[:6]
    expected = testifai.apply({"mnist_c.brightness": 2, "mnist_c.zoom": 5}, digits)
    with np.load(tmp_path / "x.npz") as made:
        np.testing.assert_array_equal(made["x"], expected)
    moved = ("--spec", folder / "ordered.toml")
    assert command("export", ready / "full.db", "-o", tmp_path / "y.npz", "--inputs", "2,5,0", *moved)[0] == 0
    with np.load(tmp_path / "y.npz") as made:
        np.testing.assert_array_equal(made["x"][:6], expected)


def test_inputs_of_another_data_set_are_not_passed_off_as_the_runs(ready, folder, tmp_path, command):
    np.savez(folder / "digits.npz", x=demo_data().inputs[100:180], y=demo_data().labels[100:180])
    arguments = ("export", ready / "full.db", "-o", tmp_path / "y.npz", "--inputs", "2,5,0")
    code, _, err = command(*arguments, "--spec", folder / "ordered.toml")
    assert code == 2
    assert "not what" in err
    assert "data" in err


def test_check(ready, command, asked, tmp_path):
    code, out, _ = command("check", ready / "ordered.toml")
    assert code == 0
    assert "14 of 18 tests on up to 80 inputs: at most 1,120 inferences" in out
    found = asked("check", ready / "ordered.toml")
    assert (found["tests"], found["run_tests"], found["inferences"]) == (18, 14, 1120)
    assert found["clean_accuracy"] > 0.9


@pytest.fixture
def built_in(monkeypatch):
    """What other tests registered is not to be listed."""
    testifai.perturb.names()
    own = {name: one for name, one in registry._registered.items() if registry.suite_of(name) in registry.SUITES}
    monkeypatch.setattr(registry, "_registered", own)


def test_perturbations_are_listed_by_suite(command, asked, built_in):
    code, out, _ = command("list", "perturbations")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == testifai.perturb.names()
    headings = [line for line in lines if not line.startswith("  ")]
    assert [heading.split(":")[0] for heading in headings] == sorted(registry.SUITES)
    for heading, suite in zip(headings, sorted(registry.SUITES), strict=True):
        assert heading == f"{suite}: {registry.suite_summary(suite)} [{len(testifai.perturb.names(suite))}]"
    (zoom,) = [line for line in lines if line.startswith("  mnist_c.zoom ")]
    assert " 0-5  " in zoom
    assert zoom.endswith("(moves boxes)")
    (noise,) = [line for line in lines if line.startswith("  mnist_c.shot_noise ")]
    assert "boxes" not in noise
    only = command("list", "perturbations", "mnist_c")[1].splitlines()
    assert len(only) == 1 + len(testifai.perturb.names("mnist_c"))


def test_perturbations_as_json(asked, built_in):
    found = {one["name"]: one for one in asked("list", "perturbations")}
    assert list(found) == testifai.perturb.names()
    zoom = found["mnist_c.zoom"]
    assert zoom["suite"] == "mnist_c"
    assert zoom["severities"] == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert zoom["summary"]
    assert zoom["moves_boxes"] is True
    assert found["mnist_c.shot_noise"]["moves_boxes"] is False
    with_levels = [one for one in found.values() if one["levels"] is not None]
    assert with_levels
    assert all(len(one["levels"]) == 2 for one in with_levels)
    assert {one["suite"] for one in asked("list", "perturbations", "classic")} == {"classic"}


def test_perturbations_are_drawn(command, asked, tmp_path):
    import cv2

    sheet = tmp_path / "sheet.png"
    assert f"Wrote {sheet}" in command("list", "perturbations", "mnist_c", "--preview", sheet)[1]
    digits = cv2.imread(str(sheet))
    cv2.imwrite(str(tmp_path / "photo.jpg"), np.full((40, 80, 3), (30, 90, 200), np.uint8))
    assert len(asked("list", "perturbations", "mnist_c", "--preview", sheet, "--image", tmp_path / "photo.jpg")) > 1
    photo = cv2.imread(str(sheet))
    assert photo.shape[0] < digits.shape[0]
    assert np.ptp(photo, axis=-1).max() > 100


def test_composites_are_drawn_and_only_their_perturbations_listed(command, asked, tmp_path):
    sheet = tmp_path / "sheet.png"
    composites = ("--sigma", "mnist_c.zoom=3,mnist_c.rotate=2", "--sigma", "mnist_c.rotate=2,mnist_c.zoom=3")
    out = command("list", "perturbations", "--preview", sheet, *composites)[1].splitlines()
    assert out[0].startswith("mnist_c: ")
    assert [line.split()[0] for line in out[1:]] == ["mnist_c.rotate", "mnist_c.zoom", "Wrote"]
    assert sheet.read_bytes().startswith(b"\x89PNG")
    assert [one["name"] for one in asked("list", "perturbations", "--preview", sheet, *composites)] == [
        "mnist_c.rotate",
        "mnist_c.zoom",
    ]


def test_a_suite_that_cannot_be_imported_is_a_note(command, monkeypatch):
    monkeypatch.setattr(registry, "suite_problems", lambda: ["suite 'x' (package y) could not be imported: E: e"])
    for flags in ((), ("--json",)):
        code, out, err = command("list", "perturbations", "mnist_c", *flags)
        assert code == 0
        assert "mnist_c.zoom" in out
        assert err == "note: suite 'x' (package y) could not be imported: E: e\n"


def test_perturbations_without_a_suite_are_listed_too(command, built_in):
    testifai.perturb.perturbation("fade", severities=[0, 1])(lambda batch, parameter, rng: batch)
    out = command("list", "perturbations")[1].splitlines()
    assert out[0] == "Without a suite [1]"
    assert out[1].split() == ["fade", "0-1"]


def test_code_of_the_users_is_named_before_it_runs(folder, command):
    (folder / "cli_own_model.py").write_text("def model(batch):\n    return batch.reshape(len(batch), -1)[:, :10]\n")
    spec = folder / "ordered.toml"
    spec.write_text(spec.read_text().replace('onnx = "lenet5.onnx"', 'python = "cli_own_model:model"'))
    code, _, err = command("check", spec)
    assert code == 0
    assert "note: runs your own code, named by model.python" in err


@pytest.fixture(scope="module")
def noisy(ready):
    """A run like full.db, of a model whose weights were disturbed."""
    import onnx

    model, rng = onnx.load(str(ready / "lenet5.onnx")), np.random.default_rng(0)
    for tensor in model.graph.initializer:
        weights = onnx.numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.ndim > 1:
            disturbed = weights + 0.5 * weights.std() * rng.normal(size=weights.shape)
            tensor.CopyFrom(onnx.numpy_helper.from_array(disturbed.astype(np.float32), tensor.name))
    onnx.save(model, str(ready / "noisy.onnx"))
    for name, options in (("noisy", ""), ("noisy_part", "seed = 3\nbudget = 900\n")):
        spec = (ready / "full.toml").read_text().replace("lenet5.onnx", "noisy.onnx")
        (ready / f"{name}.toml").write_text(spec + options)
        assert call(["run", ready / f"{name}.toml"]) == 0
    return ready


def test_compare_two_models(command, asked, noisy):
    runs = noisy / "full.db", noisy / "noisy.db"
    queries = ("--query", "zoom == far", "--query", "blur == 0 and brightness <= 2")
    code, out, err = command("compare", *runs, *queries)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith(f"A = {runs[0]}, B = {runs[1]}: 18 tests run in both")
    assert out.splitlines()[2].startswith("zoom == far: B − A ")
    assert "largest losses of B:" in out
    found = asked("compare", *runs, *queries)
    old, new = (testifai.open(path) for path in runs)
    expected = [new.query(query).robustness - old.query(query).robustness for query in queries[1::2]]
    assert [region["difference"] for region in found["regions"]] == pytest.approx(expected)
    assert found["overall"]["low"] == found["overall"]["high"]
    assert found["overall"]["verdict"] == "worse"
    compared = testifai.compare(old, new, queries=queries[1::2]).as_dict()
    assert {key: found[key] for key in compared} == json.loads(json.dumps(compared))


def test_compare_a_run_of_a_part_with_another_seed(asked, noisy):
    whole, part = (asked("compare", noisy / "full.db", noisy / f"{name}.db") for name in ("noisy", "noisy_part"))
    assert part["overall"]["low"] <= whole["overall"]["difference"] <= part["overall"]["high"]
    assert part["overall"]["low"] < part["overall"]["high"]
    assert {test["trials_b"] for test in part["tests"]} == {50}
    partial = asked("compare", noisy / "ordered.db", noisy / "noisy.db", "-q", "order == 3", "-q", "order == 2")
    assert [(region["compared"], region["left_out"]) for region in partial["regions"]] == [(0, 4), (8, 0)]
    assert partial["regions"][0]["difference"] is None
    threes = asked("compare", noisy / "full.db", noisy / "noisy.db", "--inputs", "label in {3, 5}")
    assert threes["inputs"] == np.isin(demo_data().labels[:80], [3, 5]).sum()


def test_compare_a_run_with_itself(command, noisy):
    code, out, _ = command("compare", noisy / "full.db", noisy / "full.db")
    assert code == 0
    assert "all tests: B − A 0 (exact), B is equal; 18 tests" in out
    assert "same model" in out


def test_runs_of_other_data_or_spaces_are_not_compared(command, ready, folder):
    spec = shutil.copy(ready / "full.toml", folder / "other.toml")
    np.savez(folder / "digits.npz", x=demo_data().inputs[100:180], y=demo_data().labels[100:180])
    assert command("run", spec, "-o", folder / "data.db")[0] == 0
    spec.write_text(spec.read_text().replace("[0, 3]", "[0, 4]"))
    assert command("run", spec, "-o", folder / "space.db")[0] == 0
    for name, words in (
        ("data", "data differ: fingerprint"),
        ("space", "severities of axis blur: [0, 3] against [0, 4]"),
    ):
        code, out, err = command("compare", ready / "full.db", folder / f"{name}.db")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err


def test_independence_of_pairs(command, asked, ready):
    code, out, err = command("show", ready / "full.db", "--independence")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("Mean departure of measured from product")
    found = asked("show", ready / "full.db", "--independence")
    assert len(found["pairs"]) == len(found["axes"]) * (len(found["axes"]) - 1) // 2
    assert all(0 <= pair["p_bootstrap"] <= 1 for pair in found["pairs"])
