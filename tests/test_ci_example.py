"""The workflow in examples/ci: YAML that says what it means to, and whose commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax, as far as they are used here
KEYS = {"name", "on", "permissions", "env", "jobs"}
JOB_KEYS = {"runs-on", "timeout-minutes", "steps"}
STEP_KEYS = {"if", "uses", "with", "run"}


@pytest.fixture(scope="module")
def workflow():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found = yaml.safe_load((EXAMPLES / "ci" / "robustness.yml").read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # in YAML 1.1, which PyYAML reads, a bare `on` is a truth value
    return found


@pytest.fixture(scope="module")
def steps(workflow):
    (job,) = workflow["jobs"].values()
    assert job.keys() <= JOB_KEYS
    return job["steps"]


def test_keys_are_those_of_workflows(workflow, steps):
    assert workflow.keys() == KEYS
    for step in steps:
        assert step.keys() <= STEP_KEYS
        assert ("uses" in step) != ("run" in step)
        assert "uses" not in step or re.fullmatch(r"actions/[a-z/-]+@v\d+", step["uses"])


def test_what_is_measured_is_kept_and_uploaded(steps):
    by_name = {step["uses"].partition("@")[0]: step["with"] for step in steps if "with" in step}
    restored, saved = by_name["actions/cache/restore"], by_name["actions/cache/save"]
    folder = restored["path"]
    assert not folder.startswith(".")
    assert (saved["path"], saved["key"]) == (folder, restored["key"])
    assert saved["key"].startswith(restored["restore-keys"])
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("pytest"))
    assert f"testifai_cache={folder}" in command
    report = re.search(r"--junit-xml=(\S+)", command).group(1)
    assert by_name["actions/upload-artifact"]["path"].split() == [report, "reports", f"{folder}/*.db"]
    # What happens whether gates hold or not.
    assert [step.get("uses") or step["run"].split()[0] for step in steps if step.get("if") == "always()"] == [
        "actions/cache/save@v4",
        "cat",
        "actions/upload-artifact@v4",
    ]


def test_what_it_installs_is_a_checkout_and_no_package_that_does_not_exist(workflow, steps):
    (install,) = (step["run"] for step in steps if step.get("run", "").startswith("pip"))
    assert shlex.split(install) == ["pip", "install", "$TESTIFAI", "pytest"]
    assert workflow["env"]["TESTIFAI"] == "./testifai"
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "testifai"
    (checkout,) = (step for step in steps if step.get("uses", "").startswith("actions/checkout"))
    assert checkout["with"]["submodules"] is True


def test_its_pytest_command_runs_and_leaves_what_is_uploaded(steps, tmp_path):
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("pytest"))
    program, folder, *options = shlex.split(command)
    assert program == "pytest"
    project = tmp_path / folder
    project.mkdir(parents=True)
    (project / "subject.py").write_text(
        "import numpy as np\n"
        "def model(x):\n    return (x[:, 0] > 1).astype(int)\n"
        "def data():\n    return np.zeros((200, 1)), np.arange(200) // 199\n"
        "import testifai as ta\n"
        "shift = ta.Perturbation('shift', lambda x, by, rng: x + by, [0, 0.5, 2.0])\n"
    )
    (project / "small.testifai.toml").write_text(
        '[model]\npython = "subject:model"\n[data]\npython = "subject:data"\n'
        '[space]\nshift = { python = "subject:shift" }\n'
        '[[gate]]\nquery = "shift <= 1"\nat_least = 0.5\n[[gate]]\nquery = "shift == 2"\nat_least = 0.9\n'
    )
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p testifai.pytest_plugin"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", folder, *options], cwd=tmp_path, env=plain, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert (tmp_path / "robustness.xml").is_file()
    assert len(list((tmp_path / "testifai-runs").glob("*.db"))) == 1
    (summary,) = (step["run"] for step in steps if step.get("run", "").startswith("cat"))
    told = tmp_path / "summary.md"
    shell = subprocess.run(["sh", "-c", summary], cwd=tmp_path, env={**plain, "GITHUB_STEP_SUMMARY": str(told)})
    assert shell.returncode == 0
    assert "❌ fails" in told.read_text(encoding="utf-8")
    assert len(list((tmp_path / "reports").glob("*.html"))) == 1
