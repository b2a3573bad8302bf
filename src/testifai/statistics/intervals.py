"""Intervals for a pass rate, from passes and trials alone; all vectorised over tests.

`population` is the number of inputs the trials were drawn from without replacement: the interval is then for the
rate on exactly those inputs and shrinks to a point once all were tried. Without it, the interval is for the rate
on new inputs like them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from testifai.support.types import Bools, Floats
from testifai.support.validation import number


@cache
def half_widths(confidence: float = 0.95) -> float:
    """Number of standard deviations that a two-sided interval reaches to either side: 1.96 for 95 %."""
    return quantile(0.5 + number("confidence", confidence, above=0, below=1) / 2)


def quantile(share: float) -> float:
    """Below so many standard deviations lies this share of a normal distribution."""
    from scipy.special import ndtri

    return float(ndtri(share))


def skewed_reaches(
    variance: float, growth: float, wide: float, wide_by_skew: float | None = None
) -> tuple[float, float]:
    """How far an interval goes below and above an estimate whose variance grows with what it estimates, as Wilson's.

    Above it is h with h² = w² (variance + growth h), below with growth the other way. Of one test, variance r(1 - r)/n
    grows by (1 - 2r)/n, and this is Wilson's interval but for its shrinkage by 1 + w²/n. `wide` is the number w of
    standard deviations; the growth may have its own.

    >>> [round(reach, 4) for reach in skewed_reaches(0.9 * 0.1 / 100, (1 - 2 * 0.9) / 100, 1.96)]
    [0.0761, 0.0454]
    """
    skew = (wide if wide_by_skew is None else wide_by_skew) ** 2 * growth

    def solve(skew: float) -> float:
        return (skew + math.sqrt(skew**2 + 4 * wide**2 * variance)) / 2

    return solve(-skew), solve(skew)


Inside = Callable[[Floats], Bools]
Errors = tuple[float, float]  # of the low and of the high limit
Estimated = tuple[float, float, float]  # estimate, low, high

LEFT = 0.7  # of the error, for an interval whose width says when to stop
ROUNDING = 1e-12  # two estimates this close are the same number, computed in two ways


def wilson(
    passes: ArrayLike, trials: ArrayLike, population: int | None = None, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Wilson's score interval: right for a number of trials fixed before looking.

    A finite population enters through the effective number of trials n(N-1)/(N-n).
    """
    s, n = _counts(passes, trials)
    z2 = half_widths(confidence) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = s / n
        effective = n if population is None else n * (population - 1) / (population - n)
        shrink = 1 / (1 + z2 / effective)
        centre = (rate + z2 / (2 * effective)) * shrink
        half = np.sqrt(z2 * (rate * (1 - rate) / effective + z2 / (4 * effective**2))) * shrink
    complete = (n == population) if population is not None else np.zeros(n.shape, bool)
    # Rounding must not leave the rate itself outside.
    low = np.where(complete, rate, np.clip(centre - half, 0, rate))
    high = np.where(complete, rate, np.clip(centre + half, rate, 1))
    return _blank(n, low, high)


def confidence_sequence(
    passes: ArrayLike, trials: ArrayLike, population: int | None = None, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """An interval that stays valid however often one looks and whenever one stops.

    The rates p whose prior-to-posterior ratio under a uniform prior is below 1/alpha: with s passes in n trials
    that is P(s | p, n) (n + 1) > alpha, P binomial (Robbins 1970) or, without replacement from N inputs,
    hypergeometric (Waudby-Smith and Ramdas 2020, "Confidence sequences for sampling without replacement").
    """
    s, n = _counts(passes, trials)
    bar = np.log1p(-confidence) - np.log1p(n)
    if population is None:
        low, high = _solve_binomial(s, n, bar)
    else:
        low, high = _solve_hypergeometric(s, n, population, bar)
    return _blank(n, low, high)


def exact(
    passes: ArrayLike, trials: ArrayLike, population: int | None = None, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """The rates that an exact test rejects on neither side: right for a number of trials fixed before looking."""
    s, n = _counts(passes, trials)
    errors = (1 - confidence) / 2, (1 - confidence) / 2
    if population is None:
        return _blank(n, *_beta_limits(s, n, errors))
    (s_once, n_once), back = np.unique(np.stack([s.reshape(-1), n.reshape(-1)]), axis=1, return_inverse=True)
    low, high = _exact_totals(s_once, n_once, population, errors)
    back = back.reshape(s.shape)
    return _blank(n, low[back] / population, high[back] / population)


def fixed_width(
    passes: ArrayLike, trials: ArrayLike, population: int | None = None, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """An interval for trials that went on until it was narrow enough, whatever else they showed.

    When that is hangs on how outcomes spread and hardly on how far their mean is off, so that an interval for a fixed
    number of trials loses little (Chow and Robbins, Annals of Mathematical Statistics 36 (1965) 457-462). Three tenths
    of the error are set aside for that: in the worst case of each of ten choices of 100 to 1,000 inputs, batches of 1
    to 100 and targets of .03 to .1, an exact interval at 95 % covers .932 to .952, and this one .955 to .964.

    >>> low, high = fixed_width(90, 100)
    >>> round(float(low), 3), round(float(high), 3)
    (0.818, 0.954)
    """
    return exact(passes, trials, population, 1 - LEFT * (1 - confidence))


def clopper_pearson(passes: float, trials: float, errors: Errors) -> tuple[float, float]:
    """The rates that an exact test does not reject, each side with its own error (Clopper and Pearson 1934).

    Counts may be fractions: those of as many simple random trials as others are worth.

    >>> [round(limit, 3) for limit in clopper_pearson(90, 100, (0.025, 0.025))]
    [0.824, 0.951]
    """
    low, high = _beta_limits(*_counts(passes, trials), errors)
    return float(low), float(high)


def hypergeometric(passes: int, trials: int, population: int, errors: Errors) -> tuple[int, int]:
    """Numbers of passes among a finite population that an exact test does not reject on either side."""
    low, high = _exact_totals(*_counts([passes], [trials]), population, errors)
    return int(low[0]), int(high[0])


def disagree(one: Estimated, other: Estimated) -> bool:
    """Whether two intervals for one number, each (estimate, low, high), cannot both be right.

    They cannot where the estimates are further apart than z √(se² + se²), the standard errors read off the sides of
    the intervals that face each other: high - estimate of the lower one, estimate - low of the upper one, each z
    standard errors (Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702). Both must have the same confidence.
    If both rest on the same trials they err alike, and two 95 % intervals that are right disagree less often than one
    time in twenty. What is NaN disagrees with nothing.
    """
    (lower, _, top), (upper, bottom, _) = sorted([one, other])
    return bool(upper - lower > np.hypot(top - lower, upper - bottom) + ROUNDING)


def _counts(passes: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    s, n = np.broadcast_arrays(np.asarray(passes, np.float64), np.asarray(trials, np.float64))
    return s, n


def _blank(n: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return np.where(n > 0, low, np.nan), np.where(n > 0, high, np.nan)


def _beta_limits(s: Floats, n: Floats, errors: Errors) -> tuple[Floats, Floats]:
    from scipy.special import betaincinv

    failures = n - s
    low = np.where(s > 0, betaincinv(np.where(s > 0, s, 1), failures + 1, errors[0]), 0.0)
    high = np.where(failures > 0, betaincinv(s + 1, np.where(failures > 0, failures, 1), 1 - errors[1]), 1.0)
    return low, high


def _exact_totals(s: Floats, n: Floats, population: int, errors: Errors) -> tuple[Floats, Floats]:
    return _least_exact(s, n, population, errors[0]), population - _least_exact(n - s, n, population, errors[1])


def _solve_binomial(s: Floats, n: Floats, bar: Floats) -> tuple[Floats, Floats]:
    from scipy.special import gammaln, xlog1py, xlogy

    choose = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)

    def inside(p: Floats) -> Bools:
        return np.asarray(choose + xlogy(s, p) + xlog1py(n - s, -p) > bar)

    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.where(n > 0, s / n, 0.5)
    return bisect(inside, np.zeros_like(centre), centre), bisect(inside, np.ones_like(centre), centre)


def _solve_hypergeometric(s: Floats, n: Floats, population: int, bar: Floats) -> tuple[Floats, Floats]:
    from scipy.stats import hypergeom

    def inside(k: Floats) -> Bools:
        return np.asarray(hypergeom.logpmf(s, population, k, n) > bar)

    # The likelihood of k passes among all inputs is unimodal and peaks here; k is at least s, at most N-(n-s).
    least, most = s, population - (n - s)
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.clip(np.floor(np.where(n > 0, s * (population + 1) / n, least)), least, most)
    low, high = (bisect(inside, edge, peak, whole=True) / population for edge in (least, most))
    return low, high


def _least_exact(s: Floats, n: Floats, population: int, tail: float) -> Floats:
    """The fewest passes among all inputs that give as many as were seen with more than this probability."""
    tail *= 1 - 1e-9  # slightly less, so that rounding does not decide if a test is on the border

    def enough(k: Floats) -> Bools:
        return np.asarray(_hypergeometric_tail(s, n, k, population) > tail)

    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.clip(np.ceil(np.where(n > 0, s * population / n, s)), s, population - (n - s))
    return bisect(enough, s, expected, whole=True)


def _hypergeometric_tail(s: Floats, n: Floats, k: Floats, population: int) -> Floats:
    """P(X >= s) for X passes among n of all inputs, k of which pass: SciPy's would take a second for 1,000 tests."""
    # The first term, times one and the running products of the ratios of each term to the one before.
    from scipy.special import gammaln

    def log_choose(a: Floats, b: Floats) -> Floats:
        return np.asarray(gammaln(a + 1) - gammaln(b + 1) - gammaln(a - b + 1))

    whole = np.full_like(k, population)
    first = np.exp(log_choose(k, s) + log_choose(whole - k, n - s) - log_choose(whole, n))
    # Where the tail is small, terms four standard deviations on are nothing; none is larger than this.
    deviation = np.sqrt(np.max(n * (population - n), initial=0) / population) / 2
    x = s[:, None] + np.arange(np.ceil(30 + 4 * deviation))
    k, n = k[:, None], n[:, None]
    ratios = np.maximum((k - x) * (n - x), 0) / ((x + 1) * (population - k - n + x + 1))
    return np.asarray(first * (1 + np.cumprod(ratios, axis=1).sum(axis=1)))


def bisect(inside: Inside, outer: Floats, inner: Floats, *, whole: bool = False, steps: int = 60) -> Floats:
    """Border of a set towards `outer`, from a point inside: `outer` if it is inside, the last integer if `whole`."""
    edge, outer, inner = outer, outer.astype(np.float64), inner.astype(np.float64)
    for _ in range(steps):
        middle = (outer + inner) / 2
        if whole:
            middle = np.where(inner > outer, np.ceil(middle), np.floor(middle))
            if np.all(np.abs(inner - outer) <= 1):
                break
        hit = inside(middle)
        inner, outer = np.where(hit, middle, inner), np.where(hit, outer, middle)
    return np.where(inside(edge), edge, inner)
