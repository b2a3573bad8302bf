"""Shell completion, asked for as shells do: by an environment variable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from testifai import cli

HEAVY = ["torch", "sklearn", "scipy.stats", "cv2", "onnxruntime", "pandas", "plotly", "dash", "flask"]
FILES = {
    "mine.toml": "[space]\nhaze = 'imagenet_c.fog'\n", "other.toml": "no toml", "mine.db": "", "a b.db": "",
    "to_label.csv": "", "notes.txt": "", "deep/inner.db": "",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ask(folder, monkeypatch, capsys):
    def asked(line, shell="bash", **more):
        for name, value in asking(line, shell, **more).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["testifai"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert (ended.value.code, said.err) == (0, "")
        return said.out

    return asked


def asking(line, shell="bash", **more):
    """What a shell sets where Tab is pressed at the end of a line."""
    return {
        "_TESTIFAI_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("testifai label se", ["select"]),
        ("testifai label page --sh", ["--show-prediction", "--show-path"]),
        ("testifai run ", ["mine.toml", "other.toml"]),
        ("testifai show m", ["mine.db"]),  # a name with a space is left to the shell
        ("testifai show deep/", ["deep/inner.db"]),
        ("testifai show nowhere/", []),
        ("testifai label page ", ["to_label.csv"]),
        ("testifai errors m", ["mine.db", "mine.toml"]),
        ("testifai explore mine.db --spec o", ["other.toml"]),
        ("testifai show mine.db --by s", ["severity"]),
        ("testifai sweep mine.toml -p ha", ["haze"]),
        ("testifai sweep other.toml -p c", ["classic.", "cifar_c.", "cure."]),
        ("testifai sweep mine.toml -p mnist_c.z", ["mnist_c.zigzag", "mnist_c.zoom"]),
        ("testifai sweep mine.toml -p nosuch.", []),
        ("testifai list perturbations im", ["imagenet_c"]),
        ("testifai label select mine.toml --technique c", ["ces", "combined", "confidence", "css"]),
    ],
)
def test_what_is_offered_in_bash(ask, line, offered):
    assert ask(line).split() == offered


def test_the_other_shells(ask):
    assert '"mine.db"' in ask("testifai show m", "zsh")
    assert ask("testifai show x", "zsh") == "_files\n"
    assert ask("testifai label est", "fish", _TYPER_COMPLETE_FISH_ACTION="get-args").startswith("estimate\t")


@pytest.mark.parametrize(
    "line", ["testifai label select mine.toml --technique ", "testifai sweep mine.toml -p mnist_c."]
)
def test_nothing_heavy_is_imported_for_it(folder, line):
    script = (
        "import sys\nfrom testifai import cli\nsys.argv = ['testifai']\ntry: cli.main()\n"
        f"finally: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    made = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **asking(line)}, capture_output=True, text=True, timeout=120
    )
    assert (made.returncode, made.stderr.splitlines()[-1]) == (0, "[]")
    assert made.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_script_works_in_a_real_bash(folder, ask):
    """What `--show-completion` prints, sourced, and a Tab pressed."""
    script = ask("", _TESTIFAI_COMPLETE="source_bash")
    (folder / "testifai").write_text(f'#!/bin/sh\nexec {sys.executable} -m testifai "$@"\n')
    (folder / "testifai").chmod(0o755)
    tab = 'COMP_WORDS=(testifai show m)\nCOMP_CWORD=2\n_testifai_completion ./testifai\necho "${COMPREPLY[@]}"'
    made = subprocess.run(["bash", "-c", f"{script}\n{tab}"], capture_output=True, text=True, timeout=120)
    assert (made.stdout, made.stderr) == ("mine.db\n", "")


def test_the_script_is_shown_and_installed(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the shell that runs this may be any
    for option in ("--show-completion", "--install-completion"):
        monkeypatch.setattr("sys.argv", ["testifai", option, "bash"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        assert "completion" in capsys.readouterr().out
    assert "_TESTIFAI_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "testifai.sh").read_text()
