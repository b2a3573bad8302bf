"""Recorded sweeps: whether each input passed at each of many evenly spaced levels of some alterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import perturb

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Recorded:
    """One alteration of one model; between the levels of the record the curve is that of the nearest."""

    span: tuple[float, float]
    passed: Bits  # inputs × levels

    @cached_property
    def accuracies(self) -> Floats:
        return np.asarray(self.passed.mean(axis=0), float)

    def robustness(self, threshold: float) -> float:
        """The share of the span over which the recorded curve is at or above the threshold: the truth here."""
        return share_above(self.accuracies, threshold)

    def curve(self, level: float) -> float:
        """The accuracy at a level of the span, on all inputs."""
        return float(self.accuracies[self._place(level)])

    def sweep(self, threshold: float, **options: Any) -> Any:
        """`sweep_model` on the record: a perturbation that notes the level, and a model that looks outcomes up."""
        # Not needed where records are made, often a machine with torch and little else.
        from testifai.sweeps import sweep_model

        inputs = len(self.passed)
        rows = np.column_stack([np.arange(inputs), np.zeros(inputs, int)])

        def note(batch: NDArray[Any], level: float, rng: Any) -> NDArray[Any]:
            return np.column_stack([batch[:, 0], np.full(len(batch), self._place(level))])

        # No level is off: the record has an outcome for each.
        noted = perturb.Perturbation("recorded", note, [None, self.span[0]])
        return sweep_model(self._looked_up, (rows, np.ones(inputs, int)), noted, threshold, levels=self.span, **options)

    def _looked_up(self, batch: NDArray[Any]) -> NDArray[Any]:
        return self.passed[batch[:, 0], batch[:, 1]].astype(int)

    def _place(self, level: float) -> int:
        low, high = self.span
        return round((level - low) / (high - low) * (self.passed.shape[1] - 1))


def share_above(accuracies: Floats, threshold: float) -> float:
    """The share of the span of a curve that is constant around each of its evenly spaced levels."""
    above = (accuracies >= threshold).astype(float)
    return float((above.sum() - (above[0] + above[-1]) / 2) / (len(above) - 1))


def nearest(accuracies: Floats) -> Callable[[float], float]:
    """The same curve as a function of levels from 0 to 1."""
    return lambda level: float(accuracies[round(level * (len(accuracies) - 1))])


def write(path: Path, alterations: dict[str, Recorded]) -> None:
    """Bits along the levels, where an outcome changes from one level to the next: few of them do."""
    arrays: dict[str, Any] = {"names": np.array(list(alterations))}
    for place, one in enumerate(alterations.values()):
        changes = one.passed.copy()
        changes[:, 1:] ^= one.passed[:, :-1]
        arrays[f"span{place}"], arrays[f"levels{place}"] = np.array(one.span), np.array(one.passed.shape[1])
        arrays[f"changes{place}"] = np.packbits(changes, axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)


def read(path: Path) -> dict[str, Recorded]:
    """The alterations of a record by their names."""
    found = {}
    with np.load(path) as arrays:
        for place, name in enumerate(arrays["names"].tolist()):
            changes = np.unpackbits(arrays[f"changes{place}"], axis=1, count=int(arrays[f"levels{place}"]))
            low, high = arrays[f"span{place}"].tolist()
            found[name] = Recorded((low, high), np.bitwise_xor.accumulate(changes, axis=1).astype(bool))
    return found


def write_curves(path: Path, curves: dict[str, NDArray[Any]], inputs: int) -> None:
    """How many of the inputs passed at each level, curve by curve."""
    path.parent.mkdir(parents=True, exist_ok=True)
    counts = np.array(list(curves.values()), np.uint16)
    np.savez_compressed(path, names=np.array(list(curves)), counts=counts, inputs=np.array(inputs))


def read_curves(path: Path) -> dict[str, Floats]:
    """Accuracies at evenly spaced levels, by the names of the curves."""
    with np.load(path) as arrays:
        return dict(zip(arrays["names"].tolist(), arrays["counts"] / int(arrays["inputs"]), strict=True))
