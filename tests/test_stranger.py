"""A stranger's package, installed by pip, adds a part of each kind: one file each, and a line in its pyproject.toml."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("setuptools", "70.1", "building a package without a network needs setuptools 70.1 or newer")

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "testifai-stranger"
version = "0.3"

[tool.setuptools]
packages = ["stranger"]

[project.entry-points."testifai.surrogates"]
overall = "stranger.surrogate:Overall"
[project.entry-points."testifai.strategies"]
single = "stranger.strategy:Single"
[project.entry-points."testifai.models"]
threshold = "stranger.model:ThresholdPart"
broken = "stranger.broken:BrokenPart"
[project.entry-points."testifai.data"]
grid = "stranger.reader:GridPart"
[project.entry-points."testifai.oracles"]
same_side = "stranger.oracle:SameSide"
[project.entry-points."testifai.measures"]
sameness = "stranger.measure:Sameness"
[project.entry-points."testifai.commands"]
count = "stranger.command:count"
tools = "stranger.command:tools"
query = "stranger.command:count"
lost = "stranger.broken:lost"
[project.entry-points."testifai.techniques"]
every_nth = "stranger.technique:EveryNth"
"""

FILES = {
    "__init__": "",
    "command": """
import typer

def count(folder: str, twice: bool = False):
    '''Count the letters of a folder's name.'''
    print(len(folder) * (2 if twice else 1))

tools = typer.Typer(help="Tools for strangers.")

@tools.command()
def first():
    print("first")

@tools.command()
def second():
    print("second")
""",
    "surrogate": """
import numpy as np
from testifai.surrogates.base import Surrogate

class Overall(Surrogate):
    '''Every configuration passes as often as all that were tried.'''
    name = "overall"

    def __init__(self, weight: float = 1.0):
        self.weight = weight

    def fit(self, features, passes, trials, *, single=None):
        self.rate = (np.sum(passes) + self.weight / 2) / (np.sum(trials) + self.weight)
        return self

    def predict(self, features):
        return np.full(len(features), self.rate), None
""",
    "strategy": """
import numpy as np
from testifai.engine.plan import Work
from testifai.strategies.base import Strategy

class Single(Strategy):
    '''The clean test and those of one perturbation alone, on the first inputs.'''
    name = "single"
    surrogate = "overall"

    def __init__(self, inputs: int = 20):
        self.inputs = inputs

    def tests(self, progress):
        chosen = [sigma for sigma in progress.space.configurations(max_order=1)]
        return np.array(sorted(progress.space.id(sigma) for sigma in chosen))

    def propose(self, progress):
        tests = self.tests(progress)
        _, trials = progress.outcomes.counts(tests)
        return Work(tests, np.arange(self.inputs)) if (trials < self.inputs).any() else None

    def expected(self, progress):
        return len(self.tests(progress)) * self.inputs

    def describe(self):
        return {"use": self.name, "inputs": self.inputs}
""",
    "model": """
import hashlib, json
from typing import ClassVar
import numpy as np
from testifai.models import Model, ModelPart

class Threshold(Model):
    '''Bright images are of class 1.'''
    name, outputs, classes, thread_safe = "threshold", "scores", 2, True

    def __init__(self, path, contrast):
        self.text = path.read_text()
        self.level, self.contrast = json.loads(self.text)["level"], contrast

    @property
    def fingerprint(self):
        return hashlib.sha256(f"{self.text} {self.contrast}".encode()).hexdigest()

    def __call__(self, batch):
        above = self.contrast * (batch.reshape(len(batch), -1).mean(axis=1) - self.level)
        return np.stack([-above, above], axis=1)

class ThresholdPart(ModelPart):
    threshold: str
    contrast: float | None = None
    FILES: ClassVar = ("threshold",)
    suffixes: ClassVar = (".level",)

    def load(self, folder):
        return Threshold(self.told(folder)["threshold"], self.contrast or 1.0)
""",
    "reader": """
from typing import ClassVar
import numpy as np
from testifai.data import DataPart, from_arrays

class GridPart(DataPart):
    grid: str
    FILES: ClassVar = ("grid",)
    suffixes: ClassVar = (".grid",)

    def load(self, folder):
        return from_arrays(np.loadtxt(self.told(folder)["grid"]), name="grid")
""",
    "broken": "import a_module_that_is_not_there",
    "oracle": """
from testifai.oracles.base import Oracle, Outcome

class SameSide(Oracle):
    '''Passes where the scores are on the side of the label, by a margin.'''
    name = "same_side"
    needs_labels = True

    def __init__(self, margin: float = 0.0):
        self.margin = margin

    def judge(self, outputs, expected, clean):
        return Outcome((outputs[:, 1] - outputs[:, 0]) * (2 * expected - 1) > self.margin)

    def describe(self):
        return {"use": self.name, "margin": self.margin}
""",
    "measure": """
import numpy as np
from testifai.quality.base import Measure, Score

class Sameness(Measure):
    '''The share of pixels that stayed as they were.'''
    name, higher_is_better = "sameness", True

    def __init__(self, sample: int = 30):
        self.sample = sample

    def describe(self):
        return {"use": self.name, "sample": self.sample}

    def reference(self, clean, model, *, seed):
        return Compared(np.asarray(clean)[: self.sample])

class Compared:
    inferences = 0

    def __init__(self, clean):
        self.clean, self.rows = clean, np.arange(len(clean))

    def score(self, perturbed):
        same = (self.clean == perturbed).reshape(len(self.clean), -1).mean(axis=1)
        return Score(float(same.mean()), float(same.std() / len(same) ** 0.5))
""",
    "technique": """
import numpy as np
from testifai.operational.base import Technique

class EveryNth(Technique):
    '''Examples at equal distances; the interval is that of a coin.'''
    name = "every_nth"

    def __init__(self, start: int = 0):
        self.start = start

    def plan(self, frame, tests, rng):
        step = frame.size // tests
        yield np.arange(self.start, self.start + step * tests, step)
        return {}

    def estimate(self, frame, sample):
        accuracy = 1 - sample.failed.mean()
        half = 1 / len(sample.failed) ** 0.5
        return accuracy, max(0.0, accuracy - half), min(1.0, accuracy + half)
""",
}

SPEC = """
[model]
threshold = "model.level"
contrast = 2.0
[data]
npz = "images.npz"
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 2, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 3] }
[scan]
strategy = { use = "single", inputs = 25 }
surrogate = { use = "overall", weight = 2.0 }
oracle = { use = "same_side", margin = 0.5 }
quality = { use = "sameness", sample = 12 }
"""

PARTS = {
    ("surrogate", "overall"), ("strategy", "single"), ("model", "threshold"), ("data", "grid"),
    ("oracle", "same_side"), ("quality", "sameness"), ("technique", "every_nth"),
}  # fmt: skip


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Runs Python where the stranger's package is installed, in the folder of a spec that names its parts."""
    source, site, work = (tmp_path_factory.mktemp(name) for name in ("source", "site", "work"))
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "stranger").mkdir()
    for name, text in FILES.items():
        (source / "stranger" / f"{name}.py").write_text(text)
    options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(site)]
    pip = [sys.executable, "-m", "pip", "install", *options, str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = (np.where(labels, 160, 90)[:, None, None] + rng.integers(-20, 20, (40, 28, 28))).astype(np.uint8)
    np.savez(work / "images.npz", x=images, y=labels)
    (work / "model.level").write_text('{"level": 128}')
    (work / "spec.toml").write_text(SPEC)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=300, cwd=work,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def test_its_parts_are_listed_with_the_package_they_come_from(stranger):
    code, out, err = stranger("-m", "testifai", "list", "plugins", "--json")
    assert code == 0, err
    theirs = {(one["kind"], one["name"]): one for one in json.loads(out) if one["package"] == "testifai-stranger"}
    names = {("command", name) for name in ("count", "tools", "query", "lost")}
    assert theirs.keys() == {*PARTS, ("model", "broken"), *names}
    assert {one["version"] for one in theirs.values()} == {"0.3"}
    problems = {key: one["problem"] for key, one in theirs.items() if one["problem"]}
    assert problems.keys() == {("model", "broken"), ("command", "query"), ("command", "lost")}
    assert "ModuleNotFoundError: No module named 'a_module_that_is_not_there'" in problems["model", "broken"]


def test_a_spec_that_names_them_all_runs_and_its_run_is_opened_again(stranger):
    code, out, err = stranger("-m", "testifai", "run", "spec.toml", "--json")
    assert code == 0, err
    assert json.loads(out)["inferences"] == 4 * 25  # clean, brightness 2 and 5, zoom 3
    assert "runs your own code" not in err
    queries = (
        "import testifai as ta; run = ta.open('spec.db'); answer = run.query('order >= 0'); "
        "print(answer.tests, answer.measured, answer.inferred, run.query('quality >= 0.99').tests)"
    )
    code, out, err = stranger("-c", queries)
    # Only the clean test leaves every pixel as it was.
    assert (code, out) == (0, "6 4 2 1\n"), err


def test_mistakes_in_its_fields_are_one_line_like_those_in_ours(stranger):
    specs = [
        SPEC.replace("contrast = 2.0", "contrsat = 2.0"),
        SPEC.replace('threshold = "model.level"', 'broken = "x"'),
    ]
    code = f"""
import sys, pathlib
from testifai.cli import main
for text in {specs!r}:
    pathlib.Path("other.toml").write_text(text)
    sys.argv = ["testifai", "check", "other.toml"]
    try: main()
    except SystemExit as stop: print(stop.code)
"""
    _, out, err = stranger("-c", code)
    unknown, broken = err.splitlines()
    assert out.split() == ["2", "2"]
    assert unknown == (
        "error: other.toml: unknown key 'model.contrsat' for threshold; did you mean 'contrast'? (known: contrast)"
    )
    assert "'broken' (package testifai-stranger) could not be imported" in broken


def test_its_model_format_is_found_by_suffix(stranger):
    code = (
        "import pathlib, testifai as ta; from testifai.wizard.init import write_spec; "
        "space = ta.Space({'dark': 'mnist_c.brightness'}); "
        "print(ta.scan('model.level', 'images.npz', space, budget=200).query('order == 0').robustness); "
        "print(write_spec('model.level', 'images.npz', pathlib.Path('found.toml')).model)"
    )
    done, out, err = stranger("-c", code)
    assert (done, out) == (0, "1.0\n{'threshold': 'model.level'}\n"), err


def test_its_commands_are_on_the_help_screen_and_broken_ones_block_no_others(stranger):
    code, out, err = stranger("-m", "testifai", "--help")
    assert code == 0
    assert out.partition("Plug-ins:")[2].split("\n")[1:3] == [
        "  count  Count the letters of a folder's name.",
        "  tools  Tools for strangers.",
    ]
    assert "Report mean robustness over selected tests." in out
    assert sorted(line.partition(" (")[0] for line in err.splitlines()) == [
        "warning: command 'lost'", "warning: command 'query'",
    ]  # fmt: skip
    assert stranger("-m", "testifai", "count", "abc", "--twice", "-v")[:2] == (0, "6\n")
    assert stranger("-m", "testifai", "tools", "second")[:2] == (0, "second\n")
    code, _, err = stranger("-m", "testifai", "lost")
    assert (code, err.count("\n")) == (2, 1)
    assert "'lost' (package testifai-stranger) could not be imported" in err


def test_its_technique_is_chosen_by_name(stranger):
    code = (
        "import numpy as np, testifai as ta; failed = np.arange(100) % 10 == 3; "
        "found = ta.operational.estimate('every_nth', failed=failed, tests=20, start=3); "
        "print(found.technique, found.accuracy, found.selected[:3].tolist())"
    )
    done, out, err = stranger("-c", code)
    assert done == 0, err
    assert out.split(maxsplit=2) == ["every_nth", "0.5", "[3, 8, 13]\n"]


def test_its_data_reader_is_found_by_suffix(stranger):
    code = (
        "import pathlib, testifai as ta; pathlib.Path('rows.grid').write_text('1 2\\n3 4\\n'); "
        "shift = ta.Perturbation('shift', lambda rows, by, rng: rows + by, [0.0, 1.0]); "
        "run = ta.scan(lambda rows: rows[:, 0], 'rows.grid', ta.Space({'shift': shift}), oracle='consistency'); "
        "print(run.trials.tolist())"
    )
    done, out, err = stranger("-c", code)
    assert done == 0, err
    assert out == "[2, 2]\n"
