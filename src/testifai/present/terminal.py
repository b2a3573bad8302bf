"""Tables of answers, tests, classes and gates for the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, JustifyMethod
from rich.errors import MarkupError
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from testifai.gates.verdicts import Verdict
from testifai.session.observers import notes
from testifai.space import Space
from testifai.space import query as queries
from testifai.support.formatting import interval as interval
from testifai.support.formatting import printable
from testifai.support.formatting import rate as rate
from testifai.support.serialization import plain
from testifai.support.types import Floats, Record
from testifai.tomogram import Answer, Excluded, Tomogram
from testifai.tomogram.average_precision import AveragePrecision
from testifai.tomogram.interactions import precedences
from testifai.tomogram.regression_errors import distances
from testifai.tomogram.run_state import run_state, scope
from testifai.tomogram.trust import Trust, recall

if TYPE_CHECKING:
    from testifai.quality.predict import Scores
    from testifai.spec.parsing import Gate
    from testifai.sweeps import Calibrated, Sweep
    from testifai.tomogram.benchmark import Benchmark, BenchmarkScore
    from testifai.tomogram.limits import Limit


def facts(tomogram: Tomogram) -> Record:
    """The axes, how much was tried and measured, what it cost, and clean accuracy, as plain data for JSON."""
    return {
        "axes": {axis.name: list(axis.severities) for axis in tomogram.space.axes},
        **run_state(tomogram),
        "tests": tomogram.space.size,
        "measured": tomogram.estimator.measured,
        **vars(tomogram.estimator.run_counts(tomogram.estimator.measured_ids, tomogram.space.size)),
        "tried": len(tomogram.outcomes),
        "inputs": tomogram.outcomes.inputs,
        "inferences": tomogram.inferences,
        "base": plain(tomogram.base),
        "clean": plain(vars(tomogram.estimator.clean)),
        **({"distances": {name: one.as_dict() for name, one in off.items()}} if (off := distances(tomogram)) else {}),
        **({} if tomogram.settings.score is None else {"score": tomogram.settings.score}),
        **({"scores": list(tomogram.scores)} if tomogram.scores else {}),
    }


ROWS = 10


def folded(out: Console, table: Table) -> Iterator[Table]:
    """Yield the table or, if it is too wide, pieces of it that each start with its first column."""
    rest = list(range(1, len(table.columns)))
    if _width(out, table) <= out.width or len(rest) < 2:
        yield table
        return
    title = table.title
    while rest:
        count = len(rest)
        while count > 1 and _width(out, _piece(table, rest[:count])) > out.width:
            count -= 1
        piece = _piece(table, rest[:count])
        piece.title, title = title, None
        yield piece
        rest = rest[count:]


def _width(out: Console, table: Table) -> int:
    return Measurement.get(out, out.options.update(width=10_000), table).maximum


def _piece(table: Table, columns: list[int]) -> Table:
    chosen = [table.columns[place] for place in (0, *columns)]
    heads = [Column(one.header, justify=one.justify, header_style=one.header_style) for one in chosen]
    made = Table(*heads, pad_edge=table.pad_edge, box=table.box)
    made.title_justify, made.title_style = table.title_justify, table.title_style
    for row in zip(*(column.cells for column in chosen), strict=True):
        made.add_row(*row)
    return made


SHADES = " ░▒▓█"  # for rates in quarters
MOST_MAPS = 3


def blocks(tomogram: Tomogram) -> list[str]:
    """Maps of the last two axes, side by side for a few severities of the first of three; other axes are off."""
    space = tomogram.space
    down, across = space.axes[-2], space.axes[-1]
    estimate = tomogram.estimate
    chosen: list[tuple[str, Floats]] = [("", estimate[(0,) * (estimate.ndim - 2)])]
    if estimate.ndim > 2:
        first = space.axes[0]
        places = np.unique(np.linspace(0, len(first.severities) - 1, MOST_MAPS).round().astype(int)).tolist()
        chosen = [
            (f"{first.name} {first.severities[place]}", estimate[(place, *(0,) * (estimate.ndim - 3))])
            for place in places
        ]
    margin = max(len(down.name) + 1 + max(len(str(level)) for level in down.severities), len(across.name))
    width = max(2 * len(across.severities), *(len(title) for title, _ in chosen))
    lines = [" " * (margin + 1) + "  ".join(f"{title:{width}}" for title, _ in chosen)] if estimate.ndim > 2 else []
    for row, level in enumerate(down.severities):
        name = f"{down.name} {level}" if row == 0 else str(level)
        shades = [["?" if np.isnan(rate) else SHADES[round(rate * 4)] for rate in found[row]] for _, found in chosen]
        maps = ["".join(2 * shade for shade in line) for line in shades]
        lines.append(f"{name:>{margin}} " + "  ".join(f"{text:{width}}" for text in maps))
    levels = "".join(f"{level!s:2.2}" for level in across.severities)
    lines.append(f"{across.name:>{margin}} " + "  ".join(f"{levels:{width}}" for _ in chosen))
    return [line.rstrip() for line in lines]


LONGEST = 400  # characters of a query that are printed


class CleanConsole(Console):
    """Prints foreign text literally: nothing in it moves the cursor, is a colour or ends a colour."""

    def render_str(self, text: str, **options: Any) -> Text:
        text = printable(text, lines=True)
        try:
            return super().render_str(text, **options)
        except MarkupError:
            return super().render_str(text, **{**options, "markup": False})

    def on_broken_pipe(self) -> None:
        """Let the command handle a closed pipe, such as of `head`: rich would end the process."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output, never narrower than a table needs when it is not a terminal."""
    plain = CleanConsole(highlight=False, emoji=False)
    return plain if plain.is_terminal else CleanConsole(highlight=False, emoji=False, width=120)


def bounded(estimate: float, low: float, high: float) -> str:
    """An estimate with its bounds, either of which may be unknown."""
    return f"{rate(estimate)} ({interval(low, high)})"


def clean(tomogram: Tomogram) -> str:
    """Clean accuracy with its bounds and the number of inputs it is based on."""
    found = tomogram.estimator.clean
    others = "" if found.alone or not found.trials else " and the trials of other tests"
    words = bounded(found.estimate, found.low, found.high)
    return f"{words}, on {found.trials:,} of {found.inputs:,} inputs{others}{scope(tomogram)}"


def extent(tomogram: Tomogram) -> str:
    """The number of tests and what their estimates are based on."""
    tests = tomogram.space.size
    head = f"{tests:,} tests over {', '.join(tomogram.space.names)}"
    runs = tomogram.estimator.run_counts(tomogram.estimator.measured_ids, tests)
    if tomogram.estimator.pooled:
        _, trials = tomogram.outcomes.counts(tomogram.estimator.measured_ids)
        own = f"{trials.min():,} to {trials.max():,}" if trials.min() < trials.max() else f"{trials.min():,}"
        each = "each" if len(trials) == tests else f"{len(trials):,} of them"
        trials_of = f"{each} with {own} trials of {'its' if each == 'each' else 'their'} own"
        return f"{head}: {runs}; {trials_of}; estimates pool them"
    return f"{head}: {runs}"


def spent(tomogram: Tomogram) -> str:
    return f"{tomogram.inferences:,} inferences on {tomogram.outcomes.inputs:,} inputs"


def answer(out: Console, space: Space, expression: str, found: Answer, score: str | None = None) -> None:
    """One query's answer, about pass rates or the mean of a score."""
    asked = _escape(queries.printable(expression, LONGEST))
    of = "" if score is None else f"mean {_escape(score)} "
    out.print(
        f"[bold]{rate(found.robustness)}[/bold]  ({interval(found.low, found.high)})  {of}for {asked}{found.scope}"
    )
    left = found.tests - found.measured - found.inferred
    unknown = f", {left:,} left out, of which nothing is known" if left else ""
    out.print(f"{signed(found.drop)} against clean inputs; {counted(found)}{unknown}")
    if found.excluded is not None:
        out.print(excluded(found.excluded))
    if found.model_free is not None:
        out.print(second_opinion(found))
    out.print(worst(space, found, "robustness" if score is None else f"mean {score}"))


def precision(out: Console, expression: str, found: AveragePrecision) -> None:
    """The mean average precision of the tests that a query selects."""
    bounds = interval(found.low, found.high)
    out.print(f"[bold]{rate(found.estimate)}[/bold]  ({bounds})  mean average precision for {_escape(expression)}")
    left = f"; {found.left_out:,} left out: not tried, or nothing to find" if found.left_out else ""
    out.print(f"the mean of {found.tests:,} tests, on {found.inputs:,} images, for images like these{left}")


def benchmark(out: Console, found: Benchmark) -> None:
    """The standard scores of a suite, then its perturbations and severities."""
    tables: dict[str, Mapping[Any, BenchmarkScore]] = {
        f"{found.suite}, single perturbations": found.headline(),
        "by perturbation, mean over severities": found.perturbations,
        "by severity, mean over perturbations": found.severities,
    }
    for title, scores in tables.items():
        rows = ((str(name), score.value, score.low, score.high) for name, score in scores.items())
        out.print(_estimates(title, "", "score", rows))
    for note in found.notes():
        out.print(_escape(note))


def counted(found: Answer) -> str:
    runs = None if found.info is None else found.info.runs
    return f"{found.tests:,} tests: {runs or f'{found.measured:,} measured, {found.inferred:,} predicted'}"


def second_opinion(found: Answer) -> str:
    """The estimate of the tests' own trials next to a surrogate's answer or, if they contradict it, the surrogate's."""
    if found.modelled is not None:
        contradicted = "by the smooth surface, which these tests' own trials contradict"
        return f"{bounded(*found.modelled)} {contradicted}: the answer is from the trials alone"
    if found.model_free is not None:
        return f"{bounded(*found.model_free)} from these tests' own trials alone; they agree"
    return ""


def excluded(found: Excluded) -> str:
    """The tests that a limit on quality excluded, in words."""
    if not found.tests:
        words = "no test excluded as implausible"
    else:
        bounds = interval(found.low, found.high)
        words = f"{found.tests:,} tests excluded as implausible: {rate(found.robustness)}  ({bounds})  on them"
    doubt = f"; with {found.doubtful:,} it is not sure on which side of the limit" if found.doubtful else ""
    return words + doubt


def worst(space: Space, found: Answer, quantity: str = "robustness") -> Table:
    rows = ((_escape(space.words(sigma)), estimate, low, high) for sigma, estimate, low, high in found.worst)
    return _estimates("worst tests", "configuration", _escape(quantity), rows)


def _estimates(title: str, head: str, quantity: str, rows: Iterable[tuple[str, float, float, float]]) -> Table:
    table = table_of(title, (head, "left"), quantity, "95 % interval")
    for name, estimate, low, high in rows:
        table.add_row(name, rate(estimate), interval(low, high))
    return table


def summary(out: Console, tomogram: Tomogram) -> None:
    """A run in a page."""
    space = tomogram.space
    out.print(f"{extent(tomogram)}; {spent(tomogram)}")
    if tomogram.settings.finite:
        out.print(f'every number is for these {tomogram.outcomes.inputs:,} inputs only (population = "data")')
    if not len(tomogram.outcomes):
        return
    out.print(f"{_escape(tomogram.settings.clean_quantity)} [bold]{clean(tomogram)}[/bold]")
    for name, off in distances(tomogram).items():
        out.print(f"{name}: {off}{f', mean of {off.tests:,} tests tried' if off.tests > 1 else ''}")
    for part in (by_order(tomogram), *folded(out, by_axis(tomogram)), by_class(tomogram, most=ROWS)):
        if part.row_count:
            out.print(part)
    everything = tomogram.query("order >= 0")
    out.print(worst(space, everything, tomogram.settings.quantity))
    for line in (*precedence(tomogram), *trust(tomogram)["lines"], *notes(tomogram.provenance)):
        out.print(line, markup=False)


def by_order(tomogram: Tomogram) -> Table:
    """Robustness by the number of combined perturbations."""
    return _by_number(tomogram, "by order (perturbations at once)", "order", "order", tomogram.by_order())


def _by_number(
    tomogram: Tomogram,
    title: str,
    head: str,
    column: str,
    answers: Mapping[int, Answer],
    *more: tuple[str, Callable[[int, Answer], str]],
) -> Table:
    pooled, ids = tomogram.estimator.pooled, tomogram.estimator.measured_ids
    values = tomogram.space.columns_of(tomogram.space.matrix(ids))[column]
    _, trials = tomogram.outcomes.counts(ids)
    # If all estimates pool trials, hardly any test is measured.
    basis, quantity = "own trials" if pooled else "measured", _escape(tomogram.settings.quantity)
    table = table_of(title, head, "tests", basis, quantity, "95 % interval", *(name for name, _ in more))
    for value, found in answers.items():
        count = trials[values == value].sum() if pooled else found.measured
        cells = [rate(found.robustness), interval(found.low, found.high), *(word(value, found) for _, word in more)]
        table.add_row(str(value), f"{found.tests:,}", f"{count:,}", *cells)
    return table


def by_axis(tomogram: Tomogram) -> Table:
    """Robustness by each axis's severity."""
    levels = sorted({level for axis in tomogram.space.axes for level in axis.severities})
    of = "" if tomogram.settings.score is None else f": {_escape(tomogram.settings.quantity)}"
    table = table_of(f"by axis and severity{of}", ("axis", "left"), *map(str, levels))
    for name, found in tomogram.by_severity().items():
        table.add_row(name, *(rate(found[level].robustness) if level in found else "" for level in levels))
    return table


def by_class(tomogram: Tomogram, most: int | None = None) -> Table:
    """Robustness by class, or of the `most` worst and a line for the rest; no rows if inputs have no classes."""
    classes = tomogram.by_class()
    shown, title = list(classes), "by class, over the tests tried"
    if most is not None and len(classes) > most + 1:
        shown = sorted(classes, key=lambda name: classes[name].robustness)[:most]
        title = f"the worst {most} of {len(classes)} classes, over the tests tried"
    listed = ((name, classes[name]) for name in shown)
    rows = ((_escape(name), found.robustness, found.low, found.high) for name, found in listed)
    table = _estimates(title, "class", _escape(tomogram.settings.quantity), rows)
    if rest := [found.robustness for name, found in classes.items() if name not in shown]:
        table.caption = f"{len(rest)} others: {rate(min(rest))} … {rate(max(rest))} (show --by class)"
    return table


def by_severity_sum(tomogram: Tomogram) -> Table:
    """Robustness, drop and quality against the sum of severities: the first paper's Figure 9."""
    columns: list[tuple[str, Callable[[int, Answer], str]]] = [("drop", lambda _, found: signed(found.drop))]
    if (scores := tomogram.quality) is not None:
        sums = np.broadcast_to(tomogram.space.columns()["severity"], tomogram.space.shape)
        values = {total: scores.estimate[sums == total] for total in np.unique(sums).tolist()}
        columns += [
            (_escape(scores.name), lambda total, _: f"{values[total].mean():.4f}"),
            ("its range", lambda total, _: f"{values[total].min():.4f} … {values[total].max():.4f}"),
        ]
    answers = tomogram.query_engine.by("severity")
    return _by_number(tomogram, "by severity sum", "sum", "severity", answers, *columns)


def validity(out: Console, scores: Scores, limits: Iterable[Limit]) -> None:
    """The tests that each limit on quality keeps and excludes."""
    better = "higher is better" if scores.higher_is_better else "lower is better"
    out.print(
        f"{_escape(scores.name)} of {scores.space.size:,} tests, {len(scores.measured):,} measured and the others "
        f"predicted; {better}"
    )
    table = table_of(
        "robustness by limit on quality", ("limit", "left"), "plausible", "robustness", "95 % interval", "excluded",
        "robustness", "95 % interval", "either",
    )  # fmt: skip
    for limit in limits:
        asked = f"quality {scores.sign} {limit.value:g}"
        inside = limit.inside
        if inside is None or inside.excluded is None:
            table.add_row(asked, "0", "–", "", f"{scores.space.size:,}", "", "", "")
            continue
        outside = inside.excluded
        bounds = interval(outside.low, outside.high) if outside.tests else ""
        table.add_row(
            asked, f"{inside.tests:,}", rate(inside.robustness), interval(inside.low, inside.high),
            f"{outside.tests:,}", rate(outside.robustness), bounds, f"{outside.doubtful:,}",
        )  # fmt: skip
    out.print(table)
    out.print("either: tests whose score is not known well enough to tell on which side they are")


def trust(tomogram: Tomogram) -> Record:
    """Trust in a run's predictions, as plain data; no lines if it has none."""
    predicts = tomogram.query("order >= 0").inferred > 0
    return (recall(tomogram) if predicts else Trust()).as_dict()


def precedence(tomogram: Tomogram) -> list[str]:
    found = precedences(tomogram)
    if found is None:
        return []
    lines = [
        f"order of application: {one.first} before {one.second} "
        f"{bounded(one.before.robustness, one.before.low, one.before.high)}, after it "
        f"{bounded(one.after.robustness, one.after.low, one.after.high)}"
        for one in found
    ]
    return lines or ["order of application: no difference beyond the noise between any two perturbations"]


def verdicts(out: Console, listed: Iterable[Verdict]) -> None:
    """Gates, one line each."""
    colours = {"holds": "green", "fails": "red", "undecided": "yellow"}
    for verdict in listed:
        gate = verdict.gate
        name = f"{_escape(gate.name)}: " if gate.name else ""
        part = f" for inputs {_escape(gate.inputs)}" if gate.inputs else ""
        out.print(
            f"[{colours[verdict.status]}]{verdict.status}[/]  {name}{scored_words(gate)}{_escape(gate.query)}{part} "
            f">= {gate.at_least:g} ({_escape(verdict.reason)})"
        )
        if gate.because:
            out.print(f"       because: {_escape(gate.because)}")


def scored_words(gate: Gate) -> str:
    """The score of a gate, in front of its query; nothing for pass rates."""
    return "" if gate.score is None else f"mean {_escape(gate.score)} of "


def sweeps(found: Mapping[str, Iterable[Sweep]]) -> Table:
    """A row for every perturbation and threshold."""
    from testifai.present.figures.sweeps import crossed

    table = table_of(
        "share of the levels on which accuracy holds", ("perturbation", "left"), "accuracy", "robustness", "bound",
        "unseen", "crossed at", "levels", "inferences",
    )  # fmt: skip
    table.caption = "bound: unless a dip or peak narrower than `unseen` of the span lies between two levels"
    for name, listed in found.items():
        for sweep in listed:
            bound = "–" if math.isnan(sweep.bound) else f"± {sweep.bound:.4f}"
            unseen = "–" if math.isnan(sweep.unseen) else f"< {sweep.unseen:.2g}"
            table.add_row(
                _escape(name), f">= {sweep.threshold:g}", f"{sweep.robustness:.4f}", bound, unseen,
                crossed(sweep.crossings), f"{sweep.evaluations:,}", f"{sweep.inferences:,}",
            )  # fmt: skip
    return table


def calibrated(name: str, table: Calibrated) -> Table:
    """The level at which accuracy has fallen by each amount."""
    shown = table_of(
        f"severities of {_escape(name)}, clean accuracy {rate(table.accuracy)}", "severity", "drop", "level"
    )
    for severity, (drop, level) in enumerate(zip(table.drops, table.severities[1:], strict=True), start=1):
        shown.add_row(str(severity), f"{drop:g}", f"{level:.6g}")
    for drop in table.unreached:
        shown.add_row("–", f"{drop:g}", "not reached")
    return shown


def signed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:+.3f}"


def table_of(title: str | None, *columns: str | tuple[str, JustifyMethod]) -> Table:
    """A table without lines; columns are names, aligned to the right, or pairs of a name and its alignment."""
    pairs: list[tuple[str, JustifyMethod]] = [one if isinstance(one, tuple) else (one, "right") for one in columns]
    return Table(
        *(Column(name, justify=justify, header_style="dim") for name, justify in pairs),
        title=title, title_justify="left", title_style="bold", caption_justify="left", pad_edge=False, box=None,
        min_width=len(title or ""),
    )  # fmt: skip


def _escape(text: str) -> str:
    return escape(printable(text))
