from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.models.texts.batching import Tokenizer, of_equal_length


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
