"""A run file that holds sweeps and no tests, as a page and as Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from testifai.errors import InputError
from testifai.present.figures.sweeps import sweep_curves
from testifai.report.contents import Stored, read_stored
from testifai.report.markdown import table
from testifai.report.page import fill, named
from testifai.support.formatting import code_in_markdown as code
from testifai.support.formatting import in_markdown as escape
from testifai.support.types import Record, RecordLike
from testifai.sweeps.storage import finished

MOST_CROSSINGS = 4


@dataclass(frozen=True)
class Swept:
    """The finished sweeps of a run file, and what each was made from."""

    run: str
    sweeps: dict[str, list[Record]]
    identities: dict[str, dict[str, str]]

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"run": self.run, "sweeps": self.sweeps}


def gather_sweeps(run: Path | Stored) -> Swept | None:
    """The sweeps of a run file that holds nothing else; None where it holds a scan, or nothing at all."""
    stored = run if isinstance(run, Stored) else read_stored(run)
    if stored.tomogram is not None or not stored.sweeps:
        return None
    sweeps = finished(stored.sweeps)
    if not sweeps:
        raise InputError(f"run file: no sweep in {stored.path} is finished; go on with the same testifai sweep command")
    texts = {
        name: {fact: value if isinstance(value, str) else json.dumps(value) for fact, value in identity.items()}
        for name, identity in ((name, stored.sweeps[name].identity) for name in sweeps)
    }
    return Swept(stored.path.name, sweeps, texts)


def render(swept: Swept) -> str:
    """The whole page. Equal sweeps make equal pages."""
    groups = named({"sweeps": [(name, sweep_curves(name, found)) for name, found in swept.sweeps.items()]})
    return fill("sweeps.html", groups, contents=swept, crossed=crossed)


def markdown(swept: Swept) -> str:
    """The sweeps as a table in Markdown."""
    rows = [
        (
            escape(name),
            f"{sweep['threshold']:g}",
            f"{sweep['robustness']:.4f}",
            "–" if sweep["bound"] is None else f"± {sweep['bound']:.4f}",
            crossed(sweep),
            f"{sweep['evaluations']:,}",
            f"{sweep['inferences']:,}",
        )
        for name, found in swept.sweeps.items()
        for sweep in found
    ]
    head = ("perturbation", "threshold", "robustness", "bound", "crossed at level", "levels", "inferences")
    words = "The share of each perturbation's levels on which accuracy is at least the threshold."
    return f"## Sweeps: {code(swept.run)}\n\n{words}\n\n{table(head, rows)}\n"


def crossed(sweep: RecordLike) -> str:
    """The levels at which accuracy crosses the threshold.

    >>> crossed({"crossings": [0.25, 0.5]}), crossed({"crossings": []})
    ('0.25, 0.5', 'never')
    """
    levels = sweep.get("crossings") or ()
    return ", ".join(f"{level:.4g}" for level in levels[:MOST_CROSSINGS]) + (
        " …" if len(levels) > MOST_CROSSINGS else "" if levels else "never"
    )
