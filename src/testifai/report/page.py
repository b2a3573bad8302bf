"""Reports as one HTML file that needs nothing else: figures that can be turned and hovered over, no network."""

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
from testifai.present import theme
from testifai.present.figures import curves, dots, heatmaps, locality, sweeps, voxels
from testifai.present.terminal import interval, rate, signed
from testifai.report import sign_off, words
from testifai.report.contents import Contents
from testifai.support.formatting import printable, printable_parts
from testifai.support.types import Record
from testifai.tomogram.lowest_tests import Mask

if TYPE_CHECKING:
    from testifai.locality.summary import Explanation

CORNERS = len(voxels.CORNERS)


@dataclass(frozen=True)
class Drawing:
    """A figure with its name in the page and its title in a list of figures."""

    name: str
    title: str
    figure: theme.Figure


def named(groups: Mapping[str, list[tuple[str, theme.Figure | None]]]) -> dict[str, list[Drawing]]:
    """Figures by section of the page, each with a unique name; None is skipped."""
    return {
        group: [Drawing(f"figure-{group}-{number}", *one) for number, one in enumerate(listed) if one[1] is not None]
        for group, listed in groups.items()
    }


def fill(template: str, groups: Mapping[str, list[Drawing]], **what: Any) -> str:
    """Render a template of this package with its figures, which it finds as `groups`."""
    return fill_plain(
        template,
        groups=groups,
        script=_asset("page.js"),
        config=json.dumps(theme.CONFIG),
        drawings=_drawings([view for group in groups.values() for view in group]),
        **what,
    )


def fill_plain(template: str, **what: Any) -> str:
    """Render a template of this package with the style and plotly's script."""
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
    """Text as a string of CSS inside a style element: characters that could end either are escaped."""
    from markupsafe import Markup

    plain = "".join(one if one in " ._-" or one.isalnum() else f"\\{ord(one):x} " for one in text)
    return Markup(f'"{plain}"')


def _drawings(views: list[Drawing]) -> str:
    found = {}
    for view in views:
        light = json.loads(view.figure.to_json())
        for trace in light["data"]:
            if trace["type"] == "mesh3d":  # its corners repeat the text of their cube; the page repeats it again
                trace["text"] = trace["text"][::CORNERS]
        dark = theme.dressed(light["layout"], dark=True)
        found[view.name] = printable_parts({"data": light["data"], "light": light["layout"], "dark": dark})
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files("testifai.report") / "assets" / name).read_text(encoding="utf-8")


MOST_CUBES = 2000  # in all voxel views, and cells in all heat maps: what a page of 8 MB has room for
MOST_CELLS = 6000
MOST_SAMPLED = 15  # choices of axes that are drawn of a space with more tests than are listed
FIRST_TRENDS = 5  # described in words; the others are in the table
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
        wording=summary,
        first_trends=FIRST_TRENDS,
    )


def render_errors(found: Explanation, name: str) -> str:
    """The page of an error summary; `name` is its subject. Equal summaries make equal pages."""
    drawn = {
        "confusions": locality.confusions(found),
        "local": locality.heatmap(found.local),
        "global": locality.local_to_global(found.local, found.composed),
    }
    return fill_plain(
        "errors.html",
        found=found,
        name=name,
        first=FIRST_TRENDS,
        overall=found.local.overall(),
        summary=summary,
        wording=summary,
        drawings=_drawings([Drawing(f"figure-{part}", "", figure) for part, figure in drawn.items()]),
    )


def figures(contents: Contents) -> dict[str, list[Drawing]]:
    """Every figure of the page by section."""
    tomogram, names = contents.tomogram, contents.tomogram.space.names
    # Means over many tests are not known where nothing was predicted.
    means = len(names) > 1 and not np.isnan(tomogram.estimator.sample[1].estimate).any()
    groups: dict[str, list[tuple[str, theme.Figure | None]]] = {
        "orders": [("by order", dots.by_order(tomogram))],
        "curves": [
            ("each axis by itself", curves.severity_curves(tomogram, alone=True)),
            ("each axis among others", curves.severity_curves(tomogram) if means else None),
            ("total severity", curves.severity_sum_curve(tomogram) if means else None),
        ],
        "quality": [("quality and accuracy drop", curves.quality_curves(tomogram))],
        "voxels": _voxel_views(contents),
        "pairs": [(f"{y} and {x}", heatmaps.heatmap(tomogram, x, y)) for y, x in _affordable(contents, 2, MOST_CELLS)],
        "worst": [("worst tests", dots.worst_tests(tomogram))],
        "classes": [("by class", dots.classes(tomogram, contents.by_class))],
        "errors": [] if (found := contents.errors) is None else [
            ("class and perturbation", locality.heatmap(found.local)),
            ("confusions", locality.confusions(found) if found.trends else None),
        ],
        "sweeps": [(name, sweeps.sweep_curves(name, listed)) for name, listed in contents.sweeps.items()],
    }  # fmt: skip
    return named(groups)


def _voxel_views(contents: Contents) -> list[tuple[str, theme.Figure | None]]:
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
    """The inputs and the software of a run, as pairs of a name and a text."""
    source = contents.tomogram.provenance
    identity: Record = dict(source.get("identity") or {})
    identity.pop("space", None)  # has a table of its own
    facts = [("run file", contents.run)]
    facts += [(f"{part}, named", ", ".join(made.names)) for part, made in contents.made_of.items() if made.names]
    facts += [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in identity.items()]
    return facts + [(name, str(version)) for name, version in (source.get("environment") or {}).items()]
