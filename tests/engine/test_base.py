"""How many inputs a model gets at a time."""

from testifai.engine.base import BatchSize


def timed(batch_size: BatchSize, seconds) -> int:
    for _ in range(1000):
        size = batch_size.next()
        batch_size.note(size, seconds(size))
    return batch_size.next()


def test_batch_size_is_what_was_told():
    assert timed(BatchSize(7, 100), lambda size: 1.0) == 7
    assert timed(BatchSize(10_000, 1 << 20), lambda size: 1.0) == 10_000


def test_batch_size_is_the_quickest_per_input():
    assert timed(BatchSize(None, 100), lambda size: size * (1 + abs(size - 128))) == 128
    assert timed(BatchSize(None, 100), lambda size: 1.0) == 512
    assert timed(BatchSize(None, 100), lambda size: size**2) == 32


def test_among_batch_sizes_as_quick_as_each_other_the_smallest_is_taken():
    assert timed(BatchSize(None, 100), lambda size: size * 0.5) == 32
    assert timed(BatchSize(None, 100), lambda size: size * (0.515 if size == 64 else 0.6 if size == 32 else 0.5)) == 64


def test_one_slow_call_does_not_decide_the_batch_size():
    hiccups = iter([50.0])
    assert timed(BatchSize(None, 100), lambda size: size * 0.5 + (next(hiccups, 0) if size == 32 else 0)) == 32


def test_batches_are_limited_in_bytes_and_odd_sizes_are_not_timed():
    assert timed(BatchSize(None, (4 << 20) // 100), lambda size: 1.0) == 64
    assert BatchSize(None, 1 << 30).next() == 1
    sizes = BatchSize(None, 100)
    for _ in range(100):
        sizes.note(33, 1e-9)
    assert sizes.next() in BatchSize.SIZES


def test_sizes_far_slower_than_the_best_end_the_tries():
    sizes, tried = BatchSize(None, 100, sizes=(512, 128, 32, 8), tries=2), []
    for _ in range(20):
        tried.append(sizes.next())
        sizes.note(tried[-1], 1.0 + (0.1 if tried[-1] < 64 else 0) + tried[-1] / 100)
    assert sizes.next() == 512
    assert tried.count(8) <= 2


def test_a_limit_on_sizes_tried_from_the_largest_leaves_the_largest():
    sizes = BatchSize(None, 100, sizes=(512, 128, 32), tries=1)
    timed(sizes, lambda size: 1.0)
    sizes.limit(200)
    assert sizes.next() == 128
