"""Quality scores of tests: which tests are measured, at what cost, and the measurement.

Every test is scored on the same fixed sample of the inputs, without outcomes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import Workers
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality import resolve
from testifai.quality.base import FunctionMeasure, Measure, Reference
from testifai.quality.predict import PREDICTORS, Scores, no_quality_in
from testifai.runs import keys
from testifai.runs.outcomes import Places
from testifai.runs.store import Store
from testifai.space import Space
from testifai.support.batches import Side
from testifai.support.registry import make
from testifai.support.types import Record
from testifai.support.validation import choice, whole

# A random sample of tests of many perturbations is measured too: three together can have effects that no two of them
# have (benchmarks/validity.py).
EXTRA = 50
ORDERS = 2  # as published: tests of up to two perturbations are measured, the others predicted
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """A measure, the order up to which tests are measured (None: default), how many more, and the predictor."""

    measure: Measure
    orders: int | None = None
    extra: int = EXTRA
    predictor: str = PREDICTORS[0]


def plan(setting: Any, *, folder: str | Path = ".", side: Side = "both") -> Plan:
    """Read `quality = …`: a measure, or {"use": name, "orders": 3, "extra": 0, "predictor": "forest", …}."""
    if isinstance(setting, Plan):
        return setting
    options = dict(setting) if isinstance(setting, Mapping) else {"use": setting}
    predictor = choice("quality: predictor", options.pop("predictor", PREDICTORS[0]), PREDICTORS)
    orders = options.pop("orders", None)
    if orders is not None:
        whole("quality: orders", orders, least=1)
    extra = whole("quality: extra", options.pop("extra", EXTRA), least=0)
    use = options.get("use")
    if callable(use) and len(options) > 1:
        measure: Measure = make("quality", {**options, "use": "function"}, {"function": partial(FunctionMeasure, use)})
    else:
        measure = resolve(use if list(options) == ["use"] else options, folder=folder, side=side)
    return Plan(measure, orders, extra, predictor)


@dataclass(frozen=True, eq=False)
class _Scoring:
    subject: Subject
    reference: Reference
    places: Places

    @property
    def model(self) -> Model:
        return self.subject.model

    def __call__(self, configuration: int) -> tuple[int, tuple[float, float], int]:
        sigma = self.subject.space.configuration(configuration)
        before = self.reference.inferences
        score = self.reference.score(self.subject.composite(sigma, self.places[self.reference.rows]))
        return configuration, (float(score.value), float(score.error)), self.reference.inferences - before


class Assessment:
    def __init__(self, subject: Subject, plan: Plan, *, every_test: bool) -> None:
        if not subject.space.listed:
            raise no_quality_in(subject.space, "choose fewer axes or severities, or leave quality out")
        self.subject, self.measure, self.predictor = subject, plan.measure, plan.predictor
        self.orders = plan.orders or (len(subject.space.axes) if every_test else ORDERS)
        self.extra = plan.extra
        self.found: dict[int, tuple[float, float]] = {}
        self.inferences = 0

    @cached_property
    def wanted(self) -> Ids:
        space = self.subject.space
        low = np.array([space.id(sigma) for sigma in space.configurations(max_order=self.orders)], np.int64)
        rest = np.setdiff1d(np.arange(space.size), low)
        # The number separates this stream from others with the same seed.
        more = np.random.default_rng([self.subject.seed, 0x5C02E]).permutation(rest)[: self.extra]
        return np.sort(np.concatenate([low, more]))

    @property
    def reserve(self) -> int:
        """The part of the budget for quality; the clean inputs count twice, as an interruption repeats them."""
        measure, sample = self.measure, self._sample()
        if not measure.uses_model:
            return 0
        clean, each = math.ceil(measure.clean_share * sample), math.ceil(measure.share * sample)
        return 2 * clean + len(self.wanted) * each

    def describe(self) -> Record:
        return {**self.measure.describe(), "inputs": self._sample()}

    def scores(self) -> Scores:
        return _scores(self.subject.space, self._about, self.found, self.inferences, self.subject.seed)

    def attach(self, store: Store) -> None:
        self.found = {block: (float(row[0]), float(row[1])) for _, block, row in store.get_blocks(self._key)}
        self.inferences = store.get(self._key) or 0
        self._note(store)

    def run(
        self,
        workers: Workers,
        store: Store | None,
        interrupted: Callable[[], bool],
        progress: Callable[[int, int], None],
    ) -> None:
        wanted, subject = self.wanted, self.subject
        missing = np.setdiff1d(wanted, sorted(self.found))
        if not len(missing):
            return
        places = np.arange(self._sample())
        reference = self.measure.reference(subject.batch(places), subject.model, seed=subject.seed)
        self.inferences += reference.inferences
        # Third-party measures need not be thread-safe.
        scoring = _Scoring(subject, reference, places)
        for configuration, score, spent in workers.map(scoring, missing.tolist(), alone=True):
            self.inferences += spent
            self.found[configuration] = score
            if store is not None:
                store.put_blocks([(self._key, configuration, np.array(score))])
                self._note(store)
            progress(len(self.found), len(wanted))
            if interrupted():
                raise KeyboardInterrupt

    def _sample(self) -> int:
        return min(self.measure.sample, len(self.subject.order))

    @cached_property
    def _key(self) -> str:
        about = json.dumps([self.describe(), self.subject.seed], sort_keys=True)
        return keys.scores(hashlib.sha256(about.encode()).hexdigest()[:16])

    @property
    def _about(self) -> Record:
        return {
            "key": self._key,
            "name": self.measure.name,
            "higher_is_better": self.measure.higher_is_better,
            "predictor": self.predictor,
            "measure": self.describe(),
        }

    def _note(self, store: Store) -> None:
        store.put(**{keys.QUALITY: self._about, self._key: self.inferences})


def stored_scores(store: Store, space: Space, seed: int) -> Scores | None:
    about = store.get(keys.QUALITY)
    if about is None:
        return None
    found = {block: row.tolist() for _, block, row in store.get_blocks(about["key"])}
    if any(not 0 <= block < space.size or len(row) != 2 for block, row in found.items()):
        raise InputError("quality: scores of a test that the space does not have")
    return _scores(space, about, found, store.get(about["key"]) or 0, seed)


def _scores(space: Space, about: Record, found: Mapping[int, Sequence[float]], inferences: int, seed: int) -> Scores:
    ids = sorted(found)
    values, errors = np.array([found[i] for i in ids], float).reshape(-1, 2).T
    return Scores(
        space,
        about["name"],
        about["higher_is_better"],
        np.array(ids, np.int64),
        values,
        errors,
        inferences=inferences,
        predictor=about["predictor"],
        seed=seed,
        description=about["measure"],
    )
