"""Answers, examples and comparisons as parts of the page. All text is given to Dash as text, never as mark-up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.app.layout import Component
from testifai.app.state import Runs
from testifai.errors import InputError
from testifai.oracles import predicted
from testifai.present import examples as edits
from testifai.present.examples import Case, Thumb, cases, class_name, examples, failing_places, legend
from testifai.present.terminal import bounded, counted, interval, rate, second_opinion, signed
from testifai.support.batches import are_texts
from testifai.support.optional_imports import load
from testifai.tomogram import Answer, Tomogram

if TYPE_CHECKING:
    from testifai.engine.subject import Subject
    from testifai.locality.summary import Explanation
    from testifai.tomogram.comparison import RegionDifference

html: Any = load("dash.html", extra="app")

MOST_TRENDS = 8  # told in words
SHOWN = 8  # examples of a test
FAILING = 6  # of them, at most, that fail, so that some pass
MOST_CONFUSED = 64  # inputs over which the confusion of a test is counted


def answer(found: Answer, query: str, name: str, clean: str | None = None) -> Component:
    """A query's answer, the number first, and the clean accuracy that its drop is from, in words."""
    bounds = interval(found.low, found.high)
    sure = f" {bounds}" if bounds in ("exact", "no interval") else f" 95 %: {bounds}"
    parts = [
        html.Div(name, className="run-name"),
        _number(rate(found.robustness), sure),
        _fact(f"{signed(found.drop)} against clean inputs · {counted(found)}"),
    ]
    if clean is not None:
        parts.append(_fact(clean))
    if found.model_free is not None:
        parts.append(html.Div(second_opinion(found), className="facts warn" if found.disagrees else "facts"))
    if (left_out := found.excluded) is not None:
        rest = f": robustness {rate(left_out.robustness)} there" if left_out.tests else ""
        doubtful = f"; of {left_out.doubtful:,} tests it is not certain" if left_out.doubtful else ""
        parts.append(_fact(f"{left_out.tests:,} tests are left out for their quality{rest}{doubtful}"))
    return html.Div(parts, className="answer", title=query)


def _number(words: str, bounds: str) -> Component:
    return html.Div([html.Span(words, className="big"), html.Span(bounds, className="bounds")])


def _fact(words: str) -> Component:
    return html.Div(words, className="facts")


def watched(found: Answer) -> Component:
    """The bounds of an answer that stay valid while a run grows; nothing if it has none, or is exact."""
    if math.isnan(found.low) or found.low == found.high:
        return None
    return _fact(
        f"The interval above is right for one look. However often you look while the run grows, 95 %: "
        f"{interval(found.low, found.high)}; gates decide by such bounds."
    )


def guarded(make: Callable[[], Component]) -> Component:
    try:
        return make()
    except InputError as error:
        return message(str(error))


def message(text: str) -> Component:
    return html.Div(text, className="warn", role="status")


def difference(region: RegionDifference, names: tuple[str, str], notes: tuple[str, ...]) -> Component:
    """The difference of B from A over a query, and whether it is more than noise."""
    if not region.compared:
        return message(f"none of these {region.tests:,} tests was run in both, so they cannot be compared")
    verdicts = {
        "better": "B is more robust: the difference is more than noise",
        "worse": "B is less robust: the difference is more than noise",
        "equal": "no difference: known exactly",
        "undecided": "undecided: the difference may be noise",
    }
    sure = " and known exactly for these inputs" if region.low == region.high != 0 else ""
    left_out = f"; {region.left_out:,} not run in both are left out" if region.left_out else ""
    low_high = "exact" if region.low == region.high else f"95 %: {region.low:+.3f} … {region.high:+.3f}"
    return html.Div(
        [
            html.Div(f"B − A: {names[1]} − {names[0]}", className="run-name"),
            _number(signed(region.difference), f" {low_high}"),
            html.Div(verdicts[region.verdict] + sure, className=f"verdict {region.verdict}"),
            *map(_fact, (f"{region.compared:,} tests run in both{left_out}", *notes)),
        ],
        className="answer",
    )


def test(runs: Runs, run: int, number: int) -> Component:
    """Real inputs under one configuration next to the originals, with the model's predictions."""
    tomogram = runs.tomogram(run)
    found = tomogram.estimator.table(np.array([number]))
    estimate, low, high, trials = (one[0] for one in (found.estimate, found.low, found.high, found.trials))
    title = tomogram.space.words(tomogram.space.configuration(number))
    source = f"{int(trials):,} trials" if trials else "predicted"
    head = [
        html.H2(f"{runs.names[run]}: {title}"),
        _fact(f"{bounded(float(estimate), float(low), float(high))}, {source}"),
        _fact("Of a cell that is the mean of several tests, the first is shown."),
    ]
    try:
        subject = runs.session(run).subject
        places = _places(tomogram, number)
        if are_texts(subject.batch(places[:1])):
            shown = _texts(subject, tomogram, number, places)
        else:
            shown = []
            for one in examples(subject, tomogram, number, places):
                pair = [_thumb(one.original, "original"), _thumb(one.changed, "perturbed")]
                shown.append(_framed([html.Div(pair, className="pair")], one))
        marked = legend(subject)
        key = [] if marked is None else [_fact(marked)]
        body = [*key, html.Div(shown, className="examples"), _confusion(subject, number)]
    except InputError as error:
        body = [message(f"Inputs cannot be shown: {error}")]
    return html.Section([*head, *body], id="test-shown", **{"data-test": str(number)})


def _places(tomogram: Tomogram, number: int) -> NDArray[np.intp]:
    failing = failing_places(tomogram, number, FAILING)
    places = np.arange(tomogram.outcomes.inputs)
    passing = places[tomogram.outcomes.passed(number, places)][:SHOWN]
    listed = dict.fromkeys([*failing.tolist(), *passing.tolist(), *places[: 2 * SHOWN].tolist()])
    return np.array(list(listed)[:SHOWN], np.intp)


def _texts(subject: Subject, tomogram: Tomogram, number: int, places: NDArray[np.intp]) -> list[Component]:
    tags = {edits.SAME: html.Span, edits.TAKEN: html.Del, edits.PUT: html.Ins}
    shown = []
    for case in cases(subject, tomogram, number, places):
        pairs = zip(edits.texts_of(case.original), edits.texts_of(case.changed), strict=True)
        marked = [[tags[kind](words) for kind, words in edits.edits(*pair)] for pair in pairs]
        shown.append(_framed(list(map(html.Blockquote, marked)), case))
    return shown


def _framed(parts: list[Component], case: Case) -> Component:
    mark = {True: "passes", False: "fails", None: "not tried"}[case.passed]
    truth = f"true {case.label} " if case.label is not None else ""
    words = [] if case.predicted is None else [truth, f"→ {case.predicted} "]
    words += [] if case.note is None else [f"{case.note} "]
    caption = html.Figcaption([f"#{case.number} ", *words, html.B(mark)])
    kind = "" if case.note is None else " photograph"
    return html.Figure([*parts, caption], className=f"example {mark.replace(' ', '-')}{kind}")


def _thumb(thumb: Thumb, what: str) -> Component:
    if thumb.picture is None:
        return html.Blockquote(thumb.text, title=what)
    return html.Img(src=thumb.picture, alt=what, title=what)


def trends(found: Explanation) -> Component:
    """Trends of failures in words, the largest gain first."""
    from testifai.locality import summary

    shown = found.trends[:MOST_TRENDS]
    more = len(found.trends) - len(shown)
    advice = [
        html.Li([one.text, html.Div(f"If fixed, at most: {summary.gains(one)}. Try: {one.advice}.")]) for one in shown
    ]
    return html.Section(
        [
            html.H2("what to fix, the largest gain first"),
            html.Ol(advice) if shown else html.P(summary.no_trend(found)),
            _fact(
                f"{f'{more} more; ' if more else ''}a trend is more than chance, {found.tests:,} tests corrected for. "
                "testifai errors has all of them, and the failing inputs to train on."
            ),
        ],
        className="trends",
    )


def _confusion(subject: Subject, number: int) -> Component:
    if not subject.oracle.decides_classes or subject.labels is None:
        return None
    places = np.arange(min(MOST_CONFUSED, len(subject.order)))
    classes = predicted(subject.infer(subject.composite(subject.space.configuration(number), places), number))
    true = np.asarray(subject.labels)[subject.order[places]]
    pairs = Counter(
        (int(label), int(found)) for label, found in zip(true.tolist(), classes.tolist(), strict=True) if label != found
    )
    words = [
        f"{class_name(subject, label)} → {class_name(subject, found)}: {count}"
        for (label, found), count in pairs.most_common(8)
    ]
    return _fact(f"Confused, of the first {len(places)} inputs: {'; '.join(words) if words else 'none'}")
