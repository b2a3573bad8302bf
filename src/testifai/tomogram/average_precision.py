"""Mean average precision of a detector over the tests of a region, from the boxes that a run kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from testifai.errors import InputError
from testifai.oracles.average_precision import THRESHOLDS, matches, mean_average_precision, weighted
from testifai.runs.outcomes import DETECTIONS, EXPECTED, Ids, Outcomes
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Floats, Record
from testifai.support.validation import number, whole


@dataclass(frozen=True)
class AveragePrecision:
    """The mean of the tests' mean average precision; NaN where no test has one.

    The interval is for images like these: a bootstrap over images, the same for all tests, says how much the mean
    varies with them. Tests that were tried on few images have high precisions by chance, and no model corrects them.
    """

    estimate: float
    low: float
    high: float
    tests: int  # tests with boxes: the estimate is of these
    left_out: int  # tests without any
    inputs: int  # different images used

    def __repr__(self) -> str:
        found = estimate_text(self.estimate, self.low, self.high)
        return f"<AveragePrecision {found}, over {self.tests:,} tests, {self.inputs:,} images>"

    def as_dict(self) -> Record:
        """Plain data for JSON, None for what does not exist."""
        return {field: plain(value) for field, value in vars(self).items()}


def average_precision(
    outcomes: Outcomes,
    ids: Ids,
    tests: int,
    *,
    iou: float | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> AveragePrecision:
    """COCO's mean average precision of these configurations, out of so many that are asked for."""
    check_kept(outcomes, "average precision")
    number("confidence", confidence, above=0, below=1)
    whole("resamples", resamples, least=2)
    threshold = None if iou is None else _threshold(iou)
    # The same images for all tests, so that what they have in common stays common.
    times = np.random.default_rng(seed).multinomial(
        outcomes.inputs, np.full(outcomes.inputs, 1 / outcomes.inputs), size=resamples
    )
    estimates, spreads, used = [], [], np.zeros(outcomes.inputs, bool)
    for configuration in ids.tolist():
        places, _ = outcomes.trials(configuration)
        found, expected = (outcomes.boxes(name, configuration, places) for name in (DETECTIONS, EXPECTED))
        matched = matches(found, expected)
        matched = matched if threshold is None else matched.at(threshold)
        estimates.append(mean_average_precision(matched))
        spreads.append(weighted(matched, times[:, places]))
        used[places] = True
    known = np.isfinite(estimates)
    if not known.any():
        return AveragePrecision(np.nan, np.nan, np.nan, 0, tests, int(used.sum()))
    estimate = float(np.mean(np.array(estimates)[known]))
    reach = float(ndtri((1 + confidence) / 2)) * _spread(np.array(spreads)[known])
    low, high = max(0.0, estimate - reach), min(1.0, estimate + reach)
    return AveragePrecision(estimate, low, high, int(known.sum()), tests - int(known.sum()), int(used.sum()))


def _spread(of_tests: Floats) -> float:
    """The standard deviation over resamples of the mean over those tests that have a precision in them."""
    known = np.isfinite(of_tests)
    total, count = np.where(known, of_tests, 0).sum(axis=0), known.sum(axis=0)
    means = total[count > 0] / count[count > 0]
    return float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")


def check_kept(outcomes: Outcomes, what: str) -> None:
    """Refuse what needs detections of a run that kept none."""
    if DETECTIONS not in outcomes.boxes_names():
        raise InputError(
            f"{what}: this run kept no detections; "
            'add keep = ["detections"] to [scan] with the oracle detection, and run it anew'
        )


def _threshold(iou: float) -> float:
    asked = number("iou", iou, above=0, most=1)
    if not np.isclose(THRESHOLDS, asked).any():
        accepted = ", ".join(f"{one:g}" for one in THRESHOLDS)
        raise InputError(f"iou: {asked:g} is not accepted; one of {accepted} is, or none for the mean over all")
    return asked
