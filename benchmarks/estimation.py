"""Every strategy with every surrogate at a few budgets on recorded grids: error, coverage, width and time.

    python benchmarks/estimation.py [--grids FOLDER ...] [--shares 0.001 0.01 0.05] [--seeds 4] [--dimensions 3 4]
                                    [--strategies NAME ...] [--surrogates NAME ...] [--out FOLDER] [--workers 1]

Grids are files of `testifai export --grid`. In three dimensions the last axis is off, or each in turn with
--each-axis. Figures are of the surrogate itself: what it makes of the strategy's outcomes, for all tests, measured or
not. `none` stands for the raw rate of each test with Wilson's interval; `process+scores` also sees the margins.
Error = estimate - truth; positive = optimistic.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import FOLDER
from numpy.typing import NDArray
from replay import Grid, replay

from testifai.errors import InputError
from testifai.statistics.intervals import wilson
from testifai.strategies import STRATEGIES
from testifai.surrogates import SURROGATES, resolve
from testifai.tomogram import Tomogram

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
SCORES = "+scores"
TAKE_SCORES = ("process",)  # surrogates that make use of margins
OURS = ("adaptive", "balanced")  # the requirements are for the first of these that there is, with the process
# (dimensions, share): the largest error on orders >= 3 with labels only and with scores, and of regions.
REQUIRED: dict[tuple[int, float], dict[str, float]] = {
    (4, 0.001): {"labels": 0.021, "scores": 0.019, "region": 0.010},
    (4, 0.01): {"labels": 0.0105, "scores": 0.010, "region": 0.003},
    (4, 0.05): {"labels": 0.0053, "region": 0.0015},
    (3, 0.01): {"labels": 0.014},
}
COVER_TESTS, COVER_REGIONS, SECONDS = (0.93, 0.99), 0.93, 2.0


@dataclass(frozen=True)
class Case:
    """One replay: a grid or the part of it where an axis is off, a strategy, a budget and a seed."""

    path: Path
    off: str | None
    strategy: str
    share: float
    seed: int


@dataclass(frozen=True)
class Row:
    """What one surrogate made of one replay; NaN where there is no such thing."""

    grid: str
    dimensions: int
    strategy: str
    surrogate: str
    share: float
    seed: int
    inferences: int
    order_1: float  # mean absolute error by order
    order_2: float
    order_3: float
    order_4: float
    high: float  # of orders >= 3
    largest: float
    bias: float  # mean error of orders >= 3
    region: float  # mean absolute error of the half-space regions
    cover_tests: float
    cover_regions: float
    width_tests: float
    width_regions: float
    plan: float  # seconds of the strategy
    fit: float  # seconds of fit, prediction and bounds


@dataclass(frozen=True)
class Estimate:
    """Rates of all tests and mean rates of regions, each with its bounds."""

    rates: Floats
    low: Floats
    high: Floats
    regions: Floats  # (regions x estimate, low, high)
    seconds: float


# -- one case ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def part(path: Path, off: str | None) -> Grid:
    grid = Grid.read(path)
    return grid if off is None else grid.sub({off: 0})


def half_spaces(grid: Grid) -> list[NDArray[np.intp]]:
    """The tests of each region in which every axis is either low or high."""
    features = grid.space.matrix(np.arange(grid.space.size))
    high = features >= (np.array(grid.levels) + 1) // 2
    return [
        np.flatnonzero((high == np.array(corner)).all(axis=1))
        for corner in itertools.product([False, True], repeat=len(grid.levels))
    ]


def raw(tomogram: Tomogram, regions: list[NDArray[np.intp]]) -> Estimate:
    """Each test by its own trials alone."""
    passes, trials = tomogram.passes.reshape(-1), tomogram.trials.reshape(-1)
    if not trials.all():
        raise InputError("raw rates need trials on every test")
    low, high = wilson(passes, trials, tomogram.outcomes.inputs, CONFIDENCE)
    rates = passes / trials
    nothing = math.nan
    return Estimate(rates, low, high, np.array([(rates[r].mean(), nothing, nothing) for r in regions]), 0.0)


def fitted(tomogram: Tomogram, name: str, regions: list[NDArray[np.intp]]) -> Estimate:
    """What a surrogate makes of the outcomes."""
    space, outcomes = tomogram.space, tomogram.outcomes
    ids = tomogram.measured_ids
    passes, trials = outcomes.counts(ids)
    single = outcomes.single(ids, None, "value" if name.endswith(SCORES) else None)
    everything = space.matrix(np.arange(space.size))
    surrogate: Any = resolve(name.removesuffix(SCORES), tomogram.seed, [axis.severities for axis in space.axes])
    begin = time.perf_counter()
    surrogate.fit(space.matrix(ids), passes, trials, single=single)
    rates, variance = surrogate.predict(everything)
    low, high = bounds(surrogate, everything, rates, variance)
    seconds = time.perf_counter() - begin
    if hasattr(surrogate, "region"):
        means = [surrogate.region(everything[region], CONFIDENCE) for region in regions]
    else:
        means = [(rates[region].mean(), math.nan, math.nan) for region in regions]
    return Estimate(rates, low, high, np.array(means), seconds)


def bounds(surrogate: Any, features: Any, rates: Floats, variance: Floats | None) -> tuple[Floats, Floats]:
    """A surrogate's own bounds, else the normal ones, else none."""
    if hasattr(surrogate, "bounds"):
        low, high = surrogate.bounds(features, CONFIDENCE)
        return low, high
    if variance is None:
        return np.full_like(rates, np.nan), np.full_like(rates, np.nan)
    half = 1.959964 * np.sqrt(variance)
    return np.clip(rates - half, 0, 1), np.clip(rates + half, 0, 1)


def covered(truth: Floats, low: Floats, high: Floats) -> float:
    """The share of intervals that hold the truth."""
    if np.isnan(low).all():
        return math.nan
    return float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean())


def measure(case: Case, surrogates: list[str]) -> tuple[list[Row], list[str]]:
    """Replay a case and hold what every surrogate makes of it against the truth; refusals as lines of text."""
    grid = part(case.path, case.off)
    budget = round(case.share * grid.space.size * grid.inputs)
    begin = time.perf_counter()
    with_scores = grid.margins is not None
    tomogram = replay(grid, case.strategy, surrogate="none", budget=budget, seed=case.seed, scores=with_scores)
    plan = time.perf_counter() - begin
    regions = half_spaces(grid)
    rows, refused = [], []
    made: dict[str, Estimate] = {}
    for name in surrogates:
        if name.endswith(SCORES) and not with_scores:
            continue
        try:
            estimate = raw(tomogram, regions) if name == "none" else fitted(tomogram, name, regions)
        except InputError as error:
            refused.append(f"{case.strategy} with {name}: {error}")
            continue
        made[name] = estimate
        plain = made.get(name.removesuffix(SCORES))
        if plain is not None and plain is not estimate and np.array_equal(plain.rates, estimate.rates):
            # The same figures twice would pass for a result with scores.
            refused.append(f"{name}: the same to the last bit as without the scores, so they are not used")
            continue
        rows.append(judge(case, name, grid, regions, estimate, tomogram.inferences, plan))
    return rows, refused


def judge(
    case: Case, name: str, grid: Grid, regions: list[NDArray[np.intp]], made: Estimate, inferences: int, plan: float
) -> Row:
    """An estimate against the truth."""
    truth = grid.truth.reshape(-1)
    error = made.rates - truth
    orders = (grid.space.matrix(np.arange(grid.space.size)) > 0).sum(axis=1)
    size = np.abs(error)
    by_order = {f"order_{t}": float(size[orders == t].mean()) if t in orders else math.nan for t in range(1, 5)}
    means = np.array([truth[region].mean() for region in regions])
    return Row(
        grid=case.path.stem,
        dimensions=len(grid.axes),
        strategy=case.strategy,
        surrogate=name,
        share=case.share,
        seed=case.seed,
        inferences=inferences,
        **by_order,
        high=float(size[orders >= 3].mean()),
        largest=float(size.max()),
        bias=float(error[orders >= 3].mean()),
        region=float(np.abs(made.regions[:, 0] - means).mean()),
        cover_tests=covered(truth, made.low, made.high),
        cover_regions=covered(means, made.regions[:, 1], made.regions[:, 2]),
        width_tests=float((made.high - made.low).mean()),
        width_regions=float((made.regions[:, 2] - made.regions[:, 1]).mean()),
        plan=plan,
        fit=made.seconds,
    )


# -- all of them ------------------------------------------------------------------------------------------------------


def cases(options: argparse.Namespace) -> Iterator[Case]:
    for path in grid_files(options.grids):
        axes = Grid.read(path).axes
        for dimensions in options.dimensions:
            if dimensions == len(axes):
                parts: tuple[str | None, ...] = (None,)
            elif dimensions == len(axes) - 1:
                parts = axes if options.each_axis else axes[-1:]
            else:
                continue
            yield from itertools.starmap(
                functools.partial(Case, path),
                itertools.product(parts, options.strategies, options.shares, range(options.seeds)),
            )


def grid_files(folders: Iterable[Path]) -> list[Path]:
    """Grids by their names; of two with the same name the first."""
    found: dict[str, Path] = {}
    for folder in [FOLDER / "reference" / "tomography", *folders]:
        for path in sorted(folder.glob("*.npz")):
            found.setdefault(path.stem, path)
    return list(found.values())


def run(options: argparse.Namespace) -> list[Row]:
    """Measure every case, several at a time where told to."""
    todo = list(cases(options))
    rows: list[Row] = []
    refused: dict[str, None] = {}
    work = functools.partial(measure, surrogates=options.surrogates)
    with ProcessPoolExecutor(options.workers) as pool:
        results = map(work, todo) if options.workers == 1 else pool.map(work, todo)
        for number, (made, lines) in enumerate(results, start=1):
            rows += made
            refused |= dict.fromkeys(lines)
            print(f"\r{number} of {len(todo)} replays", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for line in refused:
        print(f"left out: {line}")
    return rows


def means(rows: Iterable[Row]) -> dict[tuple[Any, ...], dict[str, float]]:
    """Figures by (grid, dimensions, strategy, surrogate, share), mean over seeds; the largest error is the largest."""
    together: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        together[row.grid, row.dimensions, row.strategy, row.surrogate, row.share].append(asdict(row))
    numbers = list(Row.__dataclass_fields__)[6:]
    table = {}
    for key, group in together.items():
        table[key] = {name: float(np.mean([row[name] for row in group])) for name in numbers}
        table[key]["largest"] = max(row["largest"] for row in group)
        # How far the mean over so few seeds may be off.
        spread = {f"{name} se": np.std([row[name] for row in group], ddof=1) for name in numbers if len(group) > 1}
        table[key] |= {name: float(value / len(group) ** 0.5) for name, value in spread.items()}
    return table


# -- what is printed --------------------------------------------------------------------------------------------------

COLUMNS = {
    "high": "MAE>=3", "order_1": "order 1", "order_2": "order 2", "order_3": "order 3", "order_4": "order 4",
    "largest": "largest", "bias": "bias", "region": "region", "cover_tests": "cover t", "cover_regions": "cover r",
    "width_tests": "width t", "width_regions": "width r", "plan": "plan s", "fit": "fit s",
}  # fmt: skip


def cell(name: str, value: float) -> str:
    if math.isnan(value):
        return f"{'-':>8s}"
    if name in {"plan", "fit"}:
        return f"{value:8.2f}"
    return f"{value:+8.4f}" if name == "bias" else f"{value:8.3f}" if name.startswith("cover") else f"{value:8.4f}"


def print_table(table: dict[tuple[Any, ...], dict[str, float]]) -> None:
    """A block for each grid and number of dimensions, sorted by budget and error."""
    for grid, dimensions in dict.fromkeys(key[:2] for key in table):
        print(f"\n{grid}, {dimensions}D")
        heads = "".join(f"{head:>8s}" for head in COLUMNS.values())
        print(f"{'share':>6s} {'spent':>8s} {'strategy':9s} {'surrogate':15s}{heads}")
        block = {key[2:]: figures for key, figures in table.items() if key[:2] == (grid, dimensions)}
        for strategy, surrogate, share in sorted(block, key=lambda k: (k[2], block[k]["high"])):
            figures = block[strategy, surrogate, share]
            numbers = "".join(cell(name, figures[name]) for name in COLUMNS)
            print(f"{share:6.1%} {figures['inferences']:8.0f} {strategy:9s} {surrogate:15s}{numbers}")


def verdicts(table: dict[tuple[Any, ...], dict[str, float]]) -> Iterator[tuple[str, float, float, str, bool]]:
    """(what, figure, its standard error, requirement, whether reached) for our strategy with the process."""
    strategies = {key[2] for key in table}
    ours = next((name for name in OURS if name in strategies), None)
    for (grid, dimensions, strategy, surrogate, share), figures in table.items():
        required = REQUIRED.get((dimensions, share))
        if strategy != ours or surrogate.removesuffix(SCORES) != "process" or required is None:
            continue
        what = f"{grid} {dimensions}D {share:.1%} {strategy} {surrogate}"
        most = required.get("scores" if surrogate.endswith(SCORES) else "labels")
        checks = {
            "high": (None, most),
            "region": (None, required.get("region")),
            "fit": (None, SECONDS if dimensions == 4 else None),
            "cover_tests": COVER_TESTS if dimensions == 4 else (None, None),
            "cover_regions": (COVER_REGIONS if dimensions == 4 else None, None),
        }
        for name, (least, most) in checks.items():
            if least is None and most is None:
                continue
            value, off = figures[name], figures.get(f"{name} se", math.nan)
            wanted = f"<= {most:g}" if least is None else f">= {least:g}" if most is None else f"{least:g} to {most:g}"
            reached = (least is None or value >= least) and (most is None or value <= most)
            yield f"{what}: {COLUMNS[name]}", value, off, wanted, reached


def print_verdicts(table: dict[tuple[Any, ...], dict[str, float]]) -> None:
    lines = list(verdicts(table))
    if lines:
        print("\nagainst what is required (± the standard error over seeds)")
        for what, figure, off, wanted, reached in lines:
            verdict = "reached" if reached else "MISSED"
            print(f"{what:66s} {figure:8.5f} ± {off:.5f}   {wanted:14s} {verdict}")
        print(f"{sum(line[-1] for line in lines)} of {len(lines)} reached")


# -- the plot ---------------------------------------------------------------------------------------------------------

COLOURS = {
    "process": "#0b6e4f", "process+scores": "#6abf4b", "none": "#888888", "pairwise": "#c8553d", "forest": "#2d6cdf",
    "independence": "#9b5de5",
}  # fmt: skip
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "12 4")
PANEL, GAP, LEFT, TOP, LEGEND = (300, 250), (64, 74), 60, 56, 210
LOWEST, HIGHEST = 0.003, 0.5


def draw(table: dict[tuple[Any, ...], dict[str, float]]) -> str:
    """Mean absolute error of orders >= 3 against inferences, both logarithmic: a panel per grid and dimensions."""
    grids, dimensions = sorted({key[0] for key in table}), sorted({key[1] for key in table})
    strategies = [name for name in (*OURS, *STRATEGIES) if any(key[2] == name for key in table)]
    dashes = dict(zip(dict.fromkeys(strategies), itertools.cycle(DASHES), strict=False))
    width = LEFT + max(2, len(grids)) * (PANEL[0] + GAP[0]) + LEGEND
    height = TOP + len(dimensions) * (PANEL[1] + GAP[1])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        'font-family="sans-serif" font-size="12" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" text-anchor="start" font-size="15">Mean absolute error of the pass rate, tests of '
        "order 3 and more, against inferences spent</text>",
    ]
    for (row, size), (column, grid) in itertools.product(enumerate(dimensions), enumerate(grids)):
        corner = LEFT + column * (PANEL[0] + GAP[0]), TOP + row * (PANEL[1] + GAP[1])
        chosen = {key[2:]: figures for key, figures in table.items() if key[:2] == (grid, size)}
        if chosen:
            parts += panel(f"{grid}, {size}D", chosen, corner, size, dashes)
    parts += legend(width - LEGEND, {key[3] for key in table}, dashes)
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(
    title: str,
    chosen: dict[tuple[Any, ...], dict[str, float]],
    corner: tuple[float, float],
    dimensions: int,
    dashes: dict[str, str],
) -> list[str]:
    """One plot with its axes, the lines of every strategy and surrogate, and the required figures."""
    (x0, y0), (width, height) = corner, PANEL
    # Not every strategy spends the budget to the last inference.
    spent = {key[2]: max(f["inferences"] for k, f in chosen.items() if k[2] == key[2]) for key in chosen}
    left, right = math.log(min(spent.values()) / 1.6), math.log(max(spent.values()) * 1.6)

    def place(inferences: float, error: float) -> tuple[float, float]:
        across = (math.log(inferences) - left) / (right - left)
        down = math.log(HIGHEST / min(max(error, LOWEST), HIGHEST)) / math.log(HIGHEST / LOWEST)
        return x0 + across * width, y0 + down * height

    parts = [
        f'<text x="{x0 + width / 2}" y="{y0 - 8}" font-weight="bold">{title}</text>',
        f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#999"/>',
        f'<text x="{x0 + width / 2}" y="{y0 + height + 34}" fill="#555">inferences (share of all)</text>',
    ]
    for error in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2):
        _, y = place(1, error)
        parts.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{error:g}</text>')
    for share, inferences in spent.items():
        x, _ = place(inferences, 1)
        parts.append(f'<line x1="{x:.1f}" y1="{y0}" x2="{x:.1f}" y2="{y0 + height}" stroke="#eee"/>')
        label = f"{inferences:,.0f} ({100 * share:g} %)"
        parts.append(f'<text x="{x:.1f}" y="{y0 + height + 17}" font-size="10" fill="#555">{label}</text>')
    for strategy, surrogate in sorted({key[:2] for key in chosen}, key=lambda pair: pair[1].startswith("process")):
        line = sorted((f["inferences"], f["high"]) for key, f in chosen.items() if key[:2] == (strategy, surrogate))
        points = [place(*point) for point in line]
        colour = COLOURS.get(surrogate, "#000")
        parts.append(
            f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{colour}" '
            f'stroke-width="2" stroke-dasharray="{dashes[strategy]}"/>'
        )
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in points]
    for share, inferences in spent.items():
        limit = REQUIRED.get((dimensions, share), {}).get("labels")
        if limit is not None:
            x, y = place(inferences, limit)
            parts.append(f'<path d="M{x - 9:.1f} {y:.1f}h18" stroke="#000" stroke-width="2.5"/>')
    return parts


def legend(x: float, surrogates: set[str], dashes: dict[str, str]) -> list[str]:
    """Colours are surrogates, dashes are strategies."""
    entries = [(name, COLOURS.get(name, "#000"), "") for name in (*COLOURS, *sorted(surrogates - COLOURS.keys()))]
    lines = [("surrogate", None, "")] + [entry for entry in entries if entry[0] in surrogates]
    lines += [("strategy", None, "")] + [(name, "#333", dash) for name, dash in dashes.items()]
    lines += [("required (labels only)", "#000", "")]
    parts = []
    for number, (name, colour, dash) in enumerate(lines):
        y = TOP + 14 + 20 * number
        if colour is None:
            parts.append(f'<text x="{x}" y="{y}" text-anchor="start" font-weight="bold">{name}</text>')
            continue
        length = 18 if name.startswith("required") else 36
        parts.append(
            f'<line x1="{x}" y1="{y - 4}" x2="{x + length}" y2="{y - 4}" stroke="{colour}" stroke-width="2.5" '
            f'stroke-dasharray="{dash}"/><text x="{x + 44}" y="{y}" text-anchor="start">{name}</text>'
        )
    return parts


# -- the command ------------------------------------------------------------------------------------------------------


def available() -> list[str]:
    """The surrogates there are, the raw rate among them."""
    names = ["none"]
    for name in SURROGATES:
        try:
            resolve(name)
        except ImportError:
            print(f"left out: surrogate {name} cannot be imported")
            continue
        names += [name, name + SCORES] if name in TAKE_SCORES else [name]
    return names


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--grids", type=Path, nargs="*", default=[], help="folders with further grids")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.05])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--surrogates", nargs="+")
    parser.add_argument("--each-axis", action="store_true", help="3D: each axis off in turn, not the last alone")
    parser.add_argument("--out", type=Path, help="a folder for estimation.csv and estimation.svg")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    names = available()
    unknown = set(options.surrogates or ()) - set(names)
    if unknown:
        parser.error(f"--surrogates: no {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    options.surrogates = options.surrogates or names
    if not grid_files(options.grids):
        print(f"skipped: no grids in {FOLDER / 'reference' / 'tomography'} (set TESTIFAI_DATA, or use --grids)")
        return
    rows = run(options)
    table = means(rows)
    print_table(table)
    print_verdicts(table)
    if options.out and rows:
        options.out.mkdir(parents=True, exist_ok=True)
        with (options.out / "estimation.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(Row.__dataclass_fields__), lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)
        (options.out / "estimation.svg").write_text(draw(table))
        print(f"\nwrote {options.out / 'estimation.csv'} and {options.out / 'estimation.svg'}")


if __name__ == "__main__":
    main()
