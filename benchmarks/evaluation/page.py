"""One section of docs/results.md while it is written: texts, tables and figures, each with what it was made by."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.setting import MissingFileError

CLOCK = "⏱"


def seconds(value: float) -> str:
    """A measured time, marked as such: pages of two runs are equal but for these."""
    return f"{CLOCK} {value:.3g} s"


def ratio_of_times(value: float) -> str:
    """A quotient of measured times, marked like one."""
    return f"{CLOCK} {value:.3g} ×"


def without_times(text: str) -> str:
    """A page less its measured times.

    >>> without_times(f"took {seconds(1.5)}, {ratio_of_times(2)} as long")
    'took ⏱, ⏱ as long'
    """
    return re.sub(rf"{CLOCK} \S+ [s×]", CLOCK, text)


@dataclass(frozen=True)
class Claim:
    """What a paper says, its figure, and ours; `holds` is None where it cannot be told from what we have."""

    claim: str
    published: str
    found: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "**no**", None: "not comparable"}[self.holds]


@dataclass
class Page:
    """Markdown of one section; `name` is the section's module, figures are written at once."""

    name: str
    figures: Path
    heading: str = ""
    claims: list[Claim] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def title(self, text: str) -> None:
        """What the section is called."""
        self.heading = text

    def claim(self, claim: str, published: str, found: str, holds: bool | None) -> None:
        """A line of the table that the section begins with."""
        self.claims.append(Claim(claim, published, found, holds))

    def markdown(self) -> str:
        """The section: its title, what became of the paper's claims, and everything else."""
        head = [f"## {self.heading}", ""]
        if self.claims:
            rows = [[one.claim, one.published, one.found, one.verdict] for one in self.claims]
            head += [_table(["claim", "published", "found here", "holds here"], rows, right=False), ""]
        return "\n".join([*head, *self.lines]).rstrip()

    @contextmanager
    def part(self, title: str) -> Iterator[None]:
        """A heading and what is written below it; where files are missing, a line that says so instead."""
        self._block(f"### {title}")
        try:
            yield
        except MissingFileError as error:
            self.missing.append(f"{title}: {error}")
            self._block(f"*Not run: {error} not found.*")

    def text(self, *paragraphs: str) -> None:
        """Paragraphs, in the words of the page."""
        for paragraph in paragraphs:
            self._block(paragraph)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]], seeds: str) -> None:
        """A table; `seeds` says which seeds are behind its numbers ("seeds 0–9", "no chance in it")."""
        wrong = [row for row in rows if len(row) != len(header)]
        if wrong:
            raise ValueError(f"table: {len(header)} columns, but this row has {len(wrong[0])}: {wrong[0]}")
        self._block(_table(header, rows))
        self._source(seeds)

    def figure(self, name: str, drawn: Any, caption: str, seeds: str) -> None:
        """A matplotlib figure, written as SVG beside the page."""
        self.figures.mkdir(parents=True, exist_ok=True)
        path = self.figures / f"{self.name}_{name}.svg"
        drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        self._block(f"![{caption}]({self.figures.name}/{path.name})")
        self._block(f"*{caption}*")
        self._source(seeds)

    def _source(self, seeds: str) -> None:
        self._block(f"<sub>`python benchmarks/papers.py --only {self.name}`; {seeds}</sub>")

    def _block(self, text: str) -> None:
        self.lines += [text, ""]

    def say(self, text: str) -> None:
        """A line for whoever waits."""
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]], *, right: bool = True) -> str:
    """A table of Markdown; figures stand on the right of all columns but the first."""
    lines = [header, ["---", *["---:" if right else "---"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
