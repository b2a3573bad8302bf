"""What happens in the page: each function takes what the user did and returns what changes."""

from __future__ import annotations

from typing import Any

from testifai.app import figures, panels, ranges, saved
from testifai.app.layout import graph
from testifai.app.state import VIEWS, Runs, read_address
from testifai.errors import InputError
from testifai.extras import load

dash: Any = load("dash", extra="app")

Input, Output, State, ALL = dash.Input, dash.Output, dash.State, dash.ALL

# The address is changed without telling dcc.Location, which would start all over.
KEEP_ADDRESS = """
function (query, run, against, view, axes, dark, test) {
    const words = new URLSearchParams({run, against, view, axes: axes.join(","), dark: dark.length, query});
    if (test !== null && test !== undefined) words.set("test", test);
    window.history.replaceState(null, "", window.location.pathname + "?" + words);
    document.documentElement.style.colorScheme = dark.length ? "dark" : "light";
    return dash_clientside.no_update;
}
"""


def connect(app: Any, runs: Runs) -> None:
    """Connect the page to the runs."""
    _connect_query(app, runs)
    _connect_views(app, runs)
    _connect_saving(app, runs)


# -- the query ------------------------------------------------------------------------------------------------------


def _connect_query(app: Any, runs: Runs) -> None:
    names = runs.space.names

    @app.callback(  # type: ignore[untyped-decorator]
        Output("query", "value"),
        Output({"type": "range", "axis": ALL}, "value"),
        Output("asked", "data"),
        Output("message", "children"),
        Input("url", "search"),
        Input("query", "value"),
        Input({"type": "range", "axis": ALL}, "value"),
        Input("standard", "value"),
        Input("recall", "value"),
        State("asked", "data"),
    )
    def edit(
        search: str | None, text: str | None, positions: list[Any], standard: Any, recall: Any, asked: str | None
    ) -> Any:
        """Whichever hand moved the query, the other follows."""
        cause = dash.ctx.triggered_id
        if cause in ("standard", "recall"):
            wanted = standard if cause == "standard" else recall
            if not isinstance(wanted, str):
                raise dash.exceptions.PreventUpdate
        elif isinstance(cause, dict):
            wanted = moved(runs, asked, positions)
        elif cause == "query":
            wanted = text
        else:
            wanted = read_address(search, runs).query
        shown = dash.no_update if cause == "query" else wanted
        try:
            found = checked(runs, wanted)
        except InputError as error:
            return shown, [dash.no_update] * len(names), dash.no_update, panels.message(str(error))
        sliders = [list(found[name]) for name in names]
        # Only what differs is sent back: a slider that is being dragged is left alone.
        changes = [dash.no_update if now == new else new for now, new in zip(positions, sliders, strict=True)]
        return shown, changes, wanted if wanted != asked else dash.no_update, None

    @app.callback(  # type: ignore[untyped-decorator]
        Output("answer", "children"), Output("answered", "data"), Input("asked", "data"), Input("run", "value")
    )
    def answer(asked: str | None, run: Any) -> Any:
        if asked is None:
            raise dash.exceptions.PreventUpdate
        # Figures wait for this: they would compete with it for the processor.
        return guarded(lambda: panels.answer(runs.answer(number(runs, run), asked), asked, runs.names[run])), asked

    @app.callback(  # type: ignore[untyped-decorator]
        Output("difference", "children"),
        Input("answered", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
    )
    def difference(asked: str | None, run: Any, against: Any, view: Any) -> Any:
        if asked is None or view != "compare":
            return None
        return guarded(lambda: _difference(runs, number(runs, run), number(runs, against), asked))


def checked(runs: Runs, text: Any) -> dict[str, ranges.Range]:
    """The ranges a query asks for, once it is known to select something."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"query: nothing was typed; accepted: text such as {runs.space.names[0]} >= 1")
    runs.tomograms[0].select(text)
    return ranges.read(text, runs.space)[0]


def moved(runs: Runs, asked: str | None, positions: list[Any]) -> str:
    """The query after a slider was moved."""
    wanted = {}
    for axis, position in zip(runs.space.axes, positions, strict=True):
        last = len(axis.severities) - 1
        first, final = sorted(min(max(int(place), 0), last) for place in position)
        wanted[axis.name] = (first, final)
    return ranges.write(asked or "order >= 0", runs.space, wanted)


def number(runs: Runs, run: Any) -> int:
    """A run by its number: nothing else that a request might hold leads to a file."""
    if isinstance(run, bool) or not isinstance(run, int) or not 0 <= run < len(runs.files):
        raise InputError(f"run: {run!r} is not one of those given on the command line")
    return run


def guarded(make: Any) -> Any:
    """A part of the page, or the one line that says what is wrong."""
    try:
        return make()
    except InputError as error:
        return panels.message(str(error))


def _difference(runs: Runs, run: int, against: int, asked: str) -> Any:
    other = panels.answer(runs.answer(against, asked), asked, runs.names[against])
    if run == against:
        return [other, panels.message("against: this is the same run; choose another")]
    found = runs.comparison(run, against, asked)
    return [other, panels.difference(found.regions[0], (runs.names[run], runs.names[against]), found.notes)]


# -- the figures ----------------------------------------------------------------------------------------------------


def _connect_views(app: Any, runs: Runs) -> None:
    axes = min(3, len(runs.space.names))

    @app.callback(  # type: ignore[untyped-decorator]
        Output("run", "value"),
        Output("against", "value"),
        Output("view", "value"),
        Output({"type": "axis", "place": ALL}, "value"),
        Output("dark", "value"),
        Output("test", "data"),
        Input("url", "search"),
        Input({"type": "figure", "name": ALL}, "clickData"),
        Input({"type": "axis", "place": ALL}, "value"),
    )
    def choose(search: str | None, clicks: list[Any], picked: list[str]) -> Any:
        """From the address when the page is opened; later a click on a cell, or another axis."""
        nothing = dash.no_update
        cause = dash.ctx.triggered_id
        if isinstance(cause, dict) and cause["type"] == "figure":
            test = clicked(dash.ctx.triggered[0]["value"], runs)
            return nothing, nothing, nothing, [nothing] * axes, nothing, nothing if test is None else test
        if isinstance(cause, dict):
            return nothing, nothing, nothing, apart(picked, cause["place"], runs.space.names), nothing, nothing
        view = read_address(search, runs)
        return view.run, view.against, view.view, list(view.axes), ["dark"] if view.dark else [], view.test

    @app.callback(  # type: ignore[untyped-decorator]
        Output("figures", "children"),
        Input("answered", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
        Input({"type": "axis", "place": ALL}, "value"),
        Input("dark", "value"),
    )
    def draw(asked: str | None, run: Any, against: Any, view: Any, picked: list[str], dark: list[str]) -> Any:
        if asked is None or view not in VIEWS or len(set(picked)) != len(picked):
            raise dash.exceptions.PreventUpdate
        return guarded(
            lambda: [
                graph(name, figure)
                for name, figure in figures.of_view(
                    runs, number(runs, run), view, asked, picked, against=number(runs, against), dark=bool(dark)
                )
            ]
        )

    @app.callback(  # type: ignore[untyped-decorator]
        Output("examples", "children"), Input("test", "data"), Input("run", "value")
    )
    def show(test: Any, run: Any) -> Any:
        if isinstance(test, bool) or not isinstance(test, int) or not 0 <= test < runs.space.size:
            raise dash.exceptions.PreventUpdate
        return guarded(lambda: panels.test(runs, number(runs, run), test))

    @app.callback(Output("root", "className"), Input("dark", "value"))  # type: ignore[untyped-decorator]
    def dress(dark: list[str]) -> str:
        return "dark" if dark else "light"

    @app.callback(Output("pickers", "className"), Input("view", "value"))  # type: ignore[untyped-decorator]
    def pick(view: Any) -> str:
        return "row pickers" if axes > 2 and view in ("space", "compare") else "unseen"

    app.clientside_callback(
        KEEP_ADDRESS,
        Output("address", "children"),
        Input("asked", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
        Input({"type": "axis", "place": ALL}, "value"),
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
    return test if isinstance(test, int) and not isinstance(test, bool) and 0 <= test < runs.space.size else None


def apart(picked: list[str], place: int, names: tuple[str, ...]) -> list[Any]:
    """No axis twice: what the last choice displaced takes an axis that is free.

    >>> apart(["fog", "fog", "night"], 0, ("fog", "rain", "night"))
    ['fog', 'rain', 'night']
    """
    free = [name for name in names if name not in picked]
    return [
        free[0] if number != place and name == picked[place] and free else name for number, name in enumerate(picked)
    ]


# -- saved queries --------------------------------------------------------------------------------------------------


def _connect_saving(app: Any, runs: Runs) -> None:
    @app.callback(  # type: ignore[untyped-decorator]
        Output("saved", "data"),
        Output("saved-message", "children"),
        Input("save", "n_clicks"),
        Input("forget", "n_clicks"),
        State("saved", "data"),
        State("name", "value"),
        State("at-least", "value"),
        State("asked", "data"),
        prevent_initial_call=True,
    )
    def save(_save: Any, _forget: Any, kept: Any, name: Any, at_least: Any, asked: str | None) -> Any:
        if dash.ctx.triggered_id == "forget":
            return [], None
        try:
            checked(runs, asked)
            return saved.add(kept, name, str(asked), at_least), None
        except InputError as error:
            return dash.no_update, panels.message(str(error))

    @app.callback(Output("recall", "options"), Input("saved", "data"))  # type: ignore[untyped-decorator]
    def listed(kept: Any) -> Any:
        return [{"label": f"{one['name']}: {one['query']}", "value": one["query"]} for one in saved.known(kept)]

    @app.callback(  # type: ignore[untyped-decorator]
        Output("download", "data"), Input("export", "n_clicks"), State("saved", "data"), prevent_initial_call=True
    )
    def export(_clicks: Any, kept: Any) -> Any:
        known = saved.known(kept)
        if not known:
            raise dash.exceptions.PreventUpdate
        return {"content": saved.as_toml(known), "filename": "gates.toml", "type": "text/plain"}
