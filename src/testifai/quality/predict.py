"""The quality of every test, from that of the measured ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError, suggest
from testifai.quality.surface import KnownValues, Surface
from testifai.space import LISTED, Space
from testifai.statistics.intervals import half_widths
from testifai.support.threads import one_blas_thread
from testifai.support.types import Floats, RecordLike

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
    description: RecordLike | None = None

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
            known = self.space.matrix(self.measured)
            levels = [axis.severities for axis in self.space.axes]
            fitted = fit(self.predictor, levels, known, self.values, self.errors, seed=self.seed)
            predicted = fitted.predict(self.space.matrix(missing))
            estimate[missing], low[missing], high[missing] = predicted
        estimate[self.measured] = self.values
        low[self.measured] = self.values - half_widths() * self.errors
        high[self.measured] = self.values + half_widths() * self.errors
        return estimate, low, high


Bounded = tuple[Floats, Floats, Floats]

TREES = 100
SAME = 1e-12  # of the largest value: a smaller range is rounding


@dataclass(frozen=True)
class Predictor:
    """Measured values where there are any, predicted ones elsewhere."""

    kind: str
    columns: int
    measured: KnownValues
    elsewhere: Callable[[Floats], Bounded]

    def predict(self, configurations: ArrayLike) -> Bounded:
        """Value and 95 % interval of each configuration; NaN for an interval that is not known."""
        rows = _rows(configurations, self.columns)
        number = {row.tobytes(): i for i, row in enumerate(self.measured.rows)}
        found = np.array([number.get(row.tobytes(), -1) for row in rows], np.intp)
        known = found >= 0
        middle, low, high = np.empty((3, len(rows)))
        values, half = self.measured.values[found[known]], half_widths() * self.measured.errors[found[known]]
        middle[known], low[known], high[known] = values, values - half, values + half
        if not known.all():
            with one_blas_thread():
                middle[~known], low[~known], high[~known] = self.elsewhere(rows[~known])
        return middle, low, high


def fit(
    kind: str,
    levels: Sequence[ArrayLike],
    configurations: ArrayLike,
    values: ArrayLike,
    errors: ArrayLike,
    *,
    seed: int = 0,
) -> Predictor:
    """Learn from the measured configurations' values and standard errors (NaN: not known).

    "smooth" is a Gaussian process (see `Surface`), "forest" the published random forest, which has no intervals.
    `levels` are the severities of each axis; a row of a space in which the order of application counts has as many
    places after its severities. Values that are NaN count as not measured.

    >>> tests = [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0], [1, 1], [1, 2], [2, 1]]
    >>> values = [1.0, 0.9, 0.8, 0.7, 0.5, 0.63, 0.56, 0.45]
    >>> middle, low, high = fit("smooth", [[0, 1, 2]] * 2, tests, values, [0.01] * 8).predict([[2, 0], [2, 2]])
    >>> middle.round(2).tolist(), low[0].round(2).item(), bool(0.3 < low[1] < 0.4 < high[1] < 0.5)
    ([0.5, 0.4], 0.48, True)
    """
    if kind not in KINDS:
        raise InputError(f"quality: predictor = {kind!r} is not accepted; {suggest(kind, KINDS)}")
    measured, axes = _checked(levels, configurations, values, errors)
    with one_blas_thread():
        nothing = _alike(measured.values) or all(len(axis) == 1 for axis in axes)
        elsewhere = _constant(measured) if nothing else KINDS[kind](axes, measured, seed)
    return Predictor(kind, measured.rows.shape[1], measured, elsewhere)


def _smooth(levels: list[Floats], measured: KnownValues, seed: int) -> Callable[[Floats], Bounded]:
    known = measured._replace(errors=np.nan_to_num(measured.errors))
    if known.rows.shape[1] == len(levels):
        return Surface(levels, known, seed=seed).predict
    pairs = len(levels) * (len(levels) - 1) // 2
    ordered = Surface(
        [*levels, *[np.array([-1.0, 0.0, 1.0])] * pairs], known._replace(rows=_precedence(known.rows)), seed=seed
    )
    return lambda rows: ordered.predict(_precedence(rows))


def _precedence(rows: Floats) -> Floats:
    """Severities, and for each two axes which is applied first: 1 or -1, 0 where they are not both on.

    Unlike places, which tests of three perturbations have more of, every order of two is among tests of two.

    >>> _precedence(np.array([[5.0, 4.0, 0.0, 2.0, 1.0, 0.0]])).tolist()
    [[5.0, 4.0, 0.0, -1.0, 0.0, 0.0]]
    """
    severities, places = np.hsplit(rows, 2)
    first, second = np.triu_indices(places.shape[1], 1)
    both = (places[:, first] > 0) & (places[:, second] > 0)
    return np.hstack([severities, np.where(both, np.sign(places[:, second] - places[:, first]), 0.0)])


def _forest(levels: list[Floats], measured: KnownValues, seed: int) -> Callable[[Floats], Bounded]:
    """TestifAI, section 6: a random-forest regressor on the features of the auxiliary model, with its settings."""
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(TREES, bootstrap=False, max_features=None, random_state=seed % 2**32)
    forest.fit(measured.rows, measured.values)

    def predict(rows: Floats) -> Bounded:
        return forest.predict(rows), np.full(len(rows), np.nan), np.full(len(rows), np.nan)

    return predict


KINDS: dict[str, Callable[[list[Floats], KnownValues, int], Callable[[Floats], Bounded]]] = {
    "smooth": _smooth,
    "forest": _forest,
}


def _alike(values: Floats) -> bool:
    return bool(np.ptp(values) <= SAME * np.abs(values).max())


def _constant(measured: KnownValues) -> Callable[[Floats], Bounded]:
    """One value everywhere: within the errors where several tests say so, else nobody can tell."""
    value, agreed = float(measured.values.mean()), len(measured.values) > 1 and _alike(measured.values)
    half = half_widths() * float(np.nan_to_num(measured.errors).max()) if agreed else np.nan

    def predict(rows: Floats) -> Bounded:
        return np.full(len(rows), value), np.full(len(rows), value - half), np.full(len(rows), value + half)

    return predict


# ---- what is accepted


def _checked(
    levels: Sequence[ArrayLike], configurations: ArrayLike, values: ArrayLike, errors: ArrayLike
) -> tuple[KnownValues, list[Floats]]:
    """The tests that have a value, each once, and the levels of each axis."""
    axes = [np.unique(_numbers("levels", axis)) for axis in levels]
    if not axes or any(len(axis) == 0 for axis in axes):
        raise InputError("levels: an axis has none; accepted: the severities of each axis")
    rows = _rows(configurations, None)
    if rows.shape[1] not in {len(axes), 2 * len(axes)}:
        accepted = f"{len(axes)}, one per axis, or as many places after them"
        raise InputError(f"configurations: {rows.shape[1]} numbers to a row; accepted: {accepted}")
    value, error = _numbers("values", values), _numbers("errors", errors)
    if not value.shape == error.shape == (len(rows),):
        raise InputError(f"values: {value.shape} and errors {error.shape} for {len(rows)} configurations")
    if (error < 0).any() or np.isinf(error).any():
        raise InputError(f"errors: {error[(error < 0) | np.isinf(error)][0]:g}; accepted: from 0, or NaN if not known")
    used = np.isfinite(value)
    if not used.any():
        raise InputError("values: no test has one; accepted: at least one measured test")
    return _once(KnownValues(rows[used], value[used], error[used])), axes


def _once(measured: KnownValues) -> KnownValues:
    """Configurations that were measured several times on the same inputs, as the mean of these."""
    rows, number = np.unique(measured.rows, axis=0, return_inverse=True)
    count = np.bincount(number)
    return KnownValues(rows, np.bincount(number, measured.values) / count, np.bincount(number, measured.errors) / count)


def _rows(configurations: ArrayLike, columns: int | None) -> Floats:
    rows = _numbers("configurations", configurations)
    if rows.size == 0 and columns is not None:
        return rows.reshape(0, columns)
    if rows.ndim != 2 or rows.shape[1] == 0 or columns not in {None, rows.shape[1]}:
        accepted = "a row of numbers each" if columns is None else f"rows of {columns} numbers"
        raise InputError(f"configurations: shape {rows.shape}; accepted: {accepted}")
    if not np.isfinite(rows).all():
        raise InputError("configurations: some numbers are NaN or infinite; accepted: severities")
    return rows + 0.0  # no negative zeros: rows are looked up by their bytes


def _numbers(name: str, given: ArrayLike) -> Floats:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {type(given).__name__} holds what is no number; accepted: numbers") from error
