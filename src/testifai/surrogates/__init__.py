"""Surrogates by name: one file and one line here each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testifai.errors import InputError, suggest
from testifai.runs.outcomes import Trials
from testifai.support.registry import Registry
from testifai.surrogates.adapter import Forest, adapt
from testifai.surrogates.base import PoolingSurrogate, Surrogate

SURROGATES = Registry(
    "surrogate",
    "testifai.surrogates",
    {
        "bayes_net": "testifai.surrogates.bayes_net:BayesNet",
        "forest": "testifai.surrogates.adapter:Forest",
        "independence": "testifai.surrogates.independence:Independence",
        "pairwise": "testifai.surrogates.pairwise:Pairwise",
        "process": "testifai.surrogates.process:Process",
    },
)

__all__ = ["SURROGATES", "Forest", "PoolingSurrogate", "Surrogate", "Trials", "resolve"]


def resolve(
    surrogate: Any, seed: int = 0, levels: Sequence[Sequence[int]] | None = None, *, finite: bool = True
) -> Surrogate | None:
    """Return a surrogate by name, by {"use": name, option: value}, or as an object; None for None or "none".

    `levels` are the axes' severities; `finite` selects the rates on exactly the inputs at hand, if supported.
    """
    if surrogate is None or surrogate == "none":
        return None
    if isinstance(surrogate, str) and surrogate not in SURROGATES:
        raise InputError(f"surrogate: {surrogate!r} is not known; {suggest(surrogate, [*SURROGATES, 'none'])}")
    if isinstance(surrogate, str | Mapping):
        return adapt(SURROGATES.make(surrogate, seed=seed, levels=levels, population=finite), SURROGATES)
    return adapt(surrogate, SURROGATES)
