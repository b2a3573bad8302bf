"""One HTML file that needs nothing else: a template filled in, with its figures, style and script inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from testifai.present import theme
from testifai.present.figures import voxels
from testifai.present.terminal import interval, rate, signed

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
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=rate, signed=signed, zip=zip, css_text=css_text)
    shared = {"interval": interval, "css": _asset("page.css"), "plotly": get_plotlyjs()}
    return environment.get_template(template).render(**shared, **what)


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
        found[view.name] = {"data": light["data"], "light": light["layout"], "dark": dark}
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (resources.files("testifai.report") / "assets" / name).read_text(encoding="utf-8")
