"""A default run over a large space, from the command line: seconds and memory of run, query, show and report.

    python benchmarks/large.py [--axes 6] [--levels 6] [--budget 20000] [--inputs 5000] [--keep FOLDER]

The model is a comparison and the perturbations are subtractions, so that what is timed is planning, fitting,
estimating and drawing; the bare inferences are printed beside it. The requirements are for 46,656 tests with 20,000
inferences on two cores.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import report

MODULE = '''
import numpy as np

from testifai import Perturbation


def model(rows):
    return np.where(rows[:, 0] > 0, rows[:, 1], 1 - rows[:, 1]).astype(int)


def weakened(column, levels):
    """Each severity takes the input's own weakness towards this axis from its margin."""

    def weaken(rows, severity, rng):
        rows = rows.copy()
        rows[:, 0] -= severity * rows[:, column]
        return rows

    return Perturbation(f"weaken{column}", weaken, range(levels))


'''
LIMITS = {"run": 60.0, "query": 5.0, "show": 15.0, "report": 60.0}
MEMORY = 1.5  # GB


def write(folder: Path, axes: int, levels: int, budget: int, inputs: int) -> Path:
    """Data, code and spec of a run."""
    rng = np.random.default_rng(0)
    margin = rng.gamma(4, 0.5, inputs) - 0.15
    weakness = rng.gamma(2, 0.6 / (axes * levels), (inputs, axes)) * np.linspace(0.5, 1.5, axes)
    labels = rng.integers(0, 2, inputs)
    rows = np.column_stack([margin, labels, weakness])
    np.savez(folder / "rows.npz", inputs=rows, labels=labels)
    names = [f"axis{j + 1}" for j in range(axes)]
    lines = [f"{name} = weakened({j + 2}, {levels})" for j, name in enumerate(names)]
    (folder / "large_case.py").write_text(MODULE + "\n".join(lines) + "\n")
    spec = ["[model]", 'python = "large_case:model"', "classes = 2", 'outputs = "labels"']
    spec += ["[data]", 'npz = "rows.npz"', "[space]"]
    spec += [f'{name} = {{ python = "large_case:{name}" }}' for name in names]
    spec += ["[scan]", f"budget = {budget}"]
    (folder / "large.toml").write_text("\n".join(spec) + "\n")
    return folder / "large.toml"


def timed(arguments: Sequence[str], folder: Path) -> tuple[float, float, float, str]:
    """Seconds by the clock and of the processor, the peak of memory in GB, and the output of a command."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = ["/usr/bin/env", sys.executable, "-c", WRAPPED, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"testifai {' '.join(arguments)} failed:\n{done.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, float(done.stderr.split()[-1]) / 1e6, done.stdout


# Each command says its own peak of memory: that of all children together is the largest of them.
WRAPPED = (
    "import atexit, resource, sys\n"
    "from testifai.cli import main\n"
    "say = lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    "atexit.register(say)\n"
    "main()\n"
)


def bare_seconds(folder: Path, budget: int) -> float:
    """The same number of inferences without anything around them."""
    sys.path.insert(0, str(folder))
    import large_case

    rows = np.load(folder / "rows.npz")["inputs"]
    begin = time.perf_counter()
    for start in range(0, budget, 100):
        large_case.model(large_case.axis1.function(rows[start % len(rows) :][:100], 3, None))
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("axes", 6), ("levels", 6), ("budget", 20_000), ("inputs", 5_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=Path, help="a folder to leave spec, run file and report in")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        spec = write(folder, given.axes, given.levels, given.budget, given.inputs)
        spec.with_suffix(".db").unlink(missing_ok=True)
        commands = {
            "run": ["run", spec.name],
            "query": ["query", "large.db", "order == 1", "--json"],
            "show": ["show", "large.db"],
            "report": ["report", "large.db", "--examples", "0"],
        }
        kept = True
        for name, arguments in commands.items():
            wall, used, memory, output = timed(arguments, folder)
            kept &= report(f"{name}, by the clock", wall, "s", LIMITS[name])
            report(f"{name}, processor time", used, "s")
            kept &= report(f"{name}, peak memory", memory, "GB", MEMORY)
            if name == "query":
                answer = json.loads(output)
                report("half-width of order == 1", (answer["high"] - answer["low"]) / 2, "")
        report("the bare inferences", bare_seconds(folder, given.budget), "s")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
