"""A run's surrogate, fitted on all inputs or on a part of them, each when first asked for."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

import numpy as np

from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Space
from testifai.support.bits import Bits, pack
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence

BESIDE = 4_000  # tests of a space up to which a part of the inputs is fitted beside the others; beyond, by itself


@dataclass(frozen=True, eq=False)
class Fits:
    """The surrogates of one run; None where there is none, or nothing to fit it on."""

    space: Space
    outcomes: Outcomes
    tests: Ids  # that have trials
    surrogate: str | Surrogate | None
    seed: int
    finite: bool  # whether rates are those on the inputs at hand
    _made: dict[bytes | None, Surrogate | None] = field(default_factory=dict, init=False, repr=False)

    def on(self, among: Bits | None = None) -> Surrogate | None:
        """That on all inputs, or on those whose bits are set."""
        key = None if among is None else among.tobytes()
        if key not in self._made:
            levels = [axis.severities for axis in self.space.axes]
            made = resolve(self.surrogate, self.seed, levels, finite=self.finite)
            self._made[key] = None if made is None else self._fit(made, among)
        return self._made[key]

    def _fit(self, surrogate: Surrogate, among: Bits | None) -> Surrogate | None:
        seen = self._evidence(surrogate, among)
        if not len(seen):
            return None
        whole = None if among is None else self.on(None)
        if among is None or whole is None or whole.relearns:
            return seen.fit(surrogate)
        # A part of the inputs is like the others, as far as its own trials do not tell otherwise.
        others = self._evidence(surrogate, ~among & pack(np.ones(self.outcomes.inputs, bool)))
        beside = len(others) and self.space.size <= BESIDE
        return seen.deviate(others.update(copy(whole))) if beside else seen.update(copy(whole))

    def _evidence(self, surrogate: Surrogate, among: Bits | None) -> Evidence:
        features = self.space.matrix(self.tests)
        return evidence(surrogate, self.outcomes, self.tests, features, among=among)
