"""Values with known errors instead of trials: a surface through them, by the prior of the process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from testifai.support.types import Floats
from testifai.surrogates.process.kernel import Ints, Prior
from testifai.surrogates.process.marginal_likelihood import maximise, posed
from testifai.surrogates.process.posterior import chunks

LEARNED = 400  # tests from which the parameters are learned
JITTER = 1e-6


class ValueSurface:
    """The posterior of a surface given values whose errors are independent, normal and of known variance.

    >>> prior = Prior([range(4)])
    >>> places = np.array([[0], [1], [3]])
    >>> surface = ValueSurface(prior, places, np.array([0.0, 0.1, 0.3]), np.full(3, 1e-6), prior.mean)
    >>> mean, variance = surface.predict(np.array([[2]]))
    >>> mean.round(1).tolist(), bool(variance[0] < 0.1**2)
    ([0.2], True)
    """

    def __init__(
        self,
        prior: Prior,
        places: Ints,
        values: Floats,
        variances: Floats,
        start: Floats,
        *,
        steps: int = 60,
        seed: int = 0,
    ) -> None:
        self.prior, self.places, self._values = prior, places, values
        self._noise = variances + JITTER
        some = slice(None, LEARNED)
        self._problem = posed(prior, places[some], values[some], self._noise[some], seed)
        self.parameters = maximise(prior, self._problem, start, steps) if steps else start

    @property
    def evidence(self) -> float:
        """The logarithm of the parameters' posterior density, up to a constant, from the first LEARNED values."""
        return self._problem.value(self.parameters) + self.prior.density(self.parameters)[0]

    def mean(self, places: Ints) -> Floats:
        """Return the mean of the surface at configurations."""
        cross = (self.prior.kernel(self.parameters, places[some], self.places) for some in chunks(len(places)))
        return np.concatenate([np.empty(0), *(one @ self._solved[1] for one in cross)])

    def predict(self, places: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the surface at configurations."""
        from scipy.linalg import solve_triangular

        factor, weights = self._solved
        mean, variance = np.empty(len(places)), np.empty(len(places))
        for some in chunks(len(places)):
            cross = self.prior.kernel(self.parameters, places[some], self.places)
            mean[some] = cross @ weights
            explained = (solve_triangular(factor, cross.T, lower=True, check_finite=False) ** 2).sum(axis=0)
            variance[some] = self.prior.variance(self.parameters, places[some]) - explained
        return mean, np.maximum(variance, 0)

    def surprise(self, groups: Sequence[Ints]) -> float:
        """Return the root mean square of standardised residuals of groups of values, each predicted from the others.

        Residuals are M w with M the inverse of a group's block of the inverse covariance, and M is their covariance
        (Rasmussen and Williams 2006, section 5.4.2, for blocks); 1 if there is no group.
        """
        from scipy.linalg import cho_solve

        factor, weights = self._solved
        inverse = cho_solve((factor, True), np.eye(len(factor)))
        squares = [np.empty(0)]
        for group in groups:
            covariance = np.linalg.inv(inverse[np.ix_(group, group)])
            squares.append((covariance @ weights[group]) ** 2 / np.diag(covariance))
        together = np.concatenate(squares)
        return float(np.sqrt(together.mean())) if len(together) else 1.0

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """The factor of the values' covariance, and its inverse times the values."""
        from scipy.linalg import cho_solve, cholesky

        covariance = self.prior.kernel(self.parameters, self.places, self.places) + np.diag(self._noise)
        factor: Floats = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        return factor, cho_solve((factor, True), self._values, check_finite=False)
