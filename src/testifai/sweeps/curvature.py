"""The curvature parameter chosen from the curve itself (curvature="auto").

Theorem 1 of ASAP needs an â with which the accuracy between two neighbouring levels lies between the parabolas through
them: |f(x) − chord(x)| ≤ â (x − a)(b − x). The paper leaves its choice to the user. Here every pair of neighbours has
its own: a multiple of the larger of the second divided differences of the pair with a level before and with one after
it, which is exactly the leading coefficient where f is a parabola. These levels are about as far away as the pair is
wide: the steps of 1/N of an accuracy measured on N inputs, or a curve's ripples, count at their own scale.

The multiple covers what a second difference misses. If f has a kink between a and b whose slopes differ by s, the
parabolas need â = s / (b − a), while the larger of the two differences may be as small as s / (2 (b − a + d)), d being
the distance to the next level: d ≤ 2 (b − a) gives 6. The least curvature and the first levels decide how narrow a dip
may be before it can hide between two levels. Where levels are closer than the first ones the curve has been looked at,
and the least curvature falls with their distance. The first levels are unevenly spaced, or a regular wave could be
measured at the same phase every time and look flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Look = Callable[[tuple[int, int, int]], Floats]

FIRST = 15
MULTIPLE = 6.0
LEAST = 48.0  # with levels rescaled to 0..1
_UNEVEN = 0.6
_GOLDEN = (math.sqrt(5) - 1) / 2


def first_levels(most: int) -> Floats:
    """Where to begin, in 0..1: both ends and unevenly spaced levels between them, at most `most` in all.

    >>> first_levels(4).round(3).tolist()
    [0.0, 0.357, 0.614, 1.0]
    """
    count = max(2, min(FIRST, most))
    places = np.arange(1, count - 1)
    # The multiples of the golden ratio modulo 1 are spread evenly and never repeat.
    moved = places + _UNEVEN * ((places * _GOLDEN) % 1 - 0.5)
    return np.concatenate([[0.0], moved / (count - 1), [1.0]])


def local_curvature(levels: Floats, accuracies: Floats | Look) -> Floats:
    """The curvature to reckon with between each pair of neighbouring levels, in the units of the levels.

    `accuracies` are those of the levels, or a function that gives those of three levels from their numbers.

    >>> levels = np.linspace(0, 1, 5)
    >>> local_curvature(levels, 0.9 - 10 * levels**2).round(6).tolist()
    [60.0, 60.0, 60.0, 60.0]
    """
    widths, span = np.diff(levels), levels[-1] - levels[0]
    look = accuracies if callable(accuracies) else lambda places: accuracies[list(places)]
    before, after = _scale_neighbours(levels, widths)
    bends = np.zeros(len(widths))
    for i in range(len(widths)):
        triples = [(before[i], i, i + 1)] if before[i] >= 0 else []
        triples += [(i, i + 1, after[i])] if after[i] < len(levels) else []
        bends[i] = max((_second_difference(levels[list(three)], look(three)) for three in triples), default=0.0)
    least = LEAST / span**2 * np.minimum(1.0, widths * (FIRST - 1) / span)
    return np.maximum(MULTIPLE * bends, least)


def _scale_neighbours(levels: Floats, widths: Floats) -> tuple[list[int], list[int]]:
    """For each pair the number of the nearest level before and after it that is at least half its width away.

    Where all levels on a side are nearer, the outermost is taken; −1 or the number of levels where there is none.
    """
    before = np.searchsorted(levels, levels[:-1] - widths / 2, side="right") - 1
    after = np.searchsorted(levels, levels[1:] + widths / 2, side="left")
    pairs, last = np.arange(len(widths)), len(levels) - 1
    before = np.where(pairs > 0, np.maximum(before, 0), -1)
    after = np.where(pairs + 1 < last, np.minimum(after, last), last + 1)
    return before.tolist(), after.tolist()


def _second_difference(levels: Floats, accuracies: Floats) -> float:
    """The leading coefficient of the parabola through three points, without its sign."""
    first, second = np.diff(accuracies) / np.diff(levels)
    return float(abs(second - first) / (levels[2] - levels[0]))
