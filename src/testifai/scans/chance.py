"""A model no better than guessing on clean inputs has most likely been fed wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.statistics.intervals import exact

FEWEST = 50  # clean inputs below which nothing is said
SURE = 0.9  # clean accuracy from which on labels are taken to be numbered as the outputs are
ENOUGH = 500  # from which on it need not wait for more


def near_chance(
    passes: int, trials: int, labels: NDArray[Any] | None, classes: int | None, *, texts: bool = False
) -> str | None:
    """One line where clean accuracy is not clearly above what guessing gives; None where it is, or cannot be told.

    Guessing is drawing a class, or always naming the most frequent one. Clearly above: the lower end of the exact
    95 % interval is.

    >>> labels = np.arange(1000) % 10
    >>> near_chance(47, 500, labels, 10)
    "clean accuracy is 0.094 on 500 inputs, not clearly above chance (0.100): check the model's \
preprocessing (scale, layout, mean, std), and that labels and classes are numbered alike"
    >>> near_chance(150, 500, labels, 10) is None
    True
    """
    countable = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iub"
    if labels is None or not countable or not classes or classes < 2 or trials < FEWEST:
        return None
    chance = max(1 / classes, float(np.bincount(labels).max() / len(labels)))
    if exact(passes, trials)[0] > chance:
        return None
    feeding = "which columns hold texts and labels" if texts else "the model's preprocessing (scale, layout, mean, std)"
    return (
        f"clean accuracy is {passes / trials:.3f} on {trials:,} inputs, not clearly above chance ({chance:.3f}): "
        f"check {feeding}, and that labels and classes are numbered alike"
    )
