"""Intervals of an accuracy from few labels, whatever the accuracy is and whatever the risks are worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from promises import Promise
from testifai.operational import conclude, draw, frame, resolve

SIZE = 10_000
ACCURACIES = (0.5, 0.9, 0.97, 0.99, 0.995, 1.0)
LABELS = (50, 200, 800)


def population(risks: str, accuracy: float, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Risks between 0 and 1, and which examples fail: so many as the accuracy leaves, drawn by the risk's worth."""
    risk = rng.random(SIZE)
    chances = {"useful": 8 * np.log(risk), "useless": np.zeros(SIZE), "misleading": np.log1p(-risk)}[risks]
    failed = np.zeros(SIZE, bool)
    # The largest of log chance + Gumbel noise are draws without replacement with these chances.
    failed[np.argsort(-(chances + rng.gumbel(size=SIZE)))[: round(SIZE * (1 - accuracy))]] = True
    return risk, failed


def covered(technique: str, risks: str, seed: int) -> tuple[int, int]:
    """How many intervals hold the accuracy, over accuracies and numbers of labels."""
    held = 0
    for accuracy in ACCURACIES:
        for labels in LABELS:
            rng = np.random.default_rng([seed, labels, round(1000 * accuracy)])
            risk, failed = population(risks, accuracy, rng)
            chosen, whole = resolve(technique), frame(risk=risk)
            answer = conclude(chosen, whole, draw(chosen, whole, labels, rng, failed.__getitem__))
            held += bool(answer.low - 1e-9 <= 1 - failed.mean() <= answer.high + 1e-9)
    return held, len(ACCURACIES) * len(LABELS)


def srs(seed: int) -> tuple[int, int]:
    return covered("srs", "useless", seed)


def css_useful(seed: int) -> tuple[int, int]:
    return covered("css", "useful", seed)


def css_misleading(seed: int) -> tuple[int, int]:
    return covered("css", "misleading", seed)


def balanced_useful(seed: int) -> tuple[int, int]:
    return covered("balanced", "useful", seed)


def balanced_useless(seed: int) -> tuple[int, int]:
    return covered("balanced", "useless", seed)


def balanced_misleading(seed: int) -> tuple[int, int]:
    return covered("balanced", "misleading", seed)


def deepest_useful(seed: int) -> tuple[int, int]:
    return covered("confidence", "useful", seed)


def deepest_useless(seed: int) -> tuple[int, int]:
    return covered("confidence", "useless", seed)


SETTINGS = "10,000 examples, accuracies from .5 to 1, 50, 200 and 800 labels"
WORDS = "operational `{}`: 95 % intervals hold the accuracy"
PROMISES = [
    Promise("operational-srs", WORDS.format("srs"), f"nothing; {SETTINGS}", srs, at_least=0.95),
    Promise("operational-css-useful", WORDS.format("css"), f"a useful risk; {SETTINGS}", css_useful, at_least=0.95),
    Promise(
        "operational-css-misleading", WORDS.format("css"), f"the safest fail most; {SETTINGS}", css_misleading,
        at_least=0.95,
    ),
    Promise(
        "operational-balanced-useful", WORDS.format("balanced"), f"a useful risk; {SETTINGS}", balanced_useful,
        at_least=0.93,
    ),
    Promise(
        "operational-balanced-useless", WORDS.format("balanced"), f"a useless risk; {SETTINGS}", balanced_useless,
        at_least=0.93,
    ),
    Promise(
        "operational-balanced-misleading", WORDS.format("balanced"), f"the safest fail most; {SETTINGS}",
        balanced_misleading, at_least=0.93,
    ),
    Promise(
        "operational-deepest-useful", WORDS.format("confidence"), f"a useful risk; {SETTINGS}", deepest_useful,
        at_least=0.95,
    ),
    Promise(
        "operational-deepest-useless", WORDS.format("confidence"), f"a useless risk; {SETTINGS}", deepest_useless,
        at_least=0.93,
    ),
]  # fmt: skip
