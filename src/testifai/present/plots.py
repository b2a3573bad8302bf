"""What `.plot()` of each result draws: a plotly figure, whose titles fit a notebook's column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from testifai.errors import InputError, suggest
from testifai.present import theme
from testifai.present.figures import curves, dots, locality, sweeps
from testifai.present.figures.dots import Line, Style
from testifai.present.figures.heatmaps import MEASURED
from testifai.present.figures.pairs import pairs, steepest
from testifai.present.terminal import counted
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.lowest_tests import Mask

if TYPE_CHECKING:
    from testifai.locality import Explanation, Local
    from testifai.session.hunting import Hunt
    from testifai.sweeps import Calibrated, Sweep
    from testifai.tomogram.benchmark import Benchmark
    from testifai.tomogram.comparison import Comparison

MOST_CURVES = 8  # colours that can be told apart
USUAL = 450  # pixels of a figure that does not say
LINE = 18  # pixels of a line of a title

KINDS = ("pairs", "region", "orders", "severities", "worst", "classes", "quality")
WITH_QUERY = ("region", "worst")
WITH_AXES = ("pairs", "region", "severities")

COMPARED = re.compile(" ([<>=!]+) ")  # where a line must not be broken

ANSWER = Style("the answer", "circle", theme.SERIES[0])
OPINION = Style("beside it", "diamond", theme.SERIES[2])
WORST = Style("its worst tests", "circle-open", theme.SERIES[1])


def of_tomogram(
    tomogram: Tomogram,
    kind: str | None = None,
    query: str | None = None,
    *,
    axes: Sequence[str] | None = None,
    dark: bool = False,
) -> theme.Figure:
    """A figure of a run, by the name of its kind."""
    space = tomogram.space
    if kind is None:
        kind = "region" if query is not None else "pairs" if min(len(space.axes), space.max_order) > 1 else "severities"
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"plot: {kind!r} is no kind of figure; {suggest(str(kind), KINDS)}")
    if query is not None and kind not in WITH_QUERY:
        raise InputError(f"plot: {kind!r} takes no query; accepted with one: {', '.join(WITH_QUERY)}")
    if axes is not None and kind not in WITH_AXES:
        raise InputError(f"plot: {kind!r} takes no axes; accepted with them: {', '.join(WITH_AXES)}")
    if axes is not None and (isinstance(axes, str) or not len(axes) or len(set(axes)) < len(axes)):
        raise InputError(f"axes: {axes!r}; accepted: a list of different ones of {', '.join(space.names)}")
    if not len(tomogram.outcomes):
        raise InputError("plot: the run has no outcome yet; run it first")
    return _fitting(_drawn(tomogram, kind, query, axes, dark))


def _drawn(tomogram: Tomogram, kind: str, query: str | None, axes: Sequence[str] | None, dark: bool) -> theme.Figure:
    chosen: Mask | None = None
    if query is not None:
        queries = tomogram.query_engine
        chosen = queries.select(query) if tomogram.space.listed else queries.selection(query)
    figure: theme.Figure | None
    match kind:
        case "pairs":
            return pairs(tomogram, axes, dark=dark)
        case "region":
            if query is None:
                raise InputError("plot: 'region' needs a query, such as plot('region', 'order >= 2')")
            figure = pairs(tomogram, axes, query=query, chosen=chosen, dark=dark)
            figure.layout.title.text = _headline(tomogram.query(query))
            return figure
        case "orders":
            return dots.by_order(tomogram, dark=dark)
        case "severities":
            return _severities(tomogram, axes, dark)
        case "worst":
            return dots.worst_tests(tomogram, chosen=chosen, dark=dark)
        case "classes":
            figure = dots.classes(tomogram, dark=dark)
            problem = "this run has no classes: its inputs have no labels that are numbers of classes"
        case _:
            figure = curves.quality_curves(tomogram, dark=dark)
            problem = "this run did not measure quality; scan with quality='kid' (texts: 'edit_similarity')"
    if figure is None:
        raise InputError(f"plot: {problem}")
    return figure


def _severities(tomogram: Tomogram, axes: Sequence[str] | None, dark: bool) -> theme.Figure:
    names = tomogram.space.names
    if axes is not None or len(names) <= MOST_CURVES:
        return curves.severity_curves(tomogram, axes, alone=True, dark=dark)
    chosen = steepest(tomogram.by_severity(), MOST_CURVES)
    figure = curves.severity_curves(tomogram, chosen, alone=True, dark=dark)
    figure.layout.title.subtitle.text += f"; the {MOST_CURVES} of {len(names)} axes that matter most"
    return figure


def of_answer(answer: Answer, *, dark: bool = False) -> theme.Figure:
    """The answer, other opinions on it, and its worst tests."""
    lines = [Line("the answer", answer.robustness, answer.low, answer.high, ANSWER, note=counted(answer))]
    beside = {
        "from the tests' own trials alone": None if answer.modelled is not None else answer.model_free,
        "by the surface, contradicted by trials": answer.modelled,
    }
    if (left := answer.excluded) is not None and left.tests:
        beside[f"{left.tests:,} tests excluded as implausible"] = left.robustness, left.low, left.high
    lines += [Line(name, *found, OPINION) for name, found in beside.items() if found is not None]
    worst = zip(answer.worst_names, answer.worst, strict=True)
    lines += [Line(name, estimate, low, high, WORST) for name, (_, estimate, low, high) in worst]
    sure = 0.95 if answer.info is None else answer.info.confidence
    subtitle = f"{counted(answer)}; with {100 * sure:.4g} % intervals; dotted: clean inputs"
    clean = answer.robustness - answer.drop
    axis = theme.rate_axis(answer.quantity)
    return _fitting(dots.one_to_a_line(lines, _headline(answer), subtitle, axis=axis, mark=clean, dark=dark))


def of_sweep(sweep: Sweep, *, dark: bool = False) -> theme.Figure:
    """Accuracy over the level, with its intervals, the threshold and the levels that are not settled."""
    told = sweep.as_dict()
    of = f" of {sweep.name}" if sweep.name else ""
    figure = sweeps.sweep_curves(f"accuracy over the level{of}", [told], dark=dark)
    figure.layout.title.subtitle.text = f"{sweeps.sweep_text(told)}; {sweep.method}; shaded: not settled"
    return _fitting(figure)


def of_calibrated(found: Calibrated, *, dark: bool = False) -> theme.Figure:
    """Accuracy over the level, with the accuracy of every drop that was asked for."""
    told = [sweep.as_dict() for sweep in found.sweeps]
    if not told:
        raise InputError("plot: this perturbation was not calibrated here, and does not tell what was measured")
    figure = sweeps.sweep_curves(f"accuracy over the level of {found.name}", told, dark=dark)
    levels = ", ".join(f"{level:.4g} (−{drop:g})" for level, drop in found.falls)
    figure.layout.title.subtitle.text = f"falls from {found.accuracy:.3f}, at levels {levels or 'none'}"
    return _fitting(figure)


def of_comparison(found: Comparison, *, dark: bool = False) -> theme.Figure:
    """B − A over all tests, regions, and the tests that changed most."""
    return _fitting(dots.differences(found, dark=dark))


def of_hunt(hunt: Hunt, *, dark: bool = False) -> theme.Figure:
    """Failures found against inferences spent."""
    return _fitting(curves.hunt_curve(hunt, dark=dark))


def of_benchmark(found: Benchmark, *, dark: bool = False) -> theme.Figure:
    """The mean accuracy under each perturbation of a suite, lowest first."""
    style = dots.STYLES[MEASURED]
    scores = sorted(found.perturbations.items(), key=lambda item: item[1].value)
    lines = [Line(name, score.value, score.low, score.high, style) for name, score in scores]
    mean = theme.estimate_text(found.accuracy.value, found.accuracy.low, found.accuracy.high)
    title, subtitle = f"{found.suite}: mean accuracy {mean}", "mean over severities, 95 % intervals; dotted: clean"
    axis = theme.rate_axis("accuracy")
    return _fitting(dots.one_to_a_line(lines, title, subtitle, axis=axis, mark=found.clean.value, dark=dark))


def of_local(local: Local, *, dark: bool = False) -> theme.Figure:
    """The robustness of every class under every property."""
    return _fitting(locality.heatmap(local, dark=dark))


def of_explanation(found: Explanation, *, dark: bool = False) -> theme.Figure:
    """Trends of failures, from class to property to what it is confused with."""
    return _fitting(locality.confusions(found, dark=dark))


def _headline(answer: Answer) -> str:
    found = theme.estimate_text(answer.robustness, answer.low, answer.high)
    asked = answer.info
    about = "" if asked is None else f" for {asked.query}" + ("" if asked.inputs is None else f", {asked.inputs}")
    return theme.plain(COMPARED.sub("\u00a0\\1\u00a0", f"{answer.quantity} {found}{about}"))


def _fitting(figure: theme.Figure) -> theme.Figure:
    title = figure.layout.title
    title.text = theme.folded(title.text, 46)
    subtitle = theme.folded(title.subtitle.text or "", 58)
    title.subtitle.text = subtitle
    lines = title.text.count("<br>") + subtitle.count("<br>")
    more = LINE * lines
    # At the top, whatever the height: plotly puts a title in the middle of the margin, over what is drawn.
    # And at the left of the page, whatever room the names of lines take.
    title.update(
        {"x": 0, "xref": "container", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 16, "l": 20}},
        font={"size": 16},
    )
    figure.layout.modebar.remove = ["select", "lasso", "zoomin", "zoomout", "autoscale"]
    figure.layout.margin.t += more
    figure.layout.height = (figure.layout.height or USUAL) + more
    figure.layout.hovermode = "closest"
    return figure
