"""The plug-in in projects of its own, each run by a pytest of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import testifai.present.gate_page  # noqa: F401
from testifai.gates.runner import measure
from testifai.spec.parsing import read

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).parents[1] / "examples" / "gates"
# No other plug-in than the one under test: quicker, and the same wherever it runs.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
NAMED = ["-p", "testifai.pytest_plugin"]

CODE = """
import numpy as np
import testifai as ta

calls = []

def model(x):
    calls.append(len(x))
    return (x[:, 0] > 1).astype(int)

def data():
    return np.random.default_rng(0).normal(size=(200, 1)), np.arange(200) // 199

shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.3, 0.6, 0.9])
"""
SPEC = """
[model]
python = "subject:model"
version = "1"
[data]
python = "subject:data"
[space]
shift = { python = "subject:shift" }
[scan]
budget = 160
population = "data"
"""
HOLDS = '[[gate]]\nname = "mild"\nquery = "shift <= 1"\nat_least = 0.4\n'
FAILS = '[[gate]]\nname = "strong"\nquery = "shift == 3"\nat_least = 0.9\n'
UNDECIDED = '[[gate]]\nquery = "shift == 2"\nat_least = 0.63\n'


@pytest.fixture(scope="module")
def _loaded(tmp_path_factory):
    """Everything imported: an inner pytest takes out of memory what it has imported, which NumPy does not survive."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "subject_first.py").write_text(CODE)
    (folder / "first.toml").write_text((SPEC + FAILS).replace("subject", "subject_first"))
    measure(read(folder / "first.toml"), folder, folder / "cache", name="first")


@pytest.fixture
def project(_loaded, pytester, monkeypatch):
    """A folder with a model and a way to run pytest in it."""
    for key, value in ALONE.items():
        monkeypatch.setenv(key, value)
    pytester.makepyfile(subject=CODE)

    def run(*arguments):
        sys.modules.pop("subject", None)
        return pytester.runpytest_inprocess(*NAMED, *arguments)

    pytester.spec = lambda *gates, name="robust", text=SPEC: (pytester.path / f"{name}.testifai.toml").write_text(
        text + "".join(gates)
    )
    pytester.test = run
    return pytester


def test_every_gate_is_a_test(project):
    project.spec(HOLDS, FAILS, UNDECIDED)
    result = project.test("-v")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "robust.testifai.toml::mild PASSED*",
            "robust.testifai.toml::strong FAILED*",
            "robust.testifai.toml::shift == 2 UNDECIDED*",
        ]
    )
    assert result.ret == 1


def test_the_gates_of_a_project_can_share_their_risk(project):
    """Whichever files and gates are selected; what pytest does not look into does not count."""
    project.spec(HOLDS, FAILS)
    project.spec(HOLDS, name="other")
    project.spec("[[gate]]\nquery = 3\n", name="mistaken")
    for skipped in (".hidden", "build", "env"):
        (project.path / skipped).mkdir()
        (project.path / skipped / "x.testifai.toml").write_text(SPEC + HOLDS * 50)
    (project.path / "env" / "pyvenv.cfg").touch()
    text = project.test("robust.testifai.toml", "-o", "testifai_correction=project").stdout
    text.re_match_lines([r"robust.* bounds at 98.33 %, 95 % shared among 3 gates .*"])
    text.fnmatch_lines_random(["*at 98.33 %, 95 % shared among the 3 gates of the project; valid*"])


def test_a_failure_says_what_was_asked_and_found_and_shows_no_traceback(project):
    project.spec(HOLDS, FAILS, UNDECIDED)
    text = project.test().stdout.str()
    failed, undecided = text.split("gate 'strong'")[1].split("__ shift == 2 __")
    for part, at_least, verdict in (
        (failed, "0.9", "fails: even the upper bound"),
        (undecided, "0.63", "undecided: 0.63 lies"),
    ):
        assert re.search(rf"required +the lower bound is at least {at_least}\n", part)
        assert re.search(r"query +shift == [23]\n", part)
        assert re.search(r"estimate +0\.\d{3} ", part)
        assert re.search(r"interval +(exact|0\.\d{3} … 0\.\d{3}) at 98\.33 %, 95 % shared among the 3 gates", part)
        assert re.search(rf"verdict +{verdict}", part)
        assert re.search(r"worst tests\n +shift [23]  0\.\d{3}", part)
        (run,) = re.findall(r"run file +(\S+)\n", part)
        assert f"  report     testifai report {run} --open\n" in part
    assert re.search(r"would decide it: set budget = \d+ in \[scan\]", undecided)
    assert "Traceback" not in text
    assert "pytest_plugin.py" not in text


def test_a_failure_says_why_the_gate_is_there(project):
    project.spec(FAILS + 'because = "hazard H-12"\n')
    assert re.search(r"required .*\n  because    hazard H-12\n", project.test().stdout.str())


def test_reports_are_written_where_they_are_asked_for(project):
    project.spec(HOLDS, FAILS)
    written = project.test("--testifai-report", "reports")
    written.stdout.re_match_lines([r"report: reports/robust-[0-9a-f]+\.html"])
    (page,) = (project.path / "reports").glob("*.html")
    (short,) = (project.path / "reports").glob("*.md")
    assert "strong" in page.read_text(encoding="utf-8")
    assert "fails" in short.read_text(encoding="utf-8")
    (project.path / "file").touch()
    project.test("--testifai-report", "file").stdout.re_match_lines([r"no report of .*: cannot make file .*"])


def test_the_summary_states_cost_and_correction(project):
    project.spec(HOLDS, FAILS)
    first = project.test()
    first.stdout.re_match_lines(
        [r"robust.testifai.toml: 1 holds, 1 fails; \d+ inferences, all of them new; bounds at 97.5 %, 95 % shared .*"]
    )
    project.test().stdout.fnmatch_lines(["robust.testifai.toml: 1 holds, 1 fails; * inferences, none of them new; *"])
    project.test("-o", "testifai_correction=none").stdout.re_match_lines([r"robust.* bounds at 95 %$"])
    project.test("-o", "testifai_correction=file").stdout.re_match_lines([r"robust.* bounds at 97.5 %, 95 % shared .*"])
    project.test("-o", "testifai_correction=some").stderr.fnmatch_lines(
        ["*testifai_correction: must be one of*'some'*"]
    )


def test_an_unchanged_model_is_not_run_again_and_update_does_so(project):
    project.spec(HOLDS)
    project.makepyfile(test_calls="import subject\ndef test_calls():\n    print('CALLS', sum(subject.calls))\n")

    def calls(*arguments):
        found = re.search(r"CALLS (\d+)", project.test("-rP", *arguments).stdout.str())
        return int(found.group(1))

    first = calls()
    assert first > 0
    assert calls() == 0
    assert calls("--testifai-update") == first
    assert calls() == 0
    assert calls("-p", "no:cacheprovider") == first
    assert calls("-p", "no:cacheprovider") == 0
    assert len(list((project.path / ".testifai_cache").glob("robust-*.db"))) == 1
    assert calls("-o", "testifai_cache=kept") == first
    assert len(list((project.path / "kept").glob("robust-*.db"))) == 1


def test_a_model_that_cannot_be_identified_is_run_again(project):
    project.spec(HOLDS, text=SPEC.replace('version = "1"\n', ""))
    for _ in range(2):
        project.test().stdout.re_match_lines([r"robust.*: 1 holds; \d+ inferences, all of them new; .*"])


def test_the_fixture_hands_over_the_same_measurement(project):
    project.spec(HOLDS)
    folder = project.mkdir("deep")
    (folder / "test_it.py").write_text(
        "def test_it(testifai):\n"
        "    run = testifai('../robust.testifai.toml')\n"
        "    assert run is testifai('../robust.testifai.toml')\n"
        "    assert run.query('shift == 0').robustness > run.query('shift == 3').robustness\n"
        "def test_typo(testifai):\n"
        "    testifai('robst.testifai.toml')\n"
    )
    result = project.test()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["testifai: spec: *robst.testifai.toml does not exist; *"])
    assert "Traceback" not in result.stdout.str()


def test_a_spec_without_gates_is_for_the_fixture_alone(project):
    project.spec()
    project.makepyfile(
        test_it="def test_it(testifai):\n    assert testifai('robust.testifai.toml').inferences == 145\n"
    )
    project.test().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SPEC + HOLDS.replace("at_least", "atleast"), "robust.testifai.toml: unknown key 'gate.0.atleast'*"),
        (SPEC + HOLDS.replace("shift", "shfit"), "robust.testifai.toml: gate mild: *shfit*did you mean 'shift'*"),
        (SPEC + HOLDS.replace("<= 1", "> 7"), "robust.testifai.toml: gate mild: *selects no test*"),
        (SPEC + "[[gate]\n", "robust.testifai.toml: not valid TOML*"),
        (SPEC.replace("subject:shift", "subject:shft") + HOLDS, "robust.testifai.toml: space.shift: *shft*"),
        (
            SPEC.replace('python = "subject:model"\nversion = "1"', 'onnx = "no.onnx"') + HOLDS,
            "robust.testifai.toml: model: *no.onnx*",
        ),
        (SPEC.replace('python = "subject:data"', 'npz = "no.npz"') + HOLDS, "robust.testifai.toml: data: *no.npz*"),
    ],
    ids=["key", "axis", "nothing", "toml", "code", "model", "data"],
)
def test_a_mistake_is_one_line_of_a_collection_error(project, text, line):
    project.spec(text=text)
    project.spec(HOLDS, name="right")
    result = project.test("--continue-on-collection-errors")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*ERROR collecting robust.testifai.toml*", line])
    assert "Traceback" not in result.stdout.str()


def test_two_modules_of_the_same_name_are_told_apart(project):
    """Python knows one module of a name: the second project would silently be tested with the first one's model."""
    for name in ("one", "two"):
        folder = project.mkdir(name)
        (folder / "subject.py").write_text(CODE)
        (folder / f"{name}.testifai.toml").write_text(SPEC + HOLDS)
    result = project.test("--continue-on-collection-errors")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(
        ["two.testifai.toml: 'subject:model': a module 'subject' from *one is imported already; *"]
    )


def test_what_only_shows_when_it_is_run_is_one_line_too(project):
    project.spec(HOLDS + 'inputs = "label == 7"\n', FAILS)
    result = project.test()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["error: gate mild: inputs: *selects no input*"])
    assert "Traceback" not in result.stdout.str()


def test_an_error_in_the_users_model_keeps_its_traceback(project):
    project.makepyfile(subject=CODE.replace("calls.append(len(x))", "raise KeyError('lost')"))
    project.spec(HOLDS)
    result = project.test()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*lost*"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("np.random.default_rng().integers(0, 2, len(x))", "the model is not deterministic"),
        ("(x[:, 0] > x.mean()).astype(int)", "the model's answers depend on the batch"),
    ],
)
def test_a_model_that_is_not_repeatable_is_reported(project, answer, said):
    """Also from the cache; it shows in the summary, and on the page of a gate that fails."""
    project.makepyfile(subject=CODE.replace("return (x[:, 0] > 1).astype(int)", f"return {answer}"))
    project.spec(FAILS, text=SPEC.replace("budget = 120", "budget = 600"))
    for _ in range(2):
        text = project.test().stdout
        text.re_match_lines([rf"robust.testifai.toml: warning: {said}: of \d+ clean inputs .*"])
        text.re_match_lines([rf"  warning +{said}: .*"])


def test_class_indices_that_do_not_match_are_reported(project):
    rotated = CODE.replace("return (x[:, 0] > 1).astype(int)", "return (thirds(x) + 1) % 3")
    rotated = rotated.replace(
        "    return np.random.default_rng(0).normal(size=(200, 1)), np.arange(200) // 199",
        (
            "    x = np.random.default_rng(0).normal(size=(200, 1))\n    return x, thirds(x)\n\n"
            "def thirds(x):\n    return np.digitize(x[:, 0], [-0.4, 0.4])"
        ),
    )
    project.makepyfile(subject=rotated)
    project.spec(FAILS, text=SPEC.replace("budget = 120", ""))
    for _ in range(2):
        project.test().stdout.re_match_lines([r"robust.testifai.toml: warning: clean accuracy is .* but 1.000 with .*"])


def test_names_may_repeat_and_gates_can_be_run_alone(project):
    project.spec(HOLDS, HOLDS.replace("<= 1", "<= 2").replace("0.5", "0.4"), UNDECIDED)
    result = project.test("-v", "--collect-only")
    result.stdout.fnmatch_lines(["*<GateItem mild>*", "*<GateItem mild (2)>*", "*<GateItem shift == 2>*"])
    alone = project.test("robust.testifai.toml::mild (2)")
    alone.assert_outcomes(passed=1)
    # The doubt is shared among all gates of the file, whichever of them are run.
    alone.stdout.fnmatch_lines(["*shared among 3 gates*"])


def test_failures_point_at_the_gate_in_the_file(project):
    project.spec(HOLDS, FAILS)
    lines = (project.path / "robust.testifai.toml").read_text().splitlines()
    place = [number for number, text in enumerate(lines, start=1) if text == "[[gate]]"][1]
    result = project.test("--junit-xml=out.xml", "-o", "junit_family=xunit1")
    assert result.ret == 1
    case = ElementTree.parse(project.path / "out.xml").find(".//testcase[@name='strong']")
    assert (case.get("file"), int(case.get("line"))) == ("robust.testifai.toml", place - 1)
    facts = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert facts["testifai_status"] == "fails"
    assert float(facts["testifai_low"]) <= float(facts["testifai_robustness"]) <= float(facts["testifai_high"]) < 0.9
    assert "query" in case.find("failure").text


def test_a_project_without_such_files_pays_nothing():
    script = (
        "import sys, testifai.pytest_plugin\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'onnxruntime', 'cv2', 'pydantic', 'rich')\n"
        "print([name for name in heavy if name in sys.modules and name not in before])"
    )
    before = "import sys, pytest\nbefore = set(sys.modules)\n"
    made = subprocess.run([sys.executable, "-c", before + script], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"


def test_processes_side_by_side_measure_once(project):
    pytest.importorskip("xdist")
    project.spec(HOLDS, FAILS, UNDECIDED)
    result = project.runpytest_subprocess(*NAMED, "-p", "xdist", "-n", "2", "--testifai-update")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.re_match_lines([r"robust.testifai.toml: 1 holds, 1 fails, 1 undecided; .* all of them new; .*"])


# -- the example ------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?")


def comparable(text):
    """Words as they are, numbers apart, without what differs from machine to machine.

    Of the worst tests only the rates count: which of two that are nearly as bad comes first is a matter of rounding.
    """
    text = re.sub(r" +(run file|report  ) .*|in \d+\.\d+s.*| +$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^    \w.*?(?=  0\.)", "    test", text, flags=re.MULTILINE)
    numbers = [float(found.group().replace(",", "")) for found in NUMBER.finditer(text)]
    return re.sub(r"[ =_-]+", " ", NUMBER.sub("#", text)).split("\n"), numbers


def test_the_example_prints_what_is_written_beside_it(tmp_path):
    command = [sys.executable, "-m", "pytest", *NAMED, "-o", f"cache_dir={tmp_path}", "--color=no"]
    # pytest writes its last lines in full where these say that a service runs it.
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    environment |= {**ALONE, "COLUMNS": "80"}
    made = subprocess.run(
        command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 1, made.stdout + made.stderr
    words, numbers = comparable(made.stdout)
    expected_words, expected = comparable((EXAMPLE / "output.txt").read_text(encoding="utf-8"))
    assert words == expected_words
    # Libraries of other versions may round a pixel otherwise.
    for found, wanted in zip(numbers, expected, strict=True):
        assert found == pytest.approx(wanted, abs=0.03 if wanted <= 1 else 0.1 * wanted)
