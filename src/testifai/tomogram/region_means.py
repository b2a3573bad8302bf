"""The mean pass rate of a region from its raw trials alone, with no assumption on the surface or on dependence.

Its interval (`statistics.clustered`) is wider than a surrogate's and valid whatever the surrogate predicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testifai.runs.outcomes import Ids, Outcomes, ScoredOutcomes, Trials
from testifai.statistics.clustered import ClusteredTrials, interval, interval_of_few
from testifai.support import bits
from testifai.support.bits import Bits
from testifai.support.types import Array
from testifai.support.validation import number

FEW = 30  # inputs up to which a variance alone is uncertain
ROWS = 4_096  # configurations whose bits are unpacked together
WIDE = 32_768  # inputs from which each row is unpacked separately: many rows of bits would fill the memory


@dataclass(frozen=True)
class RawMean:
    """The mean rate over the measured tests of a region; NaN without any."""

    estimate: float
    low: float
    high: float
    tests: int  # tests with trials, which the estimate is for
    left_out: int  # tests without trials
    inputs: int  # different inputs used


def region(
    outcomes: Outcomes, ids: Iterable[int], among: Bits | None = None, confidence: float = 0.95, finite: bool = True
) -> RawMean:
    """Return the mean raw pass rate of these configurations, on all inputs or on those whose bit is set in `among`.

    With `finite` the interval is for the rate on the inputs at hand and closes once every test was tried on all of
    them; otherwise it is for new inputs like them.

    >>> outcomes = Outcomes(100)
    >>> for test in range(20):
    ...     outcomes.record(test, np.arange(40), np.arange(40) >= test)
    >>> found = region(outcomes, range(20))
    >>> round(found.estimate, 4), round(found.low, 3), round(found.high, 3), found.tests, found.inputs
    (0.7625, 0.674, 0.833, 20, 40)
    """
    number("confidence", confidence, above=0, below=1)
    asked = np.unique(np.fromiter(ids, np.int64))
    single = _single(outcomes, asked, among) if len(asked) else None
    if single is None or not len(single.test):
        return RawMean(float("nan"), float("nan"), float("nan"), 0, len(asked), 0)
    sample = ClusteredTrials.of(single.test, single.place, single.passed)
    population = single.inputs if finite else None
    if sample.used <= FEW:
        low, high = interval_of_few(sample, len(asked), population, confidence)
    else:
        low, high = interval(sample, population, confidence)
    return RawMean(sample.estimate, low, high, sample.tests, len(asked) - sample.tests, sample.used)


# -- the trials ---------------------------------------------------------------------------------------------------


def _single(outcomes: Outcomes, ids: Ids, among: Bits | None) -> Trials:
    """All outcomes, with the configurations that have any, and the inputs used, renumbered without gaps.

    Many rows of bits are unpacked together: one by one, a thousand tests would take a tenth of a second.
    """
    found = [_trials(outcomes, ids[start : start + ROWS], among) for start in range(0, len(ids), ROWS)]
    counts = np.concatenate([count for count, _, _ in found])
    place, passed = (np.concatenate([one[part] for one in found]) for part in (1, 2))
    seen = np.zeros(outcomes.inputs, bool)
    seen[place] = True
    inputs = outcomes.inputs if among is None else int(bits.count_set(among))
    tried = counts[counts > 0]
    return Trials(np.repeat(np.arange(len(tried)), tried), (np.cumsum(seen) - 1)[place], passed, inputs)


def _trials(outcomes: Outcomes, ids: Ids, among: Bits | None) -> tuple[Ids, NDArray[np.intp], Array]:
    """The number of trials of each configuration, then the places and outcomes of all of them."""
    if outcomes.inputs >= WIDE or isinstance(outcomes, ScoredOutcomes):
        places, passes = zip(*(outcomes.trials(i, among) for i in ids.tolist()), strict=True)
        return np.array([len(tried) for tried in places]), np.concatenate(places), np.concatenate(passes)
    none = (np.zeros(bits.size(outcomes.inputs), np.uint8),) * 2
    rows = np.array([outcomes.bits(i) if i in outcomes else none for i in ids.tolist()])
    attempted, passed = rows[:, 0], rows[:, 1]
    if among is not None:
        attempted = attempted & among
    test, byte = np.nonzero(attempted)
    bit = bits.places_of(attempted[test, byte], 8 * len(byte))
    outcome = bits.unpack(passed[test, byte], 8 * len(byte))[bit]
    return bits.count_set(attempted), byte[bit >> 3] * 8 + (bit & 7), outcome
