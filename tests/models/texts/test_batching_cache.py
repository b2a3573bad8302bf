from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.models.texts.batching import RowCache

TEXTS = st.lists(st.text("abc", max_size=3), max_size=12)


def lengths(texts):
    return np.array([[len(text), 1] for text in texts]).reshape(len(texts), 2)


@given(st.lists(TEXTS, max_size=5), st.sampled_from([0, 0.002, 1]))
def test_rows_are_those_of_the_texts_whatever_is_kept(batches, limit):
    cache = RowCache(limit)
    for batch in batches:
        assert np.array_equal(cache.rows(batch, lengths), lengths(batch))
        assert cache.bytes <= limit * 2**20


def test_what_is_known_is_not_worked_out_again():
    asked = []

    def compute(texts):
        asked.append(texts)
        return lengths(texts)

    cache = RowCache()
    cache.rows(["a", "bb", "a"], compute)
    cache.rows(["bb", "ccc", "ccc"], compute)
    cache.rows(["a", "ccc"], compute)
    assert asked == [["a", "bb"], ["ccc"]]


def test_pairs_are_told_from_their_reverse():
    rows = RowCache().rows([("a", "bb"), ("bb", "a")], lambda pairs: np.array([[len(pair[0])] for pair in pairs]))
    assert rows.tolist() == [[1], [2]]


def test_least_recently_asked_for_go_first():
    cache = RowCache(0.01)
    room = next(count for count in range(1, 10_000) if not fits(count))
    texts = [f"{place:04d}" for place in range(room - 1)]
    cache.rows(texts, lengths)
    cache.rows(texts[:1], lengths)
    cache.rows(["more"], lengths)
    missing = []
    cache.rows(texts, lambda some: missing.extend(some) or lengths(some))
    assert missing[0] == texts[1]
    assert texts[0] not in missing


def fits(count):
    cache = RowCache(0.01)
    cache.rows([f"{place:04d}" for place in range(count)], lengths)
    return len(cache) == count


def test_the_limit_is_of_memory_really_taken():
    texts = [f"a question of some forty letters, {place}" for place in range(4000)]
    rows = np.ones((len(texts), 64), np.float32)
    tracemalloc.start()
    cache = RowCache(1)
    cache.rows(texts, lambda _: rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The texts are counted too, though here the caller holds them.
    assert 0.6 * 2**20 < taken < 1.05 * 2**20
    assert 0 < len(cache) < len(texts)


def test_a_row_keeps_no_batch():
    cache = RowCache()
    cache.rows(["a", "bb"], lengths)
    assert all(row.base is None for row in cache._rows.values())


def test_threads_at_once():
    cache, wrong = RowCache(0.05), []

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            batch = ["x" * n for n in rng.integers(0, 200, 30)]
            if not np.array_equal(cache.rows(batch, lengths), lengths(batch)):
                wrong.append(seed)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.bytes == sum(size(key, row) for key, row in cache._rows.items()) <= cache.limit


def size(key, row):
    from testifai.models.texts.batching import _size

    return _size(key, row)


@pytest.mark.parametrize("limit", [-1, True, "1", float("nan")])
def test_a_limit_that_is_none(limit):
    with pytest.raises(InputError, match="cache_mb"):
        RowCache(limit)
