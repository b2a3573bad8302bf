"""Whether a model answers the same each time: a few clean inputs asked about twice."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.oracles import predicted

INPUTS = 16  # asked about, each twice
SHARE = 20  # of a budget at most one in so many inputs is asked about
NOISE = 1e-6  # of the largest number of a row: sums in another order differ by as much


@dataclass(frozen=True)
class Repeated:
    """Of so many inputs asked about twice, how many had another answer, and how many another class."""

    inputs: int
    differ: int
    decisions: int = 0

    def as_dict(self) -> dict[str, int]:
        """Plain data for JSON."""
        return asdict(self)


def affordable(inputs: int, budget: int | None) -> int:
    """How many inputs to ask about.

    >>> affordable(1000, None), affordable(5, None), affordable(1000, 100)
    (16, 5, 5)
    """
    return min(INPUTS, inputs, INPUTS if budget is None else budget // SHARE)


def ask_twice(subject: Subject, inputs: int) -> Repeated:
    """Show the model the first inputs of the visiting order, clean, and then once more."""
    places = np.arange(inputs)
    one, two = (subject.infer(subject.batch(places), 0) for _ in range(2))
    if one.shape != two.shape:
        return Repeated(inputs, inputs, inputs)
    other = _differ(one, two)
    decided = predicted(one) != predicted(two) if subject.oracle.decides_classes else np.zeros(inputs, bool)
    return Repeated(inputs, int((other | decided).sum()), int(decided.sum()))


def words(found: dict[str, Any] | None) -> str | None:
    """What it means that answers differ, in one line; None where they do not, or nobody asked."""
    if not found or not found["differ"]:
        return None
    classes = f", {found['decisions']} another class" if found.get("decisions") else ""
    return (
        f"the model answers differently each time: of {found['inputs']} clean inputs shown to it twice, "
        f"{found['differ']} got another answer{classes}. A run that is continued, or made again, will not end with the "
        "same numbers, and intervals allow for the choice of inputs, not for this; fix its seed or its mode if you can"
    )


def _differ(one: NDArray[Any], two: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows differ by more than rounding."""
    rows, others = (table.reshape(len(table), -1) for table in (one, two))
    if rows.dtype.kind != "f":
        return np.asarray((rows != others).any(axis=1))
    noise = max(NOISE, 32 * float(np.finfo(rows.dtype).eps))
    largest = np.maximum(np.abs(rows), np.abs(others)).max(axis=1, keepdims=True)
    return np.asarray((np.abs(rows - others) > noise * largest).any(axis=1))
