from __future__ import annotations

import numpy as np
import pytest

from testifai import models
from testifai.errors import InputError

onnx = pytest.importorskip("onnx")
pytest.importorskip("tokenizers")

from testifai.models.texts.base import Tokenizer  # noqa: E402
from testifai.models.texts.onnx import OnnxTextModel  # noqa: E402

TEXTS = ["what is the best way to learn a language?", "why", "how can i do a", "cat", "a dog", "cat", ""]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))
RNG = np.random.default_rng(0)
WORDS, TYPES, LAST = (RNG.normal(size=shape).astype(np.float32) for shape in ((40, 8), (2, 8), (8, 3)))
ALL = ("input_ids", "attention_mask", "token_type_ids")


def write(path, inputs=ALL, *, rows="rows", length="tokens", labels=False, names=None, dtype=None):
    """A graph whose logits are the sum over tokens of (word + type) vectors times a matrix."""
    make, kinds = onnx.helper.make_node, onnx.TensorProto
    names = names or dict(zip(inputs, inputs, strict=True))
    nodes = [make("Gather", ["words", names["input_ids"]], ["word"])]
    vector = "word"
    if "token_type_ids" in inputs:
        nodes += [make("Gather", ["types", names["token_type_ids"]], ["type"]), make("Add", ["word", "type"], ["sum"])]
        vector = "sum"
    if "attention_mask" in inputs:
        nodes += [
            make("Cast", ["attention_mask"], ["floats"], to=kinds.FLOAT),
            make("Unsqueeze", ["floats", "two"], ["mask"]),
            make("Mul", [vector, "mask"], ["states"]),
        ]
        vector = "states"
    nodes += [
        make("ReduceSum", [vector, "one"], ["embedding"], keepdims=0),
        make("MatMul", ["embedding", "last"], ["logits"]),
    ]
    out = [onnx.helper.make_tensor_value_info("logits", kinds.FLOAT, [rows, 3])]
    if labels:
        nodes.append(make("ArgMax", ["logits"], ["label"], axis=1, keepdims=0))
        out = [onnx.helper.make_tensor_value_info("label", kinds.INT64, [rows])]
    out.append(onnx.helper.make_tensor_value_info("embedding", kinds.FLOAT, [rows, 8]))
    constants = {"words": WORDS, "types": TYPES, "last": LAST, "one": np.array([1]), "two": np.array([2])}
    used = {name for node in nodes for name in node.input}
    graph = onnx.helper.make_graph(
        nodes, "texts",
        [onnx.helper.make_tensor_value_info(names[name], dtype or kinds.INT64, [rows, length]) for name in inputs], out,
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items() if name in used],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def expected(batch, tokenizer_file, types=True, length=None):
    embeddings = []
    for ids, kinds in Tokenizer.read(tokenizer_file, max_length=length)(batch):
        embeddings.append(WORDS[ids].sum(axis=0) + (TYPES[kinds].sum(axis=0) if types else 0))
    return np.array(embeddings) @ LAST, np.array(embeddings)


@pytest.mark.parametrize("batch", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("shape", [{}, {"length": 32}, {"rows": 3}, {"rows": 2, "length": 32}], ids=str)
def test_scores_and_features(tmp_path, tokenizer_file, batch, shape):
    model = OnnxTextModel(write(tmp_path / "m.onnx", **shape), tokenizer=tokenizer_file)
    scores, features = expected(batch, tokenizer_file)
    np.testing.assert_allclose(model(batch), scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.features(batch), features, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.traced(batch, "logits")[1], scores, rtol=1e-4, atol=1e-4)
    assert (model.outputs, model.classes, model.name) == ("scores", 3, "m.onnx")
    assert model([]).shape == (0, 3)
    assert np.array_equal(model(batch[::-1]), model(batch)[::-1])


@pytest.mark.parametrize("inputs", [ALL[:1], ALL[:2], (ALL[0], ALL[2])], ids=len)
def test_graphs_that_take_less(tmp_path, tokenizer_file, inputs):
    model = OnnxTextModel(write(tmp_path / "m.onnx", inputs), tokenizer=tokenizer_file)
    scores, _ = expected(PAIRS, tokenizer_file, types=ALL[2] in inputs)
    np.testing.assert_allclose(model(PAIRS), scores, rtol=1e-4, atol=1e-4)


def test_a_lone_input_of_another_name_and_type(tmp_path, tokenizer_file):
    path = write(tmp_path / "m.onnx", ALL[:1], names={"input_ids": "tokens"}, dtype=onnx.TensorProto.INT32)
    np.testing.assert_allclose(
        OnnxTextModel(path, tokenizer=tokenizer_file)(TEXTS),
        expected(TEXTS, tokenizer_file, types=False)[0], rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def test_labels(tmp_path, tokenizer_file):
    model = OnnxTextModel(write(tmp_path / "m.onnx", labels=True), tokenizer=tokenizer_file, output="label")
    assert model.outputs == "labels"
    assert np.array_equal(model(TEXTS), expected(TEXTS, tokenizer_file)[0].argmax(axis=1))


def test_too_long_texts_are_cut_off(tmp_path, tokenizer_file):
    fixed = OnnxTextModel(write(tmp_path / "m.onnx", length=6), tokenizer=tokenizer_file, max_length=9)
    np.testing.assert_allclose(fixed(TEXTS), expected(TEXTS, tokenizer_file, length=6)[0], rtol=1e-4, atol=1e-4)
    assert fixed(["cat " * 25_000]).shape == (1, 3)


def test_each_input_runs_once(tmp_path, tokenizer_file):
    model, seen = OnnxTextModel(write(tmp_path / "m.onnx"), tokenizer=tokenizer_file), []
    inner = model.tokenizer
    model.tokenizer = lambda texts: seen.extend(texts) or inner(texts)
    model.tokenizer.pad = 0
    model(TEXTS)
    model(TEXTS)
    assert sorted(seen) == sorted(set(TEXTS))


def test_as_a_spec_names_it(tmp_path, tokenizer_file):
    write(tmp_path / "m.onnx")
    model = models.load("onnx", "m.onnx", tokenizer="tokenizer.json", folder=tmp_path)
    assert isinstance(model, OnnxTextModel)
    again = OnnxTextModel(tmp_path / "m.onnx", tokenizer=tokenizer_file)
    assert model.fingerprint == again.fingerprint
    tokenizer_file.write_text(tokenizer_file.read_text().replace('"cat"', '"cow"'))
    assert OnnxTextModel(tmp_path / "m.onnx", tokenizer=tokenizer_file).fingerprint != again.fingerprint
    with pytest.raises(InputError, match="onnx takes layout without a tokenizer only"):
        models.load("onnx", "m.onnx", tokenizer="tokenizer.json", layout="NCHW", folder=tmp_path)


def test_without_a_tokenizer(tmp_path):
    with pytest.raises(InputError, match=r"3 inputs .* a text model needs tokenizer = 'tokenizer\.json'"):
        models.load("onnx", write(tmp_path / "m.onnx"))
    with pytest.raises(InputError, match=r"inputs are texts; the model takes int64 arrays; a text model needs tokeni"):
        models.load("onnx", write(tmp_path / "m.onnx", ALL[:1]))(TEXTS)
    with pytest.raises(InputError, match=r"model\.tokenizer: .*t\.json does not exist"):
        models.load("onnx", "m.onnx", tokenizer="t.json", folder=tmp_path)


def test_graphs_that_read_no_texts(tmp_path, tokenizer_file):
    with pytest.raises(InputError, match="takes input_ids, more; a text model takes input_ids, attention_mask"):
        OnnxTextModel(
            write(
                tmp_path / "m.onnx",
                ("input_ids", "token_type_ids"),
                names={"input_ids": "input_ids", "token_type_ids": "more"},
            ),
            tokenizer=tokenizer_file,
        )
    with pytest.raises(InputError, match="takes 6 tokens and no attention_mask"):
        OnnxTextModel(write(tmp_path / "m.onnx", ALL[:1], length=6), tokenizer=tokenizer_file)
    model = OnnxTextModel(write(tmp_path / "m.onnx"), tokenizer=tokenizer_file)
    with pytest.raises(InputError, match="has no output 'x'; known: logits, embedding"):
        model.traced(TEXTS, "x")
    with pytest.raises(InputError, match="the model takes texts or pairs"):
        model(np.zeros((2, 8, 8, 3), np.uint8))


def test_an_image_model_is_no_text_model(tokenizer_file):
    from testifai.data.sample import demo_model_path

    with pytest.raises(InputError, match="whole numbers"):
        models.load("onnx", demo_model_path(), tokenizer=tokenizer_file)
    with pytest.raises(InputError, match="inputs are texts; the model takes float32 arrays"):
        models.load("onnx", demo_model_path())(TEXTS)
