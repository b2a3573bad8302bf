"""A hunt for failures: rounds of the trials that are most likely to fail, learning from earlier rounds.

Its outcomes are separate from those of the run: its inputs were selected for failing, so their rates are biased.
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
from testifai.support.types import Floats
from testifai.support.validation import whole
from testifai.support.views import view
from testifai.tomogram import Tomogram
from testifai.tomogram.priorities import Prioritiser

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROUNDS = 20
# runs work and records its outcomes
Measure = Callable[[Work, Outcomes], None]


@dataclass(frozen=True)
class Hunt:
    """Result of a hunt: the trials that failed, in the order they were run, and the number of inferences."""

    tests: Ids
    inputs: NDArray[np.intp]  # indices in the data set
    probability: Floats  # predicted probability of failing
    inferences: int
    curve: tuple[tuple[int, int, int], ...]  # after each round: inferences, failures, inputs that failed

    @property
    def failing_inputs(self) -> NDArray[np.intp]:
        """Return the inputs that failed, in the order they were found."""
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
    """Spend a budget of inferences on failures of the tests that a query selects; the tomogram does not change.

    Args:
        tomogram: a finished run, which predicts failures
        model: the model of the run
        data: the data of the run
        budget: most inferences to spend
        query: the tests to search; None: all
        once: skip inputs that have failed, to find as many different ones as possible
        oracle: the oracle of the run; None: that of its spec

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
    """Hunt with a function that runs work. Ctrl-C ends a hunt and keeps its result."""
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
        failed = np.zeros(len(chosen), bool)
        for test in asked.tolist():
            own = chosen.tests == test
            places = chosen.places[own]
            failed[own] = found.attempted(test, places) & ~found.passed(test, places)
        tests = np.concatenate([tests, chosen.tests[failed]])
        inputs = np.concatenate([inputs, chosen.inputs[failed]])
        probability = np.concatenate([probability, chosen.probability[failed]])
        left -= found.total() - before
        curve.append((found.total(), len(inputs), len(np.unique(inputs))))
    return Hunt(tests, inputs, probability, found.total(), tuple(curve))


def running(session: Session) -> Measure:
    """Return a function that runs work without changing the outcomes of the session."""

    def run(work: Work, found: Outcomes) -> None:
        def keep(measured: BatchOutcome) -> None:
            found.record(measured.configuration, measured.places, measured.passed)

        session.executor.run(work, found, keep)

    return run
