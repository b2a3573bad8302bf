"""Curves of accuracy for the tests: synthetic ones and those measured by others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Curve = Callable[[Any], Any]
FOLDER = Path(os.environ.get("TESTIFAI_DATA", "../shared"), "reference", "asap")
DENSE = (np.arange(100_000) + 0.5) / 100_000

needs_measured = pytest.mark.skipif(not FOLDER.exists(), reason="measured curves not found (set TESTIFAI_DATA)")


def logistic(steepness: float) -> Curve:
    return lambda level: 0.1 + 0.88 / (1 + np.exp((np.asarray(level) - 0.4) * steepness))


def wave(frequency: float, height: float = 0.1, middle: float = 0.85) -> Curve:
    return lambda level: middle + height * np.sin(2 * np.pi * frequency * np.asarray(level))


def dip(centre: float, width: float, depth: float) -> Curve:
    return lambda level: 0.95 - depth * np.exp(-(((np.asarray(level) - centre) / width) ** 2) / 2)


# The kinds of curve the paper draws: one crossing (Fig. 5a), several (Fig. 1, 5c), one that crosses between uniform
# levels (Fig. 2), and what measured ones look like: plateaus, steps, kinks.
SYNTHETIC: dict[str, Curve] = {
    "straight": lambda level: 1 - 0.5 * np.asarray(level),
    "parabola": lambda level: 0.95 - 1.8 * (np.asarray(level) - 0.45) ** 2,
    "logistic": logistic(20),
    "steep": logistic(100),
    "step": lambda level: np.where(np.asarray(level) < 0.37, 0.95, 0.5),
    "kink": lambda level: 0.95 - 0.6 * np.maximum(0, np.asarray(level) - 0.3),
    "falling wave": lambda level: 0.95 - 0.3 * np.asarray(level) + 0.08 * np.cos(10 * np.pi * np.asarray(level)),
    "between ten levels": lambda level: 0.85 + 0.12 * np.cos(20 * np.pi * np.asarray(level)),
    **{f"wave {frequency}": wave(frequency) for frequency in (2, 3, 5, 8, 12)},
    **{f"dip {centre}": dip(centre, 0.03, 0.3) for centre in (0.13, 0.5, 0.77)},
    "wide dip": dip(0.31, 0.1, 0.4),
    "flat above": lambda level: 0.9 + 0 * np.asarray(level),
    "flat below": lambda level: 0.31 + 0 * np.asarray(level),
}


def measured() -> dict[str, Curve]:
    """The 16 recorded curves on levels rescaled to 0..1, straight lines between the records."""
    found: dict[str, Curve] = {}
    for path in sorted(FOLDER.glob("*.csv")):
        levels, accuracies = np.loadtxt(path, delimiter=",").T
        scaled = (levels - levels[0]) / (levels[-1] - levels[0])
        found[path.stem] = lambda level, x=scaled, y=accuracies: np.interp(level, x, y)
    return found


def truth(curve: Curve, threshold: float = 0.8) -> float:
    """Robustness by a hundred thousand levels."""
    return float(np.mean(curve(DENSE) >= threshold))
