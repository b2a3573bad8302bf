"""Jobs in bundles, without a cluster: who gets how many, and in which order answers are handed on."""

import time

import numpy as np
import pytest

from testifai.engine.backend import hire
from testifai.engine.base import Threads
from testifai.engine.ray.executor import RayWorkers
from testifai.engine.ray.jobs import Bundled
from testifai.errors import InputError
from testifai.models import wrap

MODEL = wrap(lambda batch: batch[:, 0] > 0)


class Doubles:
    """Twice a number, and which numbers it was asked about."""

    model = MODEL

    def __init__(self):
        self.asked = []

    def __call__(self, job):
        self.asked.append(job)
        if job < 0:
            raise InputError("below 0")
        return 2 * job


class Disorder:
    """A pool that hands out a few bundles and answers the last of them first."""

    def __init__(self, ahead=4):
        self.loaded, self.ahead, self.sizes, self.closed = [], ahead, [], False

    def load(self, job):
        self.loaded.append(job)

    def run(self, cut, interrupted):
        hand = []
        while True:
            while len(hand) < self.ahead and (bundle := cut(2)) is not None:
                hand.append(bundle)
                self.sizes.append(len(bundle[1]))
            if not hand:
                return
            bundle = hand.pop()
            yield bundle, self.loaded[-1](bundle)


@pytest.fixture
def workers(monkeypatch):
    made = RayWorkers()
    monkeypatch.setattr(made, "_start", lambda: made.__dict__.setdefault("_pool_there", Disorder()))
    return made


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_answers_come_in_the_order_of_the_jobs(workers, count):
    job = Doubles()
    assert list(workers.map(job, iter(range(count)))) == [2 * job for job in range(count)]
    assert sorted(job.asked) == list(range(count))


def test_bundles_grow_with_the_speed_and_shrink_towards_the_end(workers):
    class Slow(Doubles):
        def __call__(self, job):
            time.sleep(0.001)
            return super().__call__(job)

    list(workers.map(Slow(), range(600)))
    sizes = workers._pool_there.sizes
    assert sizes[0] == 1
    assert 1 < max(sizes) <= 600 / 4  # nobody gets so much that another has nothing
    assert sum(sizes) == 600


def test_a_job_is_sent_once_however_often_it_is_asked(workers):
    job, other = Doubles(), Doubles()
    for _ in range(3):
        list(workers.map(job, range(10)))
    assert len(workers._pool_there.loaded) == 1
    list(workers.map(other, range(10)))
    list(workers.map(other, range(10), alone=True))  # one thread for it is what it has anyway: not thread-safe
    assert [one.job for one in workers._pool_there.loaded] == [job, other]


def test_an_error_is_told_as_it_was_raised(workers):
    with pytest.raises(InputError, match="below 0"):
        list(workers.map(Doubles(), [3, -1, 5]))


def test_threads_of_an_actor_are_as_many_as_its_cpus_where_the_model_allows_it():
    class Safe:
        model = type("Safe", (), {"thread_safe": True})()

    told = RayWorkers(cpus=3)
    assert told._bundled(Doubles(), alone=False).threads == 1
    assert told._bundled(Safe(), alone=False).threads == 3
    assert told._bundled(Safe(), alone=True).threads == 1


def test_a_bundle_says_how_long_it_took():
    said, seconds = Bundled(Doubles(), 2)((0, [1, 2, 3]))
    assert said == [2, 4, 6]
    assert seconds > 0


def test_who_is_hired_is_told_as_for_a_scan():
    assert isinstance(hire(None, None, MODEL), Threads)
    assert hire("local", 3, MODEL).workers == 3
    hired = hire({"use": "ray", "actors": 2, "cpus": 0.5}, None, MODEL)
    assert (hired.wanted.actors, hired.wanted.cpus) == (2, 0.5)
    with pytest.raises(InputError, match="executor: ray has no option 'actor'; did you mean 'actors'"):
        hire({"use": "ray", "actor": 2}, None, MODEL)
    assert np.array_equal(list(hire(None, 2, MODEL).map(Doubles(), [1, 2])), [2, 4])
