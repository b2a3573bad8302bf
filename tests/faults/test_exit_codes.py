"""Exit codes: 0 done, 1 a gate does not hold or is undecided, 2 anything else; nothing of the user's changes them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO

import numpy as np
import pytest

from testifai import cli

CODE = """
import sys
import numpy as np
import testifai as ta

class Ended(BaseException):
    pass

def raising(error):
    def function(*_):
        raise error
    return function

def model(rows):
    return (rows[:, 0] > 1).astype(int)

def data():
    return np.random.default_rng(0).normal(size=(200, 1)), np.arange(200) // 199

shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.3, 0.6, 0.9])
"""
HOLDS = {"query": "shift <= 1", "at_least": 0.5}
FAILS = {"query": "shift == 3", "at_least": 0.9}
UNDECIDED = {"query": "shift == 3", "at_least": 0.55}


@dataclass(frozen=True)
class Case:
    """A spec of a user, other arguments of `run`, and the exit codes of commands; None: it does not apply.

    pytest's own codes are 1 for a test that fails, also of bad input met while it runs, and 2 for a bad file.
    """

    run: int
    report: int | None = None
    pytest: int | None = None
    code: str = ""
    gates: tuple[dict[str, object], ...] = (HOLDS,)
    parts: dict[str, str] = field(default_factory=dict)  # of the spec, by table
    scan: str = 'strategy = "full"'
    arguments: tuple[str, ...] = ()


def fault(name: str, error: str, **rest: object) -> Case:
    """A part of the user's that raises an error when it is called."""
    return Case(2, code=f"{name} = raising({error})", **{"pytest": 1, **rest})


QUALITY = 'strategy = "full"\nquality = {python = "OWN:quality", sample = 20}'
CASES = {
    "a gate that holds": Case(0, 0, 0),
    "a gate that fails": Case(1, 1, 1, gates=(FAILS,)),
    "an undecided gate": Case(1, 1, 1, gates=(UNDECIDED,), scan="budget = 130"),
    "one of two gates fails": Case(1, 1, 1, gates=(HOLDS, FAILS)),
    "no gate": Case(0, 0, 5, gates=()),
    "as JSON, holds": Case(0, arguments=("--json",)),
    "as JSON, fails": Case(1, gates=(FAILS,), arguments=("--json",)),
    "a gate that selects no test": Case(2, None, 2, gates=({"query": "shift > 7", "at_least": 0.5},)),
    "a gate with a typo": Case(2, None, 2, gates=({"query": "shft > 1", "at_least": 0.5},)),
    "a score that the oracle lacks": Case(2, None, 1, gates=({**HOLDS, "score": "f1"},)),
    "an unknown key": Case(2, None, 2, scan="budgt = 3"),
    "not TOML": Case(2, None, 2, scan="= ="),
    "a missing file": Case(2, None, 2, parts={"data": 'npz = "missing.npz"'}),
    "an unknown perturbation": Case(2, None, 2, parts={"space": 'shift = "classic.unknown"'}),
    "a model that is not there": Case(2, None, 1, parts={"model": 'python = "OWN:missing"'}),
    "a module that exits": Case(2, None, 2, code="sys.exit(0)"),
    "a module that raises": Case(2, None, 2, code="raise Ended"),
    "a model that exits": fault("model", "SystemExit(0)"),
    "a model that raises": fault("model", "ValueError('x')"),
    "a model that raises a BaseException": fault("model", "Ended('x')"),
    "a model that raises it in threads": fault("model", "Ended('x')", scan="workers = 2"),
    "a model that runs out of memory": fault("model", "MemoryError()"),
    "a model whose pipe is broken": fault("model", "BrokenPipeError(32, 'x')"),
    "a model with one answer": Case(2, None, 1, code="def model(rows): return [1]"),
    "a model that answers NaN": Case(2, None, 1, code="def model(rows): return rows * np.nan"),
    "data that raise a BaseException": fault("data", "Ended('x')"),
    "data whose pipe is broken": fault("data", "BrokenPipeError(32, 'x')"),
    "a perturbation that raises it": Case(
        2, None, 1, code='shift = ta.Perturbation("shift", raising(Ended("x")), [0, 1, 2, 3])'
    ),
    "an oracle that raises it": fault("oracle", "Ended('x')", scan='oracle = {python = "OWN:oracle"}'),
    "a quality that raises it": fault("quality", "Ended('x')", scan=QUALITY),
    "an unknown option": Case(2, arguments=("--unknown",)),
    "a part that is none": Case(2, arguments=("--part", "3/2")),
    "workers that are none": Case(2, arguments=("--workers", "many")),
    "a folder that is missing": Case(2, 2, arguments=("-o", "missing/spec.db")),
}


def called(*arguments: object) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    return left.value.code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write the spec of a case, once."""
    folders = {}

    def spec(name):
        if name not in folders:
            case, own = CASES[name], f"exit_codes_{len(folders)}"
            folder = folders[name] = tmp_path_factory.mktemp("exit")
            (folder / f"{own}.py").write_text(CODE + case.code + "\n")
            parts = {table: f'python = "OWN:{table}"' for table in ("model", "data")}
            parts |= {"space": 'shift = {python = "OWN:shift"}', "scan": case.scan, **case.parts}
            text = "".join(f"[{table}]\n{lines}\n" for table, lines in parts.items())
            for gate in case.gates:
                text += "[[gate]]\n" + "".join(f"{key} = {value!r}\n" for key, value in gate.items())
            (folder / "spec.testifai.toml").write_text(text.replace("OWN", own))
        return folders[name] / "spec.testifai.toml"

    return spec


@pytest.fixture(scope="module")
def ran(made):
    """Call `run` for a case, once."""
    ended = {}

    def run(name):
        if name not in ended:
            spec = made(name)
            arguments = [str(spec.parent / one) if "/spec" in one else one for one in CASES[name].arguments]
            ended[name] = called("run", spec, *arguments)
        return ended[name]

    return run


def applying(command: str) -> list[str]:
    return [name for name, case in CASES.items() if getattr(case, command) is not None]


@pytest.mark.parametrize("name", CASES)
def test_run(name, ran):
    code, _, err = ran(name)
    assert code == CASES[name].run, err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("error: ")]) == (code == 2), err


@pytest.mark.parametrize("name", applying("report"))
def test_report(name, ran, made):
    ran(name)
    run = made(name).with_suffix(".db")
    code, _, err = called("report", run, "-o", run.with_suffix(".html"), "--examples", "0")
    assert code == CASES[name].report, err


@pytest.mark.parametrize("name", applying("pytest"))
def test_pytest(name, made):
    spec, out = made(name), StringIO()
    plugin = () if _registered() else ("-p", "testifai.pytest_plugin")
    options = ("-p", "no:faulthandler", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:randomly")
    with redirect_stdout(out), redirect_stderr(out):
        code = pytest.main([str(spec), f"--rootdir={spec.parent}", "-q", *plugin, *options])
    assert int(code) == CASES[name].pytest, out.getvalue()


def _registered() -> bool:
    from importlib.metadata import entry_points

    return any(entry.value == "testifai.pytest_plugin" for entry in entry_points(group="pytest11"))


# -- in a process of its own ------------------------------------------------------------------------------------------


def started(command: str, file, rest: str = "") -> subprocess.CompletedProcess[str]:
    line = f'"{sys.executable}" -m testifai {command} "{file}" {rest}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(("command", "rest"), [("run", "--json 2>&1 | true"), ("report", "--examples 0 | true")])
def test_a_reader_that_is_gone_changes_nothing(command, rest, ran, made):
    ran("a gate that fails")
    spec = made("a gate that fails")
    ended = started(command, spec if command == "run" else spec.with_suffix(".db"), rest)
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_thread_of_the_model_does_not_keep_the_command(made, monkeypatch):
    code = "import threading, time\nthreading.Thread(target=time.sleep, args=(50,)).start()\n"
    monkeypatch.setitem(CASES, "a thread", Case(1, code=code, gates=(FAILS,)))
    ended = started("run", made("a thread"))
    assert ended.returncode == 1, ended.stderr
    assert "Saved in" in ended.stdout


def test_parts_of_the_table(made, ran):
    """At least 30 situations, of all three codes."""
    assert len(CASES) >= 30
    assert {case.run for case in CASES.values()} == {0, 1, 2}
    assert np.mean([case.pytest is not None for case in CASES.values()]) > 0.5
