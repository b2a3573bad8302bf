"""Quality scores of the tests of a space: measured on some of them, predicted on the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.space import LISTED, Space
from testifai.statistics.normal import half_widths

Floats = NDArray[np.float64]

PREDICTORS = ("smooth", "forest")


def no_quality_in(space: Space, instead: str) -> InputError:
    """Why there is no quality in a space with more tests than are listed, and what to do instead."""
    return InputError(
        f"quality: it is predicted for every test, of at most {LISTED:,}, and the space has {space.size:,}; {instead}"
    )


@dataclass(frozen=True, eq=False)
class Scores:
    """What is known of the inputs' quality under every configuration.

    `measured` are configuration ids, with a value and its standard error each. Elsewhere the score is predicted from
    them, by the predictor named.
    """

    space: Space
    name: str
    higher_is_better: bool
    measured: NDArray[np.int64]
    values: Floats
    errors: Floats
    inferences: int = 0  # inputs handed to the model under test for it
    predictor: str = "smooth"
    seed: int = 0
    description: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} of {self.space.size:,} tests: {len(self.measured):,} measured>"

    @property
    def estimate(self) -> Floats:
        """The score of every test, of the space's shape; NaN while nothing is measured."""
        return self._flat[0].reshape(self.space.shape)

    @property
    def low(self) -> Floats:
        """Lower 95 % bound of every score; NaN where the predictor has none."""
        return self._flat[1].reshape(self.space.shape)

    @property
    def high(self) -> Floats:
        """Upper 95 % bound of every score; NaN where the predictor has none."""
        return self._flat[2].reshape(self.space.shape)

    @property
    def sign(self) -> str:
        """How a query asks for plausible inputs: `quality <= x`, or `>=` where higher is better."""
        return ">=" if self.higher_is_better else "<="

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, Floats]:
        size = self.space.size
        estimate, low, high = (np.full(size, np.nan) for _ in range(3))
        if not len(self.measured):
            return estimate, low, high
        missing = np.setdiff1d(np.arange(size), self.measured)
        if len(missing):
            from testifai.quality.predict import fit

            known = self.space.matrix(self.measured)
            levels = [axis.severities for axis in self.space.axes]
            fitted = fit(self.predictor, levels, known, self.values, self.errors, seed=self.seed)
            predicted = fitted.predict(self.space.matrix(missing))
            estimate[missing], low[missing], high[missing] = predicted
        estimate[self.measured] = self.values
        low[self.measured] = self.values - half_widths() * self.errors
        high[self.measured] = self.values + half_widths() * self.errors
        return estimate, low, high
