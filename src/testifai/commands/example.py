"""The embedded example: the first paper's first task, small enough to run in a minute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel
from testifai.present import terminal
from testifai.scans.session import Session
from testifai.space import Space
from testifai.support.progress import Step
from testifai.tomogram import Answer, Tomogram

AXES = {"brightness": "mnist_c.brightness", "zoom": "mnist_c.zoom", "blur": "mnist_c.motion_blur"}


@dataclass(frozen=True)
class QueryRow:
    """One query of the paper's Table 2: the partial tomogram's answer beside the truth. Positive = optimistic."""

    name: str
    query: str
    answer: Answer
    truth: float

    @property
    def error(self) -> float:
        return self.answer.robustness - self.truth


@dataclass(frozen=True)
class Demo:
    """Partial tomography beside full tomography of the same model and digits."""

    partial: Tomogram
    full: Tomogram
    rows: list[QueryRow]

    @property
    def saved(self) -> float:
        """The share of full tomography's inferences that were not needed."""
        return 1 - self.partial.inferences / self.full.inferences

    @property
    def within(self) -> float:
        """The share of tests whose estimate is within 0.1 of the truth."""
        return float((np.abs(self.partial.estimate - self.full.estimate) <= 0.1).mean())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        queries = [
            {"name": row.name, "query": row.query, **row.answer.as_dict(), "truth": row.truth, "error": row.error}
            for row in self.rows
        ]
        return {
            "inputs": self.full.outcomes.inputs,
            "base": self.full.base,
            "inferences": self.partial.inferences,
            "inferences_full": self.full.inferences,
            "saved": self.saved,
            "within_0.1": self.within,
            "queries": queries,
        }


def table_2(names: tuple[str, ...]) -> dict[str, str]:
    """The twelve queries of TestifAI's Table 2 for three axes with six levels: eight octants, four growing cubes.

    >>> table_2(("a", "b", "c"))["Q2"]
    'a <= 2 and b <= 2 and c >= 3'
    """
    queries = {}
    for octant in range(8):
        sides = [f"{name} {'>= 3' if octant >> (2 - j) & 1 else '<= 2'}" for j, name in enumerate(names)]
        queries[f"Q{octant + 1}"] = " and ".join(sides)
    for number, most in enumerate((1, 3, 4, 5), start=9):
        queries[f"Q{number}"] = " and ".join(f"{name} <= {most}" for name in names)
    return queries


def beside(found: Tomogram, full: Tomogram, queries: Mapping[str, str]) -> list[QueryRow]:
    """What a tomogram answers to some queries, beside the truth."""
    return [QueryRow(name, query, found.query(query), full.query(query).robustness) for name, query in queries.items()]


def run(progress: Callable[[Step], None] | None = None) -> Demo:
    """Partial tomography as published (all tests of order <= 2, early stopping, forest), then the truth."""
    model, data, space = OnnxModel(demo_model_path()), demo_data(), Space(AXES)
    partial = Session(model, data, space, strategy="ordered", stopping="window").run(progress=progress)
    full = Session(model, data, space, strategy="full").run(progress=progress)
    return Demo(partial, full, beside(partial, full, table_2(space.names)))


def show(out: Console, result: Demo) -> None:
    """The twelve queries of Table 2 and what they cost."""
    partial = result.partial
    table = terminal.table_of(
        f"robustness of a LeNet-5 on {partial.outcomes.inputs:,} digits under {', '.join(partial.space.names)}",
        ("", "left"), ("query", "left"), "measured", "predicted", "answer", "truth", "error",
    )  # fmt: skip
    for row in result.rows:
        found = row.answer
        table.add_row(
            row.name, row.query, str(found.measured), str(found.inferred),
            terminal.rate(found.robustness), terminal.rate(row.truth), terminal.signed(row.error),
        )  # fmt: skip
    out.print(table)
    out.print(
        f"Clean accuracy {terminal.rate(partial.base)}. {partial.inferences:,} inferences instead of "
        f"{result.full.inferences:,}: {result.saved:.0%} saved; {result.within:.0%} of the 216 tests within 0.1 of "
        "the truth. The forest errs on the optimistic side (+) where several perturbations meet."
    )
