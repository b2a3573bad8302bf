"""What `testifai check` foretells against what `testifai run` takes, for specs as `testifai init` writes them.

    python benchmarks/foretold.py [--only NAME ...]

Besides the models and data of TESTIFAI_DATA, those that are embedded, and the large space of `large.py`. A ratio is
foretold over real seconds; required is between a half and two. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import large
from common import FOLDER

from testifai.data.sample import demo_model_path

EXAMPLES = {
    "mnist": ("models/mnist_lenet5.onnx", "data/mnist_test.npz"),
    "gtsrb": ("models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz"),
    "cifar10": ("models/cifar10_resnet20.onnx", "data/cifar10_test.npz"),
}


def testifai(*arguments: str) -> str:
    """The output of a command."""
    command = [sys.executable, "-c", "from testifai.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"testifai {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def specs(folder: Path, only: list[str] | None) -> dict[str, Path]:
    """A spec for each example whose files are there."""
    demo = Path(demo_model_path())
    files = {"demo": (demo, demo.with_name("digits.npz"))}
    files |= {name: (FOLDER / model, FOLDER / data) for name, (model, data) in EXAMPLES.items()}
    made = {}
    for name, (model, data) in files.items():
        if (only is None or name in only) and model.exists() and data.exists():
            made[name] = folder / f"{name}.toml"
            testifai("init", str(model.resolve()), str(data.resolve()), "-o", str(made[name]))
    if only is None or "large" in only:
        made["large"] = large.write(folder, axes=6, levels=6, budget=20_000, inputs=5_000)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+")
    given = parser.parse_args()
    kept = True
    print(f"{'spec':10s} {'check':>8s} {'foretold':>8s} {'in fits':>8s} {'real':>8s} {'ratio':>6s}   inferences")
    with tempfile.TemporaryDirectory() as temporary:
        for name, spec in specs(Path(temporary), given.only).items():
            begin = time.perf_counter()
            found = json.loads(testifai("check", str(spec), "--json"))
            middle = time.perf_counter()
            run = json.loads(testifai("run", str(spec), "--json"))
            real, ratio = time.perf_counter() - middle, found["seconds"] / (time.perf_counter() - middle)
            kept &= 0.5 <= ratio <= 2
            times = "".join(f" {value:6.1f} s" for value in (middle - begin, found["seconds"], found["fitting"], real))
            counts = f"{found['foreseen']:,} foretold, {run['inferences']:,} real"
            print(f"{name:10s}{times} {ratio:6.2f}   {counts}", flush=True)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
