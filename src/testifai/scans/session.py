"""One session: a model, data and a space become a tomogram, in memory or in a run file that can be continued."""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai import data as datasets
from testifai import models, oracles, strategies, surrogates
from testifai.engine import EXECUTORS
from testifai.engine import stopping as stopping_rules
from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.quality.assessment import Assessment, stored_scores
from testifai.quality.plan import plan
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.runs.store import Store, identity_changes
from testifai.space import Space
from testifai.strategies.base import Progress, check_budget
from testifai.support.progress import Step, bar
from testifai.support.version import VERSION
from testifai.tomogram import Tomogram

log = logging.getLogger(__name__)

SAVE_EVERY = 0.25  # seconds
POPULATIONS = ("data", "future")
KEEP = ("value", "predicted")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "onnxruntime", "opencv-python-headless")


class Session:
    """A scan that has been checked and can run; `ta.scan` and the command line both go through here."""

    def __init__(
        self,
        model: Any,
        data: Any,
        space: Space,
        *,
        strategy: Any = None,
        surrogate: Any = None,
        stopping: Any = None,
        budget: int | None = None,
        target: float | None = None,
        population: str = "data",
        oracle: Any = "label",
        batch_size: int | None = None,
        seed: int = 0,
        workers: int | None = None,
        keep: tuple[str, ...] | list[str] | None = None,
        quality: Any = None,
        part: tuple[int, int] | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise InputError(f"space: expected a testifai.Space, got {type(space).__name__}")
        _check_whole("seed", seed, least=0, most=2**63 - 1)
        _check_whole("batch_size", batch_size, least=1)
        _check_whole("workers", workers, least=1)
        check_budget(budget)
        if target is not None and not 0 < target < 1:
            raise InputError(f"target: must be a half-width between 0 and 1, got {target!r}")
        _check_choice("population", population, POPULATIONS)
        for name in keep or ():
            _check_choice("keep", name, KEEP)
        self.space = space
        self.model = models.wrap(model)
        self.data = datasets.wrap(data)
        self.oracle = oracles.resolve(oracle)
        if strategy is None:
            strategy = strategies.default(space, surrogate=surrogate, stopping=stopping, parts=part is not None)
        self.strategy = strategies.resolve(strategy)
        self.surrogate = self.strategy.surrogate if surrogate is None else surrogate
        resolved = surrogates.resolve(self.surrogate, seed, [axis.severities for axis in space.axes])
        if space.order_sensitive and resolved is not None and resolved.plain_only:
            raise InputError(
                f"surrogate: {self.surrogate!r} does not fit a space in which the order of application counts; "
                "use strategy = 'ordered' with surrogate = 'forest'"
            )
        # A wanted half-width without a rule asks for the rule that stops at one; like the target, it may come and go.
        # A strategy that looks at the half-widths itself needs none.
        self._told_rule = stopping_rules.resolve(stopping, target)
        looks_itself = self.strategy.uses_target
        if looks_itself and self._told_rule is not None:
            raise InputError(
                f"stopping: strategy {self.strategy.name!r} decides itself how many inputs a test gets; "
                "leave stopping out, or use strategy = 'ordered' or 'full'"
            )
        by_target = stopping is None and target is not None and not looks_itself
        self.stopping = stopping_rules.resolve("interval", target) if by_target else self._told_rule
        self._stopped_early = self.stopping is not None
        self.budget, self.target, self.population = budget, target, population
        if keep is None:
            keep = ("value",) if resolved is not None and resolved.takes_scores else ()
        self.seed, self.keep = seed, tuple(keep)
        self.part = _check_part(part, self.stopping, self.strategy)
        inputs = len(self.data.inputs)
        self.subject = Subject(
            self.model,
            self.data,
            space,
            self.oracle,
            visiting_order(inputs, seed),
            labels=self._labels(),
            classes=self._classes(),
            seed=seed,
            keep=self.keep,
        )
        self.assessment = None if quality is None else self._assessment(quality)
        self._warned = False
        # An event, not a method of this session: a cycle would keep the model's memory until the collector comes by.
        self._interrupted = threading.Event()
        self.executor: Executor = EXECUTORS["local"](
            self.subject, batch_size=batch_size, workers=workers, interrupted=self._interrupted.is_set
        )
        self.outcomes = Outcomes(inputs)
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

    def _labels(self) -> NDArray[Any] | None:
        """The labels as the model numbers its classes; refused where they cannot be judged."""
        if not self.oracle.needs_labels:
            return self.data.labels
        self.oracle.check(self.data.labels, None)
        assert self.data.labels is not None
        values = getattr(self.model, "class_values", None)
        labels = models.align_labels(self.data.labels, self.data.classes, values)
        self.oracle.check(labels, getattr(self.model, "classes", None))
        return labels

    def _classes(self) -> int | None:
        """How many classes there are, to tell a label that is none of them."""
        if not self.oracle.decides_classes:
            return None
        known: int | None = getattr(self.model, "classes", None)
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
        extra: dict[str, Any] | None = None,
    ) -> Tomogram:
        """Do what is missing and return the result; with a store, everything measured is in the file."""
        # Refuse an impossible plan before a file is made or an inference spent.
        self.strategy.propose(self.progress())
        if store is None:
            with self._interrupts_wait():
                self._assess(None, progress)
                self._run(None, progress)
            return self.tomogram()
        with Store.create_or_open(store) as opened:
            self._attach(opened, extra or {})
            with self._interrupts_wait():
                self._assess(opened, progress)
                self._run(opened, progress)
        made = self.tomogram()
        return replace(made, provenance={**made.provenance, "path": str(store)})

    def progress(self) -> Progress:
        """What the strategy looks at."""
        return Progress(
            self.space,
            self.outcomes,
            budget=None if self.budget is None else self.budget - self._reserve,
            target=self.target,
            stopping=self.stopping,
            needs_clean=self.oracle.needs_clean,
            seed=self.seed,
            decided=self._decided,
        )

    @property
    def _reserve(self) -> int:
        return 0 if self.assessment is None else self.assessment.reserve

    def identity(self) -> dict[str, Any]:
        """All that decides the outcomes and estimates; a run file is continued only if none of it changed."""
        rule = stopping_rules.describe(self._told_rule)
        if rule is not None:
            rule.pop("target", None)
        surrogate = self.surrogate
        return {
            "model": getattr(self.model, "fingerprint", None) or type(self.model).__qualname__,
            "preprocessing": getattr(self.model, "preprocessing", None),
            "data": self.data.fingerprint,
            "space": self.space.describe(),
            "oracle": self.oracle.describe(),
            "strategy": self.strategy.describe(),
            "surrogate": surrogate if isinstance(surrogate, str | dict | None) else type(surrogate).__name__,
            "stopping": rule,
            "population": self.population,
            "seed": self.seed,
            "keep": sorted(self.keep),
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
            provenance={"identity": self.identity(), "environment": environment()},
            quality=None if self.assessment is None else self.assessment.scores(),
        )

    def _attach(self, store: Store, extra: dict[str, Any]) -> None:
        """Take up what the file holds, or make it ours."""
        identity = self.identity()
        stored = store.get("identity")
        changes = [] if stored is None else identity_changes(stored, identity)
        if changes and store.is_empty():
            # A first try that failed before it measured anything must not stand in the way of the second.
            store.clear()
            stored = None
        if stored is None:
            labels = self.data.labels
            if labels is not None:
                store.put_array("labels", np.asarray(labels))
            store.put(
                inputs=len(self.data.inputs),
                classes=self.data.classes,
                environment=environment(),
                identity=identity,
                stopped_early=self._stopped_early,
                **extra,
            )
            return
        if changes:
            raise InputError(
                f"run file: {store.path} belongs to another run: {'; '.join(changes)}; "
                "undo the change, or start a new run with another --out"
            )
        self.outcomes = store.load(len(self.data.inputs))
        self._decided.clear()
        self.executor.references.values = store.load_references(len(self.data.inputs))
        # A test once ended by a rule keeps bounds that allow for it.
        self._stopped_early = self._stopped_early or bool(store.get("stopped_early"))
        store.put(stopped_early=self._stopped_early, **extra)

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

        self.assessment.run(store, self._interrupted.is_set, show)

    def _run(self, store: Store | None, progress: Callable[[Step], None] | None) -> None:
        done = self.outcomes.total()
        most = self.strategy.expected(self.progress())
        saved = time.monotonic()

        def hand_over(measured: BatchOutcome) -> None:
            nonlocal done, saved
            if store is not None:
                # Before the outcomes are there: an interrupt in between must not save them without their reference.
                store.touch(measured.configuration, measured.places, reference=measured.reference is not None)
            self.outcomes.record(measured.configuration, measured.places, measured.passed, measured.kept)
            done += len(measured.places)
            if store is not None and time.monotonic() - saved > SAVE_EVERY:
                store.save(self.outcomes, self.executor.references.values)
                saved = time.monotonic()
            if progress is not None:
                progress(Step(done, most, len(self.outcomes)))
            if measured.configuration == 0:
                self._warn_near_chance()

        try:
            while (work := self.strategy.propose(self.progress())) is not None:
                before = done
                self.executor.run(self._own_part(work), self.outcomes, hand_over)
                if self.part is not None or done == before:
                    break
        finally:
            if store is not None:
                store.save(self.outcomes, self.executor.references.values)

    def _warn_near_chance(self) -> None:
        """A model no better than guessing on clean inputs has most likely been fed wrongly."""
        labels, classes = self.subject.labels, self.subject.classes
        passes, trials = (int(counts[0]) for counts in self.outcomes.counts([0]))
        if (
            self._warned
            or not self.oracle.needs_labels
            or labels is None
            or labels.ndim != 1
            or not classes
            or classes < 2
            or trials < 50
        ):
            return
        self._warned = True
        chance = max(1 / classes, np.bincount(labels).max() / len(labels))
        if passes / trials < chance + 3 * np.sqrt(chance * (1 - chance) / trials):
            log.warning(
                "clean accuracy is %.3f after %d inputs, near chance (%.3f): check %sthat labels and classes are "
                "numbered alike",
                *(passes / trials, trials, chance),
                ""
                if isinstance(self.data.inputs, list)
                else "the model's preprocessing (layout, scale, mean, std) and ",
            )

    def _own_part(self, work: Work) -> Work:
        """The share of the inputs that this machine runs."""
        if self.part is None or isinstance(work.places, list):
            return work
        own, parts = self.part
        return replace(work, places=np.array_split(work.places, parts)[own - 1])

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
            self._interrupted.set()
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            self._interrupted.clear()


def scan(
    model: Any,
    data: Any,
    space: Space,
    *,
    strategy: Any = None,
    surrogate: Any = None,
    stopping: Any = None,
    budget: int | None = None,
    target: float | None = None,
    population: str = "data",
    oracle: Any = "label",
    batch_size: int | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Step], None] = False,
    workers: int | None = None,
    keep: tuple[str, ...] | list[str] | None = None,
    quality: Any = None,
) -> Tomogram:
    """Test a model over a space of conditions.

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> tomogram = ta.scan(model, (rows, model(rows)), ta.Space({"shift": shift}), strategy="full")
    >>> tomogram.estimate.tolist()
    [1.0, 0.9, 0.525]
    """
    session = Session(
        model,
        data,
        space,
        strategy=strategy,
        surrogate=surrogate,
        stopping=stopping,
        budget=budget,
        target=target,
        population=population,
        oracle=oracle,
        batch_size=batch_size,
        seed=seed,
        workers=workers,
        keep=keep,
        quality=quality,
    )
    if progress is True:
        with bar() as show:
            return session.run(store, show)
    return session.run(store, progress or None)


def open_run(path: str | os.PathLike[str]) -> Tomogram:
    """Reopen a stored run as a tomogram."""
    with Store.open(path) as store:
        identity = store.get("identity")
        if identity is None:
            raise InputError(f"run file: {path} holds no run yet; start it with: testifai run SPEC.toml")
        inputs, classes = store.get("inputs"), store.get("classes")
        space = Space.from_description(identity["space"])
        return Tomogram(
            space,
            store.load(inputs),
            visiting_order(inputs, identity["seed"]),
            labels=store.get_array("labels"),
            classes=None if classes is None else tuple(classes),
            population=identity["population"],
            stopped_early=bool(store.get("stopped_early")),
            surrogate=identity["surrogate"],
            seed=identity["seed"],
            provenance={
                "identity": identity,
                "environment": store.get("environment"),
                "spec": store.get("spec"),
                "gates": store.get("gates"),
                "path": str(Path(path)),
            },
            quality=stored_scores(store, space, identity["seed"]),
        )


def open_measured(path: str | os.PathLike[str]) -> Tomogram:
    """Reopen a stored run, or refuse where nothing was measured yet."""
    tomogram = open_run(path)
    if not len(tomogram.outcomes):
        raise InputError(f"run file: {path} holds no outcome yet; continue it with: testifai run SPEC.toml")
    return tomogram


def environment() -> dict[str, str]:
    """What a run was made with."""
    versions = {"testifai": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _check_whole(field: str, value: Any, *, least: int, most: int | None = None) -> None:
    if value is None and field != "seed":
        return
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = f"at most {most}" if whole and value >= least else f"at least {least}"
        raise InputError(f"{field}: must be a whole number, {limit}, got {value!r}")


def _check_choice(field: str, value: Any, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise InputError(f"{field}: must be one of {', '.join(accepted)}, got {value!r}")


def _check_part(part: tuple[int, int] | None, rule: Any, strategy: Any) -> tuple[int, int] | None:
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
