"""One session: a model, data and a space become a tomogram, in memory or in a run file that can be continued."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai import models, oracles
from testifai.engine import EXECUTORS, backend
from testifai.engine import stopping as stopping_rules
from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.identity.environment import differences, environment, recorded
from testifai.identity.input_hashes import (
    CODE,
    Held,
    another_run,
    changes,
    contents_of,
    keep_files,
    own_code,
    recall_from,
)
from testifai.oracles.classes import predicted
from testifai.quality.assessment import Assessment, plan
from testifai.runs import keys, trusted_runs
from testifai.runs.encoding import DETECTIONS
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.runs.store import Store
from testifai.session import compatibility, observers
from testifai.session.compatibility import check_tables, judged
from testifai.session.observers import ENOUGH, FEWEST, SURE, Misnumbered, misnumbered, near_chance
from testifai.space import Space
from testifai.spec.options import ScanKeywords, ScanOptions, choose, with_options
from testifai.statistics.intervals import exact
from testifai.strategies.base import Progress, Strategy
from testifai.support.batches import are_texts
from testifai.support.progress import Step, bar
from testifai.support.threads import only_new_looked_at
from testifai.support.types import Array, Record
from testifai.tomogram import Tomogram

log = logging.getLogger(__name__)

SAVE_EVERY = 0.25  # seconds


class _Interrupted:
    """Whether Ctrl-C was pressed while a run went on."""

    noted = False

    def __call__(self) -> bool:
        return self.noted


class Session:
    """A scan that has been checked and can run; `ta.scan` and the command line both go through here."""

    def __init__(
        self,
        model: Any,
        data: Any,
        space: Space,
        *,
        part: tuple[int, int] | None = None,
        ask_twice: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(space, Space):
            raise InputError(f"space: expected a testifai.Space, got {type(space).__name__}")
        self.options = chosen = ScanOptions.of(options)
        self.space = space
        self.data = datasets.wrap(data)
        wrapped = models.wrap(model, self.data.schema)
        self.data, self.oracle = judged(wrapped, self.data, chosen.oracle)
        executor, workers = chosen.placed()
        self.backend = backend.choose(
            executor, chosen.device, chosen.precision or "float32", wrapped, self.data, self.oracle.moves
        )
        self.model = self.backend.model
        check_tables(self.model, self.data, space, chosen.seed)
        self.methods = choose(chosen, space, parts=part is not None)
        self.strategy, self.surrogate = self.methods.strategy, self.methods.surrogate
        self.stopping = self.methods.stopping
        self._stopped_early = self.stopping is not None
        self.budget, self.target, self.population = chosen.budget, chosen.target, chosen.population
        self.seed, self.keep = chosen.seed, compatibility.kept(self.methods.keep, self.oracle)
        if chosen.keep is None and isinstance(self.oracle, oracles.Tolerance) and self.oracle.needs_labels:
            self.keep = ("value",)  # how far answers are from the truth
        compatibility.check(chosen.score, self.oracle)
        if DETECTIONS in self.keep and self.oracle.moves != "boxes":
            raise InputError(f"keep: detections are what the oracle detection judges; the oracle is {self.oracle.name}")
        self.part = _check_part(part, self.stopping, self.strategy)
        inputs = len(self.data.inputs)
        self._asks = ask_twice
        asked = ask_twice and not self.model.repeatable
        self._to_ask_twice = observers.affordable(inputs, self.budget) if asked else 0
        self._asked_twice: Record | None = None
        self._environment = environment()  # does not change while a session lives, and takes long to find out
        self._environments = [self._environment]
        self.subject = Subject(
            self.data,
            space,
            visiting_order(inputs, self.seed),
            self.seed,
            model=self.model,
            oracle=self.oracle,
            labels=self._labels(),
            classes=self._classes(),
            keep=self.keep,
        )
        self.assessment = None if chosen.quality is None else self._assessment(chosen.quality)
        self._warned = False
        # Not a method of this session: a cycle would keep the model's memory until the collector comes by.
        self._interrupted = _Interrupted()
        self.executor: Executor = EXECUTORS.make(
            self.backend.executor,
            subject=self.subject,
            batch_size=chosen.batch_size,
            workers=workers,
            interrupted=self._interrupted,
            **self.backend.options,
        )
        self.outcomes = Outcomes(inputs)
        self._held: Held | None = None  # what a run file is told of the inputs
        self._decided: dict[Any, Any] = {}

    def _assessment(self, quality: Any) -> Assessment:
        asked = plan(quality, side=self.data.side)
        made = Assessment(self.subject, asked, every_test=self.strategy.name == "full")
        if self.budget is not None and made.reserve >= self.budget:
            raise InputError(
                f"quality: {made.measure.name} on {len(made.wanted):,} tests may hand {made.reserve:,} inputs to the "
                f"model, and the budget is {self.budget:,}; give it a smaller sample, or raise the budget"
            )
        return made

    def _labels(self) -> Array | None:
        """The labels as the model numbers its classes; refused where they cannot be judged."""
        if not self.oracle.needs_labels:
            return self.data.labels
        self.oracle.check(self.data.labels, None)
        assert self.data.labels is not None
        labels = models.align_labels(self.data.labels, self.data.classes, self.model.class_values)
        self.oracle.check(labels, self.model.classes)
        return labels

    def _classes(self) -> int | None:
        """How many classes there are, to tell a label that is none of them."""
        if not self.oracle.decides_classes:
            return None
        known = self.model.classes
        if known is not None or self.data.classes is not None:
            return known or len(self.data.classes or ())
        labels = self.data.labels
        # Data with a single label do not show how many there are.
        countable = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu" and len(np.unique(labels)) > 1
        return int(labels.max()) + 1 if labels is not None and countable else None

    # -- running ------------------------------------------------------------------------------------------------

    def run(
        self,
        store: str | os.PathLike[str] | None = None,
        progress: Callable[[Step], None] | None = None,
        extra: Record | None = None,
    ) -> Tomogram:
        """Do what is missing and return the result; with a store, everything measured is in the file."""
        # Refuse an impossible plan before a file is made or an inference spent.
        self.strategy.propose(self.progress())
        if store is None:
            with self._interrupts_wait(), only_new_looked_at(), closing(self.executor), self._hashed_meanwhile():
                self._assess(None, progress)
                self._run(None, progress)
            return self.tomogram()
        with Store.create_or_open(store) as opened:
            self._attach(opened, extra or {})
            if extra and keys.SPEC in extra:
                trusted_runs.remember(opened)
            with self._interrupts_wait(), only_new_looked_at(), closing(self.executor):
                self._assess(opened, progress)
                self._run(opened, progress)
            keep_files(self.data, opened)
            opened.put(**{keys.FINISHED: self.outcomes.total()})
        made = self.tomogram()
        return replace(made, provenance={**made.provenance, "path": str(store)})

    def progress(self) -> Progress:
        """What the strategy looks at."""
        return Progress(
            self.space,
            self.outcomes,
            # What is spent on other things than outcomes belongs to the budget too.
            budget=None if self.budget is None else self.budget - self._reserve - 2 * self._to_ask_twice,
            target=self.target,
            stopping=self.stopping,
            needs_clean=self.oracle.needs_clean,
            scored=self.options.score is not None,
            seed=self.seed,
            decided=self._decided,
        )

    @property
    def _reserve(self) -> int:
        return 0 if self.assessment is None else self.assessment.reserve

    def identity(self) -> Record:
        """All that decides the outcomes and estimates; a run file is continued only if none of it changed."""
        rule = stopping_rules.describe(self.methods.told_rule)
        if rule is not None:
            rule.pop("target", None)
        chosen = self.surrogate
        code = own_code({axis.name: axis.perturbation for axis in self.space.axes}, self.oracle)
        return {
            **({CODE: code} if code else {}),
            **self.backend.identity,
            "model": self.model.fingerprint,
            "preprocessing": self.model.preprocessing,
            "data": self.data.fingerprint,
            "space": self.space.describe(),
            "oracle": self.oracle.describe(),
            "strategy": self.strategy.describe(),
            "surrogate": chosen if isinstance(chosen, str | dict | None) else type(chosen).__name__,
            "stopping": rule,
            "population": self.population,
            "seed": self.seed,
            "keep": sorted(self.keep),
            **compatibility.identity(self.options.score, self.oracle),
        }

    def tomogram(self) -> Tomogram:
        """What is known so far."""
        return Tomogram(
            self.space,
            self.outcomes,
            self.subject.order,
            labels=self.data.labels,
            classes=self.data.classes,
            population=self.population,
            stopped_early=self._stopped_early,
            surrogate=self.surrogate,
            seed=self.seed,
            provenance={
                keys.IDENTITY: self.identity(),
                keys.ENVIRONMENT: self._environments[0],
                keys.ENVIRONMENTS: self._environments,
                keys.ASKED_TWICE: self._asked_twice,
            },
            quality=None if self.assessment is None else self.assessment.scores(),
            ended_by_width=stopping_rules.by_width_alone(stopping_rules.describe(self.methods.told_rule)),
        )

    def _attach(self, store: Store, extra: Record) -> None:
        """Take up what the file holds, or make it ours."""
        if self.model.untold is not None:
            log.warning(
                "model: whether it is still the same cannot be told (%s): a change of it would go unnoticed when this "
                'run is continued; say which one it is with version = "…" under [model]',
                self.model.untold,
            )
        recall_from(self.data, store)
        self._held = Held(self.data, self.subject.order)
        identity = self.identity()
        stored = store.get(keys.IDENTITY)
        changed = [] if stored is None else changes(stored, identity)
        if changed and store.is_empty():
            # A first try that failed before it measured anything must not stand in the way of the second.
            store.clear()
            stored = None
        if stored is None:
            labels = self.data.labels
            if labels is not None:
                store.put_array(keys.LABELS, np.asarray(labels))
            about = {
                keys.INPUTS: len(self.data.inputs),
                **({keys.PARTLY: True} if contents_of(self.data) is not None else {}),
                keys.CLASSES: self.data.classes,
                keys.ENVIRONMENT: environment(),
                keys.IDENTITY: identity,
                keys.STOPPED_EARLY: self._stopped_early,
            }
            store.put(**about, **extra)
            keep_files(self.data, store)
            return
        if changed:
            raise InputError(another_run(store.path, stored, identity, self.model, self.data))
        if CODE in identity and CODE not in stored:
            log.warning("run file: %s does not say what your own code was when it was made; taken to be the same",
                        store.path)  # fmt: skip
            store.put(**{keys.IDENTITY: identity})
        self._held.take_up(store)
        keep_files(self.data, store)
        known = {key: store.get(key) for key in (keys.ENVIRONMENT, keys.ENVIRONMENTS)}
        self._environments = recorded(known) if not store.is_empty() else [environment()]
        self._asked_twice = store.get(keys.ASKED_TWICE)
        self.outcomes = store.load(len(self.data.inputs))
        self._decided.clear()
        self.executor.references.values = store.load_references(len(self.data.inputs))
        # A test once ended by a rule keeps bounds that allow for it.
        self._stopped_early = self._stopped_early or bool(store.get(keys.STOPPED_EARLY))
        store.put(**{keys.STOPPED_EARLY: self._stopped_early, keys.ENVIRONMENT: self._environments[0]}, **extra)

    def _contribute(self, store: Store | None) -> None:
        """Have the run file say what it is measured with, before the first outcome of it."""
        now = self._environment
        if store is None or now in self._environments:
            return
        self._environments = [*self._environments, now]
        store.put(**{keys.ENVIRONMENTS: self._environments})
        if (several := differences(self._environments)) is not None:
            log.warning("run file: %s is continued with other versions than it was begun with: %s", store.path, several)

    def _ask_twice(self, store: Store | None) -> None:
        """Look once whether the model answers the same each time; nothing of it counts as an outcome."""
        if self._asked_twice is not None or not self._to_ask_twice:
            return
        self._asked_twice = observers.ask_twice(self.subject, self._to_ask_twice).as_dict()
        if store is not None:
            store.put(**{keys.ASKED_TWICE: self._asked_twice})
        if (line := observers.words(self._asked_twice)) is not None:
            log.warning("%s", line)

    def _assess(self, store: Store | None, progress: Callable[[Step], None] | None) -> None:
        """Measure quality, before anything is tested: what a query with a limit on it selects is then known."""
        # Parts of a run are tested apart; the merged run is assessed once, when it is continued.
        if self.assessment is None or self.part is not None:
            return
        if store is not None:
            self.assessment.attach(store)
        most = self.strategy.expected(self.progress())

        def show(scored: int, of: int) -> None:
            if progress is not None:
                progress(Step(self.outcomes.total(), most, len(self.outcomes), (scored, of)))

        self.assessment.run(self.executor, store, self._interrupted, show)

    def _run(self, store: Store | None, progress: Callable[[Step], None] | None) -> None:
        done = self.outcomes.total()
        most = self.strategy.expected(self.progress())
        saved = time.monotonic()

        def hand_over(measured: BatchOutcome) -> None:
            nonlocal done, saved
            self._contribute(store)
            compatibility.refuse(measured, self.oracle, self.subject)
            if store is not None and self._held is not None:
                # Before the outcomes are there: an interrupt in between must not save them without their reference.
                new = self._held.note(measured.places)
                store.touch(
                    measured.configuration, measured.places, reference=measured.reference is not None, contents=new
                )
            self.outcomes.record(measured.configuration, measured.places, measured.passed, measured.kept)
            done += len(measured.places)
            if store is not None and time.monotonic() - saved > SAVE_EVERY:
                self._save(store)
                saved = time.monotonic()
            if progress is not None:
                progress(Step(done, most, len(self.outcomes), where=self.executor.where))
            if measured.configuration == 0 and self.outcomes.counts([0])[1][0] >= ENOUGH:
                self._warn_near_chance()

        try:
            while (work := self.strategy.propose(self.progress())) is not None:
                before = done
                self._ask_twice(store)
                self.executor.run(self._own_part(work), self.outcomes, hand_over)
                if self.part is not None or done == before:
                    break
            self._warn_near_chance()
        finally:
            if store is not None:
                self._save(store)

    def _save(self, store: Store) -> None:
        held = None if self._held is None else self._held.hashes
        store.save(self.outcomes, self.executor.references.values, held)

    def near_chance(self, outcomes: Outcomes) -> str | None:
        """One line where these outcomes of the clean test are hardly better than guessing, or misnumbered."""
        if not self.oracle.needs_labels:
            return None
        passes, trials = (int(counts[0]) for counts in outcomes.counts([0]))
        if self._asks and trials >= FEWEST and exact(passes, trials)[1] < SURE and self._misnumbered is not None:
            return str(self._misnumbered)
        texts = are_texts(self.data.inputs)
        return near_chance(passes, trials, self.subject.labels, self.subject.classes, texts=texts)

    @cached_property
    def _misnumbered(self) -> Misnumbered | None:
        """Whether the classes are numbered otherwise than the outputs, by some inputs that no one counts."""
        if not self.oracle.decides_classes or self.subject.labels is None:
            return None
        places = np.arange(min(len(self.data), ENOUGH))
        outputs = self.subject.ask(self.subject.batch(places), "clean inputs")
        labels = self.subject.labels[self.subject.order[places]]
        return misnumbered(labels, predicted(outputs), self.data.classes, self.subject.classes)

    def _warn_near_chance(self) -> None:
        if not self._warned and (line := self.near_chance(self.outcomes)) is not None:
            self._warned = True
            log.warning("%s", line)

    def _own_part(self, work: Work) -> Work:
        """The share of the inputs that this machine runs."""
        if self.part is None or isinstance(work.places, list):
            return work
        own, parts = self.part
        return replace(work, places=np.array_split(work.places, parts)[own - 1])

    @contextmanager
    def _hashed_meanwhile(self) -> Iterator[None]:
        """The fingerprint of arrays, which the result tells, made beside the run: hashing keeps nobody waiting."""
        if not isinstance(self.data.inputs, np.ndarray):
            yield
            return

        def look() -> None:
            with suppress(Exception):  # whoever asks for it is told
                _ = self.data.fingerprint

        beside = threading.Thread(target=look, name="testifai-fingerprint", daemon=True)
        beside.start()
        yield
        beside.join()

    @contextmanager
    def _interrupts_wait(self) -> Iterator[None]:
        """Ctrl-C ends the run after the batch in flight; a second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.default_int_handler:
            yield
            return

        def note(*_: object) -> None:
            # A plain attribute: a second signal may come while this very line runs, and must not wait for a lock.
            self._interrupted.noted = True
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self._interrupted.noted = False


@with_options(ScanKeywords)
def scan(model: Any, data: Any, space: Space, **keywords: Any) -> Tomogram:
    """Test a model over a space of conditions; the tomogram answers questions about all of them.

    docs/supported.md lists the models and data that are taken, `testifai list plugins` the parts that can be named.

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"shift": shift}), strategy="full")
    >>> tomogram.estimate.tolist()
    [1.0, 0.9, 0.525]
    """
    store, progress = keywords.pop("store", None), keywords.pop("progress", False)
    session = Session(model, data, space, **keywords)
    if progress is True:
        with bar() as show:
            return session.run(store, show)
    return session.run(store, progress or None)


def _check_part(part: tuple[int, int] | None, rule: Any, strategy: Strategy) -> tuple[int, int] | None:
    if part is None:
        return None
    own, parts = part
    if not 1 <= own <= parts:
        raise InputError(f"part: expected I/N with I from 1 to N, got {own}/{parts}")
    if rule is not None:
        raise InputError("part: a stopping rule needs all outcomes of a test in one place; use stopping = 'none'")
    if not strategy.splits:
        raise InputError(
            f"part: strategy {strategy.name!r} gives every test inputs of its own; use 'full' or 'ordered'"
        )
    return part
