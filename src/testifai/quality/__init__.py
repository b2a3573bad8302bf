"""Validity of perturbed inputs: how far from the clean ones they have gone, as one score per test.

A measure is one file and one line in `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testifai.errors import InputError
from testifai.quality.base import FunctionMeasure, Measure, Reference, Score, adapt
from testifai.support.batches import Side
from testifai.support.registry import Registry

MEASURES = Registry(
    "quality",
    "testifai.measures",
    {
        "bertscore": "testifai.quality.bertscore:Bertscore",
        "bleu": "testifai.quality.text_measures:Bleu",
        "edit_similarity": "testifai.quality.text_measures:EditSimilarity",
        "kid": "testifai.quality.kid:Kid",
        "ssim": "testifai.quality.ssim:Ssim",
    },
)

__all__ = ["MEASURES", "FunctionMeasure", "Measure", "Reference", "Score", "resolve"]


def resolve(given: Any, *, folder: str | Path = ".", side: Side = "both") -> Measure:
    """Return a measure by name, by {"use": name, option: value}, as an object, or as a function f(clean, perturbed).

    Such a function returns a value for each input, or one number. Relative paths start at `folder`; `side` specifies
    which texts of pairs are perturbed.

    Args:
        given: what was asked for
        folder: where relative paths start
        side: which texts of pairs are perturbed
    """
    made = MEASURES.make(given, folder=folder, side=side) if isinstance(given, str | Mapping) else given
    if isinstance(made, type):
        raise InputError(f"quality: {made.__name__} is a class; hand over an instance, a function or a name")
    if (found := adapt(made)) is not None:
        return found
    if callable(made):
        return FunctionMeasure(made)
    names = ", ".join(MEASURES)
    raise InputError(f"quality: {type(made).__name__} is not accepted; a function f(clean, perturbed) or {names} is")
