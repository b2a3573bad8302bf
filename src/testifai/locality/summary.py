"""The error summary as a record: trends, single causes and what is left, in numbers and in sentences made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from testifai.locality.compose import Prediction
from testifai.locality.confidence import Confidences, confidences
from testifai.locality.local import Local, Rates
from testifai.locality.trends import Mask
from testifai.locality.wording import count, gain_text, listing
from testifai.support.plain import plain
from testifai.support.views import view
from testifai.support.wording import estimate_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_TRACES = 50  # listed as plain data
MOST_NAMED = 3  # answers, where there are several


@dataclass(frozen=True, eq=False)
class Trend:
    """Failures that are more than chance and have one cause.

    `kind` is "confusion" (a class read as another), "sink" (most classes read as one) or "class" (a class that fails
    more often than others and is read as several). `answers` are what it is read as, most frequent first. Gains are
    upper bounds, the trend entirely fixed; among the intervals shown for trends, 95 % hold on average although the
    trends were picked (false coverage rate: Benjamini and Yekutieli, 2005).
    """

    kind: str
    classes: tuple[str, ...]  # the one with most failures first
    by_class: tuple[float, ...]  # their failures
    property: str
    severities: tuple[int, ...]
    where: str  # the severities in words
    answers: tuple[str, ...]
    failures: float
    trials: float  # tries of these classes at these severities
    chance: float  # failures to be expected by chance
    p_value: float  # corrected for all tests
    share: float  # of the system's failures, or of all where there is no system, it has a part in so many
    local_gain: Rates
    composed_gain: Rates | None
    perturbation: str  # what to augment with, as far as it is known
    mask: Mask = field(repr=False)  # (class, property, severity, output)

    @cached_property
    def gain(self) -> Rates:
        """Of the system, where there is one, else of the local robustness."""
        return self.local_gain if self.composed_gain is None else self.composed_gain

    @cached_property
    def text(self) -> str:
        """The trend in a sentence."""
        return sentence(self)

    @cached_property
    def advice(self) -> str:
        """What to train with."""
        return advice(self)

    def __repr__(self) -> str:
        return f"<Trend: {self.text}>"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        names = (
            "kind", "classes", "by_class", "property", "severities", "answers", "failures", "trials", "chance",
            "p_value", "share", "local_gain", "composed_gain", "text", "advice",
        )  # fmt: skip
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class Trace:
    """One way to fail: a class under a property at a severity, read as another.

    `share` is how many of the system's failures have such a part; `part` is None where all are alike.
    """

    part: int | None
    true_class: str
    property: str
    severity: int
    answer: str
    failures: float
    share: float


@dataclass(frozen=True)
class Rest:
    """Failures under a property that belong to no trend, and their share of all failures under it."""

    property: str
    failures: float
    share: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model, or a system built on it, fails: trends ranked by gain, every single cause, and what is left."""

    local: Local
    composed: Prediction | None
    trends: tuple[Trend, ...]
    traces: tuple[Trace, ...]
    rest: tuple[Rest, ...]
    tests: int  # that the correction is for
    alpha: float

    @cached_property
    def confidences(self) -> Confidences | None:
        """How sure the model is, by class and property, right and wrong; None where it is not known."""
        return confidences(self.local)

    def __repr__(self) -> str:
        overall = self.local.overall() if self.composed is None else self.composed.overall
        found = estimate_text(overall.rate, overall.low, overall.high)
        first = f", first: {self.trends[0].text}" if self.trends else ""
        what = "robustness" if self.composed is None else "robustness of the composed system"
        return f"<Explanation: {what} {found}, {len(self.trends):,} trends of failures{first}>"

    def plot(self, *, dark: bool = False) -> Figure:
        """What is confused with what, and under which property, as a plotly figure; `local.plot()` shows the rates."""
        figure: Figure = view("explanation as a figure")(self, dark=dark)
        return figure

    def lines(self) -> list[str]:
        """The summary for people."""
        return lines(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; of the single causes only the first."""
        found = {
            "local": self.local.overall(),
            "composed": None if self.composed is None else self.composed.overall,
            "trends": self.trends,
            "traces": self.traces[:MOST_TRACES],
            "without_trend": self.rest,
            "tests": self.tests,
            "alpha": self.alpha,
            "classes": self.local.classes,
            "properties": dict(zip(self.local.properties, self.local.severities, strict=True)),
            "rates": self.local.by_class_and_property(),
            "confidence": self.confidences,
        }
        return {name: plain(part) for name, part in found.items()}


def lines(found: Explanation) -> list[str]:
    """The whole summary: rates, trends with gain and advice, and what is left."""
    overall = found.local.overall()
    written = [f"local robustness {_rates(overall)} over {len(found.local.classes)} classes"]
    if found.composed is not None:
        written.append(f"robustness of the composed system {_rates(found.composed.overall)}, predicted from it")
    if not found.trends:
        written.append(no_trend(found))
    for rank, trend in enumerate(found.trends, start=1):
        written += [f"{rank}. {trend.text}", f"   if fixed: {gains(trend)}", f"   try: {trend.advice}"]
    return [*written, *rest(found), *sureness(found)]


def sureness(found: Explanation) -> list[str]:
    """How sure the model is where it is right and where it is wrong, by property."""
    known = found.confidences
    if known is None:
        return []
    told = []
    for place, name in enumerate(known.properties):
        each = ((kind, known.by_property[kind]) for kind in ("right", "wrong"))
        means = [
            f"{_rates(Rates(one.rate[place], one.low[place], one.high[place]))} where {kind}"
            for kind, one in each
            if not math.isnan(one.rate[place])
        ]
        told.append(f"{name}: mean confidence {', '.join(means)}")
    return told


def no_trend(found: Explanation) -> str:
    """That there is none, and what that means."""
    if not found.rest:
        return "no failure at all"
    return f"no trend: none of {found.tests:,} tests shows more than chance at {found.alpha:g} for all together"


def rest(found: Explanation) -> list[str]:
    """Failures that belong to no trend, by property."""
    return [
        f"{one.property}: {count(one.failures)} failures ({one.share:.0%} of those under it) belong to no trend"
        for one in found.rest
        if one.failures > 0
    ]


def sentence(trend: Trend) -> str:
    """What happens, how often, and how often it would by chance."""
    who = f"class {trend.classes[0]}" if len(trend.classes) == 1 else f"classes {listing(trend.classes)}"
    where = f"under {trend.property} {trend.where}"
    often = f"{count(trend.failures)} of {count(trend.trials)} tries ({_percent(trend.failures, trend.trials)})"
    chance = _percent(trend.chance, trend.trials)
    if trend.kind != "class":
        several = len(trend.classes) > 1
        most = f", most of all {trend.classes[0]} ({count(trend.by_class[0])})" if several else ""
        read = f"{'are' if several else 'is'} read as {trend.answers[0]}"
        return f"{who} {where} {read}: {often}{most}; wrong answers spread evenly would give {chance}"
    some = listing(trend.answers[:MOST_NAMED]) + (" and others" if len(trend.answers) > MOST_NAMED else "")
    return f"{who} {where} fails more than the other classes: {often}, the others {chance}; read as {some}"


def advice(trend: Trend) -> str:
    """Which images to add to training."""
    what = f"{trend.property} at {_severities(trend.severities)}"
    what += f" ({trend.perturbation})" if trend.perturbation else ""
    who = f"class {trend.classes[0]}" if len(trend.classes) == 1 else f"classes {listing(trend.classes)}"
    beside = f"class {trend.answers[0]}"
    if trend.kind == "confusion":
        return f"add {who} under {what} to training, and {beside} under the same, so that the two are told apart"
    if trend.kind == "sink":
        return f"add all classes under {what} to training, {beside} among them: {trend.property} alone looks like it"
    return f"add {who} under {what} to training, more of it than of other classes"


def gains(trend: Trend) -> str:
    """What fixing the trend would give at most."""
    local = f"local robustness {gain_text(trend.local_gain)}"
    if trend.composed_gain is None:
        return f"{local}; {trend.share:.1%} of all failures"
    return (
        f"system {gain_text(trend.composed_gain)}, {local}; it has a part in {trend.share:.1%} of the system's failures"
    )


def read_as(trend: Trend) -> str:
    """The answers in short."""
    named = ", ".join(trend.answers[:MOST_NAMED])
    return f"{named}, …" if len(trend.answers) > MOST_NAMED else named


def _severities(severities: Sequence[int]) -> str:
    first, last = severities[0], severities[-1]
    return f"severity {first}" if first == last else f"severities {first} to {last}"


def _rates(rates: Rates) -> str:
    return f"{rates.rate:.3f} ({rates.low:.3f} … {rates.high:.3f})"


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}"
