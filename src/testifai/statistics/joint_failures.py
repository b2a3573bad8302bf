"""Failures of two perturbations at once that independence expects, and how their number varies.

A bootstrap over inputs knows only what happened. Where few inputs are expected to fail under both of two perturbations,
often none does, and then every replicate says that none ever will: the bootstrap takes chance for dependence. What it
lacks is known from the null hypothesis, under which the number of such inputs is close to Poisson.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointFailures:
    """Of each joint test: the losses by either perturbation alone, as shares of what passes clean, and its trials."""

    clean: float
    first: Floats
    second: Floats
    trials: NDArray[np.int64]

    @property
    def share(self) -> Floats:
        """Of the inputs of each test, those that pass clean and that either perturbation would make fail."""
        return self.clean * self.first * self.second

    @property
    def expected(self) -> Floats:
        """How many inputs these are."""
        return self.share * self.trials

    @property
    def variance(self) -> Floats:
        """Of the departure from the product where the outcomes of single perturbations decide those of both.

        That of the covariance of two independent yes-or-no properties of an input. Noise that outcomes have besides
        makes it larger, hence the least that the null hypothesis allows.
        """
        return self.share * (1 - self.first) * (1 - self.second) / np.maximum(self.trials, 1)

    def missing(self, variance: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Draws (by tests) of mean 0 with what a variance that was found lacks of the least there is.

        The number of joint failures is Poisson; one input counts in all tests whose perturbations both reach it, and
        in tests that lack more where it counts in those that lack less.
        """
        each = np.maximum(self.trials, 1)
        share = np.maximum(self.share, np.finfo(np.float64).tiny)
        lacking = np.clip((self.variance - variance) * each / share, 0, 1)
        inputs = int(each.max())
        widths, reached = _cells(self.first, self.second, lacking)
        means = inputs * self.clean * widths
        counts = rng.poisson(means, (draws, len(means))) - means
        return np.asarray(counts @ reached / np.sqrt(inputs * each))


def _cells(*heights: Floats) -> tuple[Floats, Floats]:
    """The unit cube cut at the heights of each side: the volume of every cell and which tests contain it."""
    widths, reached = np.ones(1), np.ones((1, len(heights[0])))
    for height in heights:
        ends = np.unique(height[height > 0])
        steps, within = np.diff(ends, prepend=0.0), height >= ends[:, None]
        widths = np.outer(widths, steps).ravel()
        reached = (reached[:, None] * within[None]).reshape(len(widths), len(height))
    return widths, reached
