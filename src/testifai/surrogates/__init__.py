"""Surrogates by name: one file and one line here each. They predict pass rates of configurations from measured ones."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError, suggest
from testifai.surrogates.forest import Forest


class Surrogate(Protocol):
    """scikit-learn-shaped: fit on counts per configuration, predict rates and, where there are any, variances."""

    name: str

    def fit(self, features: ArrayLike, passes: ArrayLike, trials: ArrayLike) -> Self: ...

    def predict(self, features: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]: ...


SURROGATES: dict[str, Any] = {"forest": Forest}

__all__ = ["SURROGATES", "Forest", "Surrogate", "resolve"]


def resolve(surrogate: str | Surrogate | None, seed: int = 0) -> Surrogate | None:
    """A surrogate by name or as an object; None or "none" predicts nothing."""
    if surrogate is None or surrogate == "none":
        return None
    if isinstance(surrogate, str):
        if surrogate not in SURROGATES:
            raise InputError(f"surrogate: no surrogate {surrogate!r}; {suggest(surrogate, [*SURROGATES, 'none'])}")
        made: Surrogate = SURROGATES[surrogate](seed=seed)
        return made
    if not (hasattr(surrogate, "fit") and hasattr(surrogate, "predict")):
        raise InputError(f"surrogate: expected one of {', '.join(SURROGATES)} or an object with fit and predict")
    return surrogate
