"""Local and global robustness: which class survives which property, and what becomes of a system built on it."""

from __future__ import annotations

from testifai.locality.comparison import Agreement, agreement
from testifai.locality.compose import Global, Prediction, compose
from testifai.locality.local import Local, Rates, Sampled
from testifai.locality.measure import from_run, local
from testifai.locality.pairs import Measured, composed, paired
from testifai.locality.system import adder

__all__ = [
    "Agreement", "Global", "Local", "Measured", "Prediction", "Rates", "Sampled", "adder", "agreement", "compose",
    "composed", "from_run", "local", "paired",
]  # fmt: skip
