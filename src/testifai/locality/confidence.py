"""How sure the model is, by class and property, where it is right and where it is wrong.

The confidence assessment of the Bayesian-network framework (its section D). A mean is over all answers of its group;
its interval is for new inputs like these and allows for the same input having answered at several severities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.locality.local import Local, Rates
from testifai.locality.spread import Floats, bounded_arms
from testifai.support.plain import plain

ANSWERS = ("all", "right", "wrong")


@dataclass(frozen=True, eq=False)
class Confidences:
    """Mean confidence of "all", "right" and "wrong" answers; NaN where there is no such answer.

    `cells` are arrays (class, property), `by_property` arrays (property), and so are the numbers of `answers`.
    """

    classes: tuple[str, ...]
    properties: tuple[str, ...]
    cells: Mapping[str, Rates]
    by_property: Mapping[str, Rates]
    answers: Mapping[str, NDArray[np.int64]]  # (class, property)

    def __repr__(self) -> str:
        means = ", ".join(f"{kind} {np.nanmean(self.by_property[kind].rate):.3f}" for kind in ("right", "wrong"))
        return f"<Confidences of {len(self.classes):,} classes under {', '.join(self.properties)}: mean when {means}>"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, null where there is no number."""
        names = ("classes", "properties", "cells", "by_property", "answers")
        return {name: plain(getattr(self, name)) for name in names}


def confidences(local: Local) -> Confidences | None:
    """The mean confidences of a table, or None where the model or the table tells none of single inputs.

    Args:
        local: the table

    >>> from testifai.locality.sampled import Sampled
    >>> single = Sampled(np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1], np.int32)[:, None, None],
    ...                  np.array([0.9, 0.6, 0.8, 1.0], np.float32)[:, None, None])
    >>> table = Local.from_counts(["cat", "dog"], ["fog"], [[1]], [[[[1, 1], [0, 2]]]], sampled=single)
    >>> found = confidences(table)
    >>> found.cells["right"].rate.round(2).tolist(), found.by_property["wrong"].rate.round(2).tolist()
    ([[0.9], [0.9]], [0.6])
    """
    sampled = local.sampled
    if sampled is None or sampled.confidence is None or np.isnan(sampled.confidence).all():
        return None
    sure = sampled.confidence.astype(np.float64)
    told = ~np.isnan(sure)
    right = sampled.predicted == sampled.classes[:, None, None]
    members = np.arange(len(local.classes))[:, None] == sampled.classes  # (class, input)
    cells, by_property, answers = {}, {}, {}
    for name, chosen in zip(ANSWERS, (told, told & right, told & ~right), strict=True):
        sums, counts = np.where(chosen, sure, 0).sum(axis=2), chosen.sum(axis=2)  # (input, property)
        each = [_ratio(sums[mine], counts[mine]) for mine in members]
        cells[name] = Rates(*(np.stack(part) for part in zip(*each, strict=True)))
        by_property[name] = Rates(*_ratio(sums, counts))
        answers[name] = np.stack([counts[mine].sum(axis=0) for mine in members])
    return Confidences(local.classes, local.properties, cells, by_property, answers)


def _ratio(sums: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """(property): the mean of all answers with its interval; an input has `counts` of them that add up to `sums`."""
    total, inputs = counts.sum(axis=0), np.maximum(np.count_nonzero(counts, axis=0), 1)
    with np.errstate(invalid="ignore"):
        mean = sums.sum(axis=0) / total
    apart = sums - np.nan_to_num(mean) * counts
    # Of a ratio of sums over inputs: each input's part in it (Cochran, Sampling Techniques, 1977, section 6.4).
    variance = (apart**2).sum(axis=0) * inputs**2 / np.maximum(inputs - 1, 1) / np.maximum(total, 1) ** 2
    down, up = bounded_arms(np.nan_to_num(mean), variance, inputs.astype(np.float64))
    return mean, np.clip(mean - down, 0, 1), np.clip(mean + up, 0, 1)
