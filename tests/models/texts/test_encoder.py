from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from testifai import models
from testifai.errors import InputError
from testifai.session import assembly
from testifai.spec.parsing import parse

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from testifai.models.texts.encoder import Encoder, EncoderModel, Head, fit_head, pair_features  # noqa: E402  # noqa: E402

TEXTS = ["what is the best way to learn a language?", "why", "how can i do a", "cat", "a dog", "cat", ""]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))
HEADS = {False: Head(np.linspace(-1, 1, 16)[None], np.zeros(1)), True: Head(np.ones((3, 32)), np.arange(3.0))}


def states(folder, text):
    """The last layer's states of one text alone, by transformers."""
    module = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return module(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def test_embeddings_are_means_of_length_1(encoder_folder):
    made = Encoder(encoder_folder)(TEXTS)
    for text, row in zip(TEXTS, made, strict=True):
        mean = states(encoder_folder, text).mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)
    assert len({row.tobytes() for row in made.round(4)}) == 6


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("cls_token", lambda s: s[0]),
        ("lasttoken", lambda s: s[-1]),
        ("max_tokens", lambda s: s.max(axis=0)),
        ("mean_sqrt_len_tokens", lambda s: s.sum(axis=0) / np.sqrt(len(s))),
    ],
)
def test_other_poolings_without_normalising(encoder_folder, pooling, expected):
    (encoder_folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    modules = json.loads((encoder_folder / "modules.json").read_text())
    (encoder_folder / "modules.json").write_text(json.dumps(modules[:2]))
    made = Encoder(encoder_folder)(TEXTS[:2])
    for text, row in zip(TEXTS, made, strict=False):
        np.testing.assert_allclose(row, expected(states(encoder_folder, text)), atol=1e-5)


def test_two_poolings_stand_side_by_side(encoder_folder):
    settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    (encoder_folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    assert Encoder(encoder_folder).columns == 32


def test_a_network_alone_is_averaged(encoder_folder):
    (encoder_folder / "modules.json").unlink()
    made = Encoder(encoder_folder)(["why"])
    np.testing.assert_allclose(made[0], states(encoder_folder, "why").mean(axis=0), atol=1e-5)


def test_longest_text_is_the_folders(encoder_folder):
    (encoder_folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4}))
    encoder = Encoder(encoder_folder)
    assert not np.array_equal(*encoder(["cat dog", "cat why"]))
    assert np.array_equal(*encoder(["cat dog why", "cat dog how"]))
    assert np.array_equal(*Encoder(encoder_folder, max_length=3)(["cat dog", "cat why"]))


@pytest.mark.parametrize("pairs", [False, True])
def test_scores_are_the_heads_of_the_features(encoder_folder, pairs):
    model = EncoderModel(encoder_folder, head=HEADS[pairs])
    inputs = PAIRS if pairs else TEXTS
    embeddings = Encoder(encoder_folder)
    features = pair_features(embeddings(TEXTS), embeddings(TEXTS[::-1])) if pairs else embeddings(TEXTS)
    np.testing.assert_allclose(model.features(inputs), features, atol=1e-6)
    head = HEADS[pairs]
    scores = features @ head.coef.T + head.intercept
    scores = scores if pairs else np.hstack([0 * scores, scores])
    np.testing.assert_allclose(model(inputs), scores, atol=1e-5)
    outputs, traced = model.traced(inputs)
    np.testing.assert_allclose(outputs, scores, atol=1e-5)
    np.testing.assert_allclose(traced, features, atol=1e-6)
    assert model.classes == (3 if pairs else 2)
    assert model.outputs == "scores"
    assert model([]).shape == (0, model.classes)


def test_each_text_runs_once(encoder_folder):
    model = EncoderModel(encoder_folder, head=HEADS[True])
    seen = []
    inner = model.encoder.network.tokenizer
    model.encoder.network.tokenizer = lambda texts: seen.extend(texts) or inner(texts)
    model(PAIRS)
    model([("cat", "why"), ("new", "cat")])
    assert sorted(seen) == sorted({*TEXTS, "new"} - {""})  # the empty text was used to see the embedding's length


def test_same_with_and_without_memory_in_any_batch(encoder_folder):
    rng = np.random.default_rng(0)
    words = ["what", "is", "the", "best", "way", "to", "learn", "a", "language", "cat", "dog"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(120)]
    pairs = [(texts[i], texts[j]) for i, j in rng.integers(0, 120, (300, 2))]
    known = EncoderModel(encoder_folder, head=HEADS[True])
    without = EncoderModel(encoder_folder, head=HEADS[True], cache_mb=0)
    whole = without(pairs)
    for size in (1, 7, 100):
        parts = np.concatenate([known(pairs[start : start + size]) for start in range(0, len(pairs), size)])
        np.testing.assert_allclose(parts, whole, atol=1e-5)
        assert np.array_equal(parts.argmax(axis=1), whole.argmax(axis=1))


def test_threads_at_once_leave_torchs_own_number(encoder_folder):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = EncoderModel(encoder_folder, head=HEADS[True], cache_mb=0)
        expected, wrong = model(PAIRS), []

        def ask():
            for _ in range(10):
                if not np.allclose(model(PAIRS), expected, atol=1e-5):
                    wrong.append(1)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_fingerprint_is_of_what_decides(encoder_folder, write):
    def fingerprint(head=HEADS[False]):
        return EncoderModel(encoder_folder, head=head).fingerprint

    prints = [fingerprint()]
    (encoder_folder / "README.md").write_text("a model")
    assert fingerprint() == prints[0]
    prints.append(fingerprint(Head(np.ones((1, 16)), np.zeros(1))))
    settings = encoder_folder / "1_Pooling" / "config.json"
    settings.write_text(json.dumps({"pooling_mode_cls_token": True}))
    prints.append(fingerprint())
    write(encoder_folder, seed=1)
    prints.append(fingerprint())
    assert len(set(prints)) == 4


def test_by_path_and_by_spec(encoder_folder):
    HEADS[False].write(encoder_folder / "head.npz")
    expected = EncoderModel(encoder_folder, head=HEADS[False])(TEXTS)
    assert np.array_equal(models.wrap(str(encoder_folder))(TEXTS), expected)
    loaded = models.load("encoder", "encoder", folder=encoder_folder.parent, head="encoder/head.npz")
    assert np.array_equal(loaded(TEXTS), expected)
    assert loaded.name == "encoder"
    with pytest.raises(InputError, match=r"unknown key 'model\.layout' for encoder"):
        models.load("encoder", encoder_folder, layout="NCHW")


def test_a_spec_that_runs(encoder_folder):
    HEADS[True].write(encoder_folder / "head.npz")
    lines = ["question1,question2,is_duplicate", *(f"{first},{second},1" for first, second in PAIRS)]
    (encoder_folder.parent / "pairs.csv").write_text("\n".join(lines))
    table = {
        "model": {"encoder": "encoder", "head": "encoder/head.npz", "max_length": 16},
        "data": {"csv": "pairs.csv", "side": "first"},
        "space": {"typo": {"use": "text.typo", "severities": [0, 1]}},
        "scan": {"strategy": "full"},
    }
    spec = parse(table)
    assert spec.runs_code() == []
    tomogram = assembly.session(spec, encoder_folder.parent).run()
    expected = EncoderModel(encoder_folder, head=HEADS[True])(PAIRS).argmax(axis=1) == 1
    assert tomogram.passes[0] == expected.sum()


def test_a_head_can_be_fitted(encoder_folder):
    labels = [0, 1, 0, 1, 1, 1, 0]
    head = fit_head(Encoder(encoder_folder), TEXTS, labels, strength=100)
    assert np.array_equal(EncoderModel(encoder_folder, head=head)(TEXTS).argmax(axis=1), labels)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.zeros((2, 8, 8), np.uint8), r"inputs are uint8 of shape \(2, 8, 8\); the model takes pairs of texts"),
        (["a"], "inputs are texts; the model takes pairs of texts"),
        ([("a", "b", "c")], "neither all texts nor all pairs"),
        ([("a", "b"), "c"], "neither all texts nor all pairs"),
        ("a text", "inputs are str"),
    ],
)
def test_inputs_of_another_kind(encoder_folder, batch, message):
    with pytest.raises(InputError, match=message):
        EncoderModel(encoder_folder, head=HEADS[True])(batch)


def test_one_text_alone_is_no_batch(encoder_folder):
    with pytest.raises(InputError, match="encoder: inputs are str; the model takes texts"):
        Encoder(encoder_folder)("why")


def test_pairs_for_a_head_of_texts(encoder_folder):
    with pytest.raises(InputError, match="inputs are pairs of texts; the model takes texts"):
        EncoderModel(encoder_folder, head=HEADS[False])(PAIRS)


def remove(name):
    return lambda folder: (folder / name).unlink()


def put(name, content):
    return lambda folder: (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove("config.json"), r"is not a model's folder; it has no config\.json"),
        (put("config.json", "{"), "cannot read"),
        (put("config.json", "{}"), "names no model_type"),
        (remove("model.safetensors"), "cannot be opened as AutoModel"),
        (put("model.safetensors", "text"), "cannot be opened as AutoModel"),
        (remove("tokenizer.json"), "has no usable tokenizer"),
        (put("modules.json", "3"), "not a list of modules"),
        (put("modules.json", '[{"type": "x.Dense", "path": ""}]'), "is made of Dense; Transformer, Pooling"),
        (put("modules.json", "[3]"), "not a list of modules"),
        (remove("1_Pooling/config.json"), "is missing or no table"),
        (put("1_Pooling/config.json", '{"pooling_mode_weightedmean_tokens": true}'), "pooling weightedmean_tokens"),
        (put("1_Pooling/config.json", "{}"), "pooling none; accepted: cls_token"),
    ],
)
def test_folders_that_are_no_encoder(encoder_folder, spoil, message):
    spoil(encoder_folder)
    with pytest.raises(InputError, match=message) as error:
        EncoderModel(encoder_folder, head=HEADS[False])
    assert "\n" not in str(error.value)


def test_other_mistakes(encoder_folder, tmp_path):
    with pytest.raises(InputError, match=r"model\.head: .*head\.npz does not exist"):
        models.wrap(encoder_folder)
    with pytest.raises(InputError, match=r"has 5 columns; .*: 16 \(texts\) or 32 \(pairs\) are accepted"):
        EncoderModel(encoder_folder, head=Head(np.ones((1, 5)), np.zeros(1)))
    with pytest.raises(InputError, match="does not exist"):
        EncoderModel(tmp_path / "nowhere", head=HEADS[False])
    with pytest.raises(InputError, match="threads: must be a whole number, at least 1, got 0"):
        EncoderModel(encoder_folder, head=HEADS[False], threads=0)
    with pytest.raises(InputError, match="layer: 'x': encoder has features only"):
        EncoderModel(encoder_folder, head=HEADS[False]).traced(TEXTS, "x")
    with pytest.raises(InputError, match="device 'nothing' cannot be used"):
        EncoderModel(encoder_folder, head=HEADS[False], device="nothing")


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_libraries_not_installed(encoder_folder, monkeypatch, missing):
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(
        InputError, match=rf"{missing} is not installed; install it with: pip install 'testifai\[text\]"
    ):
        EncoderModel(encoder_folder, head=HEADS[False])
