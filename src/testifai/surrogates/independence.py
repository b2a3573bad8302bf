"""Rates of higher orders as products over groups of perturbations that depend on each other (TestifAI, section 3)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.runs.outcomes import Trials
from testifai.statistics.independence import DRAWS, FEWEST_TRIALS, examine, examine_counts, find_designs
from testifai.support.types import Array, Floats, Record
from testifai.surrogates.base import PlainSurrogate
from testifai.surrogates.pairwise import LogRates, Rows, Terms, dense


class Independence(PlainSurrogate):
    """Dependent pairs form groups; a test is the product of its groups' rates, relative to the clean one.

    A group's rate is measured, or else predicted from its pairs. The pairs are tested on single outcomes by a bootstrap
    over inputs, or on counts alone as if each test had its own inputs. `plain` multiplies plain rates, as in the
    paper's example: too low if the clean rate is below 1. With `alpha` 0 no pair is dependent: the product of
    first-order rates. Variances include the effect of the measured interactions that are omitted.
    """

    name = "independence"

    def __init__(
        self,
        levels: Sequence[Sequence[int]] | None = None,
        seed: int = 0,
        *,
        alpha: float = 0.05,
        plain: bool = False,
        draws: int = DRAWS,
    ) -> None:
        super().__init__(levels, seed)
        self.alpha, self.plain, self.draws = alpha, plain, draws

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike, *, single: Trials | None = None) -> Self:
        self.measured_ = LogRates.of(self.name, self.levels, features, passes, trials, single)
        self._rows = {row.tobytes(): at for at, row in enumerate(self.measured_.features)}
        self.groups_ = self._groups(np.asarray(features, np.int64), np.asarray(passes), np.asarray(trials), single)
        return self

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        return self.measured_.predict(features, self._terms)

    def _groups(
        self, features: NDArray[np.int64], passes: Array, trials: Array, single: Trials | None
    ) -> list[list[int]]:
        names = [str(j) for j in range(features.shape[1])]
        if self.alpha <= 0 or len(names) < 2:
            return [[j] for j in range(len(names))]
        tests = np.flatnonzero((trials >= FEWEST_TRIALS) & (np.count_nonzero(features, axis=1) <= 2))
        designs = list(find_designs(features[tests]))
        options: Record = {name: getattr(self, name) for name in ("seed", "draws", "alpha", "plain")}
        if single is None:
            self.result_ = examine_counts(designs, names, passes[tests], trials[tests], **options)
        else:
            tried, passed = dense(single, tests, len(features))
            self.result_ = examine(
                designs, names, lambda rows: (tried[:, rows], passed[:, rows]), single.inputs, **options
            )
        return [[int(name) for name in group] for group in self.result_.groups]

    def _terms(self, rows: NDArray[np.int64]) -> Terms:
        """l = l_0 + Σ_groups (l_group - l_0), or Σ_groups l_group as published."""
        inside = [np.where(np.isin(np.arange(rows.shape[1]), group), rows, 0) for group in self.groups_]
        off = np.stack([~part.any(axis=1) for part in inside], axis=1)
        # A group that is off represents the clean test, which counts once if nothing is on.
        clean = off.all(axis=1) - off.sum(axis=1) if self.plain else np.full(len(rows), 1 - len(inside))
        owner = {axis: number for number, group in enumerate(self.groups_) for axis in group}
        apart = [(i, j) for i, j in itertools.combinations(range(rows.shape[1]), 2) if owner[i] != owner[j]]
        terms = Terms(
            np.full((len(rows), 1), self.measured_.clean),
            clean[:, None].astype(float),
            self.measured_.apart(rows, apart),
        )
        for part in inside:
            terms = terms + self._group(part)
        return terms

    def _group(self, rows: NDArray[np.int64]) -> Terms:
        """Return the group's own test if it was measured, else its Kirkwood product."""
        terms = self.measured_.kirkwood(rows)
        high = np.flatnonzero(np.count_nonzero(rows, axis=1) > 2)
        found: Rows = np.array([self._rows.get(rows[c].tobytes(), -1) for c in high], np.intp)
        known = high[found >= 0]
        weights, extra, tests = terms.weights.copy(), terms.extra.copy(), terms.tests.copy()
        weights[known], extra[known] = 0, 0
        tests[known, 0], weights[known, 0] = found[found >= 0], 1
        return Terms(tests, weights, extra)
