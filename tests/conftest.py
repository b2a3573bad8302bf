"""What tests of several packages share."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from testifai import cli
from testifai.data.sample import demo_data, demo_model_path
from testifai.perturb import Perturbation
from testifai.report.pdf import find_chromium
from testifai.runs.outcomes import Outcomes
from testifai.space import Space
from testifai.tomogram import Tomogram

from .skips import summary

# Recorded grids and the pages of the evaluations live in `benchmarks`, which is no package.
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


# How long an example takes says more about the machine than about the code.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")


def pytest_terminal_summary(terminalreporter):
    """Say in one line what was skipped, and what to install or set for it."""
    reports = terminalreporter.stats.get("skipped", [])
    if reports:
        terminalreporter.write_line(summary(str(report.longrepr[-1]) for report in reports))


@pytest.fixture(autouse=True)
def interruptible():
    """Processes that a test starts hear interrupts.

    They inherit it where interrupts are ignored: by a shell for what it runs in the background, and in this process
    after a test in which the command line was interrupted.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser():
    """A real Chromium; without one, tests that need it are skipped, loudly."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    missing = [name for name, found in (("playwright", sync_playwright), ("Chromium", find_chromium())) if not found]
    if missing:
        warnings.warn(f"no {' and no '.join(missing)} here: the pages were NOT tested in a browser", stacklevel=1)
        pytest.skip(f"no {' and no '.join(missing)}")
    flags = [*FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else FLAGS
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        yield launched
        launched.close()


# -- the project that most commands are tried on

MODEL_AND_DATA = """
[model]
onnx = "lenet5.onnx"
[data]
npz = "digits.npz"
"""


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """Makes a folder with a model, so many digits, and specs by name: the texts given, about these two."""

    def make(count: int, **specs: str):
        folder = tmp_path_factory.mktemp("digits")
        shutil.copy(demo_model_path(), folder / "lenet5.onnx")
        data = demo_data()
        np.savez(folder / "digits.npz", x=data.inputs[:count], y=data.labels[:count])
        for name, text in specs.items():
            (folder / f"{name}.toml").write_text(MODEL_AND_DATA + text)
        return folder

    return make


# -- small tomograms whose every number is known, and a run made from a spec

INPUTS = 40

SPEC = """
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
blur = { use = "mnist_c.motion_blur", severities = [0, 2, 4] }
[scan]
strategy = "ordered"
population = "data"
[[gate]]
name = "clean & <b>bold</b>"
query = "order == 0"
at_least = 0.9
[[gate]]
query = "blur == 4 and zoom == 0 and brightness == 0"
at_least = 0.99
[[gate]]
name = "open"
query = "order >= 0"
at_least = 0.2
"""


def passes(sigma) -> int:
    """How many of the inputs pass a test of these spaces."""
    return max(3, INPUTS - 3 * sum(sigma) - (4 if np.count_nonzero(sigma) > 2 else 0))


def make(axes: int, levels=(0, 1, 2, 3), max_order: int | None = None, **options) -> Tomogram:
    """Every test up to an order, tried on all inputs."""
    fade = Perturbation("fade", lambda batch, parameter, rng: batch, tuple(range(max(levels) + 1)))
    space = Space({name: (fade, list(levels)) for name in "abcdef"[:axes]})
    outcomes = Outcomes(INPUTS)
    for sigma in space.configurations(max_order):
        outcomes.record(space.id(sigma), np.arange(INPUTS), np.arange(INPUTS) < passes(sigma))
    labels = np.arange(INPUTS) % 2
    return Tomogram(space, outcomes, np.arange(INPUTS), labels=labels, classes=("<i>cat</i>", "dog"), **options)


@pytest.fixture(scope="session")
def tomogram():
    """The function that makes them."""
    return make


@pytest.fixture(scope="session")
def full():
    """Three axes, all tests measured on all inputs."""
    return make(3)


@pytest.fixture(scope="session")
def partial():
    """Three axes with uneven severities, tests up to order 2 measured, the others predicted without intervals."""
    return make(3, (0, 1, 3, 5), 2)


@pytest.fixture(scope="session")
def finished(digits):
    """Makes a folder with a model, so many digits, a spec and its finished run."""

    def make(count, spec):
        folder = digits(count, spec=spec)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", "run", str(folder / "spec.toml"), "--json"])
            with pytest.raises(SystemExit):
                cli.main()
        return folder

    return make


@pytest.fixture(scope="session")
def run_folder(finished):
    """A folder with a model, data, a spec and its finished run."""
    return finished(60, SPEC)


@pytest.fixture
def run_copy(run_folder, tmp_path):
    """The same, to be spoilt."""
    shutil.copytree(run_folder, tmp_path / "run")
    return tmp_path / "run"


# -- a run with something under every key of its file, and commands through the entry point

WHOLE = """
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
[scan]
strategy = "ordered"
budget = 200
keep = ["predicted", "value"]
quality = { use = "ssim", sample = 5 }
[[gate]]
name = "clean"
query = "order == 0"
at_least = 0.9
"""


def run_command(capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of a command; a traceback is an error of the test."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return left.value.code, printed.out, printed.err


@pytest.fixture
def call(capsys):
    """Runs a command."""
    return lambda *arguments: run_command(capsys, *arguments)


@pytest.fixture(scope="session")
def whole_run(digits):
    """A folder with a model, data, a spec, its run with a sweep, and a run of `testifai errors`."""
    folder = digits(40, spec=WHOLE)
    for arguments in (
        ["run"],
        ["sweep", "-p", "classic.gaussian_noise", "--points", "8"],
        ["errors", "--per-class", "2"],
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["testifai", arguments[0], str(folder / "spec.toml"), *arguments[1:], "--json"])
            with pytest.raises(SystemExit) as left:
                cli.main()
        assert left.value.code in (0, 1)
    return folder
