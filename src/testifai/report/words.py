"""The sentences of a report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from testifai.present.figures.heatmaps import project
from testifai.present.terminal import bounded, clean, counted, precedence, rate, second_opinion
from testifai.report.contents import Contents
from testifai.session.observers import notes
from testifai.tomogram import Tomogram
from testifai.tomogram.regression_errors import distances


def summary(contents: Contents) -> list[str]:
    """The run in a few sentences with their numbers."""
    tomogram, everything = contents.tomogram, contents.everything
    space = tomogram.space
    known = everything.robustness == everything.robustness
    average = " on average" if tomogram.settings.score is None else ""
    passes = "passes" if tomogram.settings.score is None else f"has a {tomogram.settings.quantity} of"
    loss = "how much less than on clean inputs is not known"
    if everything.drop == everything.drop:
        loss = f"{abs(everything.drop):.3f} {'less' if everything.drop <= 0 else 'more'} than on clean inputs"
    bounds = bounded(everything.robustness, everything.low, everything.high)
    *names, last = space.names
    axes = f"{', '.join(names)} and {last}" if names else last
    lines = [
        f"On clean inputs the model {passes} {clean(tomogram)}. Over all {space.size:,} combinations of {axes} "
        + (f"it {passes} {bounds}{average}{everything.scope}: {loss}." if known else "the mean is not known.")
    ]
    off = distances(tomogram)
    if off:
        lines.append("; ".join(f"{name}: {one}" for name, one in off.items()).capitalize() + " (of the tests tried).")
    orders = [(order, one.robustness) for order, one in contents.by_order.items() if order]
    steps = [f"{rate(robustness)} with {order}" for order, robustness in orders if robustness == robustness]
    if len(steps) > 1:
        lines.append(f"By the number of perturbations that act at once: {', '.join(steps)}.")
    if strongest := _strongest(contents):
        lines.append(strongest)
    if contents.search.regions:
        region, found = contents.search.regions[0], contents.search.regions[0].answer
        bounds, tests = bounded(found.robustness, found.low, found.high), f"test{'' if found.tests == 1 else 's'}"
        lines.append(f"The largest weak region found is {region.query}: {bounds} over {found.tests:,} {tests}.")
    if contents.worst:
        test = contents.worst[0]
        words = bounded(test.estimate, test.low, test.high)
        lines.append(f"The worst single test is {space.words(test.sigma)}: {words}.")
    lines += [f"{line[:1].upper()}{line[1:]}." for line in precedence(tomogram)]
    lines.append(gates_line(contents))
    lines.append(
        f"{tomogram.inferences:,} inferences were spent on {len(tomogram.outcomes):,} of the tests and "
        f"{tomogram.outcomes.inputs:,} inputs: {counted(everything)}."
    )
    return lines


def made_of(contents: Contents) -> str:
    """The model and the data, by their files."""
    text = ", ".join(f"{part} {made}" for part, made in contents.made_of.items())
    return text[:1].upper() + text[1:]


def gates_line(contents: Contents) -> str:
    """The status of the gates, in a sentence."""
    if not contents.verdicts:
        return "No gate was set, so no robustness requirement was set."
    counts = Counter(verdict.status for verdict in contents.verdicts)
    so_far = " so far" if contents.unfinished else ""
    words = [f"{counts['holds']} of {len(contents.verdicts)} gates hold{so_far}"]
    words += [f"{counts[status]} {word}" for status, word in (("fails", "failed"), ("undecided", "undecided"))
              if counts[status]]  # fmt: skip
    about = "" if contents.requires_robustness else "; no robustness requirement was set: they are about clean inputs"
    return ", ".join(words) + f"{about}."


def how(contents: Contents) -> list[str]:
    """The sentences on how the estimates were made."""
    tomogram, identity = contents.tomogram, contents.tomogram.provenance.get("identity") or {}
    settings = tomogram.settings
    future = settings.population == "future"
    lines = [
        f"Strategy {_name(identity.get('strategy'))}, surrogate {_name(identity.get('surrogate'))}, "
        f"oracle {_name(identity.get('oracle'))}, seed {settings.seed}.",
        f"Intervals are at 95 % and for the {'rate' if settings.score is None else settings.quantity} on "
        + ("new inputs like those tried." if future else "the inputs of this run: they close once all were tried."),
    ]
    if settings.stopped_early:
        seen = "bounds allow for it" if settings.ended_by_width else "bounds stay valid however often one looked"
        lines.append(f"Tests were ended by a stopping rule; their {seen}.")
    if contents.everything.inferred and predicts_nothing(tomogram):
        lines.append(
            f"{contents.everything.inferred:,} of {contents.everything.tests:,} tests were not measured, and nothing "
            "was predicted: what rests on them is not known."
        )
    elif contents.everything.inferred:
        lines.append(
            f"{contents.everything.inferred:,} of {contents.everything.tests:,} estimates use the surrogate, that is, "
            "the trials of other tests too. What is predicted without an interval is said to have none."
        )
    else:
        lines.append("Every estimate rests on its own trials alone; nothing was predicted.")
    if (scores := tomogram.quality) is not None:
        better = "higher" if scores.higher_is_better else "lower"
        rest = "" if len(scores.measured) == tomogram.space.size else ", and predicted elsewhere"
        lines.append(
            f"How plausible the inputs are ({scores.name}, {better} is better) was measured on "
            f"{len(scores.measured):,} of the tests{rest}."
        )
    lines += [line[0].upper() + line[1:] + "." for line in notes(tomogram.provenance)]
    if contents.everything.model_free is not None:
        lines.append(f"The mean over all tests: {second_opinion(contents.everything)}.")
    return lines


def searched_line(contents: Contents) -> str:
    """A caution about regions that were found by a search."""
    known = any(region.answer.low == region.answer.low for region in contents.search.regions)
    allowed = (
        "Their intervals allow for that: they hold for all regions searched, at once."
        if known
        else "They hold predictions without intervals, so how much is not known."
    )
    return (
        f"These regions were searched for among {contents.search.searched:,} (ranges of severities on up to "
        f"{contents.search.axes} at once), so they look bad partly by chance. {allowed} Estimates of what was picked "
        "for being low tend to be a little too low."
    )


def together_line(contents: Contents) -> str:
    """The meaning of the columns of the standard queries."""
    known = any(asked.answer.low == asked.answer.low for asked in contents.standard.values())
    together = f"The intervals of these {len(contents.standard)} queries hold together, all at once, at 95 %. "
    if predicts_nothing(contents.tomogram):
        return f"{together if known else ''}Nothing was predicted: a mean over tests that were not measured is unknown."
    return (
        f"{together if known else ''}A measured test rests on its own trials alone, a predicted one on those of other "
        "tests too."
    )


def predicts_nothing(tomogram: Tomogram) -> bool:
    """Return True if tests that were not measured are unknown."""
    return tomogram.settings.surrogate in (None, "none")


def _strongest(contents: Contents) -> str | None:
    tomogram = contents.tomogram
    names = tomogram.space.names
    alone = {
        name: project(tomogram, [name], at={other: 0 for other in names if other != name}).estimate for name in names
    }
    fall = {name: float(curve[0] - curve[-1]) for name, curve in alone.items() if curve[0] - curve[-1] > 0}
    if not fall:
        return None
    name = max(fall, key=lambda one: fall[one])
    top = tomogram.space.axes[names.index(name)].severities[-1]
    found = "model passes" if tomogram.settings.score is None else f"{tomogram.settings.quantity} is"
    return f"By itself, {name} costs most: at severity {top} the {found} {rate(float(alone[name][-1]))}."


def _name(value: Any) -> str:
    if isinstance(value, dict):
        named = value.get("use") or value.get("name") or "own"
        options = ", ".join(
            f"{key} {one}" for key, one in value.items() if key not in ("use", "name") and one is not None
        )
        return f"{named} ({options})" if options else str(named)
    return "none" if value is None else str(value)
