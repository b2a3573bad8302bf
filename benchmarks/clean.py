"""Whether runs know the clean accuracy of real models: its 95 % interval against the rate on all inputs.

    python benchmarks/clean.py [--seeds 20] [--budgets 2000 20000]

MNIST and GTSRB: four tests of two perturbations, whose outcomes are all made once; CIFAR-10: the 36 tests of two axes
of the recorded grid. Runs by default, and with a budget, are replayed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from common import need
from replay import Grid, replay

import testifai as ta
from testifai import data as datasets
from testifai import models
from testifai.present.export import write_grid

MADE = {
    "mnist": ("models/mnist_lenet5.onnx", "data/mnist_test.npz", "mnist_c", ("brightness", "shear")),
    "gtsrb": ("models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz", "cure", ("darken", "gaussian_blur")),
}
SEVERITY = 3
RECORDED = {"cifar10": "reference/tomography/cifar10_resnet56.npz"}
AXES = 2


def made(name: str) -> Grid:
    """Every outcome of four tests."""
    model, data = need(*MADE[name][:2])
    suite, axes = MADE[name][2:]
    space = ta.Space({axis: (f"{suite}.{axis}", [0, SEVERITY]) for axis in axes})
    whole = ta.scan(models.load("onnx", str(model)), datasets.load("npz", str(data)), space, strategy="full")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.npz"
        write_grid(whole, path)
        return Grid.read(path)


def recorded(name: str) -> Grid:
    """The tests of the first axes of a grid, the others off."""
    grid = Grid.read(need(RECORDED[name])[0])
    return grid.sub(dict.fromkeys(grid.axes[AXES:], 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budgets", type=int, nargs="+", default=[2_000, 20_000])
    options = parser.parse_args()
    for name in (*MADE, *RECORDED):
        grid = made(name) if name in MADE else recorded(name)
        truth = grid.truth.flat[0]
        for budget in (None, *options.budgets):
            found = [replay(grid, "adaptive", budget=budget, seed=seed).clean for seed in range(options.seeds)]
            covered = sum(one.low <= truth + 1e-12 and truth <= one.high + 1e-12 for one in found)
            half = sum(one.high - one.low for one in found) / 2 / len(found)
            how = "default" if budget is None else f"budget {budget:,}"
            print(
                f"{name:8s} {truth:.4f}  {how:14s}: covered in {covered} of {len(found)}, "
                f"± {half:.4f} on {found[0].trials:,} of {grid.inputs:,} inputs",
                flush=True,
            )


if __name__ == "__main__":
    main()
