"""The error summary as a record: trends, single causes and what is left, in numbers and in sentences made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from testifai.locality.compose import Prediction
from testifai.locality.local import Confidences, Local, Rates, confidences
from testifai.space import Axis
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Bools, Record
from testifai.support.views import view

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def listing(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def severity_range(severities: Sequence[int], all_severities: Sequence[int]) -> str:
    if severities[-1] == all_severities[-1] and len(severities) > 1:
        return f"from severity {severities[0]}"
    if len(severities) == 1:
        return f"at severity {severities[0]}"
    return f"at severities {severities[0]} to {severities[-1]}"


def perturbation(axis: Axis, severities: Sequence[int]) -> str:
    ends = (axis.perturbation.severities[severity] for severity in (severities[0], severities[-1]))
    first, last = (f"{end:g}" if isinstance(end, int | float) else str(end) for end in ends)
    return f"{axis.perturbation.name}, parameter {first}" + (f" to {last}" if len(severities) > 1 else "")


def gain_text(gain: Rates) -> str:
    return f"{gain.rate:+.3f} ({gain.low:.3f} … {gain.high:.3f})"


def span(severities: Sequence[int]) -> str:
    return str(severities[0]) if len(severities) == 1 else f"{severities[0]}–{severities[-1]}"


def p_text(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"


def count(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


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
    mask: Bools = field(repr=False)  # (class, property, severity, output)

    @cached_property
    def gain(self) -> Rates:
        """Of the system, where there is one, else of the local robustness."""
        return self.local_gain if self.composed_gain is None else self.composed_gain

    @cached_property
    def text(self) -> str:
        """What happens, how often, and how often it would by chance, in a sentence."""
        several = len(self.classes) > 1
        often = f"{count(self.failures)} of {count(self.trials)} tries ({self.failures / self.trials:.1%})"
        chance = f"{self.chance / self.trials:.1%}"
        where = f"{self._who} under {self.property} {self.where}"
        if self.kind != "class":
            most = f", most of all {self.classes[0]} ({count(self.by_class[0])})" if several else ""
            read = f"{'are' if several else 'is'} read as {self.answers[0]}"
            return f"{where} {read}: {often}{most}; wrong answers spread evenly would give {chance}"
        some = listing(self.answers[:MOST_NAMED]) + (" and others" if len(self.answers) > MOST_NAMED else "")
        return f"{where} fails more than the other classes: {often}, the others {chance}; read as {some}"

    @cached_property
    def advice(self) -> str:
        """Which inputs to add to training."""
        first, last = self.severities[0], self.severities[-1]
        what = f"{self.property} at " + (f"severity {first}" if first == last else f"severities {first} to {last}")
        what += f" ({self.perturbation})" if self.perturbation else ""
        add, other = f"add {self._who} under {what} to training", f"class {self.answers[0]}"
        if self.kind == "confusion":
            return f"{add}, and {other} under the same, so that the two are told apart"
        if self.kind == "sink":
            return f"add all classes under {what} to training, {other} among them: {self.property} alone looks like it"
        return f"{add}, more of it than of other classes"

    @cached_property
    def _who(self) -> str:
        return f"class {self.classes[0]}" if len(self.classes) == 1 else f"classes {listing(self.classes)}"

    def __repr__(self) -> str:
        return f"<Trend: {self.text}>"

    def as_dict(self) -> Record:
        names = (
            "kind", "classes", "by_class", "property", "severities", "answers", "failures", "trials", "chance",
            "p_value", "share", "local_gain", "composed_gain", "text", "advice",
        )  # fmt: skip
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class Trace:
    """One way to fail: a class under a property at a severity, read as another."""

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
        """The whole summary as text: rates, trends with gain and advice, and what is left."""
        written = [f"local robustness {_rates(self.local.overall())} over {len(self.local.classes)} classes"]
        if self.composed is not None:
            written.append(f"robustness of the composed system {_rates(self.composed.overall)}, predicted from it")
        if not self.trends:
            written.append(no_trend(self))
        for rank, trend in enumerate(self.trends, start=1):
            written += [f"{rank}. {trend.text}", f"   if fixed: {gains(trend)}", f"   try: {trend.advice}"]
        written += rest(self)
        if (sure := self.confidences) is not None:
            for place, name in enumerate(sure.properties):
                each = {kind: sure.by_property[kind].at(place) for kind in ("right", "wrong")}
                means = [f"{_rates(one)} where {kind}" for kind, one in each.items() if not math.isnan(one.rate)]
                written.append(f"{name}: mean confidence {', '.join(means)}")
        return written

    def as_dict(self) -> Record:
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


def no_trend(found: Explanation) -> str:
    if not found.rest:
        return "no failure at all"
    return f"no trend: none of {found.tests:,} tests shows more than chance at {found.alpha:g} for all together"


def rest(found: Explanation) -> list[str]:
    return [
        f"{one.property}: {count(one.failures)} failures ({one.share:.0%} of those under it) belong to no trend"
        for one in found.rest
        if one.failures > 0
    ]


def gains(trend: Trend) -> str:
    local = f"local robustness {gain_text(trend.local_gain)}"
    if trend.composed_gain is None:
        return f"{local}; {trend.share:.1%} of all failures"
    return (
        f"system {gain_text(trend.composed_gain)}, {local}; it has a part in {trend.share:.1%} of the system's failures"
    )


def read_as(trend: Trend) -> str:
    named = ", ".join(trend.answers[:MOST_NAMED])
    return f"{named}, …" if len(trend.answers) > MOST_NAMED else named


def _rates(rates: Rates) -> str:
    return f"{rates.rate:.3f} ({rates.low:.3f} … {rates.high:.3f})"
