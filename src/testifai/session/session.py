"""The loop of a run: the strategy proposes work, the executor measures it, the outcomes go to the run file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testifai.engine import stopping as stopping_rules
from testifai.engine.base import BatchOutcome, Executor, Interrupts
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.identity.input_hashes import CODE, another_run, keep_files, own_code, recall_from
from testifai.quality.assessment import Assessment
from testifai.runs import keys, trusted_runs
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store, identity_changes
from testifai.session import compatibility
from testifai.session.observers import CleanAccuracy, Environments, Repeatability, RunFile, affordable
from testifai.spec.options import Methods, ScanOptions
from testifai.strategies.base import Progress
from testifai.support.progress import Step
from testifai.support.threads import in_background, only_new_looked_at
from testifai.support.types import Record
from testifai.tomogram import EstimatorSettings, Tomogram

log = logging.getLogger(__name__)

Report = Callable[[Step], None]


@dataclass(frozen=True)
class RunProgress(Progress):
    """What a strategy may look at, with the run's estimates: `tomogram` makes the tomogram of some of its outcomes."""

    tomogram: Callable[[Outcomes], Tomogram] | None = None


class Session:
    """A scan that has been checked and can run; `session.assembly` makes it."""

    def __init__(
        self,
        subject: Subject,
        executor: Executor,
        interrupts: Interrupts,
        methods: Methods,
        options: ScanOptions,
        *,
        backend: Record,
        assessment: Assessment | None = None,
        part: tuple[int, int] | None = None,
        check_model: bool = True,
    ) -> None:
        self.subject, self.executor, self.methods, self.options = subject, executor, methods, options
        self.model, self.data, self.space, self.oracle = subject.model, subject.data, subject.space, subject.oracle
        self.strategy, self.seed = methods.strategy, options.seed
        self.assessment, self.part, self._interrupts, self._backend = assessment, part, interrupts, backend
        inputs = len(subject.order)
        checked = affordable(inputs, options.budget) if check_model and not self.model.repeatable else 0
        self._file = RunFile(subject, executor.references)
        self.clean_accuracy = CleanAccuracy(subject, check_indices=check_model)
        self.observers = (self._file, Environments(), Repeatability(subject, checked), self.clean_accuracy)
        self.outcomes = Outcomes(inputs)
        self._stopped_early = methods.stopping is not None
        self._decided: dict[Any, Any] = {}

    def run(
        self,
        store: str | os.PathLike[str] | None = None,
        progress: Report | None = None,
        extra: Record | None = None,
    ) -> Tomogram:
        """Measure what is missing and return the tomogram; with a store, all outcomes are in that run file."""
        # Refuse an impossible plan before a file is made or an inference spent.
        self.strategy.propose(self.progress())
        if store is None:
            # The result's provenance has the fingerprint of arrays: hash them during the run.
            arrays = isinstance(self.data.inputs, np.ndarray)
            with in_background(lambda: self.data.fingerprint) if arrays else nullcontext():
                self._measure(None, progress)
            return self.tomogram()
        with Store.create_or_open(store) as opened:
            self._attach(opened, extra or {})
            if extra and keys.SPEC in extra:
                trusted_runs.remember(opened)
            self._measure(opened, progress)
            keep_files(self.data, opened)
            opened.put(**{keys.FINISHED: self.outcomes.total()})
        made = self.tomogram()
        return replace(made, provenance={**made.provenance, "path": str(store)})

    def progress(self) -> RunProgress:
        """Return what the strategy may look at."""
        reserved = sum(observer.reserve for observer in self.observers)
        reserved += 0 if self.assessment is None else self.assessment.reserve
        budget = self.options.budget
        return RunProgress(
            self.space,
            self.outcomes,
            budget=None if budget is None else budget - reserved,
            target=self.options.target,
            stopping=self.methods.stopping,
            needs_clean=self.oracle.needs_clean,
            scored=self.options.score is not None,
            seed=self.seed,
            decided=self._decided,
            tomogram=self.tomogram,
        )

    def identity(self) -> Record:
        """Return all that decides outcomes and estimates; a run file is resumed only if none of it changed."""
        rule = stopping_rules.describe(self.methods.told_rule)
        if rule is not None:
            rule.pop("target", None)
        surrogate = self.methods.surrogate
        code = own_code({axis.name: axis.perturbation for axis in self.space.axes}, self.oracle)
        return {
            **({CODE: code} if code else {}),
            **self._backend,
            "model": self.model.fingerprint,
            "preprocessing": self.model.preprocessing,
            "data": self.data.fingerprint,
            "space": self.space.describe(),
            "oracle": self.oracle.describe(),
            "strategy": self.strategy.describe(),
            "surrogate": surrogate if isinstance(surrogate, str | dict | None) else type(surrogate).__name__,
            "stopping": rule,
            "population": self.options.population,
            "seed": self.seed,
            "keep": sorted(self.subject.keep),
            **({} if self.oracle.score is None else {"scores": [self.oracle.score]}),
            **({} if self.options.score is None else {"score": self.options.score}),
        }

    def tomogram(self, outcomes: Outcomes | None = None) -> Tomogram:
        """Return the tomogram of all outcomes so far, or of these."""
        provenance = {keys.IDENTITY: self.identity()}
        for observer in self.observers:
            provenance |= observer.provenance()
        return Tomogram(
            self.space,
            self.outcomes if outcomes is None else outcomes,
            self.subject.order,
            labels=self.data.labels,
            classes=self.data.classes,
            settings=EstimatorSettings(
                surrogate=self.methods.surrogate,
                seed=self.seed,
                population=self.options.population,
                stopped_early=self._stopped_early,
                ended_by_width=stopping_rules.by_width_alone(stopping_rules.describe(self.methods.told_rule)),
            ),
            provenance=provenance,
            quality=None if self.assessment is None else self.assessment.scores(),
        )

    def _attach(self, store: Store, extra: Record) -> None:
        """Start a run in the file, or resume the one that it holds."""
        if self.model.unidentified_reason is not None:
            log.warning(
                "cannot fingerprint this model (%s), so changes to it will not be detected when the run is resumed. "
                'Set version = "…" under [model] to identify it.',
                self.model.unidentified_reason,
            )
        recall_from(self.data, store)
        identity, stored = self.identity(), store.get(keys.IDENTITY)
        if stored is not None and identity_changes(stored, identity):
            if not store.is_empty():
                raise InputError(another_run(store.path, stored, identity))
            # A first try that failed before it measured anything does not block the second.
            store.clear()
            stored = None
        for observer in self.observers:
            observer.attach(store, resumed=stored is not None)
        if stored is not None:
            self.outcomes = store.load(len(self.data))
            self._decided.clear()
            # A test once ended by a rule keeps bounds that allow for it.
            self._stopped_early = self._stopped_early or bool(store.get(keys.STOPPED_EARLY))
        new = {keys.IDENTITY: identity} if stored is None else {}
        store.put(**{keys.STOPPED_EARLY: self._stopped_early}, **new, **extra)
        keep_files(self.data, store)

    def _measure(self, store: Store | None, progress: Report | None) -> None:
        """Measure quality and outcomes; Ctrl-C ends this after the batch in flight."""
        with self._interrupts.delayed(), only_new_looked_at(), closing(self.executor):
            # Parts of a run are measured separately; the merged run is assessed once, when it is resumed.
            if self.assessment is not None and self.part is None:
                self._assess(self.assessment, store, progress)
            try:
                self._loop(store, progress)
            finally:
                self._file.save(self.outcomes, store)

    def _assess(self, assessment: Assessment, store: Store | None, progress: Report | None) -> None:
        """Measure quality first: the tests that a query with a limit on it selects are then known."""
        if store is not None:
            assessment.attach(store)
        most = self.strategy.expected(self.progress())

        def show(scored: int, of: int) -> None:
            if progress is not None:
                progress(Step(self.outcomes.total(), most, len(self.outcomes), (scored, of)))

        assessment.run(self.executor, store, self._interrupts, show)

    def _loop(self, store: Store | None, progress: Report | None) -> None:
        done, most = self.outcomes.total(), self.strategy.expected(self.progress())

        def record(batch: BatchOutcome) -> None:
            nonlocal done
            compatibility.refuse(batch, self.oracle, self.subject)
            for observer in self.observers:
                observer.measured(batch, store)
            self.outcomes.record(batch.configuration, batch.places, batch.passed, batch.kept)
            done += len(batch.places)
            for observer in self.observers:
                observer.recorded(batch, self.outcomes, store)
            if progress is not None:
                progress(Step(done, most, len(self.outcomes), where=self.executor.where))

        while (work := self.strategy.propose(self.progress())) is not None:
            before = done
            for observer in self.observers:
                observer.before_work(store)
            if self.part is not None and not isinstance(work.places, list):
                own, parts = self.part
                work = replace(work, places=np.array_split(work.places, parts)[own - 1])
            self.executor.run(work, self.outcomes, record)
            if self.part is not None or done == before:
                break
        for observer in self.observers:
            observer.finish(self.outcomes, store)
