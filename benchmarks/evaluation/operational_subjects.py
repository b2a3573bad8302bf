"""What operational techniques are judged on: DeepEST's five published tables, and our own models on drifted streams."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from testifai.operational.surprise import combined

SUBJECTS = ("CN5_MNIST", "LN5_MNIST", "CN12_CIFAR10", "VGG16_CIFAR10", "VGG16_CIFAR100")
# As used in the reference implementation: set by hand.
THRESHOLDS = {
    "dsa": dict(zip(SUBJECTS, (0.707, 0.757, 1.574, 2.133, 2.503), strict=True)),
    "lsa": dict(zip(SUBJECTS, (30243.43, 1034.12, 460.2, 3052.397, 111.898), strict=True)),
}
DEEPEST = ("confidence", "dsa", "lsa", "combined")


@dataclass(frozen=True, eq=False)
class Subject:
    """Which examples fail, the risk of each by every technique that has one of its own, and features for `ces`."""

    name: str
    failed: NDArray[np.bool_]
    risks: dict[str, NDArray[np.float64]]
    features: NDArray[np.generic] | None = None
    title: str = ""
    thresholds: Mapping[str, float] = field(default_factory=dict)  # set by hand

    @property
    def rate(self) -> float:
        """The share that fails."""
        return float(self.failed.mean())

    def risk(self, technique: str) -> NDArray[np.float64]:
        """What a technique draws by; 1 - confidence where it has no risk of its own."""
        return self.risks.get(technique, self.risks["confidence"])

    def simple(self, tests: int) -> float:
        """The mean squared error of simple random sampling without replacement (Eq. 3): exact, not simulated."""
        size = len(self.failed)
        return self.rate * (1 - self.rate) / tests * (size - tests) / (size - 1)


def published(path: Path) -> Subject:
    """One of the paper's tables; they have a byte-order mark or none, and headers in either case."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    failed = np.array([row[1].strip().lower() == "fail" for row in rows])
    confidence, dsa, lsa, both = (np.array([float(row[column]) for row in rows]) for column in (3, 4, 5, 6))
    risks = {"confidence": 1 - confidence, "dsa": dsa, "lsa": lsa, "combined": 1 - both}
    set_by_hand = {technique: known[path.stem] for technique, known in THRESHOLDS.items() if path.stem in known}
    return Subject(path.stem, failed, risks, title=path.stem.replace("_", " "), thresholds=set_by_hand)


def recorded(path: Path) -> Subject:
    """A stream of our own, as `recording.operational` keeps it."""
    with np.load(path) as facts:
        failed = np.unpackbits(facts["failed"])[: int(facts["size"])].astype(bool)
        confidence, dsa, lsa = (facts[name].astype(np.float64) for name in ("confidence", "dsa", "lsa"))
        risks = {"confidence": 1 - confidence, "dsa": dsa, "lsa": lsa, "combined": combined(confidence, dsa)}
        return Subject(path.stem, failed, risks, facts["bins"], str(facts["title"]))
