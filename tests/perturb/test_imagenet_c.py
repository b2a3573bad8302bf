"""The suite against what the library imagecorruptions makes of two photographs (see reference/record.py)."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from testifai.perturb import get, names

record = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "reference" / "record.py")))
ROWS = record.sheet_rows()
PHOTOS = ROWS[0]
RECORDED = json.loads((record.FOLDER / "statistics.json").read_text())

# Mean absolute difference in grey levels that is allowed; about twice what was measured.
EXACT = {
    "brightness": 0.2,
    "contrast": 0.05,
    "defocus_blur": 0.3,
    "gaussian_blur": 0.05,
    "jpeg_compression": 1.0,
    # The library rounds after each axis.
    "pixelate": 0.6,
    "saturate": 0.1,
    "zoom_blur": 0.2,
}

# Deviations beyond chance that are allowed: of the mean change in grey levels, and of its variance and of its power
# in six bands from low to high frequency as shares.
CLOSE = (0.1, *[0.01] * 7)
ALLOWED = {
    # The library cuts decimals off before it shuffles.
    "glass_blur": (0.6, *[0.01] * 7),
    # Both draw a slanted line through whole pixels: ours has one in each column, the library's one in each step, which
    # is a little smoother across.
    "motion_blur": (0.1, 0.07, *[0.1] * 4, 0.1, 0.15),
    "snow": (0.1, 0.05, *[0.05] * 4, 0.1, 0.35),
    # The frost is another, of the same brightness, contrast and fineness.
    "frost": (5.0, 0.3, 0.7, *[0.3] * 5),
}
DRAWS = 60  # in the simulations; fewer in the usual tests, where chance allows for it


def test_the_suite_has_the_nineteen_corruptions():
    assert names("imagenet_c") == sorted(f"imagenet_c.{name}" for name in (*record.EXACT, *record.RANDOM))
    assert all(len(get(name).severities) == 6 for name in names("imagenet_c"))


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", record.EXACT)
def test_without_randomness_the_images_are_the_librarys(name, severity):
    expected = ROWS[5 * record.EXACT.index(name) + severity]
    made = get(f"imagenet_c.{name}").apply(PHOTOS, severity)
    assert np.abs(made.astype(float) - expected).mean() <= EXACT[name]


@pytest.mark.parametrize("draws", [20, pytest.param(DRAWS, marks=pytest.mark.simulation)])
@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", record.RANDOM)
def test_with_randomness_the_statistics_of_the_change_are_the_librarys(name, severity, draws):
    # Neighbouring severities on different photographs.
    photo, recorded = PHOTOS[severity % 2], RECORDED["statistics"][name][severity - 1][severity % 2]
    expected, spread = np.array(recorded["mean"]), np.array(recorded["spread"])
    made = get(f"imagenet_c.{name}").apply(np.repeat(photo[None], draws, axis=0), severity)
    found = record.statistics(photo, made)
    chance = np.sqrt(spread**2 / RECORDED["draws"] + found.var(axis=0, ddof=1) / draws)
    allowed = np.array(ALLOWED.get(name, CLOSE)) * np.concatenate([[1], expected[1:]])
    # In the 440 comparisons 4 standard errors are exceeded by chance in one of forty recordings.
    assert (np.abs(found.mean(axis=0) - expected) <= 4 * chance + allowed).all()
