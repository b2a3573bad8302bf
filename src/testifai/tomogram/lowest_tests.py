"""The tests with the lowest estimates, of a whole space or of a selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from testifai.runs.outcomes import Ids
from testifai.space import Selection
from testifai.support.types import Bools
from testifai.tomogram.answers import RateTable, Sigma
from testifai.tomogram.estimator import Estimator

Mask = Bools | Selection  # tests flat by configuration id, or, if they are not listed, their selection
SAMPLED = 2_000  # tests that represent a selection of more than are listed


@dataclass(frozen=True)
class WorstTest:
    sigma: Sigma
    estimate: float
    low: float
    high: float
    trials: int


def selected_tests(
    estimator: Estimator, chosen: Mask | None = None, fixed: Mapping[str, int] | None = None
) -> tuple[Ids, RateTable]:
    """Return the chosen tests in which some axes have given severities, or a sample of them, with their estimates."""
    space, fixed = estimator.space, fixed or {}
    if not fixed and chosen is None:
        return estimator.sample
    if space.listed:
        ids, _ = estimator.sample
        used = np.ones(space.size, bool) if chosen is None else np.array(chosen, bool)
        for name, severity in fixed.items():
            used &= space.severities(name) == severity
        return ids[used], estimator.table(ids[used])
    part = chosen if isinstance(chosen, Selection) else Selection(space)
    if fixed:
        part = part.narrowed(" and ".join(f"{name} == {severity}" for name, severity in fixed.items()))
    if estimator.predicts():
        ids = part.sample(SAMPLED, np.random.default_rng(estimator.settings.seed))
    else:
        ids = estimator.measured_ids[part.contains(estimator.measured_ids)]
    return ids, estimator.table(ids)


def lowest_tests(estimator: Estimator, count: int, chosen: Mask | None = None) -> tuple[Ids, RateTable]:
    """Return the tests with the lowest known estimates, lowest first.

    In a space with more tests than are listed, a sample and the tests that were tried are considered.
    """
    ids, found = selected_tests(estimator, chosen)
    if not estimator.space.listed:
        tried = estimator.measured_ids
        tried = np.setdiff1d(tried[chosen.contains(tried)] if isinstance(chosen, Selection) else tried, ids)
        ids, found = np.concatenate([ids, tried]), found.and_(estimator.table(tried))
    first = found.lowest(count)
    first = first[~np.isnan(found.estimate[first])]
    return ids[first], found.at(first)


def worst_tests(estimator: Estimator, count: int) -> tuple[WorstTest, ...]:
    ids, found = lowest_tests(estimator, count)
    columns = (found.estimate, found.low, found.high, found.trials)
    return tuple(
        WorstTest(estimator.space.configuration(test), *numbers)
        for test, *numbers in zip(ids.tolist(), *(column.tolist() for column in columns), strict=True)
    )
