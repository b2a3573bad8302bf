"""The page of the explorer: query, sliders and answer on the left, figures on the right, examples below."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from testifai.app.live_updates import PERIOD
from testifai.app.query_sliders import Track
from testifai.app.state import EVERYTHING, Runs
from testifai.present.theme import CONFIG
from testifai.space import Axis
from testifai.support.optional_imports import load
from testifai.support.types import Record
from testifai.tomogram.regions import standard_queries

if TYPE_CHECKING:
    from testifai.quality.predict import Scores

dcc: Any = load("dash.dcc", extra="app")
html: Any = load("dash.html", extra="app")

Component = Any  # of Dash, which has no types

TITLES = {
    "space": "region",
    "pairs": "pairs of axes",
    "curves": "curves",
    "tests": "worst tests",
    "errors": "errors",
    "compare": "two runs",
}
MOST_NAME = 80
WIDE = ("voxels", "worst", "confusions", "local")
EXPORTS = ("PNG", "SVG", "CSV")
MEAN = -1  # instead of a severity: the mean over an axis that is not shown


def page(runs: Runs, sketch: str | None = None, session: str = "") -> Component:
    """The whole page without contents: callbacks fill it from its address."""
    hint = html.P("Click a cell or a dot to see real inputs under that configuration.", className="facts")
    return html.Div(
        [
            dcc.Location(id="url", refresh=False),
            *(dcc.Store(id=name) for name in ("asked", "answered", "drawn", "seen", "test")),
            dcc.Store(id="session", data=session),
            dcc.Store(id="revision", data=runs.revision),
            dcc.Interval(id="tick", interval=1000 * PERIOD),
            dcc.Store(id="saved", storage_type="local", data=[]),
            dcc.Download(id="download"),
            html.Div(id="address", hidden=True),
            _header(runs),
            html.Div([_controls(runs), _figures(runs, sketch)], className="columns"),
            html.Div(hint, id="examples"),
        ],
        id="root",
        className="light",
    )


def _header(runs: Runs) -> Component:
    choices = [{"label": name, "value": number} for number, name in enumerate(runs.names)]
    several = len(runs.names) > 1
    share = html.Button("copy link", id="share", type="button", title="the address of what is shown now")
    dark = dcc.Checklist([{"label": "dark", "value": "dark"}], [], id="dark", className="choice")
    return html.Header(
        [
            html.H1("testifai"),
            _labelled("run", _dropdown(choices, 0, "run"), shown=several),
            html.Span("" if several else runs.names[0], className="run-name"),
            _labelled("against", _dropdown(choices, runs.against, "against"), shown=len(runs.files) > 1),
            html.Span(id="following"),
            html.Div([share, dark], className="tools"),
        ]
    )


def _labelled(words: str, part: Component, *, shown: bool) -> Component:
    return html.Label([html.Span(words), part], className="labelled" if shown else "unseen")


def _dropdown(options: list[Any], value: object, id: object) -> Component:  # noqa: A002
    return dcc.Dropdown(options, value, id=id, clearable=False, searchable=False)


def _controls(runs: Runs) -> Component:
    space = runs.space
    words = [*space.names, *(f"{name} >= " for name in space.names), "order == ", "severity <= "]
    standard = [{"label": f"{name}: {query}", "value": query} for name, query in standard_queries(space).items()]
    return html.Section(
        [
            html.Label("query", htmlFor="query"),
            dcc.Input(
                id="query", value=EVERYTHING, type="text", list="words", autoComplete="off", spellCheck="false",
                maxLength=2000, debounce=0.05,
            ),
            html.Datalist([html.Option(value=word) for word in words], id="words"),
            html.Div(id="message", **{"aria-live": "polite"}),
            html.Div(id="answer", **{"aria-live": "polite"}),
            html.Div(id="watched"),
            html.Div(id="difference", **{"aria-live": "polite"}),
            html.H2("severities"),
            *[_slider(axis) for axis in space.axes],
            *_limit(runs.tomograms[0].quality),
            dcc.Dropdown(
                [{"label": "everything", "value": EVERYTHING}, *standard], None, id="standard",
                placeholder="standard queries …", searchable=False,
            ),
            _saving(),
        ],
        className="controls",
        **{"aria-label": "query"},
    )  # fmt: skip


def _slider(axis: Axis) -> Component:
    """Positions, not severities: those need not be evenly spaced."""
    last = len(axis.severities) - 1
    every = max(1, -(-len(axis.severities) // 12))
    slider = dcc.RangeSlider(
        0, max(last, 1), 1, value=[0, max(last, 1)],
        marks={place: str(axis.severities[place]) for place in range(0, last + 1, every)},
        id={"type": "range", "axis": axis.name}, allowCross=False, allow_direct_input=False, disabled=last < 1,
    )  # fmt: skip
    return html.Div([html.Span(axis.name, className="axis"), slider], className="slider")


def _limit(quality: Scores | None) -> list[Component]:
    if quality is None or np.isnan(quality.estimate).all():
        return []
    track = Track.of(quality)
    slider = dcc.Slider(
        track.first, track.last, track.step, value=track.none, included=True,
        marks={place: f"{place:g}" for place in (track.first, track.last)},
        id={"type": "limit", "name": "quality"}, allow_direct_input=False, tooltip={"placement": "bottom"},
    )  # fmt: skip
    return [
        html.H2(f"quality ({quality.name}, {'higher' if quality.higher_is_better else 'lower'} is better)"),
        html.Div([html.Span(f"quality {quality.sign}", className="axis"), slider], className="slider"),
    ]


def _saving() -> Component:
    fields = [
        dcc.Input(id="name", type="text", placeholder="name", maxLength=MOST_NAME),
        dcc.Input(id="at-least", type="number", min=0, max=1, step=0.001, placeholder="at least, 0 … 1"),
        html.Button("save", id="save", type="button"),
    ]
    buttons = [
        html.Button("export as gates (TOML)", id="export", type="button"),
        html.Button("forget all", id="forget", type="button"),
    ]
    return html.Details(
        [
            html.Summary("saved queries and gates"),
            html.Div(fields, className="row"),
            html.Div(id="saved-message"),
            dcc.Dropdown([], None, id="recall", placeholder="saved queries …", searchable=False),
            html.Div(buttons, className="row"),
        ]
    )


def _figures(runs: Runs, sketch: str | None) -> Component:
    names = runs.space.names
    pickers = [_dropdown(list(names), name, {"type": "axis", "place": place}) for place, name in enumerate(names[:3])]
    views = [{"label": TITLES[view], "value": view} for view in runs.available]
    # The sketch is already on the page, where the figures will be.
    source = "data:image/svg+xml;base64," + base64.b64encode((sketch or "").encode()).decode()
    drawn = [html.Img(src=source, alt="pass rates of the trials so far", className="sketch")]
    return html.Section(
        [
            dcc.RadioItems(views, "space", id="view", className="choice"),
            html.Div([html.Span("axes", className="facts"), *pickers], id="pickers", className="unseen"),
            html.Div([_slice(axis) for axis in runs.space.axes] if len(names) > 3 else [], className="slices"),
            html.Div(
                [html.Div(id="solid"), html.Div(id="flat"), *(drawn if sketch else [])],
                id="figures",
                className="figures",
            ),
        ],
        className="views",
        **{"aria-label": "figures"},
    )


def _slice(axis: Axis) -> Component:
    """The severity of an axis that is not shown; figures use it, answers do not."""
    levels = [{"label": f"= {severity}", "value": severity} for severity in axis.severities]
    choices = [{"label": "mean over it", "value": MEAN}, *levels]
    return html.Label(
        [html.Span(axis.name, className="facts"), _dropdown(choices, MEAN, {"type": "slice", "axis": axis.name})],
        id={"type": "slice-label", "axis": axis.name},
        className="unseen",
        title="only figures are sliced; for an answer, use the query",
    )


def graph(name: str, figure: Record) -> Component:
    """A figure with the buttons that save it; the browser does it from what it shows (assets/explorer.js)."""
    height = figure["layout"].get("height") or (560 if name == "voxels" else 430)
    drawn = dcc.Graph(
        id={"type": "figure", "name": name},
        figure=figure,
        # An image of a page's colours without its ground could not be read elsewhere: ours has it.
        config={**CONFIG, "modeBarButtonsToRemove": ["toImage"]},
        style={"height": f"{height}px"},
    )
    buttons = [
        html.Button(
            kind, type="button", title=f"save this figure as {kind}",
            **{"data-export": kind.lower(), "data-name": name},
        )
        for kind in EXPORTS
    ]  # fmt: skip
    exports = html.Div(buttons, className="exports")
    return html.Div([drawn, exports], className=f"figure {'wide' if name in WIDE else ''}")
