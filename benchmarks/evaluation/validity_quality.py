"""The recorded quality of all tests of a task, what predicts it from few of them, and by how much it errs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import Task
from testifai.quality.assessment import EXTRA
from testifai.quality.predict import fit
from testifai.statistics.intervals import half_widths

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
SEED = 0
DRAWS = 5  # of tests by chance
SAME = 0.01  # of the range of quality: tests that differ by no more count as equal
ALONE = 100  # tests by chance that are measured instead of those of order 0 to 2


@dataclass(frozen=True)
class Quality:
    """A score of every test, and its standard error; `sample` inputs were looked at, `perturbed` of them perturbed."""

    task: Task
    measure: str
    sample: int
    perturbed: int
    values: Floats  # levels of each axis
    errors: Floats
    accuracy: Floats | None = None  # where the task's outcomes are recorded

    @classmethod
    def read(cls, task: Task, setting: Setting) -> Quality:
        """The recorded table; raises MissingFileError."""
        arrays = np.load(setting.grid(f"quality_{task.name}.npz"))
        try:
            accuracy = task.grid(setting).truth.reshape(-1)
        except MissingFileError:
            accuracy = None
        values, errors = (arrays[name].astype(np.float64) for name in ("values", "errors"))
        measure, sample, perturbed = str(arrays["measure"]), int(arrays["sample"]), int(arrays["perturbed"])
        return cls(task, measure, sample, perturbed, values, errors, accuracy)

    @property
    def name(self) -> str:
        return {"kid": "KID", "bertscore": "BERTScore F1"}[self.measure]

    @property
    def higher_is_better(self) -> bool:
        return self.measure == "bertscore"

    @property
    def range(self) -> float:
        return float(np.ptp(self.values))

    @property
    def drop(self) -> Floats | None:
        """By how much accuracy is lower than on clean inputs."""
        return None if self.accuracy is None else self.accuracy[0] - self.accuracy

    @cached_property
    def configurations(self) -> NDArray[np.int64]:
        return np.array(list(np.ndindex(self.values.shape)))

    @cached_property
    def orders(self) -> NDArray[np.int64]:
        return np.count_nonzero(self.configurations, axis=1)

    @cached_property
    def sums(self) -> NDArray[np.int64]:
        """The severity sum of every test."""
        total: NDArray[np.int64] = self.configurations.sum(axis=1)
        return total

    @cached_property
    def flat(self) -> Floats:
        return self.values.reshape(-1)

    def within(self, values: Floats, limit: float) -> Mask:
        """The tests that are no worse than a limit."""
        return np.asarray(values >= limit if self.higher_is_better else values <= limit)

    def by_sum(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and standard error over the tests of each severity sum."""
        groups = [values[self.sums == one] for one in np.unique(self.sums)]
        spread = [one.std(ddof=1) / np.sqrt(len(one)) if len(one) > 1 else 0.0 for one in groups]
        return np.array([one.mean() for one in groups]), np.array(spread)

    def write(self, path: Path) -> None:
        """The table, without what is recorded elsewhere."""
        np.savez_compressed(
            path, axes=np.array(self.task.axes), measure=np.array(self.measure), sample=np.array(self.sample),
            perturbed=np.array(self.perturbed), values=self.values.astype(np.float32),
            errors=self.errors.astype(np.float32),
        )  # fmt: skip

    @property
    def known_accuracy(self) -> Floats:
        """The accuracy, for whoever has seen to it that it is recorded."""
        if self.accuracy is None:
            raise ValueError(f"{self.task.name}: no accuracy is recorded")
        return self.accuracy

    def equal_pair(self) -> tuple[int, int]:
        """Two tests of the same quality with accuracies as far apart as they come, the less accurate first."""
        accuracy, order = self.known_accuracy, np.argsort(self.flat, kind="stable")
        ends = np.searchsorted(self.flat[order], self.flat[order] + SAME * self.range, side="right")
        alike = [order[start:end] for start, end in enumerate(ends)]
        pairs = [(int(one[np.argmin(accuracy[one])]), int(one[np.argmax(accuracy[one])])) for one in alike]
        return max(pairs, key=lambda pair: float(accuracy[pair[1]] - accuracy[pair[0]]))

    def equal_accuracies(self) -> tuple[float, float]:
        """The accuracies of those two."""
        less, more = self.equal_pair()
        return float(self.known_accuracy[less]), float(self.known_accuracy[more])

    # -- which tests are measured

    def low_orders(self) -> Mask:
        """The tests of at most two perturbations."""
        return np.asarray(self.orders <= 2)

    def with_more(self, draw: int) -> Mask:
        """Those and fifty others by chance, as a scan measures them."""
        return self._more(self.low_orders(), EXTRA, draw)

    def by_chance(self, draw: int) -> Mask:
        """A hundred tests of any order."""
        return self._more(np.zeros(len(self.flat), bool), ALONE, draw)

    def _more(self, known: Mask, count: int, draw: int) -> Mask:
        more = known.copy()
        more[np.random.default_rng([SEED, draw]).permutation(np.flatnonzero(~known))[:count]] = True
        return more

    # -- predictions

    def predicted(self, kind: str, known: Mask) -> tuple[Floats, Floats, Floats]:
        """All tests' values and 95 % intervals, from those of the known ones."""
        levels, values = [range(count) for count in self.values.shape], self.flat[known]
        errors, at = self.errors.reshape(-1)[known], self.configurations
        predict = fit(kind, levels, at[known], values, errors, seed=SEED)
        found = np.tile(self.flat, (3, 1))
        found[1:, known] += np.outer([-1, 1], half_widths() * errors)
        found[:, ~known] = predict(at[~known])
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class Prediction:
    """One way to predict, on one task: the tests it measured, and what it says of the others."""

    quality: Quality
    known: Mask
    values: Floats
    low: Floats
    high: Floats

    @cached_property
    def asked(self) -> Mask:
        """Tests of three and four perturbations that were not measured."""
        return np.asarray((self.quality.orders > 2) & ~self.known)

    @cached_property
    def errors(self) -> Floats:
        return (self.values - self.quality.flat)[self.asked]

    @property
    def mean_error(self) -> float:
        """The mean absolute error."""
        return float(np.abs(self.errors).mean())

    @property
    def bias(self) -> float:
        return float(self.errors.mean())

    @property
    def explained(self) -> float:
        """The share of the variance that is explained: at most 1, below 0 where the mean itself would do better."""
        truth = self.quality.flat[self.asked]
        return float(1 - (self.errors**2).sum() / ((truth - truth.mean()) ** 2).sum())

    @property
    def covered(self) -> float:
        """The share of those tests whose 95 % interval has the measured value in it."""
        truth = self.quality.flat
        return float(((self.low <= truth) & (truth <= self.high))[self.asked].mean())


@dataclass(frozen=True)
class Way:
    """A predictor, which tests are measured for it, and whether chance chooses some of them."""

    title: str
    kind: str
    known: Callable[[Quality, int], Mask]
    by_chance: bool
    colour: str

    def predictions(self, quality: Quality, draws: int) -> list[Prediction]:
        """One, or as many as there are draws where chance plays a part."""
        found = []
        for draw in range(draws if self.by_chance else 1):
            known = self.known(quality, draw)
            found.append(Prediction(quality, known, *quality.predicted(self.kind, known)))
        return found


WAYS = (
    Way("forest, order ≤ 2 (published)", "forest", lambda one, _: one.low_orders(), False, "published"),
    Way("ours, order ≤ 2", "smooth", lambda one, _: one.low_orders(), False, "other"),
    Way(f"ours, and {EXTRA} by chance", "smooth", lambda one, draw: one.with_more(draw), True, "ours"),
    Way(f"ours, {ALONE} by chance alone", "smooth", lambda one, draw: one.by_chance(draw), True, "ours small"),
)


def recorded(tasks: tuple[Task, ...], setting: Setting) -> tuple[list[Quality], list[str]]:
    """The tables that are there, and what is missing of the others."""
    found, missing = [], []
    for task in tasks:
        try:
            found.append(Quality.read(task, setting))
        except MissingFileError as error:
            missing.append(f"{task.title}: {error}")
    return found, missing
