"""The loop of a run: the strategy proposes work, the executor measures it, observers store and check it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testifai.engine import stopping
from testifai.engine.base import BatchOutcome, Executor, Interrupts
from testifai.engine.subject import Subject
from testifai.identity.run_identity import keep_files, measured_on, recall_from, resumes
from testifai.quality.assessment import Assessment
from testifai.runs import keys, trusted_runs
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store
from testifai.session.observers import Observer
from testifai.spec.options import Methods, ScanOptions
from testifai.strategies.base import Progress
from testifai.support.progress import Step
from testifai.support.threads import in_background, only_new_looked_at
from testifai.support.types import Record
from testifai.tomogram import EstimatorSettings, Tomogram

Report = Callable[[Step], None]


@dataclass(frozen=True)
class RunProgress(Progress):
    """The view of a run for its strategy; `tomogram` makes the tomogram of some of its outcomes."""

    tomogram: Callable[[Outcomes], Tomogram] | None = None


class Session:
    """A checked scan that can run; `session.assembly` makes it."""

    def __init__(
        self,
        subject: Subject,
        executor: Executor,
        interrupts: Interrupts,
        methods: Methods,
        options: ScanOptions,
        *,
        backend: Record,
        observers: Sequence[Observer],
        assessment: Assessment | None = None,
        part: tuple[int, int] | None = None,
    ) -> None:
        self.subject, self.executor, self.methods, self.options = subject, executor, methods, options
        self.model, self.data, self.space, self.oracle = subject.model, subject.data, subject.space, subject.oracle
        self.strategy, self.seed = methods.strategy, options.seed
        self.observers, self.assessment, self.part = observers, assessment, part
        self._interrupts, self._backend = interrupts, backend
        self.outcomes = Outcomes(len(subject.order))
        self._stopped_early = methods.stopping is not None
        self._decided: dict[Any, Any] = {}

    def run(
        self, store: str | os.PathLike[str] | None = None, progress: Report | None = None, extra: Record | None = None
    ) -> Tomogram:
        """Measure what is missing and return the tomogram; with a store, all outcomes are in that run file."""
        # Reject an impossible plan before a file is created or an inference spent.
        self.strategy.propose(self.progress())
        if store is None:
            # The provenance has the fingerprint of the data: hash arrays during the run.
            arrays = isinstance(self.data.inputs, np.ndarray)
            with in_background(lambda: self.data.fingerprint) if arrays else nullcontext():
                self._measure(None, progress)
            return self.tomogram()
        with Store.create_or_open(store) as opened:
            self._attach(opened, extra or {})
            opened.put(**{keys.PLANNED: self.strategy.expected(self.progress())})
            if extra and keys.SPEC in extra:
                trusted_runs.remember(opened)
            self._measure(opened, progress)
            keep_files(self.data, opened)
            opened.put(**{keys.FINISHED: self.outcomes.total()})
        made = self.tomogram()
        return replace(made, provenance={**made.provenance, "path": str(store)})

    def progress(self) -> RunProgress:
        """Return the progress for the strategy."""
        reserved = sum(one.reserve for one in (*self.observers, self.assessment) if one is not None)
        budget = None if self.options.budget is None else self.options.budget - reserved
        return RunProgress(
            self.space, self.outcomes, budget=budget, target=self.options.target, stopping=self.methods.stopping,
            needs_clean=self.oracle.needs_clean, scored=self.options.score is not None, seed=self.seed,
            finite=self.options.population == "data",
            decided=self._decided, tomogram=self.tomogram,
        )  # fmt: skip

    def identity(self) -> Record:
        """Return all that decides outcomes and estimates; a run file is resumed only if it is unchanged."""
        return {
            **self._backend,
            **measured_on(self.model, self.data, self.space, self.oracle),
            **self.methods.describe(),
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
        options, methods = self.options, self.methods
        settings = EstimatorSettings(
            surrogate=methods.surrogate, seed=self.seed, population=options.population,
            stopped_early=self._stopped_early, ended_by_width=stopping.by_width_alone(methods.describe()["stopping"]),
        )  # fmt: skip
        return Tomogram(
            self.space, self.outcomes if outcomes is None else outcomes, self.subject.order, labels=self.data.labels,
            classes=self.data.classes, settings=settings, provenance=provenance,
            quality=None if self.assessment is None else self.assessment.scores(),
        )  # fmt: skip

    def _attach(self, store: Store, extra: Record) -> None:
        """Start a run in the file, or resume the one in it."""
        recall_from(self.data, store)
        identity = self.identity()
        resumed = resumes(store, identity)
        for observer in self.observers:
            observer.attach(store, resumed=resumed)
        if resumed:
            self.outcomes = store.load(len(self.data))
            self._decided.clear()
            # The bounds of a test that was ended by a rule must allow for that.
            self._stopped_early = self._stopped_early or bool(store.get(keys.STOPPED_EARLY))
        new = {} if resumed else {keys.IDENTITY: identity}
        store.put(**{keys.STOPPED_EARLY: self._stopped_early}, **new, **extra)
        keep_files(self.data, store)

    def _measure(self, store: Store | None, progress: Report | None) -> None:
        """Measure quality and outcomes; Ctrl-C ends this after the current batch."""
        with self._interrupts.delayed(), only_new_looked_at(), closing(self.executor):
            # Quality first, for queries that limit it; not of parts, as only the merged run has all tests.
            if self.assessment is not None and self.part is None:
                self._assess(self.assessment, store, progress)
                self._decided.clear()  # what a gate's limit on quality selects was not known before
            try:
                self._loop(store, progress)
            finally:
                for observer in self.observers:
                    observer.close(self.outcomes, store)

    def _assess(self, assessment: Assessment, store: Store | None, progress: Report | None) -> None:
        most = self.strategy.expected(self.progress())

        def show(scored: int, of: int) -> None:
            if progress is not None:
                progress(Step(self.outcomes.total(), most, len(self.outcomes), (scored, of)))

        if store is not None:
            assessment.attach(store)
        assessment.run(self.executor, store, self._interrupts, show)

    def _loop(self, store: Store | None, progress: Report | None) -> None:
        done, most = self.outcomes.total(), self.strategy.expected(self.progress())

        def record(batch: BatchOutcome) -> None:
            nonlocal done
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
