"""Local and global robustness: which class survives which property, and what becomes of a system built on it."""

from __future__ import annotations

from testifai.locality.compose import Global, Prediction, adder, compose
from testifai.locality.composite import Composite, composite
from testifai.locality.explain import explain, export_failures
from testifai.locality.learning import Tables, learn
from testifai.locality.local import Confidences, Local, Rates, Sampled, confidences
from testifai.locality.measure import from_run, local
from testifai.locality.network import Belief, Network
from testifai.locality.pairs import Agreement, Measurement, agreement, composed, paired
from testifai.locality.summary import Explanation, Trend
from testifai.tomogram.profile import Expected, expected
from testifai.tomogram.profile_parser import Profile

__all__ = [
    "Agreement", "Belief", "Composite", "Confidences", "Expected", "Explanation", "Global", "Local", "Measurement",
    "Network", "Prediction", "Profile", "Rates", "Sampled", "Tables", "Trend", "adder", "agreement", "compose",
    "composed", "composite", "confidences", "expected", "explain", "export_failures", "from_run", "learn", "local",
    "paired",
]  # fmt: skip
