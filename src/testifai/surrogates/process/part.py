"""A surface seen through trials: its posterior at the tests, from which that of all other configurations follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testifai.surrogates.process.evidence import maximise, posed
from testifai.surrogates.process.grid import WholeGrid
from testifai.surrogates.process.inputs import TERMS, Floats, Independent, Information, Ints
from testifai.surrogates.process.integration import Bools, Widening, unwidened
from testifai.surrogates.process.kernel import Prior
from testifai.surrogates.process.notes import Notes


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

    on_grid = True  # whether the kernel is that of the prior, whose sums over all configurations are cheap

    def __init__(self, prior: Prior, parameters: Floats, scatter: Scatter) -> None:
        self.prior, self.parameters, self.scatter = prior, parameters, scatter
        self.level = 0.0
        self.widening: Callable[[Ints, Bools], Floats] = unwidened

    def centre(self, places: Ints) -> Floats:
        """What is expected of configurations before any trial."""
        return np.full(len(places), self.level)

    def kernel(self, rows: Ints, columns: Ints) -> Floats:
        """The prior covariance of configurations."""
        return self.prior.kernel(self.parameters, rows, columns)

    def own_variance(self, places: Ints) -> Floats:
        """The prior variance of configurations."""
        return self.prior.variance(self.parameters, places)

    def tune(self, places: Ints, values: Floats, noise: Floats, steps: int, seed: int, notes: Notes, name: str) -> None:
        """Learn level and parameters from the tests' values, with the noise's variances or covariance."""
        self.level = float(values.mean())
        problem, start = posed(self.prior, places, values - self.level, noise, seed), self.parameters
        self.parameters = notes(name, len(start), lambda: maximise(self.prior, problem, start, steps))
        self.widening = Widening(problem, self.parameters, seed, notes, name)

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

    def condition(self, kernel: Floats, shared: Floats | float, off: Floats | float = 0.0) -> None:
        """Prepare for the posterior.

        `shared` is the covariance of the means over all inputs, `off` the variance of what single tests have beside
        the surface.
        """
        from scipy.linalg.lapack import dpotrf, dtrtri

        self._off = off
        factor, failed = dpotrf(kernel + self.noise + np.diag(np.broadcast_to(off, len(kernel))), lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance of the tests' values is not positive definite")
        self.root: Floats = dtrtri(factor, lower=1)[0].T  # (K + noise)^-1 = V V'
        self.cross: Floats = kernel + shared

    def learn(self, values: Floats) -> None:
        """Take the tests' values, less what was expected of them."""
        self._values = values
        self.weights: Floats = self.root @ (self.root.T @ values)

    def left_out(self) -> tuple[Floats, Floats]:
        """What all other tests foretell of each, less what was expected of it, and the variance of that."""
        inverse = (self.root**2).sum(axis=1)
        unexplained = np.diag(self._unit) * self._sd**2 + self._off
        return self._values - self.weights / inverse, np.maximum(1 / inverse - unexplained, 0)

    def spent(self, cross: Floats) -> Floats:
        """Prior covariances with the tests' values as what squares to the variance that these explain, row by row."""
        from scipy.linalg.blas import dtrmm

        rows = np.atleast_2d(cross)
        # The root is triangular: half of the work of a matrix product.
        return np.asarray(dtrmm(1.0, self.root.T, rows, side=1, lower=1, trans_a=1)).reshape(cross.shape)

    def error_along(self, weights: Floats) -> Floats:
        """The posterior covariance of each test's value with weighted sums of all, a column for each."""
        along = self.cross @ weights
        covariance: Floats = along - self.cross @ (self.root @ (self.root.T @ along))
        return covariance

    def forget(self) -> None:
        """Let go of what only learning needs: as large as all the rest."""
        del self._information, self._unit, self._values
