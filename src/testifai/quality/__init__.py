"""Validity of perturbed inputs: how far from the clean ones they have gone, as one score per test.

A measure is one file and one line in `MEASURES`.
"""

from __future__ import annotations

from testifai.quality.base import MEASURES, Measure, Reference, Score, resolve
from testifai.quality.function import FunctionMeasure

__all__ = ["MEASURES", "FunctionMeasure", "Measure", "Reference", "Score", "resolve"]
