"""The prior of the quality surface: its kernel, the scale it lives on, and the parameters of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.support.types import Floats

Ints = NDArray[np.intp]

# Prior median and sd of the logarithm, per axis: correlation length (an axis is 1 long), variance c v_j of its own
# effect, power of a position.
PER_AXIS = ((math.log(1.2), 0.8), (math.log(0.1), 1.3), (0.0, 0.4))
# The same of c, of u and of the variance of what is rough (in units of l squared); then the logit of the errors' own
# share; then t = -log(1 - kappa). c is held down: tests of order two alone make interactions of three and four look
# smaller than they are. With sd 2 around 0.5, intervals covered 27 to 90 % of the tests of order three and four of six
# recorded grids (sampling errors left out), with this 58 to 97 %, and errors of the predictions were smaller or alike.
OVERALL = ((math.log(0.1), 0.6), (0.0, 2.0), (math.log(1e-6), 2.0), (-2.0, 3.0), (0.0, 2.0))
MOST = 50.0  # an exponent beyond which an end of an interval is as good as nowhere


@dataclass(frozen=True)
class AxisPrior:
    """One column of the configurations: its different values as positions, 0 and 1 being the ends of its levels."""

    values: Floats
    positions: Floats
    weights: Floats  # 1 / number of levels on each level, 0 on other values

    @classmethod
    def of(cls, levels: Floats, *columns: Floats) -> AxisPrior:
        values = np.unique(np.concatenate([levels, *columns]))
        weights = np.isin(values, levels) / len(levels)
        return cls(values, (values - levels[0]) / (levels[-1] - levels[0]), weights)

    def places(self, column: Floats) -> Ints:
        return np.searchsorted(self.values, column).astype(np.intp)

    def table(self, log_length: float, log_power: float) -> tuple[Floats, Floats, Floats]:
        """K_j between all values, and its derivatives by both logarithms."""
        size, power = np.abs(self.positions), math.exp(log_power)
        bent = np.sign(self.positions) * size**power
        speed = bent * np.log(np.where(size > 0, size, 1.0)) * power
        gaps = bent[:, None] - bent
        scaled = math.sqrt(5) * np.abs(gaps) * math.exp(-log_length)
        decay = np.exp(-scaled)
        slope = -scaled * (1 + scaled) / 3 * decay  # by `scaled`
        drift = math.sqrt(5) * np.sign(gaps) * (speed[:, None] - speed) * math.exp(-log_length)
        raw, by_length, by_power = map(
            self._centred, ((1 + scaled + scaled**2 / 3) * decay, -slope * scaled, slope * drift)
        )
        norm = self.weights @ np.diag(raw)
        kernel = raw / norm
        derivatives = [(one - kernel * (self.weights @ np.diag(one))) / norm for one in (by_length, by_power)]
        return kernel, derivatives[0], derivatives[1]

    def _centred(self, table: Floats) -> Floats:
        means = table @ self.weights
        centred: Floats = table - means[:, None] - means + self.weights @ means
        return centred


class Parameters(NamedTuple):
    """A vector of unbounded parameters by name."""

    lengths: Floats
    scales: Floats
    powers: Floats
    size: float
    constant: float
    rough: float
    share: float
    t: float

    @classmethod
    def of(cls, vector: Floats) -> Parameters:
        axes = (len(vector) - len(OVERALL)) // len(PER_AXIS)
        lengths, mains, powers, (size, constant, rough, logit, t) = np.split(vector, np.arange(1, 4) * axes)
        sizes = math.exp(size), math.exp(constant), math.exp(rough)
        return cls(lengths, np.exp(mains - size), powers, *sizes, 1 / (1 + math.exp(-logit)), float(t))


class Bent(NamedTuple):
    """Damages on the scale of z."""

    kappa: float
    z: Floats
    slope: Floats  # dz/dl
    by_kappa: Floats  # dz/dkappa


def bend(t: float, damage: Floats) -> Bent:
    """From l to z.

    >>> bend(0.0, np.array([0.0, 0.5])).z.tolist(), bend(math.log(2), np.array([0.0, 1.0])).z.round(3).tolist()
    ([0.0, 0.5], [0.0, 1.386])
    """
    kappa = -math.expm1(-t)
    slope = 1 / (1 - kappa * damage)
    if abs(kappa) < 1e-4:
        by_kappa = damage**2 / 2 + 2 / 3 * kappa * damage**3
        return Bent(kappa, damage + kappa * damage**2 / 2 + kappa**2 * damage**3 / 3, slope, by_kappa)
    z = -np.log1p(-kappa * damage) / kappa
    return Bent(kappa, z, slope, (damage * slope - z) / kappa)


def unbend(kappa: float, z: Floats) -> Floats:
    """From z to l."""
    if abs(kappa) < 1e-6:
        return z - kappa * z**2 / 2
    damage: Floats = -np.expm1(np.minimum(-kappa * z, MOST)) / kappa
    return damage


def _factors(at: Parameters, axes: Sequence[AxisPrior]) -> list[Floats]:
    """1 + v_j K_j between the values of each axis."""
    return [
        1 + scale * axis.table(length, power)[0]
        for axis, length, power, scale in zip(axes, at.lengths, at.powers, at.scales, strict=True)
    ]


def prior_covariance(
    at: Parameters, axes: Sequence[AxisPrior], rows: Sequence[Ints], columns: Sequence[Ints]
) -> Floats:
    """The prior covariance of z between configurations given as places on each axis."""
    product = np.ones((len(rows[0]), len(columns[0])))
    for table, left, right in zip(_factors(at, axes), rows, columns, strict=True):
        product *= table[left[:, None], right]
    covariance: Floats = at.constant + at.size * (product - 1)
    return covariance


def prior_variance(at: Parameters, axes: Sequence[AxisPrior], rows: Sequence[Ints]) -> Floats:
    """The diagonal of `prior_covariance`."""
    product = np.ones(len(rows[0]))
    for table, places in zip(_factors(at, axes), rows, strict=True):
        product *= np.diag(table)[places]
    variance: Floats = at.constant + at.size * (product - 1)
    return variance
