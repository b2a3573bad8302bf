"""The page's callbacks: each takes what the user did and returns what changes on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from testifai.app import figures, panels, query_sliders, state
from testifai.app.layout import MEAN, Component, graph
from testifai.app.panels import guarded
from testifai.app.state import EVERYTHING, FigureRequest, Runs, fixed, number, read_address, shown_axes
from testifai.errors import InputError
from testifai.present import terminal
from testifai.support.optional_imports import load
from testifai.support.types import Record

dash: Any = load("dash", extra="app")

Input, Output, State, ALL = dash.Input, dash.Output, dash.State, dash.ALL

RUN, AGAINST, VIEW, DARK = (Input(name, "value") for name in ("run", "against", "view", "dark"))
ASKED, ANSWERED = Input("asked", "data"), Input("answered", "data")
AXES, SLICES = {"type": "axis", "place": ALL}, {"type": "slice", "axis": ALL}
RANGES, LIMITS = {"type": "range", "axis": ALL}, {"type": "limit", "name": ALL}
FIGURES, SLICE_LABELS = {"type": "figure", "name": ALL}, {"type": "slice-label", "axis": ALL}


def connect(app: Any, runs: Runs) -> None:
    """Connect the page to the runs."""
    _connect_query(app, runs)
    _connect_answers(app, runs)
    _connect_choice(app, runs)
    _connect_figures(app, runs)
    _connect_browser(app)
    _connect_saving(app, runs)


def _connect_query(app: Any, runs: Runs) -> None:
    names = runs.space.names

    @app.callback(  # type: ignore[untyped-decorator]
        *(Output("query", "value"), Output(RANGES, "value"), Output(LIMITS, "value"), Output("asked", "data")),
        Output("message", "children"),
        *(Input("url", "search"), Input("query", "value"), Input(RANGES, "value"), Input(LIMITS, "value")),
        *(Input("standard", "value"), Input("recall", "value"), State("asked", "data")),
    )
    def edit(
        search: str | None, text: str | None, positions: list[list[int]], limits: list[object],
        standard: object, recall: object, asked: str | None,
    ) -> Component:  # fmt: skip
        """Keep the text, the sliders and the menus of the query the same, whichever was used."""
        cause = dash.ctx.triggered_id
        if cause in ("standard", "recall"):
            wanted = standard if cause == "standard" else recall
            if not isinstance(wanted, str):
                raise dash.exceptions.PreventUpdate
        elif isinstance(cause, dict):
            wanted = moved(runs, asked, positions) if cause["type"] == "range" else limited(runs, asked, limits)
        else:
            wanted = (text or "") if cause == "query" else read_address(search, runs).query
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


def checked(runs: Runs, text: object) -> dict[str, query_sliders.Range]:
    """The ranges of a query that selects at least one test."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"query: nothing was typed; accepted: text such as {runs.space.names[0]} >= 1")
    runs.tomograms[0].query_engine.sample(text)
    return query_sliders.read(text, runs.space)[0]


def moved(runs: Runs, asked: str | None, positions: list[list[int]]) -> str:
    """The query after a slider was moved."""
    wanted = {}
    for axis, position in zip(runs.space.axes, positions, strict=True):
        last = len(axis.severities) - 1
        first, final = sorted(min(max(int(place), 0), last) for place in position)
        wanted[axis.name] = (first, final)
    return query_sliders.write(asked or EVERYTHING, runs.space, wanted)


def limited(runs: Runs, asked: str | None, limits: list[object]) -> str:
    """The query after the limit on quality was moved; at the end of its track there is none."""
    quality = runs.tomograms[0].quality
    given = limits[0] if len(limits) == 1 else None
    if quality is None or not isinstance(given, int | float) or isinstance(given, bool):
        raise dash.exceptions.PreventUpdate
    limit = None if given == query_sliders.Track.of(quality).none else float(given)
    return query_sliders.write_limit(asked or EVERYTHING, runs.space, quality.sign, limit)


def limit_mark(runs: Runs, query: str) -> float:
    """The position of the slider of quality for a query."""
    quality = runs.tomograms[0].quality
    assert quality is not None
    track = query_sliders.Track.of(quality)
    limit = query_sliders.read_limit(query, runs.space, quality.sign)
    return track.none if limit is None else min(max(limit, track.first), track.last)


def changes(now: Sequence[object], new: Sequence[object]) -> list[object]:
    """The new values that differ, `no_update` for the others."""
    return [dash.no_update if one == other else other for one, other in zip(now, new, strict=True)]


def _connect_answers(app: Any, runs: Runs) -> None:
    @app.callback(  # type: ignore[untyped-decorator]
        Output("answer", "children"), Output("answered", "data"), ASKED, RUN, Input("revision", "data")
    )
    def answer(asked: str | None, run: object, _revision: object) -> Component:
        # Figures wait for this: they would compete with it for the processor.
        return guarded(lambda: _answer(runs, number(runs, run), _text(asked))), _text(asked)

    @app.callback(Output("watched", "children"), ANSWERED, RUN)  # type: ignore[untyped-decorator]
    def watch(asked: str | None, run: object) -> Component:
        """Nothing waits for this: it takes as long as the answer."""
        return guarded(lambda: _watched(runs, number(runs, run), _text(asked)))

    @app.callback(Output("difference", "children"), ANSWERED, RUN, AGAINST, VIEW)  # type: ignore[untyped-decorator]
    def difference(asked: str | None, run: object, against: object, view: object) -> Component:
        if not isinstance(asked, str) or view != "compare":
            return None
        return guarded(lambda: _difference(runs, number(runs, run), number(runs, against), asked))


def _text(asked: object) -> str:
    if not isinstance(asked, str):
        raise dash.exceptions.PreventUpdate
    return asked


def _answer(runs: Runs, run: int, asked: str) -> Component:
    tomogram = runs.tomogram(run)
    clean = f"{tomogram.settings.clean_quantity} {terminal.clean(tomogram)}"
    return panels.answer(runs.answer(run, asked), asked, runs.names[run], clean)


def _watched(runs: Runs, run: int, asked: str) -> Component:
    return panels.watched(runs.bound(run, asked)) if runs.growing(run) else None


def _difference(runs: Runs, run: int, against: int, asked: str) -> Component:
    other = _answer(runs, against, asked)
    if run == against:
        return [other, panels.message("against: this is the same run; choose another")]
    found = runs.comparison(run, against, asked)
    return [other, panels.difference(found.regions[0], (runs.names[run], runs.names[against]), found.notes)]


def _connect_choice(app: Any, runs: Runs) -> None:
    names = runs.space.names
    axes, slices = min(3, len(names)), len(names) if len(names) > 3 else 0

    @app.callback(  # type: ignore[untyped-decorator]
        *(Output(name, "value") for name in ("run", "against", "view", AXES, SLICES)),
        Output("test", "data"),
        *(Input("url", "search"), Input(FIGURES, "clickData"), Input(AXES, "value")),
    )
    def choose(search: str | None, _clicks: list[object], picked: list[str]) -> Component:
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
        *(Output("flat", "children"), Output("drawn", "data")),
        *(ANSWERED, RUN, AGAINST, VIEW, Input(AXES, "value"), Input(SLICES, "value"), DARK, State("drawn", "data")),
    )
    def draw(
        asked: object, run: object, against: object, view: object, picked: list[object], slices: list[object],
        dark: list[str], drawn: object,
    ) -> Component:  # fmt: skip
        if asked is None or view not in runs.available:
            raise dash.exceptions.PreventUpdate
        data = {
            "run": run, "against": against, "view": view, "query": asked, "axes": picked,
            "at": dict(zip(runs.space.names, slices, strict=False)), "dark": bool(dark), "revision": runs.revision,
        }  # fmt: skip
        if isinstance(drawn, dict) and looks(runs, drawn) == looks(runs, data):
            raise dash.exceptions.PreventUpdate  # such as curves, when the query changes
        return guarded(lambda: _drawn(runs, data)), data

    @app.callback(Output("solid", "children"), Input("seen", "data"))  # type: ignore[untyped-decorator]
    def draw_cubes(data: object) -> Component:
        if not isinstance(data, dict) or data.get("view") != "space":
            return None
        return guarded(lambda: _drawn(runs, {**data, "view": "voxels"}))

    @app.callback(Output("examples", "children"), Input("test", "data"), RUN)  # type: ignore[untyped-decorator]
    def show(test: object, run: object) -> Component:
        if not is_test(test, runs):
            raise dash.exceptions.PreventUpdate
        return guarded(lambda: panels.test(runs, number(runs, run), test))


def _drawn(runs: Runs, data: Record) -> list[object]:
    wanted = wish(runs, data)
    drawn = [graph(name, figure) for name, figure in figures.of_view(runs, wanted, dark=data.get("dark") is True)]
    return [*drawn, panels.trends(runs.errors(wanted.run))] if wanted.view == "errors" else drawn


def wish(runs: Runs, data: Record) -> FigureRequest:
    """The request for figures; what does not fit these runs is rejected, or left at its default."""
    return FigureRequest(
        run=number(runs, data.get("run")),
        view=str(data.get("view")),
        query=str(data.get("query")),
        axes=shown_axes(data.get("axes"), runs.space),
        against=number(runs, data.get("against")),
        at=fixed(runs.space, data.get("at")),
    )


def looks(runs: Runs, data: Record) -> object:
    """A key that is equal for requests whose figures are; of an invalid request, one that equals no other."""
    try:
        return wish(runs, data).key, data.get("dark"), data.get("revision")
    except InputError:
        return object()


def clicked(click: Any, runs: Runs) -> int | None:
    """The test that was clicked on, if it was one."""
    try:
        test = click["points"][0]["customdata"]
    except (TypeError, KeyError, IndexError):
        return None
    return test if is_test(test, runs) else None


def is_test(test: object, runs: Runs) -> TypeGuard[int]:
    """Return True for the number of a test: a browser may send anything."""
    return type(test) is int and 0 <= test < runs.space.size


def apart(picked: list[str], place: int, names: tuple[str, ...]) -> list[object]:
    """No axis twice: a dropdown whose axis was picked in another one takes an axis that is free."""
    free = [name for name in names if name not in picked]
    return [
        free[0] if number != place and name == picked[place] and free else name for number, name in enumerate(picked)
    ]


def _connect_browser(app: Any) -> None:
    def script(name: str, *connected: object, **options: object) -> None:
        app.clientside_callback(dash.ClientsideFunction("testifai", name), *connected, **options)

    axes, slices = Input(AXES, "value"), Input(SLICES, "value")
    following = [Output("revision", "data"), Output("following", "children"), Output("following", "className")]
    script("follow", *following, Input("tick", "n_intervals"), State("revision", "data"), State("session", "data"))
    script("chooseDark", Output("dark", "value"), Input("url", "search"))
    script("dress", Output("root", "className"), DARK)
    shown = [Output("pickers", "className"), Output(SLICE_LABELS, "className")]
    script("showPickers", *shown, VIEW, axes, State(SLICE_LABELS, "id"))
    script("waitForFlat", Output("seen", "data"), Input("drawn", "data"))
    kept = [ASKED, RUN, AGAINST, VIEW, axes, slices, DARK, Input("test", "data")]
    script("keepAddress", Output("address", "children"), *kept, prevent_initial_call=True)


def _connect_saving(app: Any, runs: Runs) -> None:
    @app.callback(  # type: ignore[untyped-decorator]
        *(Output("saved", "data"), Output("saved-message", "children")),
        *(Input("save", "n_clicks"), Input("forget", "n_clicks")),
        *(State("saved", "data"), State("name", "value"), State("at-least", "value"), State("asked", "data")),
        prevent_initial_call=True,
    )
    def save(
        _save: object, _forget: object, kept: object, name: object, at_least: object, asked: str | None
    ) -> Component:
        if dash.ctx.triggered_id == "forget":
            return [], None
        try:
            checked(runs, asked)
            return state.add(kept, name, str(asked), at_least), None
        except InputError as error:
            return dash.no_update, panels.message(str(error))

    @app.callback(Output("recall", "options"), Input("saved", "data"))  # type: ignore[untyped-decorator]
    def listed(kept: object) -> Component:
        return [{"label": f"{one['name']}: {one['query']}", "value": one["query"]} for one in state.known(kept)]

    @app.callback(  # type: ignore[untyped-decorator]
        Output("download", "data"), Input("export", "n_clicks"), State("saved", "data"), prevent_initial_call=True
    )
    def export(_clicks: object, kept: object) -> Component:
        known = state.known(kept)
        if not known:
            raise dash.exceptions.PreventUpdate
        return {"content": state.as_toml(known), "filename": "gates.toml", "type": "text/plain"}
