"""Every key under which a run file keeps something, and what stands there. Nothing is stored under any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

# -- plain data (table `meta`) ----------------------------------------------------------------------------------------

ID = "id"  # random, given when the file is made: no part of the run, so not compared, exported or merged
IDENTITY = "identity"  # all that decides the outcomes; a run is continued only if none of it changed
ENVIRONMENT = "environment"  # versions of what it was made with
ENVIRONMENTS = "environments"  # where other versions contributed too: all of them, the first among them
ASKED_TWICE = "asked_twice"  # whether the model gave the same answers twice, and of how many inputs that is known
CLEAN_WARNING = "clean_warning"  # if clean accuracy is near chance, or class indices do not match: a line that says so
INPUTS = "inputs"  # how many there are
PARTLY = "partly"  # whether names and some contents tell the data, and CONTENTS each input that was measured
CLASSES = "classes"  # their names, in the order of their numbers
STOPPED_EARLY = "stopped_early"  # whether a rule may have ended tests, which widens their bounds
SPEC = "spec"  # the spec it was made from, as plain data
FOLDER = "folder"  # where that spec was
GATES = "gates"  # its requirements
HASHES = "hashes"  # of the files that model and data were read from: names, sizes, SHA-256
RAN = "ran"  # who ran it when, one entry each time that this was asked for
QUALITY = "quality"  # which measure of input quality the run has, and the key of its scores
TRUST = "trust"  # how far predictions can be trusted, and of which outcomes that was found
FIT = "fit"  # what the surrogate learned, and of what: readers take it instead of learning it again
LOCALITY = "locality"  # how inputs were drawn per class
AGAIN = "again"  # the word under which a cached run was made anew
FINISHED = "finished"  # how many trials there were when nothing was left to do; more: it was continued since
ENDED = "ended"  # under which terms a cached run ended, and its verdicts

# -- arrays -----------------------------------------------------------------------------------------------------------

LABELS = "labels"  # as in the data
FILES = "files"  # what is known of unchanged data files, so that they are not read again: sizes, times, hashes
REFERENCE = "reference"  # what the oracle remembers of clean outputs, in blocks of places
CONTENTS = "contents"  # hashes of what measured inputs held, in blocks of places
BOXES = "boxes/"  # and what they are, and /, and a test's number: rows of place and box, in blocks of places
SCORES = "quality/"  # and a digest of the measure: scores in blocks of one test, and as plain data what they cost
SWEEPS = "sweep/"  # and a perturbation's name and /: batches by level, and as plain data what was found

# What parts of one run have in common: a merged run takes it from the first of them.
SHARED = (IDENTITY, ENVIRONMENT, SPEC, GATES, INPUTS, PARTLY, CLASSES, FOLDER, STOPPED_EARLY, HASHES)


def scores(digest: str) -> str:
    """Where the scores of one measure are.

    >>> scores("0a1b")
    'quality/0a1b'
    """
    return SCORES + digest


def boxes(name: str, configuration: int) -> str:
    """Where the boxes of one test are.

    >>> boxes("found", 7)
    'boxes/found/7'
    """
    return f"{BOXES}{name}/{configuration}"


def sweep(name: str, what: str = "") -> str:
    """Where something about the sweep of one perturbation is.

    >>> sweep("classic.noise", "found")
    'sweep/classic.noise/found'
    """
    return f"{SWEEPS}{name}/{what}"


MOST_INPUTS = 100_000_000  # their order alone then takes 0.8 GB
MOST_AXES = 1000

Check = Callable[[object], str | None]


def problem(key: str, value: object) -> str | None:
    """What is wrong with a stored value, or None; what is not there has nothing wrong with it."""
    if value is None:
        return None
    check = _CHECKS.get(key) or _of_prefix(key)
    return None if check is None else check(value)


def _of_prefix(key: str) -> Check | None:
    if key.startswith(SCORES):
        return whole(0)
    if key.startswith(SWEEPS):
        return {"identity": table(), "found": each(_sweep, 1000)}.get(key.rpartition("/")[2])
    return None


# -- kinds of values --------------------------------------------------------------------------------------------------


def whole(least: int, most: int = 2**63 - 1) -> Check:
    """A whole number in a range."""

    def check(value: object) -> str | None:
        fits = type(value) is int and least <= value <= most
        return None if fits else f"is no whole number from {least:,} to {most:,}"

    return check


def text(value: object) -> str | None:
    """Text, without what ends it for an operating system."""
    return None if isinstance(value, str) and "\0" not in value else "is no text"


def flag(value: object) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "is neither true nor false"


def number(value: object) -> str | None:
    """A number that is one."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if fits else "is no number"


def anything(value: object) -> str | None:
    """What only has to be there."""
    return None


def one_of(*accepted: str) -> Check:
    """One of a few words."""
    return lambda value: None if isinstance(value, str) and value in accepted else f"is none of {', '.join(accepted)}"


def maybe(check: Check) -> Check:
    """None, or what the check asks for."""
    return lambda value: None if value is None else check(value)


def either(*checks: Check) -> Check:
    """What passes one of the checks."""
    return lambda value: None if any(check(value) is None for check in checks) else checks[0](value)


def each(check: Check, most: int = 10_000_000) -> Check:
    """A list whose items pass."""

    def all_pass(value: object) -> str | None:
        if not isinstance(value, list) or len(value) > most:
            return f"is no list of up to {most:,}"
        return next((f"{place}: {found}" for place, one in enumerate(value) if (found := check(one))), None)

    return all_pass


def row(*checks: Check) -> Check:
    """A list of as many items as there are checks, each of which passes its own."""

    def all_pass(value: object) -> str | None:
        if not isinstance(value, list) or len(value) != len(checks):
            return f"is no list of {len(checks)}"
        return next((found for check, one in zip(checks, value, strict=True) if (found := check(one))), None)

    return all_pass


def table(**fields: Check) -> Check:
    """A table with at least these fields; one that may be missing is checked as None."""

    def all_pass(value: object) -> str | None:
        if not isinstance(value, dict):
            return "is no table"
        return next((f"{name} {found}" for name, check in fields.items() if (found := check(value.get(name)))), None)

    return all_pass


def table_of(check: Check) -> Check:
    """A table whose values pass, whatever their names."""

    def all_pass(value: object) -> str | None:
        if not isinstance(value, dict):
            return "is no table"
        return next((f"{name} {found}" for name, one in value.items() if (found := check(one))), None)

    return all_pass


# -- what a run file says ---------------------------------------------------------------------------------------------

_part = either(table(), text)  # something chosen by name, with or without options

_curve = table(
    span=row(number, number), threshold=number, robustness=number, bound=maybe(number), evaluations=whole(0),
    inferences=whole(0), crossings=maybe(each(number)), uncertain=each(row(number, number)), levels=each(number),
    accuracies=each(maybe(number)), lows=each(maybe(number)), highs=each(maybe(number)),
)  # fmt: skip


def _sweep(value: Any) -> str | None:
    """What one sweep found: a curve whose columns are of one length."""
    found = _curve(value)
    if found is None and len({len(value[name]) for name in ("levels", "accuracies", "lows", "highs")}) > 1:
        found = "has columns of different lengths"
    return found


_file = table(name=text, bytes=whole(0), sha256=text)

_axis = table(
    name=text, perturbation=text, severities=each(whole(0), 100_001), levels=maybe(table()), parameters=each(anything)
)

_CHECKS: dict[str, Check] = {
    ID: text,
    IDENTITY: table(
        space=table(axes=each(_axis, MOST_AXES), order_sensitive=flag, max_order=maybe(whole(1))),
        seed=whole(0, 2**64 - 1),
        population=one_of("data", "future"),
        surrogate=maybe(_part),
        data=maybe(text),
        strategy=maybe(_part),
        oracle=maybe(_part),
    ),
    ENVIRONMENT: table_of(text),
    ENVIRONMENTS: each(table_of(text), 100_000),
    ASKED_TWICE: table(inputs=whole(0), differ=whole(0), decisions=maybe(whole(0))),
    CLEAN_WARNING: maybe(text),
    INPUTS: whole(1, MOST_INPUTS),
    PARTLY: maybe(flag),
    CLASSES: each(text),
    STOPPED_EARLY: flag,
    FINISHED: whole(0),
    SPEC: table(),
    FOLDER: text,
    GATES: each(table(query=text), 100_000),
    HASHES: table(model=maybe(each(_file, 100_000)), data=maybe(each(_file, 100_000))),
    RAN: each(table(by=text, started=text, ended=text, inferences=whole(0)), 100_000),
    QUALITY: table(key=text, name=text, higher_is_better=flag, predictor=text, measure=maybe(table())),
    TRUST: table(of=text),
    FIT: table(of=text, learned=table()),
    LOCALITY: table(
        names=each(text),
        numbers=maybe(each(row(whole(-(2**63)), whole(0)))),
        weights=maybe(each(row(whole(0), number))),
        per_class=maybe(whole(1)),
        among=one_of("correct", "all"),
        available=maybe(each(row(whole(0), whole(0)))),
    ),
    AGAIN: text,
    ENDED: table(
        terms=table(sharing=maybe(whole(0))),
        inferences=whole(0),
        verdicts=each(table(status=text, reason=text, answer=table())),
    ),
}
