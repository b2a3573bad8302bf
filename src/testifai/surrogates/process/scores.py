"""The information of the oracle's values, such as margins, about pass rates beyond the outcomes.

If the values of a test were normal with mean mu and standard deviation s, outcomes z = [value > threshold] would
would have the expansion z - r = sqrt(r (1 - r)) sum_n g_n He_n(u) / sqrt(n!), with u = (value - mu) / s and the g_n of
`inputs.hermite`. Its terms are uncorrelated. The first two are what an estimate of mu and s is made of: with
e the pseudo-value of a trial on the scale of eta, e = f + (e - f), where f = (g_1 u + g_2 (u^2 - 1) / sqrt(2)) / 2
has about two thirds of the variance of e, and the rest, e - f, is not correlated with it. The surface is then the sum
of two, each with its own trials: that of mu and s, learned from the f, and a remainder, learned from the e - f. For
any values, the two add up to the outcomes, so that the values cause no bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from testifai.runs.outcomes import Trials
from testifai.support.types import Bools, Floats
from testifai.surrogates.process.linear_algebra import Ints

EXPLAINED = 2  # terms of the expansion that the values represent
MANY = 200  # trials per test above which outcomes alone do better
KNOWN = 0.8  # share of trials with a value below which values are ignored
TAILS = 0.002, 0.998  # values beyond these quantiles are clipped
USEFUL = 0.25  # share of the outcomes' variance that values must explain
TINY = 1e-9
FAR = 4.0  # standardised values are clipped to this
# Prior variance of mu / s and of log s, each relative to that of eta. As r = Phi(mu / s), the first is known.
LOCATION, SPREAD = 2 * np.pi, 0.6


@dataclass(frozen=True)
class ScoreFit:
    reference: Floats  # eta of each test by its values
    deviations: Floats  # f of each trial
    scale: float  # variance of f, relative to what normal values would have
    rest_scale: float  # the same of e - f


def read_scores(single: Trials, eta: Floats, kernel: Floats, coefficients: Floats) -> ScoreFit | None:
    """Return what the values of trials explain, given the surface of the outcomes alone; None if too little."""
    if single.value is None or len(single.value) == 0:
        return None
    known = np.isfinite(single.value)
    too_many = len(known) > MANY * len(eta)
    if too_many or known.mean() < KNOWN or len(np.unique(single.passed[known])) < 2:
        return None
    test, x = single.test[known], _scaled(single.value[known].astype(np.float64), single.passed[known])
    trials = np.bincount(test, minlength=len(eta)).astype(np.float64)
    mu, s = _location_and_spread(test, x, trials, kernel)
    u = np.clip((x - mu[test]) / s[test], -FAR, FAR)
    deviations = (coefficients[0, test] * u + coefficients[1, test] * (u**2 - 1) / 2**0.5) / 2
    outcomes = (single.passed - np.sin(eta[single.test]) ** 2) / np.sin(2 * eta[single.test])
    slope = float(deviations @ outcomes[known]) / max(float(deviations @ deviations), TINY)
    explained = slope**2 * float(deviations @ deviations) / float(outcomes[known] @ outcomes[known])
    if explained < USEFUL or not 0.5 < slope < 2:
        return None
    f = explained * outcomes  # of trials without a value, the best guess
    f[known] = slope * deviations
    theory = (coefficients[:EXPLAINED] ** 2).sum(axis=0)[single.test] / 4
    return ScoreFit(
        reference=slope * np.arcsin(np.sqrt(scipy.special.ndtr(mu / s))),
        deviations=f,
        scale=float((f**2).sum() / theory.sum()),
        rest_scale=float(((outcomes - f) ** 2).sum() / (0.25 - theory).sum()),
    )


def _scaled(values: Floats, passed: Bools) -> Floats:
    """Return values on a scale on which tests are about normal, higher for passes, the threshold at 0.

    The scale is the mean of clipped values and of normal quantiles of their ranks: logits of confident models have long
    tails, and ranks have none.
    """
    _, at, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = scipy.special.ndtri((np.cumsum(count) - count / 2) / len(values))[at]
    plain = np.clip(values, *np.quantile(values, TAILS))
    spread = max(float(plain.std()), TINY)
    scaled: Floats = ranks + (plain - plain.mean()) / spread
    if scaled[passed].mean() < scaled[~passed].mean():
        scaled = -scaled
    return np.asarray(scaled - np.quantile(scaled, 1 - passed.mean()))


def _location_and_spread(test: Ints, x: Floats, trials: Floats, kernel: Floats) -> tuple[Floats, Floats]:
    tests = len(trials)
    used = np.maximum(trials, 1)
    means = np.bincount(test, x, tests) / used
    free = max(len(x) - int(np.count_nonzero(trials)), 1)
    overall = max(float(np.sum((x - means[test]) ** 2) / free) ** 0.5, TINY)
    mu = _smoothed(means, trials, LOCATION * overall**2 * kernel, overall**2)
    ratio = np.bincount(test, (x - mu[test]) ** 2, tests) / used / overall**2
    log_s = _smoothed((ratio - 1) / 2, trials, SPREAD * kernel, 1.0)
    return mu, overall * np.exp(np.clip(log_s, -2, 2))


def _smoothed(values: Floats, trials: Floats, kernel: Floats, noise: float) -> Floats:
    seen = np.flatnonzero(trials)
    level = float(np.average(values, weights=trials))
    factor = scipy.linalg.cho_factor(kernel[np.ix_(seen, seen)] + np.diag(noise / trials[seen]), check_finite=False)
    solved = scipy.linalg.cho_solve(factor, values[seen] - level, check_finite=False)
    return np.asarray(level + kernel[:, seen] @ solved)
