"""Limits on the quality of perturbed inputs: robustness within them, and tests to choose a limit by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testifai.errors import InputError
from testifai.quality.predict import Scores, no_quality_in
from testifai.tomogram.answers import Answer
from testifai.tomogram.tomogram import Tomogram

VALUES = 6  # number of limits by default


@dataclass(frozen=True)
class Limit:
    """A limit on quality and the robustness within it; None if no test is within it."""

    value: float
    inside: Answer | None


@dataclass(frozen=True)
class Plausible:
    value: float
    configuration: int
    quality: float
    measured: bool


def scores_of(tomogram: Tomogram) -> Scores:
    if not tomogram.space.listed:
        raise no_quality_in(tomogram.space, "accepted: spaces with fewer axes or severities")
    if tomogram.quality is None or not len(tomogram.quality.measured):
        raise InputError(
            'quality: this run did not measure any; add quality = "kid" (texts: "edit_similarity") to the spec\'s '
            "[scan], and run it again: what is tested already stays"
        )
    return tomogram.quality


def usual_values(scores: Scores) -> list[float]:
    """Return round numbers, evenly between the best quality of a test and the worst."""
    ends = np.nanmin(scores.estimate), np.nanmax(scores.estimate)
    wanted = np.linspace(*(ends[::-1] if scores.higher_is_better else ends), VALUES + 2)[1:-1]
    return list(dict.fromkeys(float(f"{value:.2g}") for value in wanted))


def limits(tomogram: Tomogram, values: Sequence[float] = ()) -> list[Limit]:
    scores = scores_of(tomogram)
    estimate, found = scores.estimate, []
    for value in values or usual_values(scores):
        inside = estimate >= value if scores.higher_is_better else estimate <= value
        asked = f"quality {scores.sign} {value!r}"
        found.append(Limit(value, tomogram.query(asked) if inside.any() else None))
    return found


def nearest_tests(scores: Scores, values: Sequence[float]) -> list[Plausible]:
    """Return two tests near each value: the mildest by the sum of severities, and the severest.

    Equal scores can come from one strong perturbation or from many weak ones; the two look different.
    """
    space = scores.space
    estimate = scores.estimate.reshape(-1)
    total = space.severities("severity")
    measured = np.isin(np.arange(space.size), scores.measured)
    found = []
    for value in values:
        apart = np.where(np.isnan(estimate), np.inf, np.abs(estimate - value))
        apart[0] = np.inf  # the originals are shown above
        near = np.argsort(apart, kind="stable")[: max(2, space.size // 50)]
        ends = dict.fromkeys((near[np.argmin(total[near])], near[np.argmax(total[near])]))
        found += [Plausible(value, int(one), float(estimate[one]), bool(measured[one])) for one in ends]
    return found
