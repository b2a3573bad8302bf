"""What a run is, in a few numbers."""

from __future__ import annotations

from typing import Any

from testifai.support.plain import plain
from testifai.tomogram import Tomogram


def facts(tomogram: Tomogram) -> dict[str, Any]:
    """The axes, how much was measured and what it cost, as plain data for JSON."""
    return {
        "axes": {axis.name: list(axis.severities) for axis in tomogram.space.axes},
        "tests": tomogram.space.size,
        "measured": len(tomogram.outcomes),
        "inputs": tomogram.outcomes.inputs,
        "inferences": tomogram.inferences,
        "base": plain(tomogram.base),
    }
