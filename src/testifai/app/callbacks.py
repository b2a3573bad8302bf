"""What happens in the page: each function takes what the user did and returns what changes."""

from __future__ import annotations

from typing import Any

from testifai.app import panels, query_sliders, state, viewing
from testifai.app.panels import guarded
from testifai.app.state import Runs, number, read_address
from testifai.errors import InputError
from testifai.present import terminal
from testifai.support.optional_imports import load

dash: Any = load("dash", extra="app")

Input, Output, State, ALL = dash.Input, dash.Output, dash.State, dash.ALL


def connect(app: Any, runs: Runs) -> None:
    """Connect the page to the runs."""
    _connect_query(app, runs)
    viewing.connect(app, runs)
    _connect_saving(app, runs)


# -- the query ------------------------------------------------------------------------------------------------------


def _connect_query(app: Any, runs: Runs) -> None:
    names = runs.space.names

    @app.callback(  # type: ignore[untyped-decorator]
        Output("query", "value"),
        Output({"type": "range", "axis": ALL}, "value"),
        Output({"type": "limit", "name": ALL}, "value"),
        Output("asked", "data"),
        Output("message", "children"),
        Input("url", "search"),
        Input("query", "value"),
        Input({"type": "range", "axis": ALL}, "value"),
        Input({"type": "limit", "name": ALL}, "value"),
        Input("standard", "value"),
        Input("recall", "value"),
        State("asked", "data"),
    )
    def edit(
        search: str | None,
        text: str | None,
        positions: list[Any],
        limits: list[Any],
        standard: Any,
        recall: Any,
        asked: str | None,
    ) -> Any:
        """Whichever hand moved the query, the other follows."""
        cause = dash.ctx.triggered_id
        if cause in ("standard", "recall"):
            wanted = standard if cause == "standard" else recall
            if not isinstance(wanted, str):
                raise dash.exceptions.PreventUpdate
        elif isinstance(cause, dict):
            wanted = moved(runs, asked, positions) if cause["type"] == "range" else limited(runs, asked, limits)
        elif cause == "query":
            wanted = text
        else:
            wanted = read_address(search, runs).query
        shown = dash.no_update if cause == "query" else wanted
        try:
            found = checked(runs, wanted)
        except InputError as error:
            nothing = ([dash.no_update] * len(some) for some in (names, limits))
            return shown, *nothing, dash.no_update, panels.message(str(error))
        # Only what differs is sent back: a slider that is being dragged is left alone.
        sliders = changes(positions, [list(found[name]) for name in names])
        marks = changes(limits, [limit_mark(runs, wanted)] if limits else [])
        return shown, sliders, marks, wanted if wanted != asked else dash.no_update, None

    @app.callback(  # type: ignore[untyped-decorator]
        Output("answer", "children"),
        Output("answered", "data"),
        Input("asked", "data"),
        Input("run", "value"),
        Input("revision", "data"),
    )
    def answer(asked: str | None, run: Any, _revision: Any) -> Any:
        if not isinstance(asked, str):
            raise dash.exceptions.PreventUpdate
        # Figures wait for this: they would compete with it for the processor.
        return guarded(lambda: _answer(runs, number(runs, run), asked)), asked

    @app.callback(  # type: ignore[untyped-decorator]
        Output("watched", "children"), Input("answered", "data"), Input("run", "value")
    )
    def watch(asked: str | None, run: Any) -> Any:
        """Nobody waits for this: it takes as long as the answer."""
        if not isinstance(asked, str):
            raise dash.exceptions.PreventUpdate
        return guarded(lambda: _watched(runs, number(runs, run), asked))

    @app.callback(  # type: ignore[untyped-decorator]
        Output("difference", "children"),
        Input("answered", "data"),
        Input("run", "value"),
        Input("against", "value"),
        Input("view", "value"),
    )
    def difference(asked: str | None, run: Any, against: Any, view: Any) -> Any:
        if not isinstance(asked, str) or view != "compare":
            return None
        return guarded(lambda: _difference(runs, number(runs, run), number(runs, against), asked))


def _answer(runs: Runs, run: int, asked: str) -> Any:
    tomogram = runs.tomogram(run)
    clean = f"{tomogram.settings.clean_quantity} {terminal.clean(tomogram)}"
    return panels.answer(runs.answer(run, asked), asked, runs.names[run], clean)


def _watched(runs: Runs, run: int, asked: str) -> Any:
    return panels.watched(runs.bound(run, asked)) if runs.growing(run) else None


def checked(runs: Runs, text: Any) -> dict[str, query_sliders.Range]:
    """The ranges a query asks for, once it is known to select something."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"query: nothing was typed; accepted: text such as {runs.space.names[0]} >= 1")
    runs.tomograms[0].query_engine.sample(text)
    return query_sliders.read(text, runs.space)[0]


def moved(runs: Runs, asked: str | None, positions: list[Any]) -> str:
    """The query after a slider was moved."""
    wanted = {}
    for axis, position in zip(runs.space.axes, positions, strict=True):
        last = len(axis.severities) - 1
        first, final = sorted(min(max(int(place), 0), last) for place in position)
        wanted[axis.name] = (first, final)
    return query_sliders.write(asked or "order >= 0", runs.space, wanted)


def limited(runs: Runs, asked: str | None, limits: list[Any]) -> str:
    """The query after the limit on quality was moved; at the end of its track there is none."""
    quality = runs.tomograms[0].quality
    if quality is None or len(limits) != 1 or type(limits[0]) not in (int, float):
        raise dash.exceptions.PreventUpdate
    track = query_sliders.Track.of(quality)
    limit = None if limits[0] == track.none else float(limits[0])
    return query_sliders.write_limit(asked or "order >= 0", runs.space, quality.sign, limit)


def limit_mark(runs: Runs, query: str) -> float:
    """Where the slider of quality stands for a query."""
    quality: Any = runs.tomograms[0].quality
    track = query_sliders.Track.of(quality)
    limit = query_sliders.read_limit(query, runs.space, quality.sign)
    return track.none if limit is None else min(max(limit, track.first), track.last)


def changes(now: list[Any], new: list[Any]) -> list[Any]:
    """What is to be sent back: only what differs."""
    return [dash.no_update if one == other else other for one, other in zip(now, new, strict=True)]


def _difference(runs: Runs, run: int, against: int, asked: str) -> Any:
    other = _answer(runs, against, asked)
    if run == against:
        return [other, panels.message("against: this is the same run; choose another")]
    found = runs.comparison(run, against, asked)
    return [other, panels.difference(found.regions[0], (runs.names[run], runs.names[against]), found.notes)]


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
            return state.add(kept, name, str(asked), at_least), None
        except InputError as error:
            return dash.no_update, panels.message(str(error))

    @app.callback(Output("recall", "options"), Input("saved", "data"))  # type: ignore[untyped-decorator]
    def listed(kept: Any) -> Any:
        return [{"label": f"{one['name']}: {one['query']}", "value": one["query"]} for one in state.known(kept)]

    @app.callback(  # type: ignore[untyped-decorator]
        Output("download", "data"), Input("export", "n_clicks"), State("saved", "data"), prevent_initial_call=True
    )
    def export(_clicks: Any, kept: Any) -> Any:
        known = state.known(kept)
        if not known:
            raise dash.exceptions.PreventUpdate
        return {"content": state.as_toml(known), "filename": "gates.toml", "type": "text/plain"}
