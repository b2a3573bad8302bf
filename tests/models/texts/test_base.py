from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.models.texts.base import RowCache, Tokenizer, of_equal_length

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
    from testifai.models.texts.base import _size

    return _size(key, row)


@pytest.mark.parametrize("limit", [-1, True, "1", float("nan")])
def test_a_limit_that_is_none(limit):
    with pytest.raises(InputError, match="cache_mb"):
        RowCache(limit)


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 100))
def test_every_text_once_with_others_of_its_length(lengths, tokens):
    groups = [places.tolist() for places in of_equal_length(lengths, tokens)]
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    for group in groups:
        assert len({lengths[place] for place in group}) == 1
        assert len(group) == 1 or len(group) * lengths[group[0]] <= tokens


def test_texts_and_pairs_without_padding(tokenizer_file):
    tokenizer = Tokenizer.read(tokenizer_file)
    short, long = tokenizer(["cat", "what is the cat"])
    assert len(short.ids) == 3
    assert len(long.ids) == 6
    (pair,) = tokenizer([("cat", "the dog")])
    assert pair.ids[:3] == short.ids
    assert pair.types == [0, 0, 0, 1, 1, 1]


def test_padding_and_length_stored_in_the_file(tokenizer_file):
    tokenizers = pytest.importorskip("tokenizers")
    stored = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    stored.enable_padding(length=20)
    stored.enable_truncation(4)
    stored.save(str(tokenizer_file))
    text = "what is the best way"
    assert [len(one.ids) for one in Tokenizer.read(tokenizer_file)([text, "cat"])] == [4, 3]
    assert len(Tokenizer.read(tokenizer_file, max_length=6)([text])[0].ids) == 6


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=20), min_size=1, max_size=4))
def test_any_text(tokenizer_file, texts):
    tokenizer = Tokenizer.read(tokenizer_file, max_length=8)
    assert all(0 < len(one.ids) <= 8 for one in tokenizer(texts))
    assert all(0 < len(one.ids) <= 8 for one in tokenizer([(text, text) for text in texts]))


def test_texts_that_are_hard(tokenizer_file):
    tokenizer = Tokenizer.read(tokenizer_file, max_length=8)
    texts = ["", "cat " * 25_000, b"cat \xff dog".decode("utf-8", "surrogateescape"), "🙂", "שלום عالم", "\ud83d"]
    lengths = [len(one.ids) for one in tokenizer(texts)]
    assert lengths[:3] == [2, 8, 4]  # a replacement character is no word
    assert tokenizer(["cat"])[0] == tokenizer(["cat", "\ud800"])[0]  # one such text changes nothing for the others


def test_a_text_without_tokens_gets_one(tokenizer_file):
    tokenizers = pytest.importorskip("tokenizers")
    bare = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    bare.post_processor = tokenizers.processors.TemplateProcessing("$A", "$A $B", [])
    assert Tokenizer(bare)([""]) == [([0], [0])]


def test_files_that_are_no_tokenizer(tmp_path):
    pytest.importorskip("tokenizers")
    with pytest.raises(InputError, match=r"model\.tokenizer: .*t\.json does not exist; give the model's tokenizer"):
        Tokenizer.read(tmp_path / "t.json")
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(InputError, match="not a usable tokenizer"):
        Tokenizer.read(tmp_path / "t.json")
