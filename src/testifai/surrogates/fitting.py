"""The evidence that surrogates are fitted on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
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
from testifai.surrogates.base import PoolingSurrogate, Surrogate, takes_single

MOST_SINGLE = 3_000_000  # single outcomes passed to a surrogate; of more, the counts suffice
SCORE = VALUE

Some = TypeVar("Some", bound=Surrogate)
Pooling = TypeVar("Pooling", bound=PoolingSurrogate)


@dataclass(frozen=True)
class Evidence:
    """The counts of the tests with trials, one row each, and the single outcomes if the surrogate uses them."""

    features: NDArray[np.int64]
    passes: Array  # or the sum of their scores
    trials: Ids
    single: Trials | None = None

    def __len__(self) -> int:
        return len(self.trials)

    def digest(self) -> str:
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
        note(f"fitting {len(self):,} tests")
        return self._give(surrogate.fit, takes_single(surrogate))

    def update(self, surrogate: Pooling) -> Pooling:
        note(f"fitting {len(self):,} tests")
        return self._give(surrogate.update, True)

    def deviate(self, surrogate: Pooling) -> Pooling:
        return self._give(surrogate.deviate, True)

    def _give(self, method: Callable[..., Some], with_single: bool) -> Some:
        if not len(self):
            raise InputError("trials: no test has any")
        options = {"single": self.single} if with_single else {}
        with one_blas_thread():
            return method(self.features, self.passes, self.trials, **options)


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
    """Return the evidence on the tests `ids` (their severities are the rows of `features`) that this surrogate uses.

    Rates are those of all inputs or of those whose bit is set in `among`, unless `inputs` is the number of interest.
    """
    passes, trials = outcomes.counts(ids, among)
    used = trials > 0
    single = None
    scores = isinstance(surrogate, PoolingSurrogate) or not isinstance(outcomes, ScoredOutcomes)
    wanted = takes_single(surrogate) and scores
    if wanted and used.any() and (most_single is None or outcomes.total() <= most_single):
        single = outcomes.single(ids[used], among, SCORE if SCORE in outcomes.kept_names() else None)
        single = single if inputs is None else replace(single, inputs=inputs)
    return Evidence(features[used], passes[used], trials[used], single)
