"""The dry run: what a session would cost, from one timed batch."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from testifai.engine import repeat
from testifai.engine.plan import Work
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import BLOCK
from testifai.scans.chance import ENOUGH, FEWEST
from testifai.scans.session import Session
from testifai.support.batches import take

SAMPLED_TESTS = 24
FIRST_INPUTS = 16
SECONDS = 2.0  # to spend on timing, about
EDITED_INPUTS = 2000  # texts to look at for places
# SQLite gives a row of more than a quarter of a page, which is as many values, a page of its own besides a part of one.
UNSPILT_VALUES = 240
SPILT_BYTES = 4900


@dataclass(frozen=True)
class Room:
    """How many of some inputs have places for the edits that an axis of texts asks for at its highest severity."""

    inputs: int
    asked: int
    short: int  # have places for fewer
    untouched: int  # have none: the axis leaves them as they are

    def __str__(self) -> str:
        looked = f"of {self.inputs:,} inputs, {self.untouched:,} have no place for an edit"
        return f"{looked}, {self.short - self.untouched:,} have some, but fewer than {self.asked}"


@dataclass(frozen=True)
class Cost:
    """What a run would take, at most."""

    tests: int
    run_tests: int
    inputs: int
    inferences: int
    seconds: float
    file_bytes: int
    workers: int
    batch_size: int
    clean_accuracy: float | None
    clean_inputs: int = 0  # on which clean accuracy was seen
    near_chance: str | None = None  # what to look at where that is hardly better than guessing
    room: dict[str, Room] = field(default_factory=dict)  # of axes of texts
    asked_twice: dict[str, int] | None = None  # None for a model that is known to answer the same each time

    def differs(self) -> str | None:
        """What it means if the model does not answer the same each time."""
        return repeat.words(self.asked_twice)

    def notes(self) -> list[str]:
        """What to know before a run besides what it costs."""
        return [f"{axis}: {room}" for axis, room in self.room.items()]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def estimate(session: Session) -> Cost:
    """Run one batch of inputs through a sample of the tests and extrapolate. Nothing is stored."""
    progress = session.progress()
    work = session.strategy.propose(progress)
    tests = np.zeros(1, np.int64) if work is None else work.configurations
    sample = tests[np.unique(np.linspace(0, len(tests) - 1, min(SAMPLED_TESTS, len(tests))).astype(int))]
    executor, inputs = session.executor, len(session.data.inputs)
    thrown_away = Outcomes(inputs)

    def timed(configurations: Any, places: Any) -> float:
        start = time.perf_counter()
        executor.run(
            Work(configurations, places),
            Outcomes(inputs),
            lambda m: thrown_away.record(m.configuration, m.places, m.passed),
        )
        return time.perf_counter() - start

    few = np.arange(min(inputs, FIRST_INPUTS * executor.workers))
    timed(np.zeros(1, np.int64), few)  # the first call of a model is never typical
    # Other inputs than those, if there are any: a model of texts remembers what it has seen.
    others = np.arange(len(few), 2 * len(few)) if inputs >= 2 * len(few) else few
    clean = timed(np.zeros(1, np.int64), others) / len(others)
    affordable = int(SECONDS / clean / len(sample))
    places = np.arange(min(inputs, executor.chunk, max(len(few), affordable)))
    seconds = timed(sample, places) / (len(sample) * len(places))
    inferences = session.strategy.expected(progress)
    # As many clean inputs as tell whether the model is fed rightly, if that takes no longer.
    timed(np.zeros(1, np.int64), np.arange(min(inputs, ENOUGH, max(FEWEST, int(SECONDS / clean)))))
    passes, trials = thrown_away.counts([0])
    return Cost(
        tests=session.space.size,
        run_tests=len(tests),
        inputs=inputs,
        inferences=inferences,
        seconds=seconds * inferences,
        file_bytes=_file_bytes(len(tests), inputs, inferences, len(session.keep)),
        workers=executor.workers,
        batch_size=executor.batch_size.next(),
        clean_accuracy=float(passes[0] / trials[0]) if trials[0] else None,
        clean_inputs=int(trials[0]),
        near_chance=session.near_chance(thrown_away),
        room=_room(session),
        asked_twice=_asked_twice(session),
    )


def _asked_twice(session: Session) -> dict[str, int] | None:
    if session.model.repeatable:
        return None
    inputs = repeat.affordable(len(session.data.inputs), None)
    return repeat.ask_twice(session.subject, inputs).as_dict()


def _room(session: Session) -> dict[str, Room]:
    """Whether the texts have places for what the axes do to them; where few have, an axis says little."""
    data, found = session.data, {}
    if not isinstance(data.inputs, list):
        return {}
    from testifai.perturb.texts.edits import TextEdits
    from testifai.perturb.texts.report import edits

    chosen = session.subject.order[:EDITED_INPUTS]
    batch = take(data.inputs, chosen)
    for axis in session.space.axes:
        if isinstance(axis.perturbation.function, TextEdits):
            report = edits(
                axis.perturbation, batch, max(axis.severities), seed=session.seed, indices=chosen, side=data.side
            )
            found[axis.name] = Room(len(batch), report.asked, report.short, report.untouched)
    return found


def _file_bytes(tests: int, inputs: int, inferences: int, kept: int) -> int:
    """At the most: two bits and every kept value an outcome, some 50 bytes a row, a row for each block of a test."""
    rows = tests * -(-inputs // BLOCK)
    values = 4 * inferences * 4 // 3  # pages of the file are not filled to the end
    if min(inputs, BLOCK) > UNSPILT_VALUES:
        values = min(SPILT_BYTES * rows, SPILT_BYTES * inferences // UNSPILT_VALUES)
    return 40_000 + 50 * rows * (1 + kept) + inferences // 4 + kept * values
