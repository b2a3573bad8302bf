"""Curves of accuracy drawn at random, at evenly spaced levels: what a bound is tried on beside the recorded ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

# Accuracy in the middle of what is drawn, near the threshold of 0.8: curves far from it are easy.
MIDDLE, HEIGHT = 0.83, 0.08
INPUTS = 1000


def waves(random: np.random.Generator, count: int, length: float, decay: float | None = None) -> Floats:
    """A stationary Gaussian process on 0..1 with variance 1 by its spectrum: normal (smooth), or falling by a power."""
    terms = 400
    if decay is None:
        frequencies = random.normal(size=terms) / length
    else:
        # A Student's spectrum is that of a Matérn process: decay 3 is Matérn 3/2, 1 is Ornstein and Uhlenbeck's.
        frequencies = random.standard_t(decay, size=terms) / length
    phases = random.uniform(0, 2 * np.pi, terms)
    levels = np.linspace(0, 1, count)
    total = np.zeros(count)
    for part in np.array_split(np.arange(terms), 8):
        total += np.cos(np.outer(levels, frequencies[part]) + phases[part]).sum(axis=1)
    return np.asarray(np.sqrt(2 / terms) * total)


def _length(random: np.random.Generator) -> float:
    return float(np.exp(random.uniform(np.log(0.03), np.log(0.5))))


def smooth(random: np.random.Generator, count: int) -> Floats:
    return np.clip(MIDDLE + HEIGHT * waves(random, count, _length(random)), 0, 1)


def rough(random: np.random.Generator, count: int) -> Floats:
    return np.clip(MIDDLE + HEIGHT * waves(random, count, _length(random), decay=3), 0, 1)


def dips(random: np.random.Generator, count: int) -> Floats:
    """A gentle curve above the threshold with one to three dips, from a three-hundredth to a tenth of the span wide."""
    levels = np.linspace(0, 1, count)
    base = 0.92 + 0.02 * waves(random, count, 0.3)
    for _ in range(random.integers(1, 4)):
        width = np.exp(random.uniform(np.log(1 / 300), np.log(0.1))) / 2.355  # full width at half depth
        base -= random.uniform(0.05, 0.4) * np.exp(-(((levels - random.uniform()) / width) ** 2) / 2)
    return np.clip(base, 0, 1)


def falling(random: np.random.Generator, count: int) -> Floats:
    """What most perturbations do: down from a plateau, gently or at once, with ripples."""
    levels, steepness = np.linspace(0, 1, count), np.exp(random.uniform(np.log(5), np.log(200)))
    drop = random.uniform(0.2, 0.9) / (1 + np.exp(-(levels - random.uniform(0.1, 0.9)) * steepness))
    return np.clip(random.uniform(0.82, 0.99) - drop + 0.01 * waves(random, count, _length(random)), 0, 1)


def counted(random: np.random.Generator, count: int) -> Floats:
    """The share of 1,000 inputs that pass, each while a smooth quantity of its own is below a common one."""
    common = (MIDDLE - 0.5) * 3 + 0.35 * waves(random, count, _length(random))
    length, own = _length(random), np.zeros(count)
    for _ in range(INPUTS):
        # Few terms are enough for one input.
        frequencies, phases = random.normal(size=6) / length, random.uniform(0, 2 * np.pi, 6)
        quantity = np.cos(np.outer(np.linspace(0, 1, count), frequencies) + phases).sum(axis=1) * np.sqrt(2 / 6)
        own += quantity < common
    return own / INPUTS


KINDS: dict[str, Draw] = {"smooth": smooth, "rough": rough, "dips": dips, "falling": falling, "counted": counted}


def drawn(kind: str, seed: int, count: int = 2049) -> Floats:
    """One curve; the same for the same seed."""
    return KINDS[kind](np.random.default_rng([list(KINDS).index(kind), seed]), count)
