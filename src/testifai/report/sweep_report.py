"""A run file that holds sweeps and no tests, as a page and as Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testifai.errors import InputError
from testifai.present.figures.sweeps import crossed, sweep_curves
from testifai.report.contents import Stored, read_stored
from testifai.report.markdown import table
from testifai.report.page import fill, named
from testifai.support.formatting import code_in_markdown as code
from testifai.support.formatting import in_markdown as escape
from testifai.support.types import Record
from testifai.sweeps.storage import finished


@dataclass(frozen=True)
class Swept:
    """The finished sweeps of a run file, with the identity of each."""

    run: str
    sweeps: dict[str, list[Record]]
    identities: dict[str, dict[str, str]]

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"run": self.run, "sweeps": self.sweeps}


def gather_sweeps(run: Path | Stored) -> Swept | None:
    """The sweeps of a run file that contains nothing else; None if it contains a scan, or nothing."""
    stored = run if isinstance(run, Stored) else read_stored(run)
    if stored.tomogram is not None or not stored.sweeps:
        return None
    sweeps = finished(stored.sweeps)
    if not sweeps:
        raise InputError(f"run file: no sweep in {stored.path} is finished; go on with the same testifai sweep command")
    texts = {
        name: {
            fact: value if isinstance(value, str) else json.dumps(value)
            for fact, value in stored.sweeps[name].identity.items()
        }
        for name in sweeps
    }
    return Swept(stored.path.name, sweeps, texts)


def render(swept: Swept) -> str:
    """The whole page. Equal sweeps make equal pages."""
    groups = named({"sweeps": [(name, sweep_curves(name, found)) for name, found in swept.sweeps.items()]})
    return fill("sweeps.html", groups, contents=swept, crossed=lambda sweep: crossed(sweep["crossings"]))


def markdown(swept: Swept) -> str:
    """The sweeps as a table in Markdown."""
    rows = [
        (
            escape(name),
            f"{sweep['threshold']:g}",
            f"{sweep['robustness']:.4f}",
            "–" if sweep["bound"] is None else f"± {sweep['bound']:.4f}",
            crossed(sweep["crossings"]),
            f"{sweep['evaluations']:,}",
            f"{sweep['inferences']:,}",
        )
        for name, found in swept.sweeps.items()
        for sweep in found
    ]
    head = ("perturbation", "threshold", "robustness", "bound", "crossed at level", "levels", "inferences")
    words = "The share of each perturbation's levels on which accuracy is at least the threshold."
    return f"## Sweeps: {code(swept.run)}\n\n{words}\n\n{table(head, rows)}\n"
