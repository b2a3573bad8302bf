"""The embedded example: the first paper's first task, small enough to run in half a minute, in three ways."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel
from testifai.present import terminal
from testifai.present.terminal import SHADES, blocks
from testifai.session import assembly
from testifai.session.stored_runs import about
from testifai.space import Space
from testifai.spec.parsing import read
from testifai.support.files import refuse_others, write_bytes
from testifai.support.progress import Step
from testifai.support.types import Record
from testifai.tomogram import Answer, Tomogram, trust
from testifai.tomogram.regions import RegionAnswer, worst_regions

AXES = {"brightness": "mnist_c.brightness", "zoom": "mnist_c.zoom", "blur": "mnist_c.motion_blur"}
BUDGET = 6_480  # 3 % of all
SPEC = "digits.toml"
RUN = "digits.db"
PAGE = "digits.html"


@dataclass(frozen=True)
class QueryRow:
    """One query of the paper's Table 2: an answer and the truth. A positive error is optimistic."""

    name: str
    query: str
    answer: Answer
    truth: float

    @property
    def error(self) -> float:
        return self.answer.robustness - self.truth

    def as_dict(self) -> Record:
        facts = {"name": self.name, "query": self.query, "truth": self.truth, "error": self.error}
        return {**facts, **self.answer.as_dict()}


@dataclass(frozen=True)
class Way:
    """One way to answer the twelve queries."""

    name: str
    tomogram: Tomogram
    rows: tuple[QueryRow, ...]

    @property
    def mean_error(self) -> float:
        return float(np.mean([abs(row.error) for row in self.rows]))

    @property
    def largest_error(self) -> float:
        return max(abs(row.error) for row in self.rows)

    @property
    def held(self) -> int | None:
        """Number of intervals that contain the truth; None if there are none."""
        if any(math.isnan(row.answer.low) for row in self.rows):
            return None
        return int(sum(row.answer.low <= row.truth <= row.answer.high for row in self.rows))

    def as_dict(self) -> Record:
        return {
            "inferences": self.tomogram.inferences,
            "mean_error": self.mean_error,
            "largest_error": self.largest_error,
            "intervals_that_hold": self.held,
            "queries": [row.as_dict() for row in self.rows],
        }


@dataclass(frozen=True)
class Demo:
    """Three ways and full tomography of the same model and digits: the published one and two of ours."""

    full: Tomogram
    published: Way
    equal: Way
    small: Way
    worst: RegionAnswer

    @property
    def ways(self) -> tuple[Way, Way, Way]:
        return self.published, self.equal, self.small

    @property
    def saved(self) -> float:
        """Factor by which the small run made fewer inferences than the published method."""
        return self.published.tomogram.inferences / self.small.tomogram.inferences

    def as_dict(self) -> Record:
        return {
            "inputs": self.full.outcomes.inputs,
            "base": self.full.base,
            "inferences_full": self.full.inferences,
            "times_fewer": self.saved,
            "worst_region": self.worst.as_dict(),
            **{name: way.as_dict() for name, way in zip(("published", "equal", "small"), self.ways, strict=True)},
        }


def table_2(names: tuple[str, ...]) -> dict[str, str]:
    """The twelve queries of TestifAI's Table 2 for three axes with six levels: eight octants, four growing cubes."""
    queries = {}
    for octant in range(8):
        sides = [f"{name} {'>= 3' if octant >> (2 - j) & 1 else '<= 2'}" for j, name in enumerate(names)]
        queries[f"Q{octant + 1}"] = " and ".join(sides)
    for number, most in enumerate((1, 3, 4, 5), start=9):
        queries[f"Q{number}"] = " and ".join(f"{name} <= {most}" for name in names)
    return queries


def beside(found: Tomogram, full: Tomogram, queries: Mapping[str, str]) -> list[QueryRow]:
    """A tomogram's answers to some queries, with the truth."""
    return [QueryRow(name, query, found.query(query), full.query(query).robustness) for name, query in queries.items()]


def run(folder: Path, progress: Callable[[Step], None] | None = None) -> Demo:
    """Measure all three ways and the truth; a spec and its small run are written into the folder."""
    model, data, space = OnnxModel(demo_model_path()), demo_data(), Space(AXES)

    def scanned(**options: Any) -> Tomogram:
        return assembly.session_of(model, data, space, **options).run(progress=progress)

    few = specified(folder, progress)  # first, since this is where a folder may be rejected
    full = scanned(strategy="full", surrogate="none")

    def way(name: str, tomogram: Tomogram) -> Way:
        return Way(name, tomogram, tuple(beside(tomogram, full, table_2(space.names))))

    published = way("as published", scanned(strategy="ordered", stopping="window"))
    equal = way("ours, as many", scanned(budget=published.tomogram.inferences))
    small = way(f"ours, {BUDGET / full.inferences:.0%} of all", few)
    return Demo(full, published, equal, small, worst_regions(small.tomogram, 1).regions[0])


def specified(folder: Path, progress: Callable[[Step], None] | None) -> Tomogram:
    """The run of a spec that is written into the folder; resumed if it was started before."""
    spec, path = folder / SPEC, folder / RUN
    axes = "\n".join(f'{name} = "{perturbation}"' for name, perturbation in AXES.items())
    model = demo_model_path()
    text = (
        f"[model]\nonnx = {_quoted(model)}\n\n[data]\nnpz = {_quoted(model.with_name('digits.npz'))}\n\n"
        f"[space]\n{axes}\n\n[scan]\nbudget = {BUDGET}\nseed = 0\n"
    )
    refuse_others(folder, (SPEC, RUN, PAGE), SPEC, text.encode())
    write_bytes(spec, text.encode())
    read_spec = read(spec)
    session = assembly.session(read_spec, folder.resolve())
    tomogram = session.run(path, progress, about(read_spec, folder.resolve(), session.data))
    trust.keep(path, tomogram)
    return tomogram


def _quoted(path: Path) -> str:
    return f"'{path}'" if "'" not in str(path) else '"' + str(path).replace("\\", "\\\\") + '"'


def show(out: Console, result: Demo) -> None:
    """Print the twelve queries of Table 2, their cost, the worst region of the model, and a map."""
    inputs, names = result.full.outcomes.inputs, result.full.space.names
    heads = [f"{way.name}\n{way.tomogram.inferences:,}" for way in result.ways]
    table = terminal.table_of(
        f"a LeNet-5 on {inputs:,} digits under {', '.join(names)}: error of the mean robustness, ± its 95 % interval",
        ("", "left"), ("query\ninferences", "left"), f"truth\n{result.full.inferences:,}", *heads,
    )  # fmt: skip

    def cell(row: QueryRow) -> str:
        low, high = row.answer.low, row.answer.high
        margin = "no interval" if math.isnan(low) else f"±{(high - low) / 2:.3f}"
        return f"{terminal.signed(row.error)} {margin}"

    for rows in zip(*(way.rows for way in result.ways), strict=True):
        table.add_row(rows[0].name, rows[0].query, terminal.rate(rows[0].truth), *map(cell, rows))
    out.print(table)
    published, small = result.published, result.small
    out.print(
        f"\n[bold]{result.saved:.0f} times fewer inferences[/bold] than the published method, and closer to the "
        f"truth: off by {small.mean_error:.3f} on average and {small.largest_error:.3f} at most instead of "
        f"{published.mean_error:.3f} and {published.largest_error:.3f}; {small.held} of {len(small.rows)} intervals "
        "hold the truth, where the published method has none."
    )
    found = result.worst.answer
    out.print(
        f"[bold]Worst region found[/bold]: {result.worst.query}: robustness {terminal.rate(found.robustness)} "
        f"({terminal.interval(found.low, found.high)}), clean accuracy {terminal.rate(result.full.base)}.\n"
    )
    for line in blocks(small.tomogram):
        out.print("  " + line, markup=False)
    out.print(f"  share of digits read right: '{SHADES[0]}' none, '{SHADES[2]}' half, '{SHADES[-1]}' all", markup=False)
