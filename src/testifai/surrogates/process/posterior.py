"""How the values of configurations hang together, before and after the trials: what a fitted process knows of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testifai.support.progress import note
from testifai.support.types import Bools, Floats
from testifai.surrogates.base import PoolingSurrogate
from testifai.surrogates.process.fit_cache import Notes
from testifai.surrogates.process.grid import Numbers, WholeGrid
from testifai.surrogates.process.input_correlation import (
    TERMS,
    Dispersion,
    Independent,
    Information,
    SameInput,
    hermite,
)
from testifai.surrogates.process.kernel import Ints, Prior, inside
from testifai.surrogates.process.low_rank import Wide
from testifai.surrogates.process.marginal_likelihood import Widening, maximise, posed, unwidened

ROWS = 2_000  # configurations predicted at a time
REMEMBERED = 4  # times so many configurations whose coefficients are kept, as they are asked for several times


class Covariances(PoolingSurrogate):
    """Covariances of configurations, from what a fit leaves in these."""

    prior_: Prior
    same_input_: SameInput | None
    _parts: Sequence[SurfacePart]  # that add up to the surface
    _places: Ints  # of the tests that it was fitted on
    _numbered: Numbers  # these by number
    _share: float  # of the inputs at hand, one of them; 0 where rates are those of all there could be
    _wide: Wide | None
    _on_grid: bool
    _level: float
    _rough: tuple[Floats, Floats]  # parameters and weights of the surface as if no inputs were shared
    _coefficients: Floats  # of Hermite's polynomials at the tests
    _dispersion: Dispersion | None
    _whole: Floats | None  # coefficients of all configurations
    _asked: dict[bytes, Floats]  # those of configurations asked for last

    def _errors_along(self, places: Ints, weights: Floats) -> Floats:
        """The posterior covariance of each eta with weighted sums of them, of any configurations: a column for each."""
        if self._wide is not None:
            return self._wide.along(places, weights)
        number = self._numbered(places)
        if (number >= 0).all():
            # Weights of all tests, 0 elsewhere: to pick rows and columns of the covariance takes longer.
            whole = np.zeros((len(self._places), weights.shape[1]))
            np.add.at(whole, number, weights)
            among_tests: Floats = sum((part.error_along(whole) for part in self._parts), np.zeros(whole.shape))
            return among_tests[number]
        note(f"adding up {len(places):,} tests")
        along = np.zeros(weights.shape)
        for part in self._parts:
            own, of_tests = self._along(part, places, weights, (places, self._places))
            (explained,) = self._along(part, self._places, part.root @ part.spent(of_tests.T).T, (places,))
            along += own - explained
        return along

    def _along(self, part: SurfacePart, places: Ints, weights: Floats, wanted: Sequence[Ints]) -> list[Floats]:
        """The prior covariances of some configurations' values with weighted sums of those of others."""
        # Pairs of configurations are quicker where there are few of them, and all there is where no grid can be held.
        few = len(places) * sum(map(len, wanted)) < math.prod(self.prior_.sizes)
        if few or not self._on_grid or not part.on_grid:
            return [self._along_pairs(part, places, weights, rows) for rows in wanted]
        whole = np.column_stack([self._along_grid(part, places, column) for column in weights.T])
        return [whole[self._numbered.keys(rows)] for rows in wanted]

    def _along_grid(self, part: SurfacePart, places: Ints, weights: Floats) -> Floats:
        """The same of all configurations, through the axes instead of pairs."""
        whole = self._scattered(places, weights)
        along = part.grid.times(part.parameters, whole)
        if self._share:
            sd, rows = part.scatter(self._grid_coefficients())
            spread = sd * whole
            if self.same_input_ is not None and not part.scatter.first:
                spread = self.same_input_.times(rows, spread)
            along += self._share * sd * spread
        return along

    def _scattered(self, places: Ints, weights: Floats) -> Floats:
        """Weights of some configurations as those of all."""
        return np.bincount(self._numbered.keys(places), weights, math.prod(self.prior_.sizes)).astype(np.float64)

    def _along_pairs(self, part: SurfacePart, places: Ints, weights: Floats, wanted: Ints) -> Floats:
        """The same from the covariance of each pair, in chunks: all pairs of a large region do not fit into memory."""
        along = np.zeros((len(wanted), *weights.shape[1:]))
        for some in chunks(len(wanted)):
            for other in chunks(len(places)):
                along[some] += self._among(part, wanted[some], places[other]) @ weights[other]
        return along

    def _among(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        """The prior covariance of the values of configurations, for the inputs at hand where asked for."""
        left = self._numbered(rows)
        right = np.arange(len(columns)) if columns is self._places else self._numbered(columns)
        if (left >= 0).all() and (right >= 0).all():
            whole = np.array_equal(left, np.arange(len(part.cross)))
            wide = part.cross if whole else part.cross[left]
            return wide if columns is self._places else wide[:, right]
        kernel = part.kernel(rows, columns)
        if self._share:
            sd = [part.scatter(self._hermite(places))[0] for places in (rows, columns)]
            kernel += self._share * self._correlation(part, rows, columns) * np.multiply.outer(*sd)
        return kernel

    def _correlation(self, part: SurfacePart, rows: Ints, columns: Ints) -> Floats:
        """How trials of one input under two configurations are correlated."""
        if self.same_input_ is None or part.scatter.first:
            correlation = np.zeros((len(rows), len(columns)))
        else:
            left, right = (part.scatter(self._hermite(places))[1] for places in (rows, columns))
            active = self.prior_.active
            correlation = self.same_input_.correlation(rows[:, active], columns[:, active], left, right)
        number = (self._numbered if columns is self._places else self._numbers(columns))(rows)
        same = np.flatnonzero(number >= 0)
        correlation[same, number[same]] = 1
        return correlation

    def _numbers(self, places: Ints) -> Numbers:
        return Numbers(places, self.prior_.sizes, ordered=self.prior_.ordered)

    def _hermite(self, places: Ints) -> Floats:
        if places is self._places:
            return self._coefficients
        number = self._numbered(places)
        if (number >= 0).all():
            return self._coefficients[:, number]
        if self._on_grid:
            return self._grid_coefficients()[:, self._numbered.keys(places)]
        if (key := places.tobytes()) not in self._asked:
            parameters, weights = self._rough
            eta = self._level + self.prior_.kernel(parameters, places, self._places) @ weights
            if len(self._asked) >= REMEMBERED:
                self._asked.clear()
            self._asked[key] = self._terms(np.sin(inside(eta)) ** 2)
        return self._asked[key]

    def _grid_coefficients(self) -> Floats:
        """The Hermite coefficients of all configurations."""
        if self._whole is None:
            parameters, weights = self._rough
            whole = self._scattered(self._places, weights)
            eta = self._level + WholeGrid(self.prior_).times(parameters, whole)
            self._whole = self._terms(np.sin(inside(eta)) ** 2)
        return self._whole

    def _terms(self, rates: Floats) -> Floats:
        """How trials at these rates scatter and hang together."""
        return hermite(rates) if self._dispersion is None else self._dispersion.terms(rates)


def chunks(rows: int) -> Iterator[slice]:
    """So many rows in pieces."""
    return (slice(start, start + ROWS) for start in range(0, rows, ROWS))


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
