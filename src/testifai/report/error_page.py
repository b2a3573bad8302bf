"""An error summary as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from typing import Any

from testifai.locality import summary
from testifai.locality import summary as wording
from testifai.locality.summary import Explanation
from testifai.present.figures import locality as figures
from testifai.report.page import fill_plain
from testifai.support.formatting import printable_parts

FIRST = 5  # trends described at once; of the others the table tells


def render(found: Explanation, name: str) -> str:
    """The page; `name` is what it is about. Equal summaries make equal pages."""
    return fill_plain(
        "errors.html",
        found=found,
        name=name,
        first=FIRST,
        overall=found.local.overall(),
        summary=summary,
        wording=wording,
        drawings=_drawings(found),
    )


def _drawings(found: Explanation) -> str:
    """Data and both layouts of each figure, as JSON that may stand inside a script element."""
    light, dark = ([json.loads(figure.to_json()) for figure in _figures(found, dark=dark)] for dark in (False, True))
    drawn = {
        name: printable_parts({"data": one["data"], "light": one["layout"], "dark": other["layout"]})
        for name, one, other in zip(("figure-confusions", "figure-local", "figure-global"), light, dark, strict=True)
    }
    return json.dumps(drawn, separators=(",", ":")).replace("<", "\\u003c")


def _figures(found: Explanation, *, dark: bool) -> list[Any]:
    return [
        figures.confusions(found, dark=dark),
        figures.heatmap(found.local, dark=dark),
        figures.local_to_global(found.local, found.composed, dark=dark),
    ]
