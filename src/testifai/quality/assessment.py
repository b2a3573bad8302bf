"""Scores of how far perturbed inputs are from clean ones: which tests get one, what it costs, and the measuring.

A test's score is measured on a fixed sample of the inputs, the same for every test, and never looks at outcomes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
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
from testifai.quality.base import Measure, Reference
from testifai.quality.function import FunctionMeasure
from testifai.quality.predict import PREDICTORS, Scores, no_quality_in
from testifai.runs import keys
from testifai.runs.outcomes import Places
from testifai.runs.store import Store
from testifai.space import Space
from testifai.support.batches import Side
from testifai.support.registry import make
from testifai.support.types import Record
from testifai.support.validation import choice, whole

# Besides tests of few perturbations some of more are measured, by chance: three together can do what no two of them
# show (benchmarks/validity.py).
EXTRA = 50


@dataclass(frozen=True)
class Plan:
    """A measure, the order up to which tests are measured (None: the usual), how many more, what predicts the rest."""

    measure: Measure
    orders: int | None = None
    extra: int = EXTRA
    predictor: str = PREDICTORS[0]


def plan(setting: Any, *, folder: str | Path = ".", side: Side = "both") -> Plan:
    """What `quality = …` asks for: a measure, or {"use": name, "orders": 3, "extra": 0, "predictor": "forest", …}.

    >>> plan({"use": "ssim", "predictor": "forest"}).measure.name
    'ssim'
    """
    if isinstance(setting, Plan):
        return setting
    options = dict(setting) if isinstance(setting, Mapping) else {"use": setting}
    # These say which tests are measured and what becomes of the others; the rest is the measure's own.
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


Ids = NDArray[np.int64]

ORDERS = 2  # as published: tests of up to two perturbations are measured, the others predicted


@dataclass(frozen=True)
class _Scored:
    """A test's score with its standard error, and how many inputs the model under test was handed for it."""

    configuration: int
    score: tuple[float, float]
    spent: int


@dataclass(frozen=True, eq=False)
class _Scoring:
    """The job of an assessment: how far a test's inputs are from the clean ones."""

    subject: Subject
    reference: Reference
    places: Places

    @property
    def model(self) -> Model:
        return self.subject.model

    def __call__(self, configuration: int) -> _Scored:
        sigma = self.subject.space.configuration(configuration)
        before = self.reference.inferences
        score = self.reference.score(self.subject.composite(sigma, self.places[self.reference.rows]))
        return _Scored(configuration, (float(score.value), float(score.error)), self.reference.inferences - before)


class Assessment:
    """The quality scores of one session, in memory and in its run file."""

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
        """The tests to be measured, ascending: those of few perturbations and some others, or all."""
        space = self.subject.space
        low = np.array([space.id(sigma) for sigma in space.configurations(max_order=self.orders)], np.int64)
        rest = np.setdiff1d(np.arange(space.size), low)
        # The number sets these draws apart from others made with the same seed.
        more = np.random.default_rng([self.subject.seed, 0x5C02E]).permutation(rest)[: self.extra]
        return np.sort(np.concatenate([low, more]))

    @property
    def reserve(self) -> int:
        """Inputs set aside for it, of those that may be handed to the model under test.

        Every test's, the clean ones', and these again for an interruption, after which they are computed anew. The
        number is the same however often a run is interrupted, so that the rest of the budget is, too.
        """
        measure, sample = self.measure, self._sample()
        if not measure.uses_model:
            return 0
        clean, each = math.ceil(measure.clean_share * sample), math.ceil(measure.share * sample)
        return 2 * clean + len(self.wanted) * each

    def describe(self) -> Record:
        """Plain data that tells one measure from another."""
        return {**self.measure.describe(), "inputs": self._sample()}

    def scores(self) -> Scores:
        """What is known so far."""
        ids = np.array(sorted(self.found), np.int64)
        numbers = np.array([self.found[int(i)] for i in ids], float).reshape(-1, 2)
        return Scores(
            self.subject.space,
            self.measure.name,
            self.measure.higher_is_better,
            ids,
            numbers[:, 0],
            numbers[:, 1],
            inferences=self.inferences,
            predictor=self.predictor,
            seed=self.subject.seed,
            description=self.describe(),
        )

    def attach(self, store: Store) -> None:
        """Take up the scores of the same measure that the file holds."""
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
        """Have workers measure what is missing; with a store, each score is in the file once it is known."""
        wanted = self.wanted
        missing = np.setdiff1d(wanted, sorted(self.found))
        for one in self._measured(missing, workers):
            self.inferences += one.spent
            self.found[one.configuration] = one.score
            if store is not None:
                store.put_blocks([(self._key, one.configuration, np.array(one.score))])
                self._note(store)
            progress(len(self.found), len(wanted))
            if interrupted():
                raise KeyboardInterrupt

    def _measured(self, ids: Ids, workers: Workers) -> Iterator[_Scored]:
        if not len(ids):
            return
        subject = self.subject
        places = np.arange(self._sample())
        reference = self.measure.reference(subject.batch(places), subject.model, seed=subject.seed)
        self.inferences += reference.inferences
        # Measures of others need not be safe to ask from several threads.
        yield from workers.map(_Scoring(subject, reference, places), ids.tolist(), alone=True)

    def _sample(self) -> int:
        return min(self.measure.sample, len(self.subject.order))

    @cached_property
    def _key(self) -> str:
        about = json.dumps([self.describe(), self.subject.seed], sort_keys=True)
        return keys.scores(hashlib.sha256(about.encode()).hexdigest()[:16])

    def _note(self, store: Store) -> None:
        """Write down which measure the run has, and what it has cost; that of another one stays."""
        about = {
            "key": self._key,
            "name": self.measure.name,
            "higher_is_better": self.measure.higher_is_better,
            "predictor": self.predictor,
            "measure": self.describe(),
        }
        store.put(**{keys.QUALITY: about, self._key: self.inferences})


def stored_scores(store: Store, space: Space, seed: int) -> Scores | None:
    """The scores that a run file holds, or None."""
    about = store.get(keys.QUALITY)
    if about is None:
        return None
    rows = sorted((block, row.tolist()) for _, block, row in store.get_blocks(about["key"]))
    if any(not 0 <= block < space.size or len(row) != 2 for block, row in rows):
        raise InputError("quality: scores of a test that the space does not have")
    numbers = np.array([row for _, row in rows], float).reshape(-1, 2)
    return Scores(
        space,
        about["name"],
        about["higher_is_better"],
        np.array([block for block, _ in rows], np.int64),
        numbers[:, 0],
        numbers[:, 1],
        inferences=store.get(about["key"]) or 0,
        predictor=about["predictor"],
        seed=seed,
        description=about["measure"],
    )
