"""From what was measured to what a surrogate is fitted on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.runs.outcomes import VALUE, Ids, Outcomes, ScoredOutcomes, Trials
from testifai.support.bits import Bits
from testifai.support.progress import note
from testifai.support.threads import one_blas_thread
from testifai.support.types import Array
from testifai.surrogates.base import Surrogate

# Up to this many single outcomes are handed to a surrogate: of a run with more the counts say all there is to say.
MOST_SINGLE = 3_000_000
SCORE = VALUE

Some = TypeVar("Some", bound=Surrogate)


@dataclass(frozen=True)
class Evidence:
    """The counts of the tests that have trials, one row each, and the single outcomes behind them, where wanted."""

    features: NDArray[np.int64]
    passes: Array  # or the sum of their scores
    trials: Ids
    single: Trials | None = None

    def __len__(self) -> int:
        return len(self.trials)

    def digest(self) -> str:
        """What tells this evidence from any other."""
        parts: list[Array] = [self.features, self.passes, self.trials]
        if self.single is not None:
            one = self.single
            parts += [np.array([one.inputs]), one.test, one.place, one.passed]
            parts += [] if one.value is None else [one.value]
        found = hashlib.sha256()
        for part in map(np.ascontiguousarray, parts):
            found.update(f"{part.dtype.str} {part.shape} ".encode())
            found.update(part.data)
        return found.hexdigest()

    def fit(self, surrogate: Some) -> Some:
        """The surrogate, fitted on this."""
        self._refuse_none()
        note(f"fitting {len(self):,} tests")
        with one_blas_thread():
            return surrogate.fit(self.features, self.passes, self.trials, single=self.single)

    def update(self, surrogate: Some) -> Some:
        """The surrogate, fitted before on much the same, with these counts instead."""
        self._refuse_none()
        note(f"fitting {len(self):,} tests")
        with one_blas_thread():
            return surrogate.update(self.features, self.passes, self.trials, single=self.single)

    def deviate(self, surrogate: Some) -> Some:
        """The surrogate, fitted before on other inputs, with these counts instead."""
        self._refuse_none()
        with one_blas_thread():
            return surrogate.deviate(self.features, self.passes, self.trials, single=self.single)

    def _refuse_none(self) -> None:
        if not len(self):
            raise InputError("trials: no test has any")


def evidence(
    surrogate: Surrogate,
    outcomes: Outcomes,
    ids: Ids,
    features: NDArray[np.int64],
    *,
    among: Bits | None = None,
    inputs: int | None = None,
    most_single: int | None = MOST_SINGLE,
) -> Evidence:
    """What is known of the tests `ids` (their severities are the rows of `features`), as this surrogate wants it.

    Of all inputs, or of those whose bit is set in `among`. The rates are those of the inputs looked at, unless
    `inputs` says of how many. Single outcomes are left out where the run has more than `most_single`.

    >>> from testifai.surrogates import Forest
    >>> outcomes = Outcomes(10)
    >>> outcomes.record(1, np.arange(4), np.array([True, True, True, False]))
    >>> found = evidence(Forest(), outcomes, np.array([0, 1]), np.array([[0], [1]]))
    >>> found.features.tolist(), found.passes.tolist(), found.trials.tolist()
    ([[1]], [3], [4])
    """
    passes, trials = outcomes.counts(ids, among)
    used = trials > 0
    single = None
    wanted = surrogate.wants_trials and (surrogate.takes_scores or not isinstance(outcomes, ScoredOutcomes))
    if wanted and used.any() and (most_single is None or outcomes.total() <= most_single):
        single = outcomes.single(ids[used], among, SCORE if SCORE in outcomes.kept_names() else None)
        single = single if inputs is None else replace(single, inputs=inputs)
    return Evidence(features[used], passes[used], trials[used], single)
