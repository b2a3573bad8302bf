"""Where measured global robustness differs from what independent parts would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.locality.compose import Prediction
from testifai.locality.local import Rates
from testifai.locality.pairs import Measurement
from testifai.locality.spread import Floats
from testifai.statistics.corrections import confidence_each
from testifai.support.plain import plain


@dataclass(frozen=True, eq=False)
class Agreement:
    """Measured less predicted, for every (tuple, condition), the severities' mean.

    `inside` is whether the measurement lies in the interval predicted at 95 % for a measurement of its size; one in
    twenty does not by chance alone. `disagrees` is whether the parts are shown to depend on each other: `low` and
    `high` bound all the differences together at 95 % (Bonferroni), and 0 is outside.
    """

    tuples: tuple[tuple[str, ...], ...]
    conditions: tuple[str, ...]
    predicted: Rates
    measured: Rates
    difference: Floats
    low: Floats
    high: Floats
    inside: NDArray[np.bool_]
    disagrees: NDArray[np.bool_]
    told: Prediction = field(repr=False)
    seen: Measurement = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"<Agreement: measured less predicted {self.mean_difference:+.3f} on average, {self.inside.mean():.0%} "
            f"inside their intervals, {int(self.disagrees.sum()):,} of {self.disagrees.size:,} disagree>"
        )

    @property
    def mean_difference(self) -> float:
        """Over all tuples and conditions; `told.overall` and `seen.overall` are the two with their intervals."""
        return float(self.difference.mean())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: means by condition and over all, and the statements."""
        means = {
            name: {"overall": plain(one.overall), "by_condition": plain(one.by_condition)}
            for name, one in (("predicted", self.told), ("measured", self.seen))
        }
        return {
            **means,
            "conditions": list(self.conditions),
            "tuples": len(self.tuples),
            "combinations": int(self.seen.trials.sum()),
            "inside": float(self.inside.mean()),
            "disagreements": int(self.disagrees.sum()),
            "statements": self.statements(),
        }

    def statements(self) -> list[str]:
        """One line for every disagreement, the largest first, or one that says there is none."""
        if not self.disagrees.any():
            count = self.difference.size
            return [f"prediction and measurement agree in all {count} cases; no dependence between the parts is shown"]
        places = np.argwhere(self.disagrees)
        order = np.argsort(-np.abs(self.difference[self.disagrees]), kind="stable")
        return [self._statement(int(place), int(which)) for place, which in places[order]]

    def _statement(self, place: int, which: int) -> str:
        seen, told = (
            f"{rates.rate[place, which]:.3f} ({rates.low[place, which]:.3f} to {rates.high[place, which]:.3f})"
            for rates in (self.measured, self.predicted)
        )
        side = "lower" if self.difference[place, which] < 0 else "higher"
        return (
            f"{' and '.join(self.tuples[place])} under {self.conditions[which]}: measured {seen}, predicted {told}; "
            f"{side} than parts that fail independently of each other give"
        )


def agreement(predicted: Prediction, measured: Measurement) -> Agreement:
    """Compare a prediction with a measurement on other inputs, corrected for looking at many tuples and conditions.

    Args:
        predicted: by `compose`
        measured: by `composed` or `paired`, on other inputs

    >>> from testifai.locality import Local, Sampled, compose
    >>> from testifai.locality.pairs import paired
    >>> right = np.arange(400) % 200 >= 40  # the first 40 of each class fail
    >>> classes = np.repeat([0, 1], 200)
    >>> answers = np.where(right, classes, 1 - classes).astype(np.int32)[:, None, None]
    >>> counts = [[[[160, 40], [40, 160]]]]
    >>> single = Sampled(np.arange(400), classes, answers)
    >>> table = Local.from_counts(["0", "1"], ["noise"], [[1]], counts, sampled=single)
    >>> together = [(i, 200 + i) for i in range(200)]  # failing inputs always meet failing ones, and cancel
    >>> found = agreement(compose(table), paired(table, pairs=together))
    >>> found.difference.round(2).tolist(), found.disagrees.tolist()
    ([[0.32]], [[True]])
    >>> found.statements()[0].split("; ")[1]
    'higher than parts that fail independently of each other give'
    """
    if predicted.conditions != measured.conditions or predicted.severities != measured.severities:
        raise InputError(
            f"conditions: predicted {', '.join(predicted.conditions)}, measured {', '.join(measured.conditions)}; "
            "accepted: the same conditions and severities"
        )
    places = {one: place for place, one in enumerate(predicted.tuples)}
    if missing := [one for one in measured.tuples if one not in places]:
        raise InputError(f"tuples: {' and '.join(missing[0])} was measured but not predicted; predict it too")
    rows = np.array([places[one] for one in measured.tuples])
    looks = measured.mean.rate.size
    told, seen = _rows(predicted.mean, rows), measured.mean
    low, high = _bounds(told, seen)
    strict = confidence_each(looks)
    all_low, all_high = _bounds(_rows(predicted.at(strict).mean, rows), measured.mean_at(strict))
    return Agreement(
        measured.tuples,
        measured.conditions,
        told,
        seen,
        seen.rate - told.rate,
        all_low,
        all_high,
        (low <= 0) & (high >= 0),
        (all_low > 0) | (all_high < 0),
        predicted,
        measured,
    )


def _rows(rates: Rates, rows: NDArray[np.intp]) -> Rates:
    return Rates(rates.rate[rows], rates.low[rows], rates.high[rows])


def _bounds(told: Rates, seen: Rates) -> tuple[Floats, Floats]:
    """An interval for the difference of two independent estimates from theirs (Newcombe 1998, method 10)."""
    difference = seen.rate - told.rate
    low = difference - np.hypot(seen.rate - seen.low, told.high - told.rate)
    return low, difference + np.hypot(seen.high - seen.rate, told.rate - told.low)
