"""A run of 50,000 inferences over more and more inputs: what grows with their number.

    python benchmarks/inputs.py [--inputs 10000 100000 1000000] [--kinds classes flat npz csv] [--folder FOLDER]

The images are hard links to a few hundred files, in class folders and in one without any; the arrays lie in an npz
file, the texts in a CSV file. For each: seconds until the model is first asked, the files opened until then and in all,
seconds and peak memory of the run, of the same run continued when there is nothing left to do, of `show` and of
`report`, the size of the run file, and the same inferences done bare (files read and decoded, perturbed and classified
in batches). The folder is filled once and left behind where it is named.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

BUDGET = 50_000
FILES, SIDE, CLASSES = 256, 32, 10

MODULE = f'''
import os
import time

import numpy as np

MARK = os.environ.get("FIRST_INFERENCE")


def first():
    """When the model was first asked, and how many files had been opened by then."""
    global MARK
    if MARK:
        with open(MARK, "w") as file:
            file.write(f"{{time.time()}} {{int(os.environ.get('OPENED', 0))}}")
        MARK = None


def image(batch):
    first()
    return (batch.reshape(len(batch), -1).mean(axis=1) * {CLASSES} / 256).astype(int)


def text(batch):
    first()
    return np.array([len(one) % {CLASSES} for one in batch])
'''

# Says its peak of memory, and counts the opened files of the folder with the data.
WRAPPED = """
import atexit, os, sys
folder, opened = os.environ["INPUTS_FOLDER"], 0
def count(event, arguments):
    global opened
    if event == "open" and isinstance(arguments[0], (str, bytes)) and folder in os.fsdecode(arguments[0]):
        opened += 1
        os.environ["OPENED"] = str(opened)
sys.addaudithook(count)
from testifai.cli import main
def say():
    # Not ru_maxrss, which begins with what the parent had.
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(peak, opened, file=sys.stderr)
atexit.register(say)
main()
"""


def classes(folder: Path, inputs: int) -> str:
    """Images in class folders."""
    _link(folder / "classes", inputs, lambda number: f"{number % FILES % CLASSES}/")
    return 'folder = "classes"'


def flat(folder: Path, inputs: int) -> str:
    """Images in one folder, without labels."""
    _link(folder / "flat", inputs, lambda number: "")
    return 'folder = "flat"'


def npz(folder: Path, inputs: int) -> str:
    """Images in an array."""
    images = np.random.default_rng(0).integers(0, 256, (FILES, SIDE, SIDE, 3), dtype=np.uint8)
    labels = np.arange(inputs) % FILES % CLASSES
    np.savez(folder / "images.npz", x=images[np.arange(inputs) % FILES], y=labels)
    return 'npz = "images.npz"'


def texts(folder: Path, inputs: int) -> str:
    """Texts in a table."""
    rng = np.random.default_rng(0)
    words = np.array(["good", "bad", "a", "the", "film", "was", "plot", "acting", "slow", "brilliant", "music"])
    with (folder / "texts.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for start in range(0, inputs, 10_000):
            chosen = words[rng.integers(0, len(words), (min(10_000, inputs - start), 12))]
            lines = [" ".join(row) for row in chosen.tolist()]
            table.writerows((line, len(line) % CLASSES) for line in lines)
    return 'csv = "texts.csv"'


KINDS: dict[str, Callable[[Path, int], str]] = {"classes": classes, "flat": flat, "npz": npz, "csv": texts}


def _link(folder: Path, inputs: int, place: Callable[[int], str]) -> None:
    import cv2

    if folder.exists():
        return
    rng = np.random.default_rng(0)
    source = folder.parent / "files"
    source.mkdir(exist_ok=True)
    for number in range(FILES):
        level = (number % CLASSES + 0.5) * 256 / CLASSES
        image = np.clip(level + rng.normal(0, 20, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
        cv2.imwrite(str(source / f"{number}.png"), image)
    for number in range(FILES):
        (folder / place(number)).mkdir(parents=True, exist_ok=True)
    for number in range(inputs):
        os.link(source / f"{number % FILES}.png", f"{folder}/{place(number)}{number:07d}.png")


def write(folder: Path, kind: str, inputs: int) -> Path:
    """Data, code and spec of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    data = KINDS[kind](folder, inputs)
    (folder / "many_inputs.py").write_text(MODULE)
    axes = {"brightness": "deeptest.brightness", "contrast": "deeptest.contrast", "scale": "deeptest.scale"}
    if kind == "csv":
        axes = {"typo": "text.typo", "case": "text.case", "punctuation": "text.punctuation"}
    spec = ["[model]", f'python = "many_inputs:{"text" if kind == "csv" else "image"}"', f"classes = {CLASSES}"]
    spec += ['outputs = "labels"', "[data]", data, "[space]"]
    spec += [f'{name} = "{use}"' for name, use in axes.items()]
    spec += ["[scan]", f"budget = {BUDGET}", *(['oracle = "consistency"'] if kind == "flat" else [])]
    path = folder / f"{kind}.toml"
    path.write_text("\n".join(spec) + "\n")
    return path


def command(folder: Path, *arguments: str) -> dict[str, float]:
    """What a command took, and when it first asked the model."""
    mark = folder / "first"
    mark.unlink(missing_ok=True)
    environment = {**os.environ, "FIRST_INFERENCE": str(mark), "INPUTS_FOLDER": str(folder)}
    begin = time.time()
    done = subprocess.run(
        [sys.executable, "-c", WRAPPED, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    seconds = time.time() - begin
    if done.returncode:
        sys.exit(f"testifai {' '.join(arguments)} failed:\n{done.stderr}")
    memory, opened = map(int, done.stderr.split()[-2:])
    first, before = mark.read_text().split() if mark.exists() else (begin, 0)
    return {
        "seconds": seconds,
        "memory": memory / 1e6,
        "opened": opened,
        "first": float(first) - begin,
        "before": int(before),
    }


def bare(folder: Path, spec: Path) -> float:
    """Seconds for as many inferences without anything around them."""
    from testifai.session import assembly
    from testifai.spec.parsing import read

    made = assembly.session(read(spec), folder)
    subject, rng = made.subject, np.random.default_rng(0)
    tests = rng.integers(0, made.space.size, BUDGET // 100).tolist()
    pool = min(len(made.data), BUDGET // 6)
    begin = time.perf_counter()
    for number, test in enumerate(tests):
        places = (number * 100 + np.arange(100)) % pool
        made.model(subject.composite(made.space.configuration(test), places))
    return time.perf_counter() - begin


def measure(folder: Path, kind: str, inputs: int) -> None:
    """Print a line for each command."""
    spec = write(folder, kind, inputs)
    run_file = spec.with_suffix(".db")
    run_file.unlink(missing_ok=True)
    commands = {
        "run": ["run", spec.name],
        "continue": ["run", spec.name],
        "show": ["show", run_file.name],
        "report": ["report", run_file.name, "--examples", "0"],
    }
    for name, arguments in commands.items():
        found = command(folder, *arguments)
        line = f"{kind:8s} {inputs:9,d} {name:8s} {found['seconds']:7.1f} s {found['memory']:6.2f} GB"
        if name in ("run", "continue"):
            line += f"   opened {found['opened']:9,d}"
        if name == "run":
            line += f", {found['before']:,d} before the first inference after {found['first']:.1f} s"
            line += f", run file {run_file.stat().st_size / 1e6:.1f} MB"
        print(line, flush=True)
    print(f"{kind:8s} {inputs:9,d} {'bare':8s} {bare(folder, spec):7.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--folder", type=Path, help="where the data are made, or lie from another time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for kind in given.kinds:
            for inputs in given.inputs:
                measure((given.folder or Path(temporary)).resolve() / f"{inputs}", kind, inputs)


if __name__ == "__main__":
    main()
