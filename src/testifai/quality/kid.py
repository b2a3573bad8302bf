"""Kernel distance of the features of perturbed inputs from those of clean ones (KID)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.base import Measure, Score, check_count, draw
from testifai.quality.extractors import Rows, features_of_extractor, features_of_model, load_extractor
from testifai.support.batches import Batch, take
from testifai.support.types import Floats, Record
from testifai.support.validation import choice, flag, whole

_BLOCK = 4_000_000  # kernel values in a chunk
FEWEST = 3  # rows: the standard error leaves out one at a time, and two must remain
SAMPLE = 500
SUBSETS = 100
_FEWEST_IN_HALF = 10  # inputs; with fewer, the error of a distance is unreliable


@dataclass(frozen=True)
class Subsets:
    """Random subsets of the rows of two samples: `first[r, i]` is 1 where row i is in the r-th subset, else 0."""

    first: Floats
    second: Floats
    size: int


def draw_subsets(count: int, size: int, first: int, second: int, seed: int) -> Subsets:
    rng = np.random.default_rng([seed, 0x5B5E7])
    members = np.zeros((count, first)), np.zeros((count, second))
    for r in range(count):
        for side in members:
            side[r, rng.permutation(side.shape[1])[:size]] = 1
    return Subsets(*members, size)


class Discrepancy:
    """The squared discrepancy of a sample of features (rows) from others, with standard errors.

    It is unbiased, and so often negative for two samples from one distribution. With subsets it is the mean over them,
    as published; without, it uses every pair of rows. With `unit`, features are divided by the root mean square of the
    first sample. The discrepancy of `control`, the unperturbed features of the rows that are scored, is 0 but for
    chance; subtracting it causes no bias and removes most of the chance.
    """

    def __init__(
        self, first: Floats, *, control: Floats | None = None, subsets: Subsets | None = None, unit: bool = False
    ) -> None:
        self._subsets = subsets
        with _quiet():
            self._scale, self._growth = _unit(_table(first)) if unit else (1.0, np.zeros(len(first)))
            self._first = _table(first) / self._scale
            rows_in = None if subsets is None else subsets.first
            self._within = _sums(self._first, self._first, rows_in, rows_in, skip_diagonal=True)
            self._control = None if control is None else self._values(control)

    def score(self, second: Floats) -> Score:
        """Return the discrepancy of another sample (Bińkowski et al. 2018, Eq. 4), with a jackknife error.

        The jackknife leaves out one row of either sample at a time. It is conservative if the samples do not differ: it
        then tends to twice the variance (Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 9,
        1981). Its expectation given the rows varies with the rows; the drawn subsets, which overlap, add the variance
        of their mean.
        """
        with _quiet():
            found = self._values(second)
            found = found if self._control is None else found.less(self._control)
            m, n = len(found.without_first), len(found.without_second)
            variance = (m - 1) * float(found.without_first.var()) + (n - 1) * float(found.without_second.var())
            value, each = found.whole, found.subsets
            if self._subsets is not None:
                value = float(each.mean())
                variance += float(each.var(ddof=1)) / len(each) if len(each) > 1 else 0.0
        if not (math.isfinite(value) and math.isfinite(variance)):
            raise InputError("features: so large, or so much larger than the clean ones, that no distance can be told")
        return Score(value, math.sqrt(variance))

    def _values(self, second: Floats) -> _Values:
        other = _table(second) / self._scale
        if other.shape[1] != self._first.shape[1]:
            raise InputError(f"features: {self._first.shape[1]} and {other.shape[1]} columns; both need the same")
        rows_in, columns_in, size = None, None, 2
        if self._subsets is not None:
            rows_in, columns_in, size = self._subsets.first, self._subsets.second, self._subsets.size
        a, ab = self._within, _sums(self._first, other, rows_in, columns_in)
        b = _sums(other, other, columns_in, columns_in, skip_diagonal=True)
        m, n = len(self._first), len(other)
        whole = float(_statistic(a.total, b.total, ab.total, m, n))
        without_first = _statistic(a.total - 2 * a.rows, b.total, ab.total - ab.rows, m - 1, n)
        without_second = _statistic(a.total, b.total - 2 * b.rows, ab.total - ab.columns, m, n - 1)
        # Without a row the unit c changes: s³ with s = x·y / (d c²) + 1 changes by -6 (s³ - s²) d(log c).
        slope = -6 * (whole - float(_statistic(a.squares, b.squares, ab.squares, m, n)))
        each = _statistic(a.subsets, b.subsets, ab.subsets, size, size)
        return _Values(whole, without_first + slope * self._growth, without_second, each)


class _Values(NamedTuple):
    """Of all rows, without each row of the first and of the second sample, and of each subset."""

    whole: float
    without_first: Floats
    without_second: Floats
    subsets: Floats

    def less(self, other: _Values) -> _Values:
        if len(self.without_second) != len(other.without_second):
            raise InputError("features: as many rows are needed as in the control, which they are versions of")
        first, second = self.without_first - other.without_first, self.without_second - other.without_second
        return _Values(self.whole - other.whole, first, second, self.subsets - other.subsets)


@dataclass(frozen=True)
class _Sums:
    """Kernel values summed over each row, each column and each pair of subsets; `squares`: all to the power 2/3."""

    rows: Floats
    columns: Floats
    subsets: Floats
    squares: float

    @property
    def total(self) -> float:
        return float(self.rows.sum())


def _sums(
    first: Floats, second: Floats, rows_in: Floats | None, columns_in: Floats | None, *, skip_diagonal: bool = False
) -> _Sums:
    rows, columns, squares = np.empty(len(first)), np.zeros(len(second)), 0.0
    subsets = np.zeros(0 if rows_in is None else len(rows_in))
    step = max(1, _BLOCK // len(second))
    for start in range(0, len(first), step):
        part = slice(start, min(start + step, len(first)))
        kernel = first[part] @ second.T
        kernel /= first.shape[1]
        kernel += 1
        if skip_diagonal:
            kernel[np.arange(part.stop - start), np.arange(start, part.stop)] = 0
        square = kernel * kernel
        squares += float(square.sum())
        kernel *= square
        rows[part] = kernel.sum(axis=1)
        columns += kernel.sum(axis=0)
        if rows_in is not None and columns_in is not None:
            subsets += ((rows_in[:, part] @ kernel) * columns_in).sum(axis=1)
    return _Sums(rows, columns, subsets, squares)


def _statistic(first: Floats | float, second: Floats | float, across: Floats | float, m: int, n: int) -> Floats:
    return np.asarray(first / (m * (m - 1)) + second / (n * (n - 1)) - 2 * across / (m * n))


def _unit(features: Floats) -> tuple[float, Floats]:
    """Return the root mean square of features, and the growth of its logarithm without each row."""
    squares = (features**2).mean(axis=1)
    mean = float(squares.mean())
    if not 0 < mean < np.inf:
        return 1.0, np.zeros(len(features))
    left = (squares.sum() - squares) / (len(squares) - 1)
    return math.sqrt(mean), 0.5 * np.log(np.maximum(left / mean, np.finfo(np.float64).tiny))


def _quiet() -> np.errstate:
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _table(features: Floats) -> Floats:
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or len(table) < FEWEST or table.shape[1] == 0:
        raise InputError(f"features: shape {table.shape}; a table of at least {FEWEST} rows is needed")
    return table


class Kid(Measure):
    """Kernel Inception Distance: 0 if perturbed inputs look like clean ones to a network, larger otherwise.

    The distance assumes independence, but an input and its perturbed version are not independent: the sample is split
    into two halves, of which one is perturbed. Features are those of the model under test (its features output, or a
    `layer`) or of an `extractor`: an ONNX file, a module of torch, a function of a batch, or "inception" with `weights`
    on disk.

    Features are divided by the root mean square of the clean ones, so that distances do not depend on a network's
    scale, unless `scale` = "raw", the default for "inception", whose distances are published. The distance of the two
    halves before perturbation, 0 on average, is subtracted from every test's unless `control` is False. Every pair of
    rows counts unless `subset_size`, with `subsets` (default 100), selects the published mean over random subsets.
    """

    name = "kid"
    higher_is_better = False
    share = 0.5

    def __init__(
        self,
        *,
        sample: int = SAMPLE,
        subsets: int | None = None,
        subset_size: int | None = None,
        extractor: Any = None,
        layer: str | None = None,
        scale: Literal["unit", "raw"] | None = None,
        control: bool = True,
        weights: str | Path | None = None,
        folder: str | Path = ".",
    ) -> None:
        self.sample = whole("quality: sample", sample, least=2 * _FEWEST_IN_HALF)
        if subsets is not None and subset_size is None:
            raise InputError(f"quality: subsets = {subsets!r} without subset_size; say how large they are")
        self.subset_size = None if subset_size is None else whole("quality: subset_size", subset_size, least=2)
        self.subsets = whole("quality: subsets", SUBSETS if subsets is None else subsets, least=1)
        _check_subset(self.subset_size, self.sample, self.sample)
        self.layer = layer
        if scale is not None:
            choice("quality: scale", scale, ("unit", "raw"))
        self.control = flag("quality: control", control)
        self.clean_share = 1.0 if self.control else 0.5
        self.scale = scale or ("raw" if isinstance(extractor, str) and extractor == "inception" else "unit")
        self.uses_model = extractor is None
        if extractor is None and weights is not None:
            raise InputError("quality: weights belong to extractor = 'inception'; name it too")
        self.extractor = None if extractor is None else load_extractor(extractor, weights=weights, folder=folder)

    def describe(self) -> Record:
        return {
            "use": self.name,
            "sample": self.sample,
            "subsets": None if self.subset_size is None else self.subsets,
            "subset_size": self.subset_size,
            "layer": self.layer,
            "scale": self.scale,
            "control": self.control,
            "extractor": None if self.extractor is None else self.extractor.fingerprint,
        }

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> KidReference:
        half = min(self.sample, len(clean)) // 2
        if half < _FEWEST_IN_HALF:
            raise InputError(f"quality: kid needs at least {2 * _FEWEST_IN_HALF} inputs; there are {len(clean)}")
        _check_subset(self.subset_size, self.sample, len(clean))
        if self.extractor is None:
            features = features_of_model(model, self.layer)
        else:
            features = features_of_extractor(self.extractor, self.layer)
        subsets = None
        if self.subset_size is not None:
            subsets = draw_subsets(self.subsets, self.subset_size, half, half, seed)
        order = draw(2 * half, len(clean), seed)
        perturbed, kept = np.sort(order[:half]), np.sort(order[half:])
        control = features(take(clean, perturbed)) if self.control else None
        known = Discrepancy(features(take(clean, kept)), control=control, subsets=subsets, unit=self.scale == "unit")
        seen = (1 + self.control) * half if self.uses_model else 0
        return KidReference(perturbed, features, known, self.uses_model, seen)


@dataclass
class KidReference:
    rows: NDArray[np.intp]
    features: Callable[[Batch], Rows] = field(repr=False)
    clean: Discrepancy = field(repr=False)
    uses_model: bool
    inferences: int

    def score(self, perturbed: Batch) -> Score:
        check_count(Kid.name, perturbed, len(self.rows))
        seen = self.features(perturbed)
        if self.uses_model:
            self.inferences += len(perturbed)
        return self.clean.score(seen)


def _check_subset(size: int | None, sample: int, inputs: int) -> None:
    half = min(sample, inputs) // 2
    if size is not None and size > half:
        short = f"sample = {sample}" if sample <= inputs else f"{inputs} inputs"
        raise InputError(
            f"quality: subset_size = {size} is more than half the sample ({half} of {short}); "
            "clean and perturbed inputs must be different ones"
        )
