"""The single inputs behind a local table: what the model answered to each, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.locality.spread import Floats


@dataclass(frozen=True, eq=False)
class Sampled:
    """The single inputs behind the counts.

    `ids` are their numbers in the data, `classes` the places of their true classes, and `predicted` (input, property,
    severity) the places of the answers among the outputs, -1 where an input was not tried. `confidence`, of the same
    shape, is how sure the model was of each answer; None, or NaN, where it gives labels alone.
    """

    ids: NDArray[np.intp]
    classes: NDArray[np.intp]
    predicted: NDArray[np.int32]
    confidence: NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        return f"<Sampled: {len(self.ids):,} inputs of {len(np.unique(self.classes)):,} classes>"

    def part(self, rows: NDArray[Any]) -> Sampled:
        """Some of the inputs, by row or mask."""
        sure = None if self.confidence is None else self.confidence[rows]
        return Sampled(self.ids[rows], self.classes[rows], self.predicted[rows], sure)


def count_answers(
    predicted: NDArray[np.int32], classes: NDArray[np.intp], rows: int, columns: int
) -> NDArray[np.int64]:
    """The confusion (property, severity, true class, output) of answers (input, property, severity); -1 is none."""
    counts = np.zeros((*predicted.shape[1:], rows, columns), np.int64)
    inputs, which, level = np.nonzero(predicted >= 0)
    np.add.at(counts, (which, level, classes[inputs], predicted[inputs, which, level]), 1)
    return counts


def class_means(values: NDArray[Any], classes: NDArray[np.intp], rows: int) -> Floats:
    """(class, property, severity): the mean of what is known, NaN where nothing is."""
    means = np.full((rows, *values.shape[1:]), np.nan)
    for place in range(rows):
        mine = values[classes == place]
        known = ~np.isnan(mine)
        with np.errstate(invalid="ignore"):
            means[place] = np.where(known, mine, 0).sum(axis=0, dtype=np.float64) / known.sum(axis=0)
    return means
