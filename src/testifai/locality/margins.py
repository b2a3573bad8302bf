"""How far an estimate made of answers may be off: arms of intervals from the finite trials of each class.

Every estimate here, a mean rate or the robustness of a composed system, is near its value a sum over classes of means
of values in a known range: an input of the class adds g[answer] for every cell (property, severity) that the estimate
uses. The classes' inputs are independent of each other, the cells of a class are not: the same inputs went through all
of them. So each class gets one interval, from its inputs' own sums, and the arms of the classes add in squares (MOVER:
Zou and Donner, Statistics in Medicine 27, 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.intervals import half_widths, wilson
from testifai.support.types import Floats

if TYPE_CHECKING:
    from testifai.locality.local import Local

Arms = tuple[Floats, Floats]  # how far down, how far up


def bounded_arms(mean: Floats, variance: Floats, trials: Floats, confidence: float = 0.95) -> Arms:
    """Arms of an interval for the mean of values between 0 and 1, from their mean, variance and number.

    Wilson's interval for as many trials as would give the same variance if every value were 0 or 1; for such values
    it is Wilson's interval itself. The variance is the cautious one of `coull_arms`.

    >>> down, up = bounded_arms(np.array([0.9]), np.array([0.09]), np.array([100.0]))
    >>> [round(float(end[0]), 3) for end in (0.9 - down, 0.9 + up)]
    [0.826, 0.945]
    """
    centre, squared, _ = _cautious(mean, variance, trials, confidence)
    effective = trials * centre * (1 - centre) / squared
    low, high = wilson(mean * effective, effective, None, confidence)
    return mean - low, high - mean


def coull_arms(mean: Floats, variance: Floats, trials: Floats, confidence: float = 0.95) -> Arms:
    """Arms by Agresti and Coull (1998), for a part of a sum: Wilson's interval would have no arm up from a mean of 1.

    z^2/2 more values at 0 and as many at 1 are counted: values that happen to be all alike do not pass for certain.

    >>> down, up = coull_arms(np.array([0.9]), np.array([0.09]), np.array([100.0]))
    >>> [round(float(end[0]), 3) for end in (0.9 - down, 0.9 + up)]
    [0.824, 0.947]
    """
    centre, squared, z2 = _cautious(mean, variance, trials, confidence)
    half = np.sqrt(z2 * squared / (trials + z2))
    return mean - centre + half, centre + half - mean


def _cautious(mean: Floats, variance: Floats, trials: Floats, confidence: float) -> tuple[Floats, Floats, float]:
    """Mean and variance with z^2/2 more values at 0 and at 1, and z^2."""
    z2 = half_widths(confidence) ** 2
    centre = (trials * mean + z2 / 2) / (trials + z2)
    squares = trials * (variance + (mean - centre) ** 2) + z2 / 2 * (centre**2 + (1 - centre) ** 2)
    return centre, squares / (trials + z2), z2


def class_arms(
    local: Local, place: int, gradient: Floats, confidence: float = 0.95, arms: Callable[..., Arms] = bounded_arms
) -> Arms:
    """Arms that a class's finite trials give to estimates; `gradient` is (estimate, property, severity, output).

    Where single inputs are known, each adds up over all cells. Where only counts are, the cells' arms are added: as
    wide as it can be, right where the same inputs fail in all of them.
    """
    used = np.flatnonzero(gradient.any(axis=(0, 3)).reshape(-1))
    flat = gradient.reshape(len(gradient), -1, gradient.shape[-1])[:, used]
    least, most = flat.min(axis=-1), flat.max(axis=-1)
    several = bool((flat.any(axis=-1).sum(axis=-1) > 1).any())
    own = _own_answers(local, place, used) if several else None
    if own is not None:
        values = flat[:, np.arange(len(used)), own].sum(axis=-1)  # (estimate, input)
        trials = np.full(len(flat), float(len(own)))
        ends = least.sum(axis=-1), most.sum(axis=-1)
        return _scaled(arms, values.mean(axis=1), values.var(axis=1), trials, *ends, confidence)
    answers = local.answers[place].reshape(-1, flat.shape[-1])[used]
    trials = np.broadcast_to(local.trials[place].reshape(-1)[used].astype(np.float64), least.shape)
    mean = (flat * answers).sum(axis=-1)
    variance = np.maximum((flat**2 * answers).sum(axis=-1) - mean**2, 0)
    down, up = _scaled(arms, mean, variance, trials, least, most, confidence)
    return down.sum(axis=-1), up.sum(axis=-1)


def shared_variance(rows: NDArray[np.intp], errors: Floats) -> Floats:
    """The variance (estimate) of sums of errors (combination, estimate) whose combinations share inputs.

    `rows` (combination, part) are the inputs of each. Two combinations hang together where an input is in both
    (Aronow, Samii and Assenova, Political Analysis 23, 2015, for pairs): the products of their errors are counted once
    for every input that they share.

    >>> shared_variance(np.array([[0, 1], [0, 2]]), np.array([[0.5], [0.5]])).tolist()
    [1.0]
    """
    sums = np.zeros((int(rows.max()) + 1, errors.shape[1]))
    for part in rows.T:
        np.add.at(sums, part, errors)
    alone = (errors**2).sum(axis=0)
    # A combination shares all its inputs with itself; chance may make what others add to that negative.
    return np.asarray(np.maximum((sums**2).sum(axis=0) - (rows.shape[1] - 1) * alone, alone))


def together(arms: Sequence[Arms]) -> Arms:
    """The arms of a sum of independent parts."""
    down, up = (np.sqrt(sum(np.square(part) for part in side)) for side in zip(*arms, strict=True))
    return down, up


def _own_answers(local: Local, place: int, used: NDArray[np.intp]) -> NDArray[np.int32] | None:
    """(input, cell): the answers on the class's inputs, if they are known and all were tried in all the cells."""
    if local.sampled is None:
        return None
    mine = local.sampled.predicted[local.sampled.classes == place].reshape(-1, local.trials[place].size)[:, used]
    return mine if len(mine) and bool((mine >= 0).all()) else None


def _scaled(
    arms: Callable[..., Arms],
    mean: Floats,
    variance: Floats,
    trials: Floats,
    least: Floats,
    most: Floats,
    confidence: float,
) -> Arms:
    """Arms of values between `least` and `most`; none where the value is the same whatever the answer."""
    width = most - least
    scale = np.where(width > 0, width, 1.0)
    down, up = arms(np.clip((mean - least) / scale, 0, 1), variance / scale**2, trials, confidence)
    return np.where(width > 0, down * width, 0.0), np.where(width > 0, up * width, 0.0)
