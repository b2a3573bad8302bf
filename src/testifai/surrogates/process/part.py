"""A surface seen through trials: its posterior at the tests, from which that of all other configurations follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testifai.surrogates.process.grid import WholeGrid
from testifai.surrogates.process.inputs import TERMS, Floats, Independent, Information, Ints
from testifai.surrogates.process.integration import Bools, unwidened
from testifai.surrogates.process.kernel import Prior


@dataclass(frozen=True)
class Scatter:
    """How single trials scatter about the value of their test: by these terms of the expansion of outcomes."""

    first: int = 0
    last: int = TERMS  # stands for all higher ones too
    scale: float = 1.0  # variance relative to that of the expansion

    def __call__(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The standard deviation at configurations of these Hermite coefficients, and the terms' part in it."""
        rows = coefficients[self.first : self.last]
        whole = self.last == TERMS
        size = 1 - (coefficients[: self.first] ** 2).sum(axis=0) if whole else (rows**2).sum(axis=0)
        return np.sqrt(self.scale * size) / 2, rows / np.sqrt(size)


class SurfacePart:
    """One of the surfaces that add up to eta, and what trials have taught about it.

    Values of tests are `level` + surface + noise; noise is that of single trials, `sd` times that of `information`.
    """

    def __init__(self, prior: Prior, parameters: Floats, scatter: Scatter) -> None:
        self.prior, self.parameters, self.scatter = prior, parameters, scatter
        self.level = 0.0
        self.widening: Callable[[Ints, Bools], Floats] = unwidened

    @cached_property
    def grid(self) -> WholeGrid:
        """The prior on all configurations."""
        return WholeGrid(self.prior)

    def see(self, information: Information | Independent, sd: Floats, test: Ints) -> None:
        """Take note of the trials' design and their noise."""
        self._information, self._sd, self._test = information, sd, test
        self._unit = information.covariance()

    @property
    def noise(self) -> Floats:
        """The covariance of the noise of the tests' values."""
        return self._unit * np.multiply.outer(self._sd, self._sd)

    def values(self, reference: Floats, deviations: Floats) -> Floats:
        """Efficient values of the tests, from the deviations of their trials from a reference."""
        score = self._information.score(deviations / self._sd[self._test])
        values: Floats = reference + self._sd * (self._unit @ score)
        return values

    def data(self, reference: Floats, deviations: Floats) -> tuple[Floats, Floats]:
        """Values to learn parameters from, with the covariance of their noise, or its variances if independent.

        Efficient values, if the correlation of trials is well known: taken for larger than it is, it would make noise
        look like surface. Plain means have the same variance whatever it is.
        """
        information = self._information
        if information.sure:
            return self.values(reference, deviations), self.noise
        means = np.bincount(self._test, information.weight * deviations, len(reference)) / information.trials
        return reference + means, self._sd**2 / information.trials

    def condition(self, kernel: Floats, shared: Floats | float) -> None:
        """Prepare for the posterior: `shared` is the covariance of the means over all inputs."""
        from scipy.linalg.lapack import dpotrf, dtrtri

        factor, failed = dpotrf(kernel + self.noise, lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance of the tests' values is not positive definite")
        self.root: Floats = dtrtri(factor, lower=1)[0].T  # (K + noise)^-1 = V V'
        self.cross: Floats = kernel + shared

    def learn(self, values: Floats) -> None:
        """Take the tests' values."""
        self.weights: Floats = self.root @ (self.root.T @ (values - self.level))

    def spent(self, cross: Floats) -> Floats:
        """Prior covariances with the tests' values as what squares to the variance that these explain, row by row."""
        from scipy.linalg.blas import dtrmm

        rows = np.atleast_2d(cross)
        # The root is triangular: half of the work of a matrix product.
        return np.asarray(dtrmm(1.0, self.root.T, rows, side=1, lower=1, trans_a=1)).reshape(cross.shape)

    def variance(self, weights: Floats) -> float:
        """The posterior variance of a weighted sum of the tests' values."""
        along = weights @ self.cross
        spent = along @ self.root
        return float(along @ weights - spent @ spent)

    def forget(self) -> None:
        """Let go of what only learning needs: as large as all the rest."""
        del self._information, self._unit
