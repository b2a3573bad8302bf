"""A run's surrogate, fitted on all inputs or on a part of them, each when first asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from testifai.runs.outcomes import Ids, Outcomes
from testifai.space import Space
from testifai.support.bits import Bits, pack
from testifai.support.version import VERSION
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import Evidence, evidence

METHOD = 1  # to be raised with every change in what a fit learns or how it is written
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
    kept: Mapping[str, Any] | None = None  # what `learned` gave for a run that may be this one
    _made: dict[bytes | None, Surrogate | None] = field(default_factory=dict, init=False, repr=False)

    def on(self, among: Bits | None = None) -> Surrogate | None:
        """That on all inputs, or on those whose bits are set."""
        key = None if among is None else among.tobytes()
        if key not in self._made:
            levels = [axis.severities for axis in self.space.axes]
            made = resolve(self.surrogate, self.seed, levels, finite=self.finite)
            self._made[key] = None if made is None else self._fit(made, among)
        return self._made[key]

    def learned(self) -> dict[str, Any] | None:
        """What the fit on all inputs took long to find, and of what it is: nothing else may be told by it.

        None where that is nothing, or the surrogate is one that only its maker knows.
        """
        surrogate = self.on()
        found = None if surrogate is None or not isinstance(self.surrogate, str) else surrogate.learned()
        if surrogate is None or found is None:
            return None
        return {"of": self._digest(self._evidence(surrogate, None)), "learned": found}

    def _digest(self, seen: Evidence) -> str:
        """Of all that a fit depends on."""
        levels = [list(map(int, axis.severities)) for axis in self.space.axes]
        settings = json.dumps([VERSION, METHOD, self.surrogate, self.seed, self.finite, levels])
        return hashlib.sha256(f"{settings} {seen.digest()}".encode()).hexdigest()

    def _fit(self, surrogate: Surrogate, among: Bits | None) -> Surrogate | None:
        seen = self._evidence(surrogate, among)
        if not len(seen):
            return None
        if among is None and self.kept is not None and self.kept["of"] == self._digest(seen):
            surrogate.recall(self.kept["learned"])
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
