"""Figures of the ASAP paper (AITest 2022) that ours stand beside, and the 16 curves its authors published."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """One row of Table I with its column of Table II; percentages, None for a timeout."""

    oracle: float
    points: int
    error: float
    bound: float
    quad_points: int | None
    quad_error: float | None
    uniform_error: float


MNIST = {
    "gaussian noise": Row(100.00, 34, 0.00, 0.00, 21, 0.00, 0.00),
    "compression": Row(4.59, 17, -0.10, 0.10, 441, 0.00, 0.97),
    "vertical trans.": Row(100.00, 68, 0.00, 0.00, 21, 0.00, 0.00),
    "horizontal trans.": Row(100.00, 65, 0.00, 0.00, 21, 0.00, 0.00),
    "blur": Row(0.10, 16, -0.10, 0.10, 21, -0.10, 6.15),
    "brightness": Row(0.10, 23, 0.00, 0.00, 21, -0.10, -0.06),
    "zoom": Row(65.85, 40, 1.72, 0.29, 903, 0.07, 0.00),
}
BREAST_CANCER = {
    "gaussian noise": Row(43.80, 56, -0.54, 0.78, None, None, 0.06),
    "compression": Row(100.00, 33, 0.00, 0.00, 21, 0.00, 0.00),
    "vertical trans.": Row(100.00, 127, 0.00, 0.00, 21, 0.00, 0.00),
    "horizontal trans.": Row(100.00, 127, 0.00, 0.00, 21, 0.00, 0.00),
    "blur": Row(73.66, 225, -0.61, 7.71, None, None, -1.00),
    "brightness": Row(57.27, 49, -0.04, 0.10, 861, -0.54, 0.42),
    "zoom": Row(100.00, 118, 0.00, 0.00, 21, 0.00, 0.00),
}


class Curve(NamedTuple):
    """A curve of the authors' repository: straight lines between its records are taken for the truth."""

    levels: Floats
    accuracies: Floats

    def dense(self, count: int = 2049) -> Floats:
        """Its accuracies at evenly spaced levels."""
        return np.interp(np.linspace(self.levels[0], self.levels[-1], count), self.levels, self.accuracies)


def curves(folder: Path) -> dict[str, Curve]:
    """The 16 published curves by their names."""
    return {path.stem: Curve(*np.loadtxt(path, delimiter=",").T) for path in sorted(folder.glob("*.csv"))}
