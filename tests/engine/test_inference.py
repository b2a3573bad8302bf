"""Asking models: one wording for what goes wrong, results in order, and nothing run that nobody waits for."""

import threading
import time

import numpy as np
import pytest

from testifai.engine.inference import AHEAD, call, in_order
from testifai.errors import InputError
from testifai.models import wrap


def fails(batch):
    raise RuntimeError("no memory\nmore")


def test_what_a_model_raises_is_one_line_that_says_where():
    with pytest.raises(InputError) as caught:
        call(fails, np.zeros((3, 2)), "level 0.5")
    assert str(caught.value) == "model: raised RuntimeError: no memory (batch of 3 inputs, level 0.5)"
    with pytest.raises(InputError, match=r"no memory \(batch of 3 inputs\)$"):
        call(fails, np.zeros((3, 2)))


def test_outputs_are_checked():
    with pytest.raises(InputError, match="model returned 1 outputs for 3"):
        call(wrap(lambda batch: batch[:1, 0]), np.zeros((3, 2)))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_whoever_is_quickest(workers):
    def run(job):
        time.sleep(0.002 * (job % 3 == 0))
        return job

    assert list(in_order(run, range(20), workers)) == list(range(20))


@pytest.mark.parametrize("workers", [1, 3])
def test_few_jobs_are_taken_ahead(workers):
    taken = []
    results = in_order(lambda job: job, (taken.append(job) or job for job in range(100)), workers)
    assert next(results) == 0
    assert len(taken) <= AHEAD * workers + 1
    results.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_ends_it_and_nothing_more_is_begun(workers):
    begun = []

    def run(job):
        begun.append(job)
        if job == 2:
            raise InputError("two")
        return job

    results = in_order(run, range(1000), workers)
    with pytest.raises(InputError, match="two"):
        list(results)
    assert len(begun) < 20
    assert not [one for one in threading.enumerate() if one.name.startswith("testifai")]
