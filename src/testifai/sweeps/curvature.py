"""The curvature parameter chosen from the curve itself (curvature="auto").

Theorem 1 of ASAP needs an â with which the accuracy between two neighbouring levels lies between the parabolas through
them: |f(x) − chord(x)| ≤ â (x − a)(b − x). The paper leaves its choice to the user. Here every pair of neighbours has
its own: how much the slope of f changes from before the pair to the pair and from there to behind it, over the width of
the pair. If f has a kink between a and b at which its slope changes by s, the parabolas need â = s / (b − a), and that
is what comes out; where f is a parabola and the levels are evenly spaced, it is four times its leading coefficient.
The slopes before and behind are taken over about the width of the pair, so that the steps of 1/N of an accuracy that
was measured on N inputs, or small ripples, count at their own scale only.

A wave as short as the distance of the first levels looks smoother than it is, and a dip narrower than it may hide. So
pairs that wide get a margin and a least curvature, which both fall as the levels become closer. And the first levels
are unevenly spaced, or a regular wave could be measured at the same phase every time and look flat.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Look = Callable[[tuple[int, int, int]], list[float]]

FIRST = 13
MARGIN = 4.0
COARSE = 8.0  # the margin is gone where levels are closer than an eighth of the first ones' mean distance
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
    [160.0, 160.0, 160.0, 160.0]
    """
    widths, span = np.diff(levels), float(levels[-1] - levels[0])
    places = levels.tolist()
    look = accuracies if callable(accuracies) else _reader(accuracies)
    before, after = _scale_neighbours(levels, widths)
    changes = []
    for i, (first, last) in enumerate(zip(before, after, strict=True)):
        triples = [(first, i, i + 1)] if first >= 0 else []
        triples += [(i, i + 1, last)] if last < len(places) else []
        found = [_change_of_slope([places[k] for k in three], look(three)) for three in triples]
        changes.append(2 * sum(found) / max(1, len(found)))
    coarse = widths * (FIRST - 1) / span
    margin = np.clip(COARSE * coarse, 1.0, MARGIN)
    return np.asarray(np.maximum(margin * changes / widths, LEAST / span**2 * np.minimum(1.0, coarse)))


def _reader(accuracies: Floats) -> Look:
    listed = accuracies.tolist()
    return lambda three: [listed[place] for place in three]


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


def _change_of_slope(levels: list[float], accuracies: list[float]) -> float:
    """How much the slope changes from the first to the second of two intervals."""
    before = (accuracies[1] - accuracies[0]) / (levels[1] - levels[0])
    return abs((accuracies[2] - accuracies[1]) / (levels[2] - levels[1]) - before)
