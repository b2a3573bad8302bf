"""The release rule: is the accuracy at least what is required? Pass, fail, or about how many more labels it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from testifai.statistics.intervals import half_widths, quantile
from testifai.statistics.multiplicity import confidence_each
from testifai.support.types import Record
from testifai.support.validation import number

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"

CHANCE = 0.8  # of a decision after as many labels as are projected


@dataclass(frozen=True)
class Release:
    """How a requirement stands. `more` labels is a projection, None where there is nothing to project."""

    require: float
    status: str
    reason: str
    more: int | None = None

    @property
    def passed(self) -> bool:
        return self.status == PASS

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"require": self.require, "status": self.status, "more_labels": self.more, "reason": self.reason}


def judge(
    accuracy: float, low: float, high: float, *, require: float, labelled: int, planned: int, size: int
) -> Release:
    """Pass if the lower bound reaches what is required, fail if the upper bound does not.

    Before all planned labels are there, bounds are wider by what O'Brien and Fleming (1979) ask of early looks, so
    that looking after every few labels does not turn a lucky start into a pass.

    >>> judge(0.97, 0.955, 0.985, require=0.95, labelled=200, planned=200, size=10_000).status
    'pass'
    >>> judge(0.96, 0.94, 0.98, require=0.95, labelled=200, planned=200, size=10_000).status
    'undecided'
    """
    check_require(require)
    if labelled == 0 or math.isnan(accuracy):
        return Release(require, UNDECIDED, "no label yet")
    if math.isnan(low) or math.isnan(high):
        return Release(require, UNDECIDED, "the technique gives no interval")
    accuracy = min(max(accuracy, 0.0), 1.0)  # an unbiased estimate from a handful of labels may lie outside
    early = labelled < planned
    widen = _early() * math.sqrt(planned / labelled) if early else 1.0
    least, most = max(0.0, accuracy - widen * (accuracy - low)), min(1.0, accuracy + widen * (high - accuracy))
    bounds = f"between {least:.3f} and {most:.3f}" + (", bounds for an early look" if early else "")
    needed = require - 1e-9  # a rate that is just enough must not fall short by rounding
    if least >= needed:
        return Release(require, PASS, bounds)
    if most < needed:
        return Release(require, FAIL, bounds)
    more = more_labels(accuracy, low, high, require=require, labelled=labelled, size=size)
    return Release(require, UNDECIDED, bounds, max(more, planned - labelled))


def _early() -> float:
    """How much further an interval reaches that may be looked at early, at the time of the last look.

    A Brownian motion stays within ±c up to time 1 with probability 0.95 where 4 (1 - Phi(c)) = 0.05 (reflection
    principle): c is what each of two intervals takes that hold together.
    """
    return half_widths(confidence_each(2)) / half_widths()


def more_labels(accuracy: float, low: float, high: float, *, require: float, labelled: int, size: int) -> int:
    """How many more labels decide with a chance of four in five, if the accuracy is what it looks like now.

    The bound on the side of the requirement is as far away as Wilson's would be with some number of simple random
    labels: what the labels so far are worth, by the technique's own variance. Worth grows as variance shrinks without
    replacement, with 1/n - 1/N. What is needed is the textbook's number for a share p against a requirement r,
    ((z sqrt(r (1 - r)) + z' sqrt(p (1 - p))) / (p - r))^2 with z for the bound and z' for the chance.

    >>> more_labels(0.97, 0.936, 0.986, require=0.95, labelled=200, size=10**9)
    619
    """
    if accuracy < require:  # the same question about failures
        accuracy, low, require = 1 - accuracy, 1 - high, 1 - require
    if accuracy <= require or not 0 < low < accuracy:
        return size - labelled
    z = half_widths()
    worth = z**2 * low * (1 - low) / (accuracy - low) ** 2
    chance = quantile(CHANCE) * math.sqrt(accuracy * (1 - accuracy))
    needed = ((z * math.sqrt(require * (1 - require)) + chance) / (accuracy - require)) ** 2
    total = 1 / (1 / size + (1 / labelled - 1 / size) * worth / max(needed, 1e-9))
    return max(0, min(size - labelled, max(1, math.ceil(total) - labelled)))


def check_require(require: float) -> None:
    """Refuse what is no accuracy."""
    number("require", require, above=0, most=1)
