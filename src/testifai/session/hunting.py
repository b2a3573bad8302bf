"""A hunt for failures: the trials likeliest to fail are run in rounds, each of which learns from those before.

What a hunt finds is kept apart from the run it started from: its inputs were chosen for failing, so rates among them
say nothing of all inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.base import BatchOutcome
from testifai.engine.plan import Work
from testifai.errors import InputError
from testifai.runs.outcomes import Ids, Outcomes
from testifai.session.assembly import session_of
from testifai.session.session import Session
from testifai.support.types import Bools, Floats
from testifai.support.validation import whole
from testifai.support.views import view
from testifai.tomogram import Tomogram
from testifai.tomogram.priorities import Priorities, Prioritiser

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROUNDS = 20
# Runs the work and records it: f(work, outcomes of the hunt so far).
Measure = Callable[[Work, Outcomes], None]


@dataclass(frozen=True)
class Hunt:
    """What a hunt found: the trials that failed, in the order they were run, and how many inferences it took."""

    tests: Ids
    inputs: NDArray[np.intp]  # their numbers in the data set
    probability: Floats  # of failing, as foreseen
    inferences: int
    curve: tuple[tuple[int, int, int], ...]  # after each round: inferences, failures, inputs that failed

    @property
    def failing_inputs(self) -> NDArray[np.intp]:
        """The inputs that failed, in the order they were found."""
        return self.inputs[np.sort(np.unique(self.inputs, return_index=True)[1])]

    def __repr__(self) -> str:
        inputs = len(self.failing_inputs)
        return f"<Hunt: {len(self.tests):,} failures on {inputs:,} inputs in {self.inferences:,} inferences>"

    def plot(self, *, dark: bool = False) -> Figure:
        """Failures found against inferences spent, as a plotly figure."""
        figure: Figure = view("hunt as a figure")(self, dark=dark)
        return figure


def hunt(
    tomogram: Tomogram,
    model: Any,
    data: Any,
    budget: int,
    query: str | None = None,
    *,
    once: bool = False,
    oracle: Any = None,
) -> Hunt:
    """Spend a budget of inferences on finding failures of the tests that a query selects; the tomogram stays as it is.

    Args:
        tomogram: a finished run, which says where failures are likely
        model: that of the run
        data: those of the run
        budget: most inferences to spend
        query: the tests to look in; None: all
        once: leave an input alone once it has failed: which inputs fail at all
        oracle: that of the run; None: as the run says

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 1000)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.2])
    >>> model, space = lambda x: (x[:, 0] > 0.5).astype(int), ta.Space({"shift": shift, "again": shift})
    >>> run = ta.scan(model, (rows, model(rows)), space, budget=900)
    >>> found = hunt(run, model, (rows, model(rows)), 200)
    >>> len(found.tests) > 150, run.inferences
    (True, 900)
    """
    options = {} if oracle is None else {"oracle": oracle}
    session = session_of(model, data, tomogram.space, seed=tomogram.settings.seed, **options)
    if len(session.data.inputs) != tomogram.outcomes.inputs:
        raise InputError(f"data: {len(session.data.inputs):,} inputs; the run has {tomogram.outcomes.inputs:,}")
    return hunted(tomogram, running(session), budget, query, once=once)


def hunted(tomogram: Tomogram, run: Measure, budget: int, query: str | None = None, *, once: bool = False) -> Hunt:
    """The same with a function that runs work. Ctrl-C ends a hunt, with what it has found until then."""
    left = whole("budget", budget, least=1)
    prioritiser, found = Prioritiser.of(tomogram, query), Outcomes(tomogram.outcomes.inputs)
    size = max(1, -(-budget // ROUNDS))
    tests, inputs, probability = np.zeros(0, np.int64), np.zeros(0, np.intp), np.zeros(0)
    curve: list[tuple[int, int, int]] = []
    while left > 0:
        chosen = prioritiser.next(min(size, left), found, once=once)
        if not len(chosen):
            break
        before, asked = found.total(), np.unique(chosen.tests)
        try:
            run(Work(asked, [np.sort(chosen.places[chosen.tests == test]) for test in asked]), found)
        except KeyboardInterrupt:
            left = 0
        failed = _failed(chosen, found)
        tests = np.concatenate([tests, chosen.tests[failed]])
        inputs = np.concatenate([inputs, chosen.inputs[failed]])
        probability = np.concatenate([probability, chosen.probability[failed]])
        left -= found.total() - before
        curve.append((found.total(), len(inputs), len(np.unique(inputs))))
    return Hunt(tests, inputs, probability, found.total(), tuple(curve))


def _failed(chosen: Priorities, found: Outcomes) -> Bools:
    failed = np.zeros(len(chosen), bool)
    for test in np.unique(chosen.tests).tolist():
        own = chosen.tests == test
        places = chosen.places[own]
        failed[own] = found.attempted(test, places) & ~found.passed(test, places)
    return failed


def running(session: Session) -> Measure:
    """How a session runs work, its own outcomes left alone."""

    def run(work: Work, found: Outcomes) -> None:
        def keep(measured: BatchOutcome) -> None:
            found.record(measured.configuration, measured.places, measured.passed)

        session.executor.run(work, found, keep)

    return run
