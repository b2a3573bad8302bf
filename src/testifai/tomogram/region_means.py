"""The mean pass rate of a region from its raw trials alone, with no assumption on the surface or on dependence.

Its interval (`statistics.clustered`) is wider than a surrogate's and valid whatever the surrogate predicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from testifai.runs.outcomes import Outcomes
from testifai.statistics.clustered import ClusteredTrials, interval, interval_of_few
from testifai.support.bits import Bits
from testifai.support.validation import number

FEW = 30  # inputs up to which a variance alone is uncertain


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
    """
    number("confidence", confidence, above=0, below=1)
    asked = np.unique(np.fromiter(ids, np.int64))
    tried = asked[outcomes.counts(asked, among)[1] > 0] if len(asked) else asked
    if not len(tried):
        return RawMean(float("nan"), float("nan"), float("nan"), 0, len(asked), 0)
    single = outcomes.single(tried, among)
    used = np.zeros(single.inputs, bool)
    used[single.place] = True
    sample = ClusteredTrials.of(single.test, (np.cumsum(used) - 1)[single.place], single.passed)
    population = single.inputs if finite else None
    if sample.used <= FEW:
        low, high = interval_of_few(sample, len(asked), population, confidence)
    else:
        low, high = interval(sample, population, confidence)
    return RawMean(sample.estimate, low, high, sample.tests, len(asked) - sample.tests, sample.used)
