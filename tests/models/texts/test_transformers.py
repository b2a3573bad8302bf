from __future__ import annotations

import json

import numpy as np
import pytest

from testifai import models
from testifai.data import from_arrays
from testifai.errors import InputError
from testifai.session.assembly import session_of
from testifai.space import Space

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from testifai.models.transformers import TransformersModel  # noqa: E402

TEXTS = ["what is the best way to learn a language?", "why", "how can i do a", "cat", "a dog", "cat", ""]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))


def reference(folder, *texts):
    """Logits and mean last states of one input alone, by transformers."""
    module = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        inputs = tokenizer(*([text] for text in texts), return_tensors="pt")
        outputs = module(**inputs, output_hidden_states=True)
    return outputs.logits[0].numpy(), outputs.hidden_states[-1][0].mean(dim=0).numpy()


def test_logits_and_features_of_texts_and_pairs(classifier_folder):
    model = models.wrap(classifier_folder)
    assert isinstance(model, TransformersModel)
    for inputs in (TEXTS, PAIRS):
        expected = [reference(classifier_folder, *(one if isinstance(one, tuple) else (one,))) for one in inputs]
        np.testing.assert_allclose(model(inputs), [logits for logits, _ in expected], atol=1e-5)
        np.testing.assert_allclose(model.features(inputs), [states for _, states in expected], atol=1e-5)
        outputs, traced = model.traced(inputs)
        assert np.array_equal(outputs, model(inputs))
        assert np.array_equal(traced, model.features(inputs))
    assert (model.outputs, model.classes, model.name) == ("scores", 3, "classifier")
    assert len(np.unique(model(PAIRS).round(4), axis=0)) == 7  # the order of a pair matters
    assert model([]).shape == (0, 3)


def test_a_layer_averaged_over_the_tokens(classifier_folder):
    model = TransformersModel(classifier_folder)
    outputs, traced = model.traced(TEXTS, "bert.encoder.layer.1")
    np.testing.assert_allclose(outputs, model(TEXTS), atol=1e-6)
    np.testing.assert_allclose(traced, model.features(TEXTS), atol=1e-5)
    with pytest.raises(InputError, match=r"layer: 'x' is not a submodule"):
        model.traced(TEXTS, "x")
    hooks = [len(module._forward_hooks) for module in model.network.module.modules()]
    model.traced(TEXTS, "bert.encoder.layer.1")
    assert [len(module._forward_hooks) for module in model.network.module.modules()] == hooks


def test_each_input_runs_once(classifier_folder):
    model = TransformersModel(classifier_folder)
    seen = []
    inner = model.network.tokenizer
    model.network.tokenizer = lambda texts: seen.extend(texts) or inner(texts)
    first = model([("cat", "why"), ("why", "cat"), ("cat", "why")])
    assert np.array_equal(model([("why", "cat")])[0], first[1])
    assert seen == [("cat", "why"), ("why", "cat")]


def test_without_names_of_special_tokens_for_padding(classifier_folder):
    settings = json.loads((classifier_folder / "config.json").read_text())
    settings["pad_token_id"] = None
    (classifier_folder / "config.json").write_text(json.dumps(settings))
    model = TransformersModel(classifier_folder)
    assert model(TEXTS).shape == (7, 3)


def test_decoders_are_read_at_their_last_token(tmp_path, classifier_folder):
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=1, n_head=2, n_positions=32, num_labels=2)
    module = transformers.GPT2ForSequenceClassification(config).eval()
    module.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text((classifier_folder / "tokenizer.json").read_text())
    names = {"unk_token": "[UNK]", "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names))
    model = TransformersModel(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = ["cat dog", "dog cat", "why"]
    with torch.no_grad():
        expected = [module(torch.tensor([tokenizer(text)["input_ids"]])).logits[0].numpy() for text in texts]
    np.testing.assert_allclose(model(texts), expected, atol=1e-5)


def test_classes_go_by_their_names(classifier_folder):
    assert TransformersModel(classifier_folder).class_values is None
    settings = json.loads((classifier_folder / "config.json").read_text())
    settings |= {"id2label": {"0": "neutral", "1": "contradiction", "2": "entailment"}}
    (classifier_folder / "config.json").write_text(json.dumps(settings))
    model = TransformersModel(classifier_folder)
    assert model.class_values == ["neutral", "contradiction", "entailment"]
    data = (TEXTS, ["neutral", "contradiction", "entailment"] * 2 + ["neutral"])  # in the data's own order: c, e, n
    labels = session_of(model, data, Space({"typo": "text.typo"}), strategy="full").subject.labels
    assert labels.tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_a_scan_of_pairs(classifier_folder, tmp_path):
    data = from_arrays(PAIRS, [0, 1, 2, 0, 1, 2, 0], side="first")
    space = Space({"typo": ("text.typo", [0, 1, 2]), "case": ("text.case", [0, 1])})
    runs = [
        session_of(
            TransformersModel(classifier_folder, cache_mb=memory), data, space, strategy="full", workers=workers
        ).run()
        for memory, workers in ((0, 1), (1, 1), (1, 3))
    ]
    assert np.array_equal(runs[0].passes, runs[1].passes)
    assert np.array_equal(runs[0].passes, runs[2].passes)


def test_one_output_is_a_value(tmp_path, write, classifier_folder):
    write(classifier_folder, "BertForSequenceClassification", num_labels=1)
    model = TransformersModel(classifier_folder)
    assert (model.outputs, model.classes) == ("values", None)
    assert model(TEXTS).shape == (7, 1)


def test_fingerprint_is_of_the_files(classifier_folder, write):
    first = TransformersModel(classifier_folder).fingerprint
    assert TransformersModel(classifier_folder, max_length=8).fingerprint == first
    write(classifier_folder, "BertForSequenceClassification", num_labels=3, seed=1)
    assert TransformersModel(classifier_folder).fingerprint != first


def test_what_was_told_is_remembered(classifier_folder):
    assert TransformersModel(classifier_folder, max_length=4).preprocessing == {"max_length": 4}
    assert TransformersModel(classifier_folder).preprocessing == {}
    model = TransformersModel(classifier_folder, max_length=3)
    assert np.array_equal(*model(["cat dog", "cat why"]))


@pytest.mark.parametrize("told", [True, False])
def test_long_texts_are_cut_off(classifier_folder, told):
    if not told:  # how long a text may be is then known from the number of positions alone
        settings = json.loads((classifier_folder / "tokenizer_config.json").read_text())
        del settings["model_max_length"]
        (classifier_folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model = TransformersModel(classifier_folder)
    assert np.isfinite(model(["cat " * 25_000, "🙂", "\udcff", "שלום"])).all()


def test_an_encoder_is_no_classifier(encoder_folder):
    with pytest.raises(InputError, match=r"has no weights for classifier\.bias .* needs a head") as error:
        TransformersModel(encoder_folder)
    assert "\n" not in str(error.value)


def test_code_in_the_folder_is_not_run(classifier_folder):
    settings = json.loads((classifier_folder / "config.json").read_text())
    settings |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.Mine", "AutoModelForSequenceClassification": "mine.M"},
    }
    (classifier_folder / "config.json").write_text(json.dumps(settings))
    (classifier_folder / "mine.py").write_text("raise SystemExit('ran')")
    with pytest.raises(InputError, match="cannot be opened"):
        TransformersModel(classifier_folder)


def test_images_are_refused(classifier_folder):
    with pytest.raises(InputError, match=r"classifier: inputs are float32 of shape \(1, 3\); the model takes texts or"):
        TransformersModel(classifier_folder)(np.zeros((1, 3), np.float32))
