"""Above which risk an example is suspicious: a number, or a quantile of all risks, written "q0.9"."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.operational.base import Floats
from testifai.support.checks import number

Threshold = float | str

QUANTILE = "q"
# Fewer suspects than this share of all examples are worth a word.
FEW = 0.01
# What is proposed then: the first that has enough suspects (many examples may share the highest risk).
PROPOSED = ("q0.9", "q0.8", "q0.5")


def checked(threshold: Any) -> Threshold:
    """A threshold as somebody told it, if it is one.

    >>> checked("q90")
    Traceback (most recent call last):
    testifai.errors.InputError: threshold: 'q90' is not accepted; a number is, or a quantile of the risks such as 'q0.9'
    """
    if not isinstance(threshold, str):
        return number("threshold", threshold)
    try:
        level = float(threshold.removeprefix(QUANTILE)) if threshold.startswith(QUANTILE) else 0.0
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise InputError(
            f"threshold: {threshold!r} is not accepted; a number is, or a quantile of the risks such as 'q0.9'"
        )
    return threshold


def limit(threshold: Threshold, risk: Floats) -> float:
    """The risk that a threshold stands for.

    >>> limit("q0.9", np.arange(101.0))
    90.0
    """
    if isinstance(threshold, str):
        return float(np.quantile(risk, float(threshold.removeprefix(QUANTILE))))
    return threshold


def few_suspects(technique: str, risk: Floats, above: float) -> str | None:
    """What to tell of a threshold that suspects next to nobody; None where there are suspects enough."""
    suspects = int(np.count_nonzero(risk > above))
    if suspects >= FEW * len(risk):
        return None
    beyond = "it" if suspects == 0 else "beyond these it"
    better = next((each for each in PROPOSED if np.mean(risk > limit(each, risk)) >= FEW), None)
    advice = f'try threshold = "{better}"' if better else "no threshold would tell the examples apart"
    return (
        f"technique {technique!r}: {suspects} of {len(risk):,} examples have a risk above its threshold {above:.6g}; "
        f"{beyond} behaves as simple random sampling; {advice}"
    )
