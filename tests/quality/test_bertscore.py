"""BERTScore: against loops over tokens, with functions and with a small network made on the spot."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.quality import bertscore as module
from testifai.quality import resolve
from testifai.quality.bertscore import match, unit_rows

WORDS = ["what", "is", "the", "best", "way", "to", "learn", "why", "how", "cat", "dog", "?"]
TEXTS = ["what is the best way to learn", "why is the dog", "how to learn the way ?", "the cat is the best"]


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))


def by_loops(clean, perturbed):
    """Zhang et al. 2020, §3, token by token."""
    recall = sum(max(cosine(x, y) for y in perturbed) for x in clean) / len(clean)
    precision = sum(max(cosine(x, y) for x in clean) for y in perturbed) / len(perturbed)
    return 2 * precision * recall / (precision + recall)


def letters(texts):
    return [
        [[word.count(letter) for letter in "abcdehst"] + [1] for word in text.split()] or np.empty((0, 9))
        for text in texts
    ]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_matching_is_the_definition(seed, m, n):
    rng = np.random.default_rng(seed)
    clean, perturbed = rng.normal(1, 1, size=(m, 4)), rng.normal(1, 1, size=(n, 4))
    found = match(unit_rows(clean), unit_rows(perturbed))
    similar = (
        [max(cosine(x, y) for y in perturbed) for x in clean],
        [max(cosine(x, y) for x in clean) for y in perturbed],
    )
    if min(np.mean(similar[0]), np.mean(similar[1])) <= 0:
        assert found == 0
    else:
        assert found == pytest.approx(by_loops(clean, perturbed), abs=1e-6)


def test_nothing_matches_nothing_alone():
    some, none = np.ones((2, 3), np.float32), np.empty((0, 3), np.float32)
    assert match(none, none) == 1
    assert match(some, none) == match(none, some) == 0
    assert match(unit_rows(np.array([[1.0, 0]])), unit_rows(np.array([[-1.0, 0]]))) == 0


def test_scores_of_texts_and_of_pairs():
    changed = ["what is the beste way", "why is the dog", "", "the best cat"]
    expected = [
        by_loops(*letters([a, b])) if a != b and b else float(a == b) for a, b in zip(TEXTS, changed, strict=True)
    ]
    reference = resolve({"use": "bertscore", "encoder": letters}).reference(TEXTS, None, seed=0)
    found = reference.score([changed[row] for row in reference.rows])
    assert found.value == pytest.approx(np.mean(expected), abs=1e-6)
    assert found.error == pytest.approx(np.std(expected, ddof=1) / 2, abs=1e-6)
    pairs, other = list(zip(TEXTS, TEXTS[::-1], strict=True)), list(zip(changed, TEXTS[::-1], strict=True))
    for side, wanted in (("first", np.mean(expected)), ("second", 1.0), ("both", (np.mean(expected) + 1) / 2)):
        reference = resolve({"use": "bertscore", "encoder": letters, "side": side}).reference(pairs, None, seed=0)
        assert reference.score(other).value == pytest.approx(wanted, abs=1e-6)


def test_rescaling_moves_a_baseline_to_0_and_leaves_1():
    changed = [text.replace("the", "a") for text in TEXTS]
    plain, rescaled = (
        resolve({"use": "bertscore", "encoder": letters, "rescale": b}).reference(TEXTS, None, seed=0)
        for b in (None, 0.4)
    )
    assert rescaled.score(changed).value == pytest.approx((plain.score(changed).value - 0.4) / 0.6)
    assert rescaled.score(TEXTS) == (1.0, 0.0)


def test_a_measured_baseline_is_the_mean_of_other_texts():
    # Two texts: the only pair there is.
    two = TEXTS[:2]
    baseline = by_loops(*letters(two))
    measure = resolve({"use": "bertscore", "encoder": letters, "rescale": "measured"})
    reference = measure.reference(two, None, seed=0)
    changed = ["what is it", "why"]
    f1 = np.mean([by_loops(*letters(both)) for both in zip(two, changed, strict=True)])
    assert reference.score(changed).value == pytest.approx((f1 - baseline) / (1 - baseline), abs=1e-6)
    with pytest.raises(InputError, match="at least 2 different texts"):
        measure.reference(["same", "same"], None, seed=0)
    with pytest.raises(InputError, match="nothing is left to rescale"):
        measure.reference(["abc", "cab"], None, seed=0)


def test_each_distinct_text_is_encoded_once(monkeypatch):
    seen = []

    def noting(texts):
        seen.extend(texts)
        return letters(texts)

    reference = resolve({"use": "bertscore", "encoder": noting}).reference(TEXTS[:2] * 5, None, seed=0)
    changed = [(TEXTS[:2] * 5)[row] + " now" for row in reference.rows]
    first = reference.score(changed)
    assert sorted(seen) == sorted({*TEXTS[:2], *changed})
    reference.score([text + " again" for text in changed])
    assert len(seen) == len(set(seen)) == 6
    assert reference.score(changed) == first
    assert len(seen) == 6
    # Without memory for clean texts they are encoded again, with the same result.
    monkeypatch.setattr(module, "_KEPT", 0)
    forgetful = resolve({"use": "bertscore", "encoder": noting}).reference(TEXTS[:2] * 5, None, seed=0)
    assert forgetful.score(changed) == first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoder": 3}, "encoder = 3 is not accepted"),
        ({"encoder": "no/such/folder"}, "encoder: .*no/such/folder does not exist"),
        ({"encoder": letters, "rescale": 1}, "rescale: must be a number, above -1 and below 1, got 1"),
        ({"encoder": letters, "rescale": "random"}, "rescale: must be one of measured, got 'random'"),
        ({"encoder": letters, "rescale": True}, "rescale: must be a number, above -1 and below 1, got True"),
        ({"encoder": letters, "layer": "last"}, "layer: must be a whole number, got 'last'"),
        ({"encoder": letters, "max_length": 0}, "max_length: must be a whole number, at least 3, got 0"),
        ({"encoder": letters, "side": "none"}, "side: must be one of first, second, both, got 'none'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options, words):
    with pytest.raises(InputError, match=f"^quality: {words}") as problem:
        resolve({"use": "bertscore", **options})
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("wrong", [lambda texts: [[1.0, 2.0]] * len(texts), lambda texts: []])
def test_an_encoder_must_give_a_table_for_each_text(wrong):
    reference = resolve({"use": "bertscore", "encoder": wrong}).reference(TEXTS, None, seed=0)
    with pytest.raises(InputError, match="must give a table"):
        reference.score([text + " more" for text in TEXTS])


# -- a network in a folder ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path_factory.mktemp("encoder")
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    made.save(str(path / "tokenizer.json"))
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 16, **special}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(names), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=16,
    )  # fmt: skip
    network = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in network.parameters():  # the usual start makes all tokens alike
            parameter.normal_(0, 0.4)
    network.save_pretrained(path)
    return path


def states_by_hand(folder, text, layer):
    """Each text alone, without the marks at its ends."""
    import torch
    from transformers import BertModel

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    ids = [2, *(names.index(word) if word in names else 1 for word in text.split()), 3]
    network = BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = network(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[layer]
    return states[0, 1:-1].double().numpy()


@pytest.mark.parametrize("layer", [-1, 1, 0])
def test_a_network_in_a_folder_is_matched_token_by_token(folder, layer):
    changed = ["what is the best best to learn", "why is the unknown", "how to learn ?", "cat"]
    expected = [
        by_loops(states_by_hand(folder, a, layer), states_by_hand(folder, b, layer))
        for a, b in zip(TEXTS, changed, strict=True)
    ]
    measure = resolve({"use": "bertscore", "encoder": folder.name, "layer": layer}, folder=folder.parent)
    reference = measure.reference(TEXTS, None, seed=0)
    assert reference.score(changed).value == pytest.approx(np.mean(expected), abs=1e-5)
    alone = [measure.encoder([text])[0] for text in TEXTS]
    for one, together in zip(alone, measure.encoder(TEXTS), strict=True):
        np.testing.assert_allclose(one, together, atol=1e-5)


def test_texts_of_every_kind_have_a_score(folder):
    measure = resolve({"use": "bertscore", "encoder": str(folder)})
    assert str(folder) not in json.dumps(measure.describe())
    texts = ["", " ", "what is the best", "😀 שלום", "a\ud800b", "the " * 5000, "the", "?"]
    reference = measure.reference(texts, None, seed=0)
    found = reference.score(["what", "", "", "😀", "\udfff", "the " * 4000, "dog", ""])
    assert 0 <= found.value <= 1
    assert reference.score(texts) == (1.0, 0.0)


def test_a_layer_that_is_not_there_and_a_folder_that_is_no_encoder(folder, tmp_path):
    with pytest.raises(InputError, match=r"^quality: layer = 3 is not accepted; the encoder's are 0 to 2"):
        resolve({"use": "bertscore", "encoder": str(folder), "layer": 3})
    with pytest.raises(InputError, match=r"^quality: encoder: .* has no config\.json"):
        resolve({"use": "bertscore", "encoder": str(tmp_path)})
