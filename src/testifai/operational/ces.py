"""Cross-entropy sampling: a sample whose features are distributed like those of all examples.

Li et al., "Boosting operational DNN testing efficiency through conditioning" (ESEC/FSE 2019), with the authors'
figures: 30 examples at random, then groups of 5, each the best of 300 drawn at random; 9 bins per feature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.operational.base import FEATURES, Frame, Indices, Plan, Sample
from testifai.operational.random_sampling import share
from testifai.support.types import Array, Floats

START, GROUP, CANDIDATES = 30, 5, 300
BINS = 9
FLOOR = 1e-10  # probability of a bin that the sample does not reach yet


class CrossEntropy:
    """Grows the sample by the group that brings it closest to all examples, feature by feature.

    Features are the outputs of the last hidden layer. The sample is chosen, not drawn with known chances: the estimate
    is not exactly unbiased. The interval is exact for as many examples drawn at random: too wide if the features
    explain failures, too optimistic if failures have rare values that the sample misses.
    """

    name = "ces"
    needs = FEATURES
    assumes = (
        "that the examples fail as often as ones drawn at random would: they were chosen otherwise, and nothing "
        "promises it"
    )

    def __init__(self) -> None:
        self._binned: tuple[Array, NDArray[np.uint8], Floats] | None = None

    def plan(self, frame: Frame, tests: int, rng: np.random.Generator) -> Plan:
        if frame.features is None:
            raise InputError("features: technique 'ces' needs one row per example, such as last hidden layer outputs")
        # Kept for the next plan: many are made of the same examples when a technique is judged by repetition.
        if self._binned is None or self._binned[0] is not frame.features:
            bins = binned(frame.features)
            self._binned = frame.features, bins, _histogram(bins) / frame.size
        yield _grow(*self._binned[1:], tests, rng)
        return {}

    def estimate(self, frame: Frame, sample: Sample) -> tuple[float, float, float]:
        return share(sample, frame.size)


def binned(features: Array) -> NDArray[np.uint8]:
    """For each example and feature the number of its bin; features that are the same everywhere are left out."""
    rows = features.reshape(len(features), -1).astype(np.float32)
    low, high = rows.min(axis=0), rows.max(axis=0)
    varied = high > low
    rows, low, high = rows[:, varied], low[varied], high[varied]
    return np.asarray(np.minimum((rows - low) * (BINS / (high - low)), BINS - 1), np.uint8)


def _grow(bins: NDArray[np.uint8], population: Floats, tests: int, rng: np.random.Generator) -> Indices:
    size = len(bins)
    order = rng.permutation(size)
    # Examples not yet drawn are order[drawn:]; drawing one swaps it to the front.
    drawn = min(START, tests)
    counts = _histogram(bins[order[:drawn]])
    while drawn < tests:
        group = min(GROUP, tests - drawn)
        places = drawn + _groups(size - drawn, group, rng)
        # As the authors do: bins too rare to be expected in a sample of this size do not count.
        aim = np.where(population < 0.5 / (drawn + group), 0.0, population)
        best = places[np.argmax(_gains(aim, counts, drawn, bins[order[places]]))]
        counts += _histogram(bins[order[best]])
        for place in np.sort(best):
            order[[drawn, place]] = order[[place, drawn]]
            drawn += 1
    return order[:tests]


def _histogram(bins: NDArray[np.uint8]) -> Indices:
    """How many examples each bin of each feature has: (features, bins)."""
    features = bins.shape[1]
    cells = bins + BINS * np.arange(features)
    return np.bincount(cells.ravel(), minlength=features * BINS).reshape(features, BINS)


def _groups(left: int, group: int, rng: np.random.Generator) -> Indices:
    places = rng.integers(left, size=(CANDIDATES, group))
    while True:
        ordered = np.sort(places, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not twice.any():
            return places
        if left < 4 * group:
            return np.argsort(rng.random((CANDIDATES, left)), axis=1)[:, :group]
        places[twice] = rng.integers(left, size=(np.count_nonzero(twice), group))


def _gains(aim: Floats, counts: Indices, drawn: int, groups: NDArray[np.uint8]) -> Floats:
    """By how much each group would lower the cross-entropy between the sample and all examples, up to a constant.

    A member changes one bin per feature from c to c + 1, so the sum over bins of aim log count grows by aim (log(c + 1)
    - log c); c counts the members of the group before it.
    """
    size, features = groups.shape[1:]
    levels = np.log(np.maximum(counts[:, None] + np.arange(size + 1)[:, None], FLOOR * drawn))
    steps = (aim[:, None] * np.diff(levels, axis=1)).astype(np.float32)
    before = np.zeros_like(groups)
    for member in range(size):
        for earlier in range(member):
            before[:, member] += groups[:, member] == groups[:, earlier]
    cells = (before * np.uint8(BINS) + groups) + np.arange(0, features * size * BINS, size * BINS, dtype=np.int32)
    return np.asarray(steps.take(cells).reshape(len(groups), -1).sum(axis=1), np.float64)
