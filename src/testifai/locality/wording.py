"""An error summary in sentences, built from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testifai.locality.local import Rates

if TYPE_CHECKING:
    from testifai.locality.explain import Explanation, Trend
    from testifai.space import Axis

MOST_NAMED = 3  # answers, where there are several


def listing(words: Sequence[str]) -> str:
    """Words with commas and an "and".

    >>> listing(["4", "7", "9"])
    '4, 7 and 9'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def severity_range(severities: Sequence[int], all_severities: Sequence[int]) -> str:
    """Where on its severities a trend is.

    >>> severity_range((2, 3), (1, 2, 3)), severity_range((2,), (1, 2, 3)), severity_range((1, 2), (1, 2, 3))
    ('from severity 2', 'at severity 2', 'at severities 1 to 2')
    """
    if severities[-1] == all_severities[-1] and len(severities) > 1:
        return f"from severity {severities[0]}"
    if len(severities) == 1:
        return f"at severity {severities[0]}"
    return f"at severities {severities[0]} to {severities[-1]}"


def perturbation(axis: Axis, severities: Sequence[int]) -> str:
    """A property's perturbation and its parameters at these severities."""
    table = axis.perturbation.severities
    first, last = (_parameter(table[severity]) for severity in (severities[0], severities[-1]))
    return f"{axis.perturbation.name}, parameter {first}" + (f" to {last}" if len(severities) > 1 else "")


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


def gain_text(gain: Rates) -> str:
    """A gain with its interval.

    >>> gain_text(Rates(0.012, 0.01, 0.015))
    '+0.012 (0.010 … 0.015)'
    """
    return f"{gain.rate:+.3f} ({gain.low:.3f} … {gain.high:.3f})"


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
    return [*written, *rest(found)]


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


def span(severities: Sequence[int]) -> str:
    """Severities in short.

    >>> span((2, 3, 4)), span((2,))
    ('2–4', '2')
    """
    return str(severities[0]) if len(severities) == 1 else f"{severities[0]}–{severities[-1]}"


def read_as(trend: Trend) -> str:
    """The answers in short."""
    named = ", ".join(trend.answers[:MOST_NAMED])
    return f"{named}, …" if len(trend.answers) > MOST_NAMED else named


def p_text(p_value: float) -> str:
    """A p-value as people read it.

    >>> p_text(0.0123), p_text(1e-9)
    ('0.012', '< 0.0001')
    """
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"


def count(number: float) -> str:
    """A number of inputs; expected ones may be fractions."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def _severities(severities: Sequence[int]) -> str:
    first, last = severities[0], severities[-1]
    return f"severity {first}" if first == last else f"severities {first} to {last}"


def _rates(rates: Rates) -> str:
    return f"{rates.rate:.3f} ({rates.low:.3f} … {rates.high:.3f})"


def _percent(part: float, whole: float) -> str:
    return f"{part / whole:.1%}"


def _parameter(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
