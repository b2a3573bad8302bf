"""Whether 95 % intervals hold: simulated surfaces whose every rate is known, and recorded grids, over many seeds.

    python benchmarks/coverage.py [--seeds 200] [--surfaces NAME ...] [--plans NAME ...]
        [--grids FILE|FOLDER ...] [--strategies NAME ...] [--shares SHARE ...] [--grid-seeds 20]
        [--require 0.93] [--markdown docs/benchmarks.md] [--workers N]

Every seed draws a surface of 216 tests, a population of 2,000 inputs whose outcomes hang together (an input that fails
one test is more likely to fail its neighbours), and a run of a plan: `balanced` or `adaptive` with a number of inputs
per test, or `target`, where adaptive goes on until every half-width is at most so much. A recorded grid stays as it is,
and a seed decides which inputs are tried. An option without a value leaves its part out: `--surfaces --seeds 20` has
grids alone. Every seed is kept (`kept.py`), so that an interrupted run continues.

Tests of one seed are dependent, so the standard error in brackets is that over seeds. The clean test is a group of its
own and in no other.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kept
import numpy as np
import one_seed
from one_seed import PLANS, RATES, STEPS, SURFACES, near_clean

LEAST, MOST = 0.93, 0.98  # a coverage below is too little, one above more than is asked for
FEWEST = 5  # seeds that have a test of a group, below which a share says nothing
OVERALL = ("tests", "regions", "clean")
REQUIRED = (*OVERALL, "regions near clean")
# Grids of the papers' tasks that are recorded with all their outcomes.
RECORDED = [Path(__file__).parent / "grids" / f"{name}.npz" for name in ("mnist", "cifar10", "gtsrb", "driving", "qqp")]
MARK = "<!-- coverage: {} (written by benchmarks/coverage.py) -->"


@dataclass(frozen=True)
class Figure:
    """What all seeds of a run found of one group."""

    covered: float
    spread: float  # the standard error of `covered`, over seeds
    error: float  # mean absolute
    half_width: float  # mean
    bias: float  # mean error

    @classmethod
    def of(cls, tallies: Sequence[Sequence[float]]) -> Figure:
        """The figure of the tallies of some seeds."""
        hits, of, *sums = np.array(tallies, float).T
        return cls(*kept.share(hits, of), *(float(one.sum() / of.sum()) for one in sums))

    def below(self, least: float) -> bool:
        """Whether too few intervals hold, beyond the simulation's own error."""
        return self.covered + 2 * self.spread < least

    @property
    def verdict(self) -> str:
        """What there is to say of the coverage, if anything."""
        return f"BELOW {LEAST}" if self.below(LEAST) else f"above {MOST}" if self.covered > MOST else ""

    @property
    def cell(self) -> str:
        """The coverage in a table; bold where too little, in italics where more than is asked for."""
        emphasis = "**" if self.below(LEAST) else "*" if self.covered > MOST else ""
        return f"{emphasis}{_short(self.covered)}{emphasis} ({_short(self.spread)})"


@dataclass(frozen=True)
class Row:
    """A plan on a surface or grid: its figures by group, over all seeds."""

    surface: str
    plan: str
    seeds: int
    figures: dict[str, Figure]
    inferences: float  # mean
    largest: float  # half-width of any test in any seed

    @classmethod
    def of(cls, surface: str, plan: str, found: Sequence[dict[str, Any]]) -> Row:
        """The row of what some seeds gave."""
        groups: dict[str, list[Sequence[float]]] = defaultdict(list)
        for name, tally in itertools.chain.from_iterable(one["groups"].items() for one in found):
            groups[name].append(tally)
        fewest = min(FEWEST, len(found))
        figures = {name: Figure.of(tallies) for name, tallies in groups.items() if len(tallies) >= fewest}
        inferences, largest = np.array([(one["inferences"], one["largest"]) for one in found]).T
        return cls(surface, plan, len(found), figures, float(inferences.mean()), float(largest.max()))

    def lines(self) -> Iterator[str]:
        """Every figure by itself."""
        head = f"{self.surface:20} {self.plan:15}"
        spent = f"{self.seeds} seeds, {self.inferences:,.0f} inferences"
        yield f"{head} {spent}, half-widths of tests at most {self.largest:.3f}"
        for name, one in self.figures.items():
            yield (
                f"{head} {name:20} {one.covered:.3f} ({one.spread:.3f})  error {one.error:.4f}  "
                f"half-width {one.half_width:.4f}  bias {one.bias:+.4f}  {one.verdict}".rstrip()
            )


# -- what is run ------------------------------------------------------------------------------------------------------


def simulated_rows(options: argparse.Namespace) -> Iterator[Row]:
    pairs = list(itertools.product(options.surfaces, options.plans))
    cases = [(*pair, seed) for seed in range(options.seeds) for pair in pairs]
    found = kept.results("coverage-simulated", one_seed.simulated, cases, workers=options.workers)
    for pair in pairs:
        yield Row.of(*pair, [found[*pair, seed] for seed in range(options.seeds)])


def recorded_rows(options: argparse.Namespace) -> Iterator[Row]:
    runs = list(itertools.product(grid_files(options.grids), options.strategies, options.shares))
    seeds = range(min(options.grid_seeds, options.seeds))
    keys = {run: (str(run[0]), digest(run[0]), *run[1:]) for run in runs}
    cases = [(*keys[run], seed) for run in runs for seed in seeds]
    found = kept.results("coverage-recorded", one_seed.recorded, cases, workers=options.workers)
    for path, strategy, share in runs:
        results = [found[*keys[path, strategy, share], seed] for seed in seeds]
        yield Row.of(path.stem, f"{strategy} {100 * share:g} %", results)


def grid_files(places: Iterable[Path]) -> list[Path]:
    """Grids by their names, out of files and folders; of two with the same name the first."""
    found: dict[str, Path] = {}
    for place in places:
        if not place.exists():
            print(f"left out: {place} does not exist (set TESTIFAI_DATA, or use --grids)")
        for path in [place] if place.is_file() else sorted(place.glob("*.npz")):
            found.setdefault(path.stem, path)
    return list(found.values())


def digest(path: Path) -> str:
    """What tells a file from another of its name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


# -- what is shown ----------------------------------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> str:
    """Return Markdown tables of all rows: overall, by distance from clean, by order, by true rate, near clean."""
    orders = sorted({name for row in rows for name in row.figures if name.startswith("order") and "==" not in name})
    seeds = " or ".join(f"{count}" for count in sorted({row.seeds for row in rows}))
    parts: list[tuple[str, Sequence[str]]] = [
        ("Tests by the sum of their severities and by order:", [*(f"severity {name}" for name in STEPS), *orders]),
        ("Tests by their true rate:", [f"rate {name}" for name in RATES]),
        ("Regions near clean:", ["regions near clean", *near_clean(())]),
    ]
    blocks = [
        f"Coverage of the 95 % intervals, {seeds} seeds, standard error over seeds in brackets. **Bold**: below "
        f"{_short(LEAST)} by more than two standard errors; *italics*: above {_short(MOST)}. Regions: half-spaces. "
        "Error (mean absolute) and half-width (mean, and the largest of any seed) are of perturbed tests.",
        "",
        *_table(rows, [*OVERALL, "the bad test"], ("error", "half-width", "largest", "inferences"), _further),
    ]
    for title, groups in parts:
        blocks += ["", title, "", *_table(rows, groups, (), lambda row: [])]
    return "\n".join(blocks)


def _table(rows: Sequence[Row], groups: Sequence[str], further: Sequence[str], cells: Any) -> Iterator[str]:
    shown = [name for name in groups if any(name in row.figures for row in rows)]
    heads = ["surface", "plan", *(name.removeprefix("rate ") for name in shown), *further]
    yield _line(heads)
    yield "|" + "---|" * len(heads)
    for row in rows:
        found = (row.figures.get(name) for name in shown)
        yield _line([row.surface, row.plan, *("" if one is None else one.cell for one in found), *cells(row)])


def _further(row: Row) -> list[str]:
    tests = row.figures["tests"]
    return [_short(tests.error, 4), _short(tests.half_width, 4), _short(row.largest), f"{row.inferences:,.0f}"]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(share: float, digits: int = 3) -> str:
    return f"{share:.{digits}f}".removeprefix("0")


def write_block(page: Path, block: str) -> None:
    """Put the block in the place of the one that the page has."""
    begin, end = MARK.format("begin"), MARK.format("end")
    text = page.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"{page}: has no block from {begin} to {end}")
    before, rest = text.split(begin)
    page.write_text(f"{before}{begin}\n{block}\n{end}{rest.split(end)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--surfaces", nargs="*", choices=SURFACES, default=list(SURFACES))
    parser.add_argument("--plans", nargs="*", choices=list(PLANS), default=list(PLANS))
    parser.add_argument("--grids", type=Path, nargs="*", default=RECORDED)
    parser.add_argument("--grid-seeds", type=int, default=20, help="at most; fewer where there are fewer --seeds")
    parser.add_argument("--strategies", nargs="+", default=["adaptive"])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001, 0.01, 0.05], help="of a grid's inferences")
    parser.add_argument(
        "--require", type=float, help="end with 1 if tests, regions, those near clean or clean fall significantly short"
    )
    parser.add_argument("--markdown", type=Path, help="a page whose block of tables is written anew")
    parser.add_argument("--workers", type=int, help="processes; default: as many as there are cores")
    options = parser.parse_args()
    rows = [*simulated_rows(options), *recorded_rows(options)]
    for line in itertools.chain.from_iterable(row.lines() for row in rows):
        print(line)
    if options.markdown:
        write_block(options.markdown, tables(rows))
    if options.require is not None:
        short = [
            f"{row.surface}, {row.plan}: {name} {row.figures[name].covered:.3f} ({row.figures[name].spread:.3f})"
            for row in rows
            for name in REQUIRED
            if row.figures[name].below(options.require)
        ]
        sys.exit("\n".join([f"below {options.require}:", *short]) if short else 0)


if __name__ == "__main__":
    main()
