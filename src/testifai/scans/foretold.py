"""How long a run will take besides its inferences, and how many of those: the run, played with dice.

A few probed tests give a rough surface; outcomes drawn from it stand for those of the run. The run's own strategy plans
with them and the run's own surrogate is fitted on them, and both are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.plan import Work
from testifai.runs.outcomes import Ids, Outcomes
from testifai.runs.scored import VALUE
from testifai.scans.session import Session
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import evidence
from testifai.tomogram.estimates import Estimates
from testifai.tomogram.trust.refit import refits

SHARED_PLACES = 200  # of work on the same inputs: what is fitted then hardly depends on how many
PLAYED = 10.0  # seconds of planning after which the rest is extrapolated
SAMPLED = 2_000  # tests whose estimates and sum are timed
COMMON = 0.5  # share of an input's difficulty that is the same under all tests: as good a guess as any


@dataclass(frozen=True)
class Foretold:
    """About how many inferences there will be, on how many inputs of a test at a time, and how long the rest takes."""

    inferences: int
    at_once: int
    seconds: float


def foretell(session: Session, work: Work, probed: Outcomes) -> Foretold:
    """What a run will need, given its first work and the outcomes of some probed tests."""
    progress, dice = session.progress(), _Dice(session, probed)
    if isinstance(work.places, list):
        known, rounds, planning = _played(session, dice)
    else:
        known, rounds, planning = dice.thrown(Work(work.configurations, work.places[:SHARED_PLACES])), 1, 0.0
    surrogate, fit = _timed(lambda: _fitted(session, known))
    if surrogate is None:
        inferences, seconds = session.strategy.expected(progress), 0.0
    else:
        foreseen = session.strategy.foreseen(progress, known, surrogate)
        inferences, seconds = foreseen.inferences, planning + foreseen.fits * fit
        if inferences < session.space.size * len(session.data.inputs) or session.population != "data":
            seconds += (1 + refits(surrogate, len(known), session.space)) * fit + _answers(session, surrogate)
    return Foretold(inferences, -(-inferences // (rounds * len(known))), seconds)


def _played(session: Session, dice: _Dice) -> tuple[Outcomes, int, float]:
    """The run with thrown outcomes, for a while: those, how many rounds it had, and how long planning them took."""
    progress = replace(session.progress(), outcomes=Outcomes(len(session.data.inputs)), decided={})
    rounds, planning = 0, 0.0
    while planning < PLAYED:
        work, seconds = _timed(lambda: session.strategy.propose(progress))
        planning += seconds
        if work is None:
            break
        progress.outcomes.merge(dice.thrown(work))
        rounds += 1
    return progress.outcomes, max(1, rounds), planning


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return task(), time.perf_counter() - start


def _fitted(session: Session, known: Outcomes) -> Surrogate | None:
    """The run's surrogate on outcomes, and once asked: some of what it knows is found out only then."""
    made = Estimates(
        session.space,
        known,
        session.subject.order,
        population=session.population,
        surrogate=session.surrogate,
        seed=session.seed,
    )
    surrogate = made.fitted()
    if surrogate is not None:
        surrogate.region(session.space.matrix(_some(session)[:1]))
    return surrogate


def _some(session: Session) -> Ids:
    """Neighbouring tests."""
    size = session.space.size
    number = min(SAMPLED, size)
    return np.arange((size - number) // 2, (size + number) // 2)


def _answers(session: Session, surrogate: Surrogate) -> float:
    """How long the estimates of all tests take, and the means by order and severity that a summary shows."""
    space = session.space
    features = space.matrix(_some(session))
    _, estimates = _timed(lambda: surrogate.predict(features))
    surrogate.region(features)  # what is kept of the first is there for all others
    _, region = _timed(lambda: surrogate.region(features))
    regions = len(space.axes) + 3 + sum(len(axis.severities) for axis in space.axes)
    # Of a space too large to list there are no more estimates than regions are sampled for.
    whole = space.size / len(features) if space.listed else 0
    return estimates * whole + region * regions


class _Dice:
    """Outcomes at random from a surface through those probed."""

    def __init__(self, session: Session, probed: Outcomes) -> None:
        self._session, self._probed = session, probed
        self._random = np.random.default_rng(session.seed)
        self._common = self._random.normal(size=probed.inputs) * COMMON**0.5

    def thrown(self, work: Work) -> Outcomes:
        """Outcomes of the work."""
        from scipy.special import ndtri

        threshold = ndtri(np.clip(self._rates(work.configurations), 1e-6, 1 - 1e-6))
        known = Outcomes(self._probed.inputs)
        for row, test in enumerate(work.configurations.tolist()):
            places = work.places[row] if isinstance(work.places, list) else work.places
            own = self._random.normal(size=len(places)) * (1 - COMMON) ** 0.5
            passed = self._common[places] + own < threshold[row]
            # Scores that are all or nothing: those of the run will spread less.
            kept = {VALUE: passed.astype(np.float32)} if self._session.options.score is not None else None
            known.record(test, places, passed, kept)
        return known

    def _rates(self, tests: Ids) -> NDArray[np.float64]:
        """Rough pass rates of tests."""
        if self._surface is None:
            return np.full(len(tests), np.mean([row.mean() for row in self._passed()]))
        return self._surface.predict(self._session.space.matrix(tests))[0]

    def _passed(self) -> list[NDArray[np.bool_]]:
        return [self._probed.trials(test)[1] for test in self._probed]

    @cached_property
    def _surface(self) -> Surrogate | None:
        """None where the order of application counts, of which the process knows nothing."""
        space, ids = self._session.space, np.array(sorted(self._probed), np.int64)
        if space.order_sensitive:
            return None
        process = resolve("process", self._session.seed, [axis.severities for axis in space.axes])
        assert process is not None
        return evidence(process, self._probed, ids, space.matrix(ids)).fit(process)
