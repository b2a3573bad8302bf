"""Keys of a run file, and the shapes of their values. Nothing is stored under any other key."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

# -- plain data (table `meta`) ----------------------------------------------------------------------------------------

ID = "id"  # random, assigned when the file is created; neither compared, exported nor merged
IDENTITY = "identity"  # all that decides the outcomes; a run is resumed only if it is unchanged
ENVIRONMENT = "environment"  # library versions at the start
ENVIRONMENTS = "environments"  # all library versions, if there were several
ASKED_TWICE = "asked_twice"  # result of showing the model the same inputs twice
CLEAN_WARNING = "clean_warning"  # a line, if clean accuracy is near chance or class indices do not match
INPUTS = "inputs"  # number of inputs
PARTLY = "partly"  # whether the fingerprint of the data covers a sample, and CONTENTS each measured input
CLASSES = "classes"  # names in the order of their indices
STOPPED_EARLY = "stopped_early"  # whether a rule may have ended tests, which widens their bounds
SPEC = "spec"  # the spec of the run, as plain data
FOLDER = "folder"  # the folder of that spec
GATES = "gates"  # the gates of the spec
HASHES = "hashes"  # names, sizes and SHA-256 of the files of model and data
RAN = "ran"  # who ran it and when, if requested
QUALITY = "quality"  # the measure of input quality, and the key of its scores
TRUST = "trust"  # accuracy of predictions, and a hash of the outcomes it was determined from
FIT = "fit"  # learned parameters of the surrogate, and a hash of the outcomes they were learned from
LOCALITY = "locality"  # how inputs were sampled per class
AGAIN = "again"  # the word under which a cached run was measured again
FINISHED = "finished"  # number of trials at the end of the run
PLANNED = "planned"  # number of trials that it may need at most
ENDED = "ended"  # the terms under which a cached run ended, and its verdicts

# -- arrays -----------------------------------------------------------------------------------------------------------

LABELS = "labels"
FILES = "files"  # sizes, times and hashes of data files, so that unchanged ones are not read again
REFERENCE = "reference"  # the oracle's record of clean outputs, in blocks of places
CONTENTS = "contents"  # hashes of measured inputs, in blocks of places
BOXES = "boxes/"  # + name / test: rows of place and box, in blocks of places
SCORES = "quality/"  # + digest of the measure: scores in blocks of one test, and as plain data their cost
SWEEPS = "sweep/"  # + perturbation /: batches by level, and as plain data the result

# A merged run has these values of its first part.
SHARED = (IDENTITY, ENVIRONMENT, SPEC, GATES, INPUTS, PARTLY, CLASSES, FOLDER, STOPPED_EARLY, HASHES)


def scores(digest: str) -> str:
    return SCORES + digest


def boxes(name: str, configuration: int) -> str:
    return f"{BOXES}{name}/{configuration}"


def sweep(name: str, what: str = "") -> str:
    return f"{SWEEPS}{name}/{what}"


MOST_INPUTS = 100_000_000  # their order then takes 0.8 GB
MOST_AXES = 1000


# -- kinds of values --------------------------------------------------------------------------------------------------

Check = Callable[[object], str | None]  # returns what is wrong with a value


@dataclass(frozen=True)
class Maybe:
    """None, or a value of a shape."""

    shape: Shape


@dataclass(frozen=True)
class Many:
    """A list of values of one shape."""

    shape: Shape
    most: int = 10_000_000


# A tuple is a list with one shape for each item, a dictionary a table with at least these fields.
Shape: TypeAlias = Check | Maybe | Many | tuple["Shape", ...] | dict[str, "Shape"]


def problem(key: str, value: object) -> str | None:
    """Return what is wrong with a stored value; None if nothing is, or if it is missing."""
    shape = _SHAPES.get(key)
    if key.startswith(SCORES):
        shape = whole(0)
    elif key.startswith(SWEEPS):
        shape = _SWEEP.get(key.rpartition("/")[2])
    return None if value is None or shape is None else _wrong(shape, value)


def _wrong(shape: Shape, value: object) -> str | None:
    if isinstance(shape, Maybe):
        return None if value is None else _wrong(shape.shape, value)
    if isinstance(shape, Many):
        if not isinstance(value, list) or len(value) > shape.most:
            return f"is no list of up to {shape.most:,}"
        return next((f"{at}: {found}" for at, one in enumerate(value) if (found := _wrong(shape.shape, one))), None)
    if isinstance(shape, tuple):
        if not isinstance(value, list) or len(value) != len(shape):
            return f"is no list of {len(shape)}"
        return next(filter(None, map(_wrong, shape, value)), None)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return "is no table"
        fields = ((name, _wrong(field, value.get(name))) for name, field in shape.items())
        return next((f"{name} {wrong}" for name, wrong in fields if wrong), None)
    return shape(value)


def whole(least: int, most: int = 2**63 - 1) -> Check:
    def check(value: object) -> str | None:
        fits = type(value) is int and least <= value <= most
        return None if fits else f"is no whole number from {least:,} to {most:,}"

    return check


def text(value: object) -> str | None:
    # A zero byte ends a text for the operating system.
    return None if isinstance(value, str) and "\0" not in value else "is no text"


def texts(value: object) -> str | None:
    names = value if isinstance(value, dict) else {}
    return _wrong(dict.fromkeys(names, text), value)


def flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "is neither true nor false"


def number(value: object) -> str | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return None if fits else "is no number"


def anything(value: object) -> str | None:
    return None


def one_of(*accepted: str) -> Check:
    return lambda value: None if isinstance(value, str) and value in accepted else f"is none of {', '.join(accepted)}"


def part(value: object) -> str | None:
    """A component: its name, or a table with its options."""
    return None if text(value) is None else _wrong({}, value)


def curve(value: Any) -> str | None:
    """The result of one sweep, whose columns have one length."""
    found = _wrong(_CURVE, value)
    if found is None and len({len(value[name]) for name in ("levels", "accuracies", "lows", "highs")}) > 1:
        found = "has columns of different lengths"
    return found


# -- shapes of the values of a run file -------------------------------------------------------------------------------

_CURVE: Shape = {
    "span": (number, number), "threshold": number, "robustness": number, "bound": Maybe(number),
    "evaluations": whole(0), "inferences": whole(0), "crossings": Maybe(Many(number)),
    "uncertain": Many((number, number)), "levels": Many(number), "accuracies": Many(Maybe(number)),
    "lows": Many(Maybe(number)), "highs": Many(Maybe(number)),
}  # fmt: skip
_SWEEP: dict[str, Shape] = {"identity": {}, "found": Many(curve, 1000)}
_FILES = Maybe(Many({"name": text, "bytes": whole(0), "sha256": text}, 100_000))
_AXIS: Shape = {
    "name": text, "perturbation": text, "severities": Many(whole(0), 100_001), "levels": Maybe({}),
    "parameters": Many(anything),
}  # fmt: skip
_SHAPES: dict[str, Shape] = {
    ID: text,
    IDENTITY: {
        "space": {"axes": Many(_AXIS, MOST_AXES), "order_sensitive": flag, "max_order": Maybe(whole(1))},
        "seed": whole(0, 2**64 - 1),
        "population": one_of("data", "future"),
        "surrogate": Maybe(part),
        "data": Maybe(text),
        "strategy": Maybe(part),
        "oracle": Maybe(part),
    },
    ENVIRONMENT: texts,
    ENVIRONMENTS: Many(texts, 100_000),
    ASKED_TWICE: {
        "inputs": whole(0),
        "differ": whole(0),
        "decisions": Maybe(whole(0)),
        "batch_differ": Maybe(whole(0)),
        "batch_flips": Maybe(whole(0)),
    },
    CLEAN_WARNING: text,
    INPUTS: whole(1, MOST_INPUTS),
    PARTLY: flag,
    CLASSES: Many(text),
    STOPPED_EARLY: flag,
    FINISHED: whole(0),
    PLANNED: whole(0),
    SPEC: {},
    FOLDER: text,
    GATES: Many({"query": text}, 100_000),
    HASHES: {"model": _FILES, "data": _FILES},
    RAN: Many({"by": text, "started": text, "ended": text, "inferences": whole(0)}, 100_000),
    QUALITY: {"key": text, "name": text, "higher_is_better": flag, "predictor": text, "measure": Maybe({})},
    TRUST: {"of": text},
    FIT: {"of": text, "learned": {}},
    LOCALITY: {
        "names": Many(text),
        "numbers": Maybe(Many((whole(-(2**63)), whole(0)))),
        "weights": Maybe(Many((whole(0), number))),
        "per_class": Maybe(whole(1)),
        "among": one_of("correct", "all"),
        "available": Maybe(Many((whole(0), whole(0)))),
    },
    AGAIN: text,
    ENDED: {
        "terms": {"sharing": Maybe(whole(0))},
        "inferences": whole(0),
        "verdicts": Many({"status": text, "reason": text, "answer": {}}),
    },
}
