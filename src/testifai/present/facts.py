"""What a run is, in a few numbers."""

from __future__ import annotations

from typing import Any

from testifai.support.plain import plain
from testifai.tomogram import Tomogram


def facts(tomogram: Tomogram) -> dict[str, Any]:
    """The axes, how much was tried and measured, what it cost, and clean accuracy, as plain data for JSON."""
    return {
        "axes": {axis.name: list(axis.severities) for axis in tomogram.space.axes},
        "tests": tomogram.space.size,
        "measured": tomogram.measured,
        "tried": len(tomogram.outcomes),
        "inputs": tomogram.outcomes.inputs,
        "inferences": tomogram.inferences,
        "base": plain(tomogram.base),
        "clean": plain(vars(tomogram.clean)),
        **({} if tomogram.score is None else {"score": tomogram.score}),
        **({"scores": list(tomogram.scores)} if tomogram.scores else {}),
    }
