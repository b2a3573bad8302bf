"""The first paper's evaluation on its third task: a detector of things on the road under translation, scaling, contrast
and brightness.

    python benchmarks/driving.py [--run driving.db] [--axes 4] [--seeds 20] [--workers N] [--measure]

Neither the paper's frames (Udacity) nor its detector (YOLOv11s) are to be had offline: the detector is YOLOX nano, the
photographs are 80 of COCO's validation set with 815 boxes. A photograph passes where F1 against its boxes, moved along
with it, is at least 0.5; F1 is the score.

The truth is the full grid, which is measured once and kept in the run file (--run; a file of fewer tests is continued;
--measure ends there). In 3D (brightness off) the twelve queries of Table 2 are answered as published and by the
adaptive strategy at 5 % and 20 % of the inferences; then the coverage of 95 % intervals over seeds replayed from the
grid. Error = estimate - truth; positive = optimistic.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import held, need, report
from published import compare
from replay import Grid, replay

import testifai as ta
from testifai.commands.example import beside, table_2
from testifai.data import Data, load
from testifai.data.annotations import CLASS, CONFIDENCE
from testifai.models.detection.onnx import OnnxDetector
from testifai.oracles.average_precision import matches, mean_average_precision
from testifai.present.export import write_grid

AXES = {name: f"deeptest.{name}" for name in ("translate", "scale", "contrast", "brightness")}
SHARES = (0.05, 0.2)
LEAST = 0.93


def parts() -> tuple[Path, Data]:
    """The detector's file and the photographs."""
    model, folder = need("models/yolox_nano_coco.onnx", "data/coco_tiny")
    return model, load("coco", folder / "instances.json")


def scanned(model: Path, data: Data, axes: int = len(AXES), **options: Any) -> ta.Tomogram:
    """All tests of the first so many axes, judged by F1."""
    space = ta.Space(dict(list(AXES.items())[:axes]))
    return ta.scan(OnnxDetector(model), data, space, strategy="full", surrogate="none", oracle="detection", **options)


def measured(path: Path, axes: int, workers: int | None) -> ta.Tomogram:
    """The full grid, from the file or as far as it is not in it."""
    begin = time.perf_counter()
    full = scanned(*parts(), axes, keep=["value", "detections"], workers=workers, store=path, progress=True)
    print(f"{full.inferences:,} inferences in the file; this run took {time.perf_counter() - begin:.0f} s")
    return full


def clean(full: ta.Tomogram) -> None:
    """What the detector does with photographs as they are."""
    truth = " and ".join(f"{name} == 0" for name in full.space.names)
    found = full.average_precision(truth)
    f1 = full.outcomes.kept(0, "value")
    print(
        f"\nclean: {full.base:.3f} of the photographs pass, mean F1 {f1.mean():.3f}, mAP {found.estimate:.4f} "
        f"({found.low:.3f} to {found.high:.3f})"
    )
    compare_with_coco(full)


def compare_with_coco(full: ta.Tomogram, tests: int = 12) -> None:
    """Average precisions of some tests, the clean one among them, beside those of COCO's own code."""
    places = np.arange(full.outcomes.inputs)
    distances = []
    for test in np.linspace(0, full.space.size - 1, tests).astype(int).tolist():
        boxes = [full.outcomes.boxes(name, test, places) for name in ("detections", "expected")]
        if (theirs := coco_map(*boxes)) is None:
            print("pycocotools is not installed: nothing to compare with")
            return
        distances.append(abs(mean_average_precision(matches(*boxes)) - theirs))
    print(f"pycocotools on {tests} tests: largest distance {max(distances):.1e} (required: at most 1e-06)")


def coco_map(found: Sequence[Any], expected: Sequence[Any]) -> float | None:
    """What pycocotools says of the same boxes."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        return None

    def rows(images: Sequence[Any]) -> list[dict[str, Any]]:
        return [
            {
                "id": 0, "image_id": image, "category_id": int(box[CLASS]), "score": float(box[CONFIDENCE]),
                "bbox": [float(x) for x in (box[0], box[1], box[2] - box[0], box[3] - box[1])],
                "area": float((box[2] - box[0]) * (box[3] - box[1])), "iscrowd": int(box[CONFIDENCE] == 0),
            }
            for image, boxes in enumerate(images)
            for box in boxes.astype(np.float64)
        ]  # fmt: skip

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        annotations = [{**row, "id": number} for number, row in enumerate(rows(expected), start=1)]
        classes = sorted({row["category_id"] for row in annotations})
        truth.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(found))],
            "categories": [{"id": label} for label in classes],
            "annotations": annotations,
        }
        truth.createIndex()
        results = [{k: row[k] for k in ("image_id", "category_id", "bbox", "score")} for row in rows(found)]
        judged = COCOeval(truth, truth.loadRes(results), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return float(judged.stats[0])


def regions(full: ta.Tomogram) -> None:
    """Pass rate, mean F1 and mAP on all tests of the run, by order and by severity of each axis."""
    print("\nregion                 tests  pass rate  mean F1    mAP (95 %)")
    asked = [*(f"order == {order}" for order in range(len(full.space.axes) + 1))]
    asked += [f"{name} == 5 and order == 1" for name in full.space.names]
    for query in asked:
        ids = np.flatnonzero(full.select(query))
        values = np.mean([full.outcomes.kept(int(test), "value").mean() for test in ids])
        precision = full.average_precision(query)
        print(
            f"{query:32s} {len(ids):5d} {full.query(query).robustness:8.3f} {values:8.3f} "
            f"{precision.estimate:8.3f} ({precision.low:.3f} to {precision.high:.3f})"
        )


def recorded(full: ta.Tomogram) -> Grid:
    """The run as a grid to replay from."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "grid.npz")
        write_grid(full, target)
        return Grid.read(target)


Runs = dict[float, list[ta.Tomogram]]


def replayed(cube: Grid, seeds: int) -> Runs:
    """The adaptive strategy with a share of the inferences, by seed."""
    budgets = {share: round(share * cube.space.size * cube.inputs) for share in SHARES}
    return {
        share: [replay(cube, "adaptive", budget=budget, seed=seed) for seed in range(seeds)]
        for share, budget in budgets.items()
    }


def twelve(cube: Grid, runs: Runs) -> None:
    """Table 2 by both methods."""
    truth = replay(cube, "full", surrogate="none")
    print(f"\n3D ({', '.join(cube.axes)}): partial tomography as published")
    published = replay(cube, "ordered", stopping="window")
    compare(published, truth)
    spent = published.inferences / (cube.space.size * cube.inputs)
    shares = " and ".join(f"{share:.0%}" for share in runs)
    print(f"\nerrors of the twelve queries: as published ({spent:.0%} of the inferences), adaptive at {shares}")
    print("query  truth  published   mean and mean absolute error of the seeds at each share")
    means, queries = cube.means.reshape(-1), table_2(cube.axes)
    answers = {share: [beside(run, truth, queries) for run in found] for share, found in runs.items()}
    errors: dict[str, list[float]] = defaultdict(list)
    for place, row in enumerate(beside(published, truth, queries)):
        errors["published"].append(abs(row.error))
        cells = [f"{row.error:+9.3f}"]
        for share, found in runs.items():
            off = np.array([rows[place].error for rows in answers[share]])
            cells.append(f"{off.mean():+8.3f} {np.abs(off).mean():6.3f}")
            errors[f"{share:.0%}"].append(float(np.abs(off).mean()))
            mean = means[truth.select(row.query)].mean()
            scored = [abs(run.query(row.query, score="f1").robustness - mean) for run in found]
            errors[f"{share:.0%}, mean F1"].append(float(np.mean(scored)))
        print(f"{row.name:5s} {row.truth:6.3f}  {'  '.join(cells)}")
    for name, found in errors.items():
        print(f"absolute errors, {name:14s} mean {np.mean(found):.4f}, largest {max(found):.3f}")


def coverage(grid: Grid, runs: Runs) -> None:
    """The share of 95 % intervals that hold the truth: pass rates and mean scores, of tests and of regions."""
    rates, means = grid.truth.reshape(-1), grid.means.reshape(-1)
    asked = table_2(grid.axes).values()
    print("\nshare of 95 % intervals of adaptive that miss the truth, tests and the twelve queries")
    for share, found in runs.items():
        held: dict[str, list[tuple[bool, float]]] = defaultdict(list)
        for run in found:
            for name, of, truths in (("pass rate", run, rates), ("mean F1", run.scored("f1"), means)):
                bounds = zip(truths, of.low.reshape(-1), of.high.reshape(-1), strict=True)
                held[f"{name} of tests"] += [within(*one) for one in bounds]
                for query in asked:
                    answer = of.query(query)
                    truth = truths[run.select(query)].mean()
                    held[f"{name} of queries"].append(within(truth, answer.low, answer.high))
        for name, ends in held.items():
            hits, widths = np.array(ends, float).T
            report(f"{share:.0%}: {name} (half-width {widths.mean():.3f})", 1 - hits.mean(), "", 1 - LEAST)


def within(truth: float, low: float, high: float) -> tuple[bool, float]:
    return bool(held(truth, low, high)), (high - low) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="run file of the full grid; measured where it is not complete")
    parser.add_argument("--axes", type=int, default=4, choices=(3, 4))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--measure", action="store_true", help="measure the grid and no more")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        full = measured(options.run or Path(folder, "driving.db"), options.axes, options.workers)
        clean(full)
        if options.measure:
            return
        regions(full)
        grid = recorded(full)
        cube = grid.sub(dict.fromkeys(grid.axes[3:], 0))
        runs = replayed(cube, options.seeds)
        twelve(cube, runs)
        coverage(cube, runs)


if __name__ == "__main__":
    main()
