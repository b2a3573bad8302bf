"""The dry run: the cost of a session, estimated from a timed part of its first work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from testifai.data.annotations import CLASS, COLUMNS, NONE
from testifai.engine.base import BatchOutcome
from testifai.engine.plan import Work
from testifai.runs.outcomes import VALUE, Ids, Outcomes
from testifai.runs.reader import BLOCK
from testifai.session import observers
from testifai.session.observers import ENOUGH, FEWEST
from testifai.session.session import Session
from testifai.support.batches import take
from testifai.support.types import Record
from testifai.surrogates import Surrogate, resolve
from testifai.surrogates.fitting import evidence
from testifai.tomogram.estimator import SAMPLED as SAMPLED_OF_ALL
from testifai.tomogram.estimator import Estimator, EstimatorSettings
from testifai.tomogram.region_estimator import DRAWN, DRAWN_EACH, IN_A_TABLE
from testifai.tomogram.trust import refits

SHARED_PLACES = 200  # of work on the same inputs; more would hardly change the fit
PLAYED = 10.0  # seconds of planning after which the rest is extrapolated
SAMPLED = 2_000  # tests whose estimates and sum are timed
COMMON = 0.5  # assumed share of an input's difficulty that is the same under all tests


@dataclass(frozen=True)
class Forecast:
    """The expected work of a run."""

    inferences: int
    at_once: int  # inputs of a test in one round
    seconds: float  # for everything but inferences


def forecast(session: Session, work: Work, probed: Outcomes) -> Forecast:
    """Predict the work of a run from its first work and the outcomes of some tests."""
    progress, simulated = session.progress(), SimulatedOutcomes(session, probed)
    if isinstance(work.places, list):
        known, rounds, planning = _simulate(session, simulated)
    else:
        known, rounds, planning = simulated.outcomes(Work(work.configurations, work.places[:SHARED_PLACES])), 1, 0.0
    settings = EstimatorSettings(session.methods.surrogate, session.seed, session.options.population)

    def fitted() -> Surrogate | None:
        surrogate = Estimator(session.space, known, settings).fitted()
        if surrogate is not None:
            surrogate.region(session.space.matrix(_some(session)[:1]))  # the first call also computes what it caches
        return surrogate

    surrogate, fit = _timed(fitted)
    if surrogate is None:
        inferences, seconds = session.strategy.expected(progress), 0.0
    else:
        foreseen = session.strategy.expected_cost(progress, known, surrogate)
        inferences, seconds = foreseen.inferences, planning + foreseen.fits * fit
        if inferences < session.space.size * len(session.data.inputs) or session.options.population != "data":
            seconds += (1 + refits(surrogate, len(known), session.space)) * fit + _answers(session, surrogate)
    return Forecast(inferences, -(-inferences // (rounds * len(known))), seconds)


def _simulate(session: Session, simulated: SimulatedOutcomes) -> tuple[Outcomes, int, float]:
    """Simulate rounds for a while; return the outcomes, the number of rounds and the seconds for planning."""
    progress = replace(session.progress(), outcomes=Outcomes(len(session.data.inputs)), decided={})
    rounds, planning = 0, 0.0
    while planning < PLAYED:
        work, seconds = _timed(lambda: session.strategy.propose(progress))
        planning += seconds
        if work is None:
            break
        progress.outcomes.merge(simulated.outcomes(work))
        rounds += 1
    return progress.outcomes, max(1, rounds), planning


def _timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return task(), time.perf_counter() - start


def _some(session: Session) -> Ids:
    """Return neighbouring tests."""
    size = session.space.size
    number = min(SAMPLED, size)
    return np.arange((size - number) // 2, (size + number) // 2)


def _answers(session: Session, surrogate: Surrogate) -> float:
    """Return the seconds for the means by order and severity in a summary."""
    space = session.space
    features = space.matrix(_some(session))
    _, estimates = _timed(lambda: surrogate.predict(features))
    surrogate.region(features)  # fills caches
    _, region = _timed(lambda: surrogate.region(features))
    if space.listed:
        regions = len(space.axes) + 3 + sum(len(axis.severities) for axis in space.axes)
        return estimates * space.size / len(features) + region * regions
    orders = len(space.axes) + 1
    drawn = DRAWN + SAMPLED_OF_ALL + orders * min(DRAWN_EACH, IN_A_TABLE // orders)
    return region * drawn / len(features)


class SimulatedOutcomes:
    """Random outcomes with the rates of a surface that is fitted to some tests."""

    def __init__(self, session: Session, probed: Outcomes) -> None:
        self._session, self._inputs, space = session, probed.inputs, session.space
        self._random = np.random.default_rng(session.seed)
        self._common = self._random.normal(size=probed.inputs) * COMMON**0.5
        process = resolve("process", session.seed, [axis.severities for axis in space.axes])
        ids = np.array(sorted(probed))
        assert process is not None
        self._surface = evidence(process, probed, ids, space.matrix(ids)).fit(process)

    def outcomes(self, work: Work) -> Outcomes:
        from scipy.special import ndtri

        rates = self._surface.predict(self._session.space.matrix(work.configurations))[0]
        threshold = ndtri(np.clip(rates, 1e-6, 1 - 1e-6))
        known = Outcomes(self._inputs)
        for row, test in enumerate(work.configurations.tolist()):
            places = work.places[row] if isinstance(work.places, list) else work.places
            own = self._random.normal(size=len(places)) * (1 - COMMON) ** 0.5
            passed = self._common[places] + own < threshold[row]
            # Scores of 0 and 1 vary more than those of the run.
            kept = {VALUE: passed.astype(np.float32)} if self._session.options.score is not None else None
            known.record(test, places, passed, kept)
        return known


BLOCKS = 6  # of neighbouring tests to time: neighbours share perturbed inputs
FIRST_INPUTS = 16
SECONDS = 2.0  # approximate time for measuring
EDITED_INPUTS = 2000  # texts to inspect
# SQLite stores a row of more values, a quarter of a page, on pages of its own.
UNSPILT_VALUES = 240
SPILT_BYTES = 4900


@dataclass(frozen=True)
class Room:
    """Number of texts with enough places for the edits of an axis at its highest severity."""

    inputs: int
    asked: int  # edits
    short: int  # inputs with places for fewer
    untouched: int  # inputs without any

    def __str__(self) -> str:
        looked = f"of {self.inputs:,} inputs, {self.untouched:,} have no place for an edit"
        return f"{looked}, {self.short - self.untouched:,} have some, but fewer than {self.asked}"


@dataclass(frozen=True)
class Cost:
    """The cost of a run: `foreseen` inferences and `seconds` in total, `fitting` of them not for inferences."""

    tests: int
    run_tests: int
    inputs: int
    inferences: int  # at most
    seconds: float
    file_bytes: int
    workers: int
    batch_size: int
    clean_accuracy: float | None
    clean_inputs: int = 0  # for clean accuracy
    near_chance: str | None = None  # a warning about clean accuracy
    foreseen: int = 0
    fitting: float = 0.0  # seconds for planning, fitting, estimates and trust
    room: dict[str, Room] = field(default_factory=dict)  # by axis of texts
    asked_twice: dict[str, int] | None = None  # None for a model that is known to be deterministic

    def differs(self) -> list[str]:
        """Return a warning if the model is not deterministic, or depends on the batch."""
        return observers.not_repeatable(self.asked_twice)

    def notes(self) -> list[str]:
        return [f"{axis}: {room}" for axis, room in self.room.items()]

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return asdict(self)


def estimate(session: Session) -> Cost:
    """Run a part of the first work and extrapolate; nothing is stored."""
    progress = session.progress()
    work = session.strategy.propose(progress)
    if work is None:
        work = Work(np.zeros(1, np.int64), np.arange(1))
    executor, inputs = session.executor, len(session.data.inputs)
    probed = Outcomes(inputs)
    boxes: list[tuple[int, int]] = []  # numbers of boxes and inputs of each batch

    def timed(part: Work) -> float:
        """Return the seconds per inference."""
        done, start = 0, time.perf_counter()

        def hand_over(measured: BatchOutcome) -> None:
            nonlocal done
            probed.record(measured.configuration, measured.places, measured.passed)
            packed = [values for values in measured.kept.values() if values.ndim > 1]
            boxes.append((sum(int(np.count_nonzero(one[..., CLASS] != NONE)) for one in packed), len(measured.places)))
            done += len(measured.places)

        executor.run(part, Outcomes(inputs), hand_over)
        return (time.perf_counter() - start) / done

    few = min(inputs, FIRST_INPUTS * executor.workers)
    timed(Work(np.zeros(1, np.int64), np.arange(few)))  # the first call of a model is never typical
    rough = timed(_part(work, BLOCKS * few, few))
    expected = forecast(session, work, probed)
    typical = _like(work, expected.at_once, inputs)
    seconds = timed(_part(typical, max(BLOCKS * few, int(SECONDS / rough)), executor.chunk))
    # Enough clean inputs to check clean accuracy, if that takes no longer.
    timed(Work(np.zeros(1, np.int64), np.arange(min(inputs, ENOUGH, max(FEWEST, int(SECONDS / rough))))))
    passes, trials = (int(count[0]) for count in probed.counts([0]))
    clean_accuracy = next(one for one in session.observers if isinstance(one, observers.CleanAccuracy))
    inferences, tests = session.strategy.expected(progress), len(work.configurations)
    checked = 0 if session.model.repeatable else observers.affordable(inputs, None)
    return Cost(
        tests=session.space.size,
        run_tests=tests,
        inputs=inputs,
        inferences=inferences,
        seconds=seconds * expected.inferences + expected.seconds,
        file_bytes=_file_bytes(tests, inputs, inferences, len(session.subject.keep), boxes),
        workers=executor.workers,
        batch_size=executor.batch_size.next(),
        clean_accuracy=passes / trials if trials else None,
        clean_inputs=trials,
        near_chance=clean_accuracy.warning(probed),
        foreseen=expected.inferences,
        fitting=expected.seconds,
        room=_room(session),
        asked_twice=observers.check_repeatability(session.subject, checked) if checked else None,
    )


def _like(work: Work, at_once: int, inputs: int) -> Work:
    """Return the work with as many inputs for each test as an average round of the run."""
    if not isinstance(work.places, list):
        return work
    random, least = np.random.default_rng(0), at_once
    more = [one if len(one) >= least else np.sort(random.permutation(inputs)[:least]) for one in work.places]
    return Work(work.configurations, more)


def _part(work: Work, inferences: int, chunk: int) -> Work:
    """Return a part of the work: some blocks of neighbouring tests, on at most a chunk of shared inputs."""
    tests = len(work.configurations)
    own = isinstance(work.places, list)
    each = max(1, int(np.median([len(asked) for asked in work.places]))) if own else min(len(work.places), chunk)
    width = min(tests, max(1, inferences // (BLOCKS * each)))
    order = np.argsort(work.configurations, kind="stable")
    starts = np.linspace(0, tests - width, BLOCKS).astype(int)
    chosen = order[np.unique(starts[:, None] + np.arange(width))]
    if isinstance(work.places, list):
        # The clean test may have more inputs than all others together.
        return Work(work.configurations[chosen], [work.places[row][: 2 * each] for row in chosen.tolist()])
    return Work(work.configurations[chosen], work.places[: max(1, min(chunk, inferences // len(chosen)))])


def _room(session: Session) -> dict[str, Room]:
    """Return for each axis of texts how many have places for its edits."""
    data, found = session.data, {}
    if not isinstance(data.inputs, list):
        return {}
    from testifai.perturb.text_edits import TextEdits, edits

    chosen = session.subject.order[:EDITED_INPUTS]
    batch = take(data.inputs, chosen)
    for axis in session.space.axes:
        if isinstance(axis.perturbation.function, TextEdits):
            report = edits(
                axis.perturbation, batch, max(axis.severities), seed=session.seed, indices=chosen, side=data.side
            )
            found[axis.name] = Room(len(batch), report.asked, report.short, report.untouched)
    return found


def _file_bytes(tests: int, inputs: int, inferences: int, kept: int, boxes: Sequence[tuple[int, int]]) -> int:
    """Return the most bytes of a run file.

    An outcome has two bits and its kept values, a row (a block of a test) some 50 bytes. Boxes are counted without
    compression, 1.5 times as many per input as measured.
    """
    rows = tests * -(-inputs // BLOCK)
    values = 4 * inferences * 4 // 3  # pages of the file are not filled to the end
    if min(inputs, BLOCK) > UNSPILT_VALUES:
        values = min(SPILT_BYTES * rows, SPILT_BYTES * inferences // UNSPILT_VALUES)
    found, of = sum(some for some, _ in boxes), sum(looked_at for _, looked_at in boxes)
    boxed = 2 * SPILT_BYTES * rows + inferences * 3 * 4 * (1 + COLUMNS) * found // (2 * of) if found else 0
    return 40_000 + 50 * rows * (1 + kept) + inferences // 4 + kept * values + boxed
