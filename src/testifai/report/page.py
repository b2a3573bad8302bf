"""The report as one HTML file that needs nothing else: figures that can be turned and hovered over, no network."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from testifai.report import curves, distribution, dots, heatmaps, sweeps, theme, voxels, words
from testifai.report.contents import Contents
from testifai.report.projection import Mask
from testifai.tables import interval, rate, sigma_text, signed

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_CUBES = 2000  # in all voxel views, and cells in all heat maps: what a page of 8 MB has room for
MOST_CELLS = 6000
SIDE_BY_SIDE = 6  # heat maps; of more, one at a time is shown
CORNERS = len(voxels.CORNERS)


@dataclass(frozen=True)
class View:
    """A figure with its name in the page and its title in a list of figures."""

    name: str
    title: str
    figure: Figure


def render(contents: Contents) -> str:
    """The whole page. Equal runs make equal pages."""
    import jinja2
    from plotly.offline import get_plotlyjs

    groups = figures(contents)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(rate=rate, signed=signed, zip=zip)
    return environment.from_string(_asset("page.html")).render(
        contents=contents,
        tomogram=contents.tomogram,
        words=words,
        groups=groups,
        regions=[("", region) for region in contents.search.regions],
        facts=provenance(contents),
        interval=interval,
        sigma_text=sigma_text,
        sweep_text=sweeps.sweep_text,
        side_by_side=SIDE_BY_SIDE,
        css=_asset("page.css"),
        script=_asset("page.js"),
        plotly=get_plotlyjs(),
        config=json.dumps(theme.CONFIG),
        drawings=_drawings([view for group in groups.values() for view in group]),
    )


def figures(contents: Contents) -> dict[str, list[View]]:
    """Every figure of the page by the part it belongs to."""
    tomogram, names = contents.tomogram, contents.tomogram.space.names
    groups: dict[str, list[tuple[str, Figure | None]]] = {
        "orders": [("by order", distribution.by_order(tomogram))],
        "curves": [
            ("each axis by itself", curves.severity_curves(tomogram, alone=True)),
            ("each axis among others", curves.severity_curves(tomogram) if len(names) > 1 else None),
            ("total severity", curves.severity_sum_curve(tomogram) if len(names) > 1 else None),
        ],
        "voxels": _voxel_views(contents),
        "pairs": [(f"{y} and {x}", heatmaps.heatmap(tomogram, x, y)) for y, x in _affordable(contents, 2, MOST_CELLS)],
        "worst": [("worst tests", dots.worst_tests(tomogram))],
        "classes": [("by class", dots.classes(tomogram))],
        "sweeps": [(name, sweeps.sweep_curves(name, found)) for name, found in contents.sweeps.items()],
    }
    return {
        group: [
            View(f"figure-{group}-{number}", title, figure)
            for number, (title, figure) in enumerate(listed)
            if figure is not None
        ]
        for group, listed in groups.items()
    }


def _voxel_views(contents: Contents) -> list[tuple[str, Figure | None]]:
    """All tests and the weakest region of a space with three axes; every three axes of a larger one."""
    tomogram, names = contents.tomogram, contents.tomogram.space.names
    if len(names) < 3:
        return []
    if len(names) > 3:
        return [
            (f"{', '.join(three)}; mean over the rest", voxels.voxels(tomogram, three))
            for three in _affordable(contents, 3, MOST_CUBES)
        ]
    if tomogram.space.size > MOST_CUBES // 2:
        return [("all tests", voxels.voxels(tomogram))] if tomogram.space.size <= MOST_CUBES else []
    regions: list[tuple[str, Mask | None]] = [("all tests", None)]
    for region in contents.search.regions[:1]:
        regions.append((f"weakest region: {region.query}", tomogram.select(region.query)))
    for label, which in (("mildest octant", "Q1"), ("severest octant", "Q8")):
        query = contents.standard[which].query
        regions.append((f"{label}: {query}", tomogram.select(query)))
    return [(title, voxels.voxels(tomogram, chosen=chosen)) for title, chosen in regions]


def _affordable(contents: Contents, size: int, most: int) -> Iterator[tuple[str, ...]]:
    """Choices of so many axes, as long as there is room for their cells."""
    levels = {axis.name: len(axis.severities) for axis in contents.tomogram.space.axes}
    for chosen in itertools.combinations(levels, size):
        most -= math.prod(levels[name] for name in chosen)
        if most >= 0:
            yield chosen


def provenance(contents: Contents) -> list[tuple[str, str]]:
    """What a run was made from and with, as pairs of a name and a text."""
    source = contents.tomogram.provenance
    identity: dict[str, Any] = dict(source.get("identity") or {})
    identity.pop("space", None)  # has a table of its own
    facts = [("run file", contents.run)]
    facts += [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in identity.items()]
    return facts + [(name, str(version)) for name, version in (source.get("environment") or {}).items()]


def _drawings(views: list[View]) -> str:
    """Data and both layouts of each figure, as JSON that may stand inside a script element."""
    found = {}
    for view in views:
        light = json.loads(view.figure.to_json())
        for trace in light["data"]:
            if trace["type"] == "mesh3d":  # whose corners repeat the words of their cube; the page repeats them again
                trace["text"] = trace["text"][::CORNERS]
        dark = theme.dressed(light["layout"], dark=True)
        found[view.name] = {"data": light["data"], "light": light["layout"], "dark": dark}
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files("testifai.report") / "assets" / name).read_text(encoding="utf-8")
