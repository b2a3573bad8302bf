"""Which inputs of each class are tested: a strategy that samples per class among the inputs the model gets right.

The run's visiting order is random, so the first inputs of a class in that order are a random sample of the class, and
a larger sample contains a smaller one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.plan import Work
from testifai.errors import InputError, suggest
from testifai.runs.outcomes import Ids, Outcomes, Places, visiting_order
from testifai.space import Space
from testifai.strategies.base import Progress, Strategy
from testifai.support.bits import pack
from testifai.support.types import Array, Bools, Record
from testifai.support.validation import number

AMONG = ("correct", "all")


@dataclass(frozen=True, eq=False)
class PerClass(Strategy):
    """The clean test on all candidates, then every single perturbation on a sample of each class.

    `labels` are the classes of all inputs as the model numbers them, `weights` maps the class numbers to test to
    their shares (None: the same number of inputs of each), `candidates` marks the inputs that may be sampled.
    """

    labels: NDArray[np.intp]
    names: Mapping[int, str]
    per_class: int | None = 200
    among: str = "correct"
    weights: Mapping[int, float] | None = None
    candidates: Bools | None = None

    name = "per_class"
    surrogate = None
    splits = False

    @property
    def classes(self) -> list[int]:
        """The numbers of the classes to test, ascending."""
        if self.weights is not None:
            return sorted(self.weights)
        return [int(one) for one in np.unique(self.labels if self.candidates is None else self.labels[self.candidates])]

    def propose(self, progress: Progress) -> Work | None:
        everyone = self._candidates(progress.seed)
        if self.among == "correct" and not progress.outcomes.attempted(0, everyone).all():
            return Work(np.array([0]), everyone)
        places = self.sample(progress.outcomes, progress.seed)[0]
        tests = single_ids(progress.space)
        tests = tests if self.among == "correct" else np.concatenate([[0], tests])
        done = all(progress.outcomes.attempted(int(test), places).all() for test in tests)
        return None if done else Work(tests, places)

    def expected(self, progress: Progress) -> int:
        everyone = self._candidates(progress.seed)
        numbers = self.labels[visiting_order(progress.inputs, progress.seed)[everyone]]
        most = sum(self._wanted({one: int((numbers == one).sum()) for one in self.classes}).values())
        clean = len(everyone) if self.among == "correct" else most
        return clean + most * len(single_ids(progress.space))

    def describe(self) -> Record:
        weights = None if self.weights is None else [[one, self.weights[one]] for one in self.classes]
        chosen = None if self.candidates is None else hashlib.sha256(pack(self.candidates).tobytes()).hexdigest()
        return {
            "use": self.name,
            "per_class": self.per_class,
            "among": self.among,
            "weights": weights,
            "candidates": chosen,
        }

    def sample(self, outcomes: Outcomes, seed: int) -> tuple[Places, dict[int, int]]:
        """The places of the sampled inputs, ascending, and how many inputs each class could have given."""
        places = self._candidates(seed)
        if self.among == "correct":
            places = places[outcomes.passed(0, places)]
        numbers = self.labels[visiting_order(outcomes.inputs, seed)[places]]
        own = {one: places[numbers == one] for one in self.classes}
        available = {one: len(mine) for one, mine in own.items()}
        for one, count in available.items():
            if count == 0:
                what = "input that the model gets right" if self.among == "correct" else "input"
                raise InputError(
                    f"class {self.names[one]!r}: has no {what}, so its local robustness cannot be measured; "
                    "accepted: at least 1; leave the class out with weights, or check the model's preprocessing"
                )
        wanted = self._wanted(available)
        return np.sort(np.concatenate([mine[: wanted[one]] for one, mine in own.items()])), available

    def _candidates(self, seed: int) -> Places:
        """The places of the inputs that may be sampled and are of a class to test."""
        order = visiting_order(len(self.labels), seed)
        fit = np.isin(self.labels, self.classes)
        return np.flatnonzero((fit if self.candidates is None else fit & self.candidates)[order])

    def _wanted(self, available: Mapping[int, int]) -> dict[int, int]:
        if self.per_class is None:
            return dict(available)
        if self.weights is None:
            return {one: min(self.per_class, count) for one, count in available.items()}
        shares = allocate(self.per_class * len(available), [self.weights[one] for one in self.classes])
        return {one: min(share, available[one]) for one, share in zip(self.classes, shares, strict=True)}


def allocate(total: int, weights: list[float]) -> list[int]:
    """Whole shares of a total in proportion to the weights, at least 1 each, by largest remainders.

    >>> allocate(10, [0.5, 0.26, 0.24])
    [5, 3, 2]
    """
    exact = np.array(weights) / sum(weights) * total
    shares = np.maximum(1, np.floor(exact).astype(int))
    left = max(0, total - int(shares.sum()))
    shares[np.argsort(shares - exact, kind="stable")[:left]] += 1
    return [int(share) for share in shares]


def class_weights(given: Any, labels: NDArray[np.intp], names: Mapping[int, str]) -> dict[int, float] | None:
    """The classes to test and their shares from what a user wrote: None, "data", or class name -> weight."""
    if given is None:
        return None
    if isinstance(given, str) and given == "data":
        numbers, counts = np.unique(labels, return_counts=True)
        return {int(one): float(count) for one, count in zip(numbers, counts, strict=True)}
    if not isinstance(given, Mapping):
        raise InputError(f"weights: {given!r} is not accepted; None, 'data', or a mapping from class to weight is")
    numbers_of = {name: one for one, name in names.items() if one in set(np.unique(labels).tolist())}
    weights = {}
    for name, weight in given.items():
        if str(name) not in numbers_of:
            raise InputError(f"weights: {name!r} is not a class of the data; {suggest(name, numbers_of)}")
        checked = number(f"weights: {name!r}", weight, least=0)
        if checked > 0:
            weights[numbers_of[str(name)]] = checked
    if not weights:
        raise InputError(f"weights: {dict(given)!r} leaves no class; at least one above 0 is needed")
    return weights


def candidate_mask(inputs: int, exclude: Any = None, only: Any = None) -> Bools | None:
    """Which inputs may be sampled: all but the excluded ones, or those named."""
    if exclude is None and only is None:
        return None
    mask = np.full(inputs, only is None)
    for field, given, value in (("inputs", only, True), ("exclude", exclude, False)):
        if given is None:
            continue
        numbers = np.asarray(given).reshape(-1)
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= inputs):
            raise InputError(
                f"{field}: input numbers from 0 to {inputs - 1} are accepted, got {_first(numbers, inputs)}"
            )
        mask[numbers.astype(np.intp)] = value
    return mask


def single_ids(space: Space) -> Ids:
    """The tests with one perturbation alone, property by property, severity by severity."""
    width = len(space.axes)
    rows = [
        [severity if column == place else 0 for column in range(width)]
        for place, axis in enumerate(space.axes)
        for severity in axis.severities[1:]
    ]
    return space.ids(np.array(rows))


def _first(numbers: Array, inputs: int) -> Any:
    if numbers.dtype.kind not in "iu":
        return repr(numbers[0].item())
    return numbers[(numbers < 0) | (numbers >= inputs)][0]
