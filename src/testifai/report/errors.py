"""An error summary as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from testifai.locality import summary, wording
from testifai.locality.summary import Explanation
from testifai.present.figures import locality as figures
from testifai.present.terminal import interval, rate

FIRST = 5  # trends described at once; of the others the table tells


def render(found: Explanation, name: str) -> str:
    """The page; `name` is what it is about. Equal summaries make equal pages."""
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(rate=rate)
    return environment.from_string(_asset("testifai.report", "errors.html")).render(
        found=found,
        name=name,
        first=FIRST,
        overall=found.local.overall(),
        summary=summary,
        wording=wording,
        interval=interval,
        css=_asset("testifai.report", "page.css"),
        plotly=get_plotlyjs(),
        drawings=_drawings(found),
    )


def _drawings(found: Explanation) -> str:
    """Data and both layouts of each figure, as JSON that may stand inside a script element."""
    light, dark = ([json.loads(figure.to_json()) for figure in _figures(found, dark=dark)] for dark in (False, True))
    drawn = {
        name: {"data": one["data"], "light": one["layout"], "dark": other["layout"]}
        for name, one, other in zip(("figure-confusions", "figure-local", "figure-global"), light, dark, strict=True)
    }
    return json.dumps(drawn, separators=(",", ":")).replace("<", "\\u003c")


def _figures(found: Explanation, *, dark: bool) -> list[Any]:
    return [
        figures.confusions(found, dark=dark),
        figures.heatmap(found.local, dark=dark),
        figures.local_to_global(found.local, found.composed, dark=dark),
    ]


def _asset(package: str, name: str) -> str:
    return (resources.files(package) / "assets" / name).read_text(encoding="utf-8")
