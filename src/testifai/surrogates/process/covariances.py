"""How the values of configurations hang together, before and after the trials: what a fitted process knows of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from testifai.support.progress import note
from testifai.surrogates.base import Surrogate
from testifai.surrogates.process.dispersion import Dispersion
from testifai.surrogates.process.grid import WholeGrid
from testifai.surrogates.process.inputs import SameInput, hermite
from testifai.surrogates.process.kernel import Floats, Ints, Prior
from testifai.surrogates.process.part import SurfacePart
from testifai.surrogates.process.places import Numbers
from testifai.surrogates.process.scale import inside
from testifai.surrogates.process.wide import Wide

ROWS = 2_000  # configurations predicted at a time
REMEMBERED = 4  # times so many configurations whose coefficients are kept, as they are asked for several times


class Covariances(Surrogate):
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
