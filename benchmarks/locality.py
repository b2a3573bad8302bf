"""Local and global robustness of a LeNet-5 on MNIST under noise, rotation and brightness, and the loop closed.

    python benchmarks/locality.py [--splits 20] [--no-training]

First the local robustness of every digit, 200 inputs each. Then the global robustness of an adder of two digits for all
55 pairs of classes: predicted from the local tables alone, and measured on fresh inputs; once through the engine, and
then for other random divisions of the same answers into the 200 per class and the rest. Then the advice of the first
trend is followed in training (needs the extra torch), and local robustness measured again on inputs that neither found
the weakness nor were trained on.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import need, report
from evaluation.locality_answers import PER_CLASS, halves
from numpy.typing import NDArray

import testifai as ta
from testifai.data import load
from testifai.locality import Agreement, Local, Trend, agreement, compose, composed, explain, local, paired
from testifai.models.onnx import OnnxModel

PROPERTIES = {
    "noise": "classic.gaussian_noise",
    "rotation": "classic.rotation",
    "brightness": "classic.brightness",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--no-training", action="store_true")
    arguments = parser.parse_args()
    model_path, data_path = need("models/mnist_lenet5.onnx", "data/mnist_test.npz")
    model, data = OnnxModel(model_path), load("npz", data_path)
    table = local_robustness(model, data)
    global_robustness(model, data, table, arguments.splits)
    if not arguments.no_training:
        close_the_loop(model_path, model, data, table)


# -- local ------------------------------------------------------------------------------------------------------------


def local_robustness(model: Any, data: Any) -> Local:
    begin = time.perf_counter()
    table = local(model, data, PROPERTIES, per_class=PER_CLASS)
    seconds = time.perf_counter() - begin
    print(f"local robustness, {PER_CLASS} inputs of each class (available: {table.available.tolist()})\n")
    print_table(table)
    report("\nlocal robustness measured in", seconds, "s")
    return table


def print_table(table: Local) -> None:
    """LR of class and property with its interval, then the means."""
    cells, classes, properties, all_ = (
        table.by_class_and_property(), table.by_class(), table.by_property(), table.overall()
    )  # fmt: skip
    print("class  " + "".join(f"{name:>24s}" for name in (*table.properties, "mean")))
    for place, name in enumerate(table.classes):
        row = [*zip(cells.rate[place], cells.low[place], cells.high[place], strict=True)]
        row.append((classes.rate[place], classes.low[place], classes.high[place]))
        print(f"{name:7s}" + "".join(f"{f'{r:.3f} ({low:.3f}-{high:.3f})':>24s}" for r, low, high in row))
    row = [*zip(properties.rate, properties.low, properties.high, strict=True), (all_.rate, all_.low, all_.high)]
    print("mean   " + "".join(f"{f'{r:.3f} ({low:.3f}-{high:.3f})':>24s}" for r, low, high in row))


# -- global -----------------------------------------------------------------------------------------------------------


def global_robustness(model: Any, data: Any, table: Local, splits: int) -> None:
    assert table.sampled is not None
    begin = time.perf_counter()
    predicted = compose(table)
    seconds = time.perf_counter() - begin
    measured = composed(model, data, PROPERTIES, pairs=None, exclude=table.sampled.ids)
    found = agreement(predicted, measured)
    print(f"\nglobal robustness of the adder, {len(found.tuples)} pairs; predicted / measured on fresh inputs\n")
    print("pair   " + "".join(f"{name:>30s}" for name in found.conditions))
    for place, pair in enumerate(found.tuples):
        print(f"{' + '.join(pair):7s}" + "".join(_cell(found, place, which) for which in range(len(found.conditions))))
    print("\n" + "\n".join(found.statements()))
    report("composed from local tables (55 pairs, 3 properties) in", seconds, "s", 1.0)
    report("outside the predicted 95 % interval, share of pairs", 1 - float(found.inside.mean()), "", 0.07)
    report("mean difference over all pairs, absolute", abs(found.mean_difference), "", 0.01)
    if splits:
        other_splits(model, data, splits)


def _cell(found: Agreement, place: int, which: int) -> str:
    told, seen = found.predicted, found.measured.rate[place, which]
    ends = f"{told.low[place, which]:.3f}-{told.high[place, which]:.3f}"
    mark = " " if found.inside[place, which] else "*"
    return f"{f'{told.rate[place, which]:.3f} ({ends}) / {seen:.3f}{mark}':>30s}"


def other_splits(model: Any, data: Any, splits: int) -> None:
    """The same again with other inputs behind the prediction: one division of the data says little about intervals."""
    everything = local(model, data, PROPERTIES, per_class=None)
    inside, differences, false_alarms = [], [], 0
    for seed in range(splits):
        table, fresh = halves(everything, seed)
        found = agreement(compose(table), paired(fresh, seed=seed))
        inside.append(found.inside.mean())
        differences.append(abs(found.mean_difference))
        false_alarms += bool(found.disagrees.any())
    print(f"\nover {splits} random divisions of the same answers:")
    report("outside, mean share", 1 - float(np.mean(inside)), "", 0.07)
    report("mean difference, absolute, mean", float(np.mean(differences)), "", 0.01)
    report("mean difference, absolute, largest", float(np.max(differences)), "")
    report("divisions in which a dependence is claimed", false_alarms / splits, "", 0.05 + 2 * (0.0475 / splits) ** 0.5)


# -- the loop closed: the first trend trained on, and measured again --------------------------------------------------

IMAGES = 20_000  # of the training set, each under the weak property and once more under another one or none
EPOCHS = 4
BATCH = 256
RATE = 2e-3
NEARLY_PERFECT, WEIGHT = 0.99, 12


@dataclass(frozen=True)
class Weakness:
    """A class under a property from a severity on, and the answer most often given in its place."""

    place: int
    which: int
    first: int  # place of the severity
    confused_with: str


def weakness(trend: Trend, table: Local) -> Weakness:
    """The class that a trend names first, and what it is under."""
    place, which = table.classes.index(trend.classes[0]), table.properties.index(trend.property)
    return Weakness(place, which, table.severities[which].index(trend.severities[0]), trend.answers[0])


def close_the_loop(model_path: Path, model: Any, data: Any, table: Local) -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        print("\nthe loop is not closed: training needs the extra torch")
        return
    (train_path,) = need("data/mnist_train.npz")
    trend = explain(table).trends[0]
    found = weakness(trend, table)
    print(f"\nfirst trend: {trend.text}\nadvice: {trend.advice}")
    begin = time.perf_counter()
    better = trained(model_path, load("npz", train_path), table, found)
    seconds = time.perf_counter() - begin
    assert table.sampled is not None
    before = local(model, data, PROPERTIES, per_class=None, exclude=table.sampled.ids)
    assert before.sampled is not None
    # The same inputs, whether or not the new model gets them right.
    after = local(better, data, PROPERTIES, per_class=None, among="all", inputs=before.sampled.ids)
    print(f"\nafter training, on {len(before.sampled.ids):,} inputs that found no weakness\n")
    print_table(after)
    report("\ntraining", seconds, "s")
    report_gain(table, before, after, found)
    low, rate = before.by_class_and_property().low, after.by_class_and_property().rate
    for place, which in np.argwhere(rate < low):
        print(f"fell below its interval: class {table.classes[place]} under {table.properties[which]}")
    report("classes and properties below their interval before", float((rate < low).sum()), "of 30", 0)


def report_gain(table: Local, before: Local, after: Local, found: Weakness) -> None:
    """The gain where the weakness was, beside what the 200 inputs foretold."""
    cells = (found.place, found.which, slice(found.first, len(table.severities[found.which])))
    levels = len(table.severities[found.which])
    failing, low, high = (float((1 - rate[cells]).sum()) / levels for rate in (table.rate, table.high, table.low))
    gain = float((after.rate[cells] - before.rate[cells]).sum()) / levels
    own = (found.place, found.which)
    report(
        "local robustness of the weak class and property, before", float(before.by_class_and_property().rate[own]), ""
    )
    report("the same, after", float(after.by_class_and_property().rate[own]), "")
    report("gain at the weak severities", gain, "")
    report("predicted gain: no failure left there (an upper bound)", failing, f"({low:.3f} to {high:.3f})")
    report("overall local robustness before", before.overall().rate, "")
    report("overall local robustness after", after.overall().rate, "")


def trained(model_path: Path, data: Any, table: Local, found: Weakness) -> Any:
    """The model trained on with the weak property from the weak severity on, for all classes.

    So that nothing else is forgotten, the same images come again as they are or under another property; and where the
    model was nearly perfect they count more, or these would pay for the rest.
    """
    import torch

    torch.set_num_threads(1)  # threads wait for each other longer than so small a network computes
    generator = np.random.default_rng(0)
    rows = generator.choice(len(data.labels), IMAGES, replace=False)
    images, labels = np.asarray(data.inputs)[rows], np.asarray(data.labels)[rows]
    others = [which for which in range(len(PROPERTIES)) if which != found.which]
    kept = generator.choice(others, IMAGES), generator.integers(0, 6, IMAGES)
    weak = np.full(IMAGES, found.which), generator.choice(table.severities[found.which][found.first :], IMAGES)
    inputs = np.concatenate([augmented(images, rows, *drawn) for drawn in (kept, weak)])
    perfect = table.by_class_and_property().rate >= NEARLY_PERFECT
    counts = np.concatenate(
        [np.where(perfect[labels, which] & (severity > 0), WEIGHT, 1) for which, severity in (kept, weak)]
    )
    x = torch.from_numpy(inputs[:, None].astype(np.float32) / 255)
    y, weight = torch.from_numpy(np.tile(labels, 2)), torch.from_numpy((counts / counts.mean()).astype(np.float32))
    module = lenet(model_path)
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE)
    steps = EPOCHS * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for _ in range(EPOCHS):
        for batch in np.array_split(generator.permutation(len(x)), len(x) // BATCH):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(x[batch]), y[batch], reduction="none")
            (loss * weight[batch]).mean().backward()
            optimiser.step()
            schedule.step()
    return module


def augmented(
    images: NDArray[np.uint8], rows: NDArray[np.intp], which: NDArray[np.intp], severity: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """Every image under its own property and severity."""
    changed = images.copy()
    for place, name in enumerate(PROPERTIES.values()):
        for level in np.unique(severity[severity > 0]).tolist():
            mine = np.flatnonzero((which == place) & (severity == level))
            if len(mine):
                changed[mine] = ta.apply({name: level}, images[mine], seed=1, indices=rows[mine])
    return changed


def lenet(path: Path) -> Any:
    """The ONNX file's network as a torch module with the same weights."""
    import onnx
    import torch
    from torch import nn

    module = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    layers = [layer for layer in module if hasattr(layer, "weight")]
    with torch.no_grad():
        for layer, name in zip(layers, ("c1", "c2", "f1", "f2", "f3"), strict=True):
            layer.weight.copy_(torch.from_numpy(stored[f"{name}.weight"].copy()))
            layer.bias.copy_(torch.from_numpy(stored[f"{name}.bias"].copy()))
    return module


if __name__ == "__main__":
    main()
