"""What is looked at: the view, its axes and slices, the figures, and the test that was clicked on."""

from __future__ import annotations

from typing import Any, TypeGuard

from testifai.app import figures, panels, scripts
from testifai.app.figures import FigureRequest
from testifai.app.layout import MEAN, Component, graph
from testifai.app.panels import guarded
from testifai.app.state import Runs, fixed, number, read_address
from testifai.errors import InputError
from testifai.support.optional_imports import load
from testifai.support.types import Record

dash: Any = load("dash", extra="app")

Input, Output, State, ALL = dash.Input, dash.Output, dash.State, dash.ALL


def connect(app: Any, runs: Runs) -> None:
    """Connect what is chosen and clicked to the figures."""
    _connect_choice(app, runs)
    _connect_figures(app, runs)
    _connect_page(app)


def _connect_choice(app: Any, runs: Runs) -> None:
    names = runs.space.names
    axes, slices = min(3, len(names)), len(names) if len(names) > 3 else 0

    @app.callback(  # type: ignore[untyped-decorator]
        Output("run", "value"),
        Output("against", "value"),
        Output("view", "value"),
        Output({"type": "axis", "place": ALL}, "value"),
        Output({"type": "slice", "axis": ALL}, "value"),
        Output("test", "data"),
        Input("url", "search"),
        Input({"type": "figure", "name": ALL}, "clickData"),
        Input({"type": "axis", "place": ALL}, "value"),
    )
    def choose(search: str | None, clicks: list[object], picked: list[str]) -> Component:
        """From the address when the page is opened; later a click on a cell, or another axis."""
        nothing = dash.no_update
        kept = [nothing] * slices
        cause = dash.ctx.triggered_id
        if isinstance(cause, dict) and cause["type"] == "figure":
            test = clicked(dash.ctx.triggered[0]["value"], runs)
            return nothing, nothing, nothing, [nothing] * axes, kept, nothing if test is None else test
        if isinstance(cause, dict):
            return nothing, nothing, nothing, apart(picked, cause["place"], names), kept, nothing
        view = read_address(search, runs)
        at = [view.at.get(name, MEAN) for name in names[:slices]]
        return view.run, view.against, view.view, list(view.axes), at, view.test


def _connect_figures(app: Any, runs: Runs) -> None:
    @app.callback(  # type: ignore[untyped-decorator]
        Output("flat", "children"),
        Output("drawn", "data"),
        Input("answered", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
        Input({"type": "axis", "place": ALL}, "value"),
        Input({"type": "slice", "axis": ALL}, "value"),
        Input("dark", "value"),
        State("drawn", "data"),
    )
    def draw(
        asked: object,
        run: object,
        against: object,
        view: object,
        picked: list[object],
        slices: list[object],
        dark: list[str],
        drawn: object,
    ) -> Component:
        if asked is None or view not in runs.available:
            raise dash.exceptions.PreventUpdate
        data = {
            "run": run,
            "against": against,
            "view": view,
            "query": asked,
            "axes": picked,
            "at": dict(zip(runs.space.names, slices, strict=False)),
            "dark": bool(dark),
            "revision": runs.revision,
        }
        if isinstance(drawn, dict) and looks(runs, drawn) == looks(runs, data):
            raise dash.exceptions.PreventUpdate  # such as curves, when the query changes
        return guarded(lambda: _drawn(runs, data)), data

    app.clientside_callback(scripts.WAIT_FOR_FLAT, Output("seen", "data"), Input("drawn", "data"))

    @app.callback(Output("solid", "children"), Input("seen", "data"))  # type: ignore[untyped-decorator]
    def draw_cubes(data: object) -> Component:
        if not isinstance(data, dict) or data.get("view") != "space":
            return None
        return guarded(lambda: _drawn(runs, {**data, "view": "voxels"}))

    @app.callback(  # type: ignore[untyped-decorator]
        Output("examples", "children"), Input("test", "data"), Input("run", "value")
    )
    def show(test: object, run: object) -> Component:
        if not is_test(test, runs):
            raise dash.exceptions.PreventUpdate
        return guarded(lambda: panels.test(runs, number(runs, run), test))


def _drawn(runs: Runs, data: Record) -> list[object]:
    """The figures that a page asks for, which may be any page."""
    wanted = wish(runs, data)
    drawn = [graph(name, figure) for name, figure in figures.of_view(runs, wanted, dark=data.get("dark") is True)]
    return [*drawn, panels.trends(runs.errors(wanted.run))] if wanted.view == "errors" else drawn


def wish(runs: Runs, data: Record) -> FigureRequest:
    """What is to be drawn; whatever does not fit these runs is refused, or left at its default."""
    names = runs.space.names
    given = data.get("axes")
    axes = [name for name in (given if isinstance(given, list) else []) if name in names]
    return FigureRequest(
        run=number(runs, data.get("run")),
        view=str(data.get("view")),
        query=str(data.get("query")),
        axes=list(dict.fromkeys([*axes, *names]))[: min(3, len(names))],
        against=number(runs, data.get("against")),
        at=fixed(runs.space, data.get("at")),
    )


def looks(runs: Runs, data: Record) -> object:
    """What a wish looks like, equal for wishes that look alike; what cannot be drawn looks like nothing else."""
    try:
        return wish(runs, data).key, data.get("dark"), data.get("revision")
    except InputError:
        return object()


def _connect_page(app: Any) -> None:
    """What the browser does by itself."""
    axes = Input({"type": "axis", "place": ALL}, "value")
    slices = Input({"type": "slice", "axis": ALL}, "value")
    app.clientside_callback(
        scripts.FOLLOW,
        Output("revision", "data"),
        Output("following", "children"),
        Output("following", "className"),
        Input("tick", "n_intervals"),
        State("revision", "data"),
        State("session", "data"),
    )
    app.clientside_callback(scripts.CHOOSE_DARK, Output("dark", "value"), Input("url", "search"))
    app.clientside_callback(scripts.DRESS, Output("root", "className"), Input("dark", "value"))
    app.clientside_callback(
        scripts.SHOW_PICKERS,
        Output("pickers", "className"),
        Output({"type": "slice-label", "axis": ALL}, "className"),
        Input("view", "value"),
        axes,
        State({"type": "slice-label", "axis": ALL}, "id"),
    )
    app.clientside_callback(
        scripts.KEEP_ADDRESS,
        Output("address", "children"),
        Input("asked", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
        axes,
        slices,
        Input("dark", "value"),
        Input("test", "data"),
        prevent_initial_call=True,
    )


def clicked(click: Any, runs: Runs) -> int | None:
    """The test that was clicked on, where it was one."""
    try:
        test = click["points"][0]["customdata"]
    except (TypeError, KeyError, IndexError):
        return None
    return test if is_test(test, runs) else None


def is_test(test: object, runs: Runs) -> TypeGuard[int]:
    """Whether this is the number of a test: a browser may send anything."""
    return type(test) is int and 0 <= test < runs.space.size


def apart(picked: list[str], place: int, names: tuple[str, ...]) -> list[object]:
    """No axis twice: what the last choice displaced takes an axis that is free.

    >>> apart(["fog", "fog", "night"], 0, ("fog", "rain", "night"))
    ['fog', 'rain', 'night']
    """
    free = [name for name in names if name not in picked]
    return [
        free[0] if number != place and name == picked[place] and free else name for number, name in enumerate(picked)
    ]
