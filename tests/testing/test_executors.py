"""The contract of executors finds each way to break it."""

import threading

import numpy as np
import pytest

from testifai.engine.base import BatchOutcome
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.runs.outcomes import Outcomes
from testifai.testing import check_executor


def handing(change):
    class Broken(LocalExecutor):
        def run(self, work, outcomes, hand_over):
            super().run(work, outcomes, lambda batch: change(batch, hand_over))

    return Broken


def changed(**parts):
    def change(batch, hand_over):
        given = {"passed": batch.passed, "kept": batch.kept, **{name: part(batch) for name, part in parts.items()}}
        hand_over(BatchOutcome(batch.configuration, batch.places, reference=batch.reference, **given))

    return handing(change)


def elsewhere(batch, hand_over):
    failed = []

    def run():
        try:
            hand_over(batch)
        except AssertionError as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


class Deaf(LocalExecutor):
    def __init__(self, subject, **options):
        super().__init__(subject, **{**options, "interrupted": lambda: False})


class Forgetful(LocalExecutor):
    def run(self, work, outcomes, hand_over):
        super().run(work, Outcomes(outcomes.inputs), hand_over)


class Thorough(LocalExecutor):
    def run(self, work, outcomes, hand_over):
        super().run(Work(work.configurations, np.arange(outcomes.inputs)), outcomes, hand_over)


class Lazy(LocalExecutor):
    def run(self, work, outcomes, hand_over):
        places = work.places if isinstance(work.places, list) else work.places[:-1]
        super().run(Work(work.configurations, places), outcomes, hand_over)


BREACHES = {
    "outcomes differ": changed(passed=lambda batch: ~batch.passed),
    "kept of trials differs": changed(kept=lambda batch: {name: values + 1 for name, values in batch.kept.items()}),
    "another thread": handing(elsewhere),
    "measured already": Forgetful,
    "other inputs than asked for": Thorough,
    "differ from a plain loop": Lazy,
    "goes on after an interrupt": Deaf,
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_executor(BREACHES[words])
    assert "\n" not in str(caught.value)


def test_outcomes_must_not_depend_on_the_batch_size():
    class Broken(LocalExecutor):
        def __init__(self, subject, **options):
            super().__init__(subject, **options)
            subject.seed += options["batch_size"] == 7

    with pytest.raises(AssertionError, match=r"outcomes differ .*'batch_size': 7"):
        check_executor(Broken)
