"""The contract of executors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from testifai import data, models
from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.plan import Work
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.oracles import resolve
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.testing.assertions import require, same

INPUTS, SEED = 40, 3
EVERYTHING = Work(np.arange(9), np.arange(INPUTS))
ORACLES = ("label", "consistency", {"use": "tolerance", "eps": 0.2})
SPEEDS: tuple[dict[str, int | None], ...] = (
    {"batch_size": 1, "workers": 1},
    {"batch_size": 7, "workers": 2},
    {"batch_size": None, "workers": 1},
    {"batch_size": INPUTS * 10, "workers": 3},
)


def check_executor(make: Callable[..., Executor]) -> None:
    """Raise AssertionError if an executor breaks its contract.

    Outcomes and kept values must equal those of a plain loop over configurations, for every batch size, number of
    workers and kind of oracle, each measured once and passed on in the caller's thread. An interrupt ends the run and
    leaves outcomes valid. `map` returns results in the order of its tasks.

    Args:
        make: make(subject, batch_size=, workers=, interrupted=) makes one

    >>> from testifai.engine.local import LocalExecutor
    >>> check_executor(LocalExecutor)
    """
    who = f"executor {getattr(make, '__name__', type(make).__name__)}"
    for oracle in ORACLES:
        expected = _plain_loop(_subject(oracle))
        for speed in SPEEDS:
            found = _run(make(_subject(oracle), **speed), EVERYTHING, Outcomes(INPUTS), who)
            _compare(found, expected, who, f"oracle {oracle}, {speed}")
    expected = _plain_loop(_subject())
    _check_parts(make, expected, who)
    _check_interrupt(make, expected, who)
    _check_map(make, who)


def _subject(oracle: Any = "label") -> Subject:
    random = np.random.default_rng(SEED)
    rows = random.normal(size=(INPUTS, 3))
    noise = Perturbation("noise", lambda batch, scale, rng: batch + scale * rng.normal(3), (0.0, 0.2, 0.6))
    shift = Perturbation("shift", lambda batch, by, rng: batch + by, (0.0, 0.3, 0.5))

    def model(batch: Any) -> Any:
        return np.stack([batch[:, 0], batch[:, 1] * 0.5, np.full(len(batch), 0.1)], axis=1)

    inputs = data.wrap((rows, np.argmax(model(rows), axis=1)))
    space = Space({"noise": noise, "shift": shift})
    order = visiting_order(INPUTS, SEED)
    return Subject(
        inputs, space, order, SEED, model=models.wrap(model), oracle=resolve(oracle), labels=inputs.labels, classes=3,
        keep=("value", "predicted"),
    )  # fmt: skip


def _plain_loop(subject: Subject) -> Outcomes:
    outcomes, places = Outcomes(INPUTS), np.arange(INPUTS)
    labels = None if subject.labels is None else subject.labels[subject.order[places]]
    clean = subject.oracle.reference(subject.infer(subject.composite((0, 0), places), 0))
    for configuration in EVERYTHING.configurations.tolist():
        outputs = subject.infer(subject.composite(subject.space.configuration(configuration), places), configuration)
        outcome = subject.oracle.judge(outputs, labels, clean if subject.oracle.needs_clean else None)
        kept = {"predicted": np.argmax(outputs, axis=1).astype(np.float32)}
        if outcome.value is not None:
            kept["value"] = outcome.value.astype(np.float32)
        outcomes.record(configuration, places, outcome.passed, kept)
    return outcomes


def _run(executor: Executor, work: Work, outcomes: Outcomes, who: str) -> Outcomes:
    caller = threading.get_ident()

    def take(batch: BatchOutcome) -> None:
        require(threading.get_ident() == caller, who, "hands over outcomes in another thread than the caller's")
        known = outcomes.attempted(batch.configuration, batch.places)
        require(not known.any(), who, "measures what was measured already")
        outcomes.record(batch.configuration, batch.places, batch.passed, batch.kept)

    executor.run(work, outcomes, take)
    return outcomes


def _compare(found: Outcomes, expected: Outcomes, who: str, where: str) -> None:
    require(set(found) == set(expected), who, f"measures other configurations than asked for ({where})")
    for test in expected:
        require(same(found.bits(test), expected.bits(test)), who, f"outcomes differ from a plain loop's ({where})")
        for name in expected.kept_names():
            kept = same(found.kept(test, name), expected.kept(test, name))
            require(kept, who, f"the {name} kept of trials differs from a plain loop's ({where})")


def _check_parts(make: Callable[..., Executor], expected: Outcomes, who: str) -> None:
    executor, outcomes = make(_subject(), batch_size=4, workers=2), Outcomes(INPUTS)
    places = [np.arange(test % 3, INPUTS, 2 + test % 2) for test in range(9)]
    _run(executor, Work(np.arange(9), places), outcomes, who)
    for test, asked in enumerate(places):
        tried = outcomes.attempted(test, np.arange(INPUTS))
        require(np.array_equal(np.flatnonzero(tried), asked), who, "tries a test on other inputs than asked for")
    for _ in range(2):
        _run(executor, EVERYTHING, outcomes, who)
    _compare(outcomes, expected, who, "work in pieces")


def _check_interrupt(make: Callable[..., Executor], expected: Outcomes, who: str) -> None:
    for workers in (1, 2):
        outcomes = Outcomes(INPUTS)
        executor = make(_subject(), batch_size=3, workers=workers, interrupted=lambda: outcomes.total() > 0)  # noqa: B023
        try:
            _run(executor, EVERYTHING, outcomes, who)
        except KeyboardInterrupt:
            pass
        else:
            require(False, who, f"goes on after an interrupt ({workers} workers)")
        spent = outcomes.total()
        require(0 < spent < 9 * INPUTS, who, f"measures {spent} of {9 * INPUTS} outcomes before an interrupt is heard")
        _run(make(_subject(), batch_size=5, workers=workers), EVERYTHING, outcomes, who)
        _compare(outcomes, expected, who, "after an interrupt")


class _Squares:
    """A job: the square of a number that is not negative."""

    def __init__(self, model: models.Model) -> None:
        self.model = model

    def __call__(self, number: int) -> int:
        if number < 0:
            raise InputError(f"{number} is below 0")
        return number**2


def _check_map(make: Callable[..., Executor], who: str) -> None:
    subject = _subject()
    executor = make(subject, workers=2)
    try:
        for alone in (False, True):
            for count in (0, 1, 100):
                found = list(executor.map(_Squares(subject.model), iter(range(count)), alone=alone))
                require(found == [one**2 for one in range(count)], who, f"maps {count} tasks to other answers")
        try:
            list(executor.map(_Squares(subject.model), [1, -1]))
        except InputError as error:
            require(str(error) == "-1 is below 0", who, "changes what a job complains of")
        else:
            require(False, who, "hides what a job complains of")
    finally:
        executor.close()
