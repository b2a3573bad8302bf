"""Surrogates by name: one file and one line here each."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, cast

from testifai.errors import InputError, suggest
from testifai.runs.trials import Trials
from testifai.surrogates.base import Surrogate
from testifai.surrogates.forest import Forest

# Where each is: the mathematics of most is imported only when it is asked for.
SURROGATES = {
    "bayes_net": "testifai.surrogates.bayes_net:BayesNet",
    "forest": "testifai.surrogates.forest:Forest",
    "independence": "testifai.surrogates.independence:Independence",
    "pairwise": "testifai.surrogates.pairwise:Pairwise",
    "process": "testifai.surrogates.process:Process",
}

__all__ = ["SURROGATES", "Forest", "Surrogate", "Trials", "resolve"]


def resolve(
    surrogate: str | Surrogate | None,
    seed: int = 0,
    levels: Sequence[Sequence[int]] | None = None,
    *,
    finite: bool = True,
) -> Surrogate | None:
    """A surrogate by name or as an object; None or "none" predicts nothing.

    `levels` are the axes' severities; `finite` asks for the rates on exactly the inputs at hand, where it can tell.
    """
    if surrogate is None or surrogate == "none":
        return None
    if isinstance(surrogate, str):
        if surrogate not in SURROGATES:
            raise InputError(f"surrogate: no surrogate {surrogate!r}; {suggest(surrogate, [*SURROGATES, 'none'])}")
        module, name = SURROGATES[surrogate].split(":")
        made: Any = getattr(importlib.import_module(module), name)(levels=levels, seed=seed)
        if hasattr(made, "population"):
            made.population = finite
        return cast(Surrogate, made)
    if not (hasattr(surrogate, "fit") and hasattr(surrogate, "predict")):
        raise InputError(f"surrogate: expected one of {', '.join(SURROGATES)} or an object with fit and predict")
    return surrogate
