"""Mean average precision of a detector over the tests of a region, from the boxes that a run kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from testifai.errors import InputError
from testifai.oracles.average_precision import THRESHOLDS, matches, mean_average_precision, weighted
from testifai.runs.outcomes import DETECTIONS, EXPECTED, Ids, Outcomes
from testifai.support.formatting import estimate_text
from testifai.support.validation import number
from testifai.tomogram.region_estimator import RawMean

RESAMPLES = 200


@dataclass(frozen=True)
class AveragePrecision(RawMean):
    """The mean of the tests' mean average precision, over tests with boxes; NaN if no test has one.

    The interval is for images like these, from a bootstrap over images. Tests on few images have high precisions by
    chance, and no model corrects them.
    """

    def __repr__(self) -> str:
        found = estimate_text(self.estimate, self.low, self.high)
        return f"<AveragePrecision {found}, over {self.tests:,} tests, {self.inputs:,} images>"


def average_precision(
    outcomes: Outcomes, ids: Ids, tests: int, *, iou: float | None = None, confidence: float = 0.95, seed: int = 0
) -> AveragePrecision:
    check_kept(outcomes, "average precision")
    number("confidence", confidence, above=0, below=1)
    if iou is not None and not np.isclose(THRESHOLDS, number("iou", iou, above=0, most=1)).any():
        accepted = ", ".join(f"{one:g}" for one in THRESHOLDS)
        raise InputError(f"iou: {iou:g} is not accepted; one of {accepted} is, or none for the mean over all")
    # The same images for all tests, which keeps their correlation.
    times = np.random.default_rng(seed).multinomial(
        outcomes.inputs, np.full(outcomes.inputs, 1 / outcomes.inputs), size=RESAMPLES
    )
    estimates, spreads, used = [], [], np.zeros(outcomes.inputs, bool)
    for configuration in ids.tolist():
        places, _ = outcomes.trials(configuration)
        found, expected = (outcomes.boxes(name, configuration, places) for name in (DETECTIONS, EXPECTED))
        matched = matches(found, expected)
        matched = matched if iou is None else matched.at(iou)
        estimates.append(mean_average_precision(matched))
        spreads.append(weighted(matched, times[:, places]))
        used[places] = True
    known = np.isfinite(estimates)
    if not known.any():
        return AveragePrecision(np.nan, np.nan, np.nan, 0, tests, int(used.sum()))
    estimate = float(np.mean(np.array(estimates)[known]))
    # The mean of each resample is over the tests that have a precision in it.
    counts = np.isfinite(spreads)[known].sum(axis=0)
    means = np.nansum(np.array(spreads)[known], axis=0)[counts > 0] / counts[counts > 0]
    deviation = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
    reach = float(ndtri((1 + confidence) / 2)) * deviation
    low, high = max(0.0, estimate - reach), min(1.0, estimate + reach)
    return AveragePrecision(estimate, low, high, int(known.sum()), tests - int(known.sum()), int(used.sum()))


def check_kept(outcomes: Outcomes, what: str) -> None:
    if DETECTIONS not in outcomes.boxes_names():
        raise InputError(
            f"{what}: this run kept no detections; "
            'add keep = ["detections"] to [scan] with the oracle detection, and run it anew'
        )
