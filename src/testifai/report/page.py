"""The report as one HTML file that needs nothing else: figures that can be turned and hovered over, no network."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.locality import summary
from testifai.locality import summary as wording
from testifai.present import theme
from testifai.present.figures import curves, distribution, dots, heatmaps, quality, sweeps, voxels
from testifai.present.terminal import interval, rate, signed
from testifai.report import sign_off, words
from testifai.report.contents import Contents
from testifai.support.formatting import printable, printable_parts
from testifai.support.types import Record
from testifai.tomogram.lowest_tests import Mask

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

CORNERS = len(voxels.CORNERS)


@dataclass(frozen=True)
class Drawing:
    """A figure with its name in the page and its title in a list of figures."""

    name: str
    title: str
    figure: Figure


def named(groups: Mapping[str, list[tuple[str, Figure | None]]]) -> dict[str, list[Drawing]]:
    """Figures by the part of the page they belong to, each with a name of its own; None is left out."""
    return {
        group: [
            Drawing(f"figure-{group}-{number}", title, figure)
            for number, (title, figure) in enumerate(listed)
            if figure is not None
        ]
        for group, listed in groups.items()
    }


def fill(template: str, groups: Mapping[str, list[Drawing]], **what: Any) -> str:
    """A template of this package as a whole page; it finds its figures as `groups`."""
    return fill_plain(
        template,
        groups=groups,
        script=_asset("page.js"),
        config=json.dumps(theme.CONFIG),
        drawings=_drawings([view for group in groups.values() for view in group]),
        **what,
    )


def fill_plain(template: str, **what: Any) -> str:
    """A template of this package as a whole page, filled with this, the style and the library that draws."""
    import jinja2
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=rate, signed=signed, zip=zip, css_text=css_text)
    shared = {"interval": interval, "css": _asset("page.css"), "plotly": get_plotlyjs()}
    return environment.get_template(template).render(**shared, **what)


def _shown(value: Any) -> Any:
    return printable(value, lines=True) if type(value) is str else value  # Markup is our own


def css_text(text: str) -> Any:
    """Text as a string of CSS that may stand in a style element: whatever could end either is escaped.

    >>> print(css_text('a "b"</style>'))
    "a \\22 b\\22 \\3c \\2f style\\3e "
    """
    from markupsafe import Markup

    plain = "".join(one if one in " ._-" or one.isalnum() else f"\\{ord(one):x} " for one in text)
    return Markup(f'"{plain}"')


def _drawings(views: list[Drawing]) -> str:
    """Data and both layouts of each figure, as JSON that may stand inside a script element."""
    found = {}
    for view in views:
        light = json.loads(view.figure.to_json())
        for trace in light["data"]:
            if trace["type"] == "mesh3d":  # whose corners repeat the words of their cube; the page repeats them again
                trace["text"] = trace["text"][::CORNERS]
        dark = theme.dressed(light["layout"], dark=True)
        found[view.name] = printable_parts({"data": light["data"], "light": light["layout"], "dark": dark})
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files("testifai.report") / "assets" / name).read_text(encoding="utf-8")


MOST_CUBES = 2000  # in all voxel views, and cells in all heat maps: what a page of 8 MB has room for
MOST_CELLS = 6000
MOST_SAMPLED = 15  # choices of axes that are drawn of a space with more tests than are listed
FIRST_TRENDS = 5  # described in words; of the others the table tells
SIDE_BY_SIDE = 6  # heat maps; of more, one at a time is shown


def render(contents: Contents) -> str:
    """The whole page. Equal runs make equal pages."""
    return fill(
        "page.html",
        figures(contents),
        contents=contents,
        tomogram=contents.tomogram,
        words=words,
        sign_off=sign_off,
        regions=[("", region) for region in contents.search.regions],
        facts=provenance(contents),
        sweep_text=sweeps.sweep_text,
        side_by_side=SIDE_BY_SIDE,
        inferred="unknown" if words.predicts_nothing(contents.tomogram) else "predicted",
        summary=summary,
        wording=wording,
        first_trends=FIRST_TRENDS,
    )


def figures(contents: Contents) -> dict[str, list[Drawing]]:
    """Every figure of the page by the part it belongs to."""
    tomogram, names = contents.tomogram, contents.tomogram.space.names
    # Means over many tests are not known where nothing was predicted.
    means = len(names) > 1 and not np.isnan(tomogram.estimator.sample[1].estimate).any()
    groups: dict[str, list[tuple[str, Figure | None]]] = {
        "orders": [("by order", distribution.by_order(tomogram))],
        "curves": [
            ("each axis by itself", curves.severity_curves(tomogram, alone=True)),
            ("each axis among others", curves.severity_curves(tomogram) if means else None),
            ("total severity", curves.severity_sum_curve(tomogram) if means else None),
        ],
        "quality": [("quality and accuracy drop", quality.quality_curves(tomogram))],
        "voxels": _voxel_views(contents),
        "pairs": [(f"{y} and {x}", heatmaps.heatmap(tomogram, x, y)) for y, x in _affordable(contents, 2, MOST_CELLS)],
        "worst": [("worst tests", dots.worst_tests(tomogram))],
        "classes": [("by class", dots.classes(tomogram, contents.by_class))],
        "errors": _error_views(contents),
        "sweeps": [(name, sweeps.sweep_curves(name, found)) for name, found in contents.sweeps.items()],
    }
    return named(groups)


def _error_views(contents: Contents) -> list[tuple[str, Figure | None]]:
    """Classes under single perturbations, and what they are confused with."""
    if contents.errors is None:
        return []
    from testifai.present.figures import locality as figures

    shown: list[tuple[str, Figure | None]] = [("class and perturbation", figures.heatmap(contents.errors.local))]
    return [*shown, ("confusions", figures.confusions(contents.errors) if contents.errors.trends else None)]


def _voxel_views(contents: Contents) -> list[tuple[str, Figure | None]]:
    """All tests and the weakest region of a space with three axes; every three axes of a larger one."""
    tomogram, names = contents.tomogram, contents.tomogram.space.names
    if min(len(names), tomogram.space.max_order) < 3:
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
        regions.append((f"weakest region: {region.query}", tomogram.query_engine.select(region.query)))
    for label, which in (("mildest octant", "Q1"), ("severest octant", "Q8")):
        query = contents.standard[which].query
        regions.append((f"{label}: {query}", tomogram.query_engine.select(query)))
    return [(title, voxels.voxels(tomogram, chosen=chosen)) for title, chosen in regions]


def _affordable(contents: Contents, size: int, most: int) -> Iterator[tuple[str, ...]]:
    """Choices of so many axes that can be on at once, as long as there is room for their cells."""
    space = contents.tomogram.space
    if space.max_order < size:
        return
    levels = {axis.name: len(axis.severities) for axis in space.axes}
    choices = itertools.combinations(levels, size)
    for chosen in choices if space.listed else itertools.islice(choices, MOST_SAMPLED):
        most -= math.prod(levels[name] for name in chosen)
        if most >= 0:
            yield chosen


def provenance(contents: Contents) -> list[tuple[str, str]]:
    """What a run was made from and with, as pairs of a name and a text."""
    source = contents.tomogram.provenance
    identity: Record = dict(source.get("identity") or {})
    identity.pop("space", None)  # has a table of its own
    facts = [("run file", contents.run)]
    facts += [(f"{part}, named", ", ".join(made.names)) for part, made in contents.made_of.items() if made.names]
    facts += [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in identity.items()]
    return facts + [(name, str(version)) for name, version in (source.get("environment") or {}).items()]
