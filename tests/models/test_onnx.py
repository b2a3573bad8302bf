from __future__ import annotations

import hashlib
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from testifai import models
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(12, 5)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (7, 2, 2, 3), dtype=np.uint8)
F, I64 = TensorProto.FLOAT, TensorProto.INT64


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, weights=()):
    initializers = [numpy_helper.from_array(value, name) for name, value in weights]
    graph = helper.make_graph(list(nodes), "test", list(inputs), list(outputs), initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def linear(path, batch="batch", image=(3, 2, 2), score="logits", extra_outputs=()):
    """Flatten, then a matrix: the scores are flat @ WEIGHTS, the features are flat."""
    nodes = [
        helper.make_node("Flatten", ["images"], ["features"]),
        helper.make_node("MatMul", ["features", "w"], [score]),
        helper.make_node("ArgMax", [score], ["label"], axis=1, keepdims=0),
    ]
    outputs = [info("features", F, [batch, 12]), info(score, F, [batch, 5]), *extra_outputs]
    return save(path, nodes, [info("images", F, [batch, *image])], outputs, [("w", WEIGHTS)])


def scores_by_hand(images=IMAGES):
    flat = np.moveaxis(images / 255, -1, 1).reshape(len(images), 12)
    return flat @ WEIGHTS


@pytest.fixture
def path(tmp_path):
    return linear(tmp_path / "model.onnx")


def test_uint8_images_to_scores(path):
    model = OnnxModel(path)
    assert (model.outputs, model.classes, model.name) == ("scores", 5, "model.onnx")
    np.testing.assert_allclose(model(IMAGES), scores_by_hand(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.features(IMAGES) @ WEIGHTS, scores_by_hand(), rtol=1e-5, atol=1e-6)


def test_declared_preprocessing_is_used(path):
    model = OnnxModel(path, layout="NCHW", scale="signed", mean=[0.1, 0.2, 0.3], std=0.5)
    images = (IMAGES / 127.5 - 1 - [0.1, 0.2, 0.3]) / 0.5
    np.testing.assert_allclose(model(IMAGES), scores_by_hand(images * 255), rtol=1e-4, atol=1e-5)


def test_channels_last_is_seen_in_the_shape(tmp_path):
    model = OnnxModel(linear(tmp_path / "m.onnx", image=(2, 2, 3)))
    np.testing.assert_allclose(model(IMAGES), (IMAGES / 255).reshape(7, 12) @ WEIGHTS, rtol=1e-5, atol=1e-6)


def test_a_fixed_batch_is_padded(tmp_path):
    model = OnnxModel(linear(tmp_path / "m.onnx", batch=3))
    assert model.batch_size == 3
    for count in (0, 1, 3, 7):
        made = model(IMAGES[:count])
        assert made.shape == (count, 5)
        np.testing.assert_allclose(made, scores_by_hand()[:count], rtol=1e-5, atol=1e-6)


def test_scores_are_found_by_name_then_by_width(tmp_path):
    nodes = [helper.make_node("Identity", ["x"], ["wide"]), helper.make_node("MatMul", ["x", "w"], ["narrow"])]
    names = [info("wide", F, [None, 12]), info("narrow", F, [None, 5])]
    weights = [("w", WEIGHTS)]
    assert OnnxModel(save(tmp_path / "a.onnx", nodes, [info("x", F, [None, 12])], names, weights)).output == "narrow"
    nodes[0].output[0] = names[0].name = "class_probabilities"
    model = OnnxModel(save(tmp_path / "b.onnx", nodes, [info("x", F, [None, 12])], names, weights))
    assert model.output == "class_probabilities"
    assert model.features_output is None
    with pytest.raises(InputError, match="has no features output"):
        model.features(np.zeros((1, 12), np.float32))
    chosen = OnnxModel(tmp_path / "b.onnx", output="narrow", features="class_probabilities")
    assert (chosen.output, chosen.classes) == ("narrow", 5)
    assert chosen.features(np.ones((2, 12))).tolist() == np.ones((2, 12)).tolist()


def test_labels_alone(tmp_path):
    nodes = [helper.make_node("ArgMax", ["x"], ["output_label"], axis=1, keepdims=0)]
    file = save(tmp_path / "m.onnx", nodes, [info("x", F, [None, 4])], [info("output_label", I64, [None])])
    model = OnnxModel(file)
    assert (model.outputs, model.classes) == ("labels", None)
    table = RNG.normal(size=(6, 4))
    assert model(table).tolist() == table.argmax(axis=1).tolist()


def test_labels_beside_scores_are_left(tmp_path):
    model = OnnxModel(linear(tmp_path / "m.onnx", extra_outputs=[info("label", I64, ["batch"])]))
    assert model.output == "logits"
    named = OnnxModel(tmp_path / "m.onnx", output="label")
    assert named.outputs == "labels"
    assert named(IMAGES).tolist() == scores_by_hand().argmax(axis=1).tolist()


def test_labels_in_a_column(tmp_path):
    nodes = [helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=1)]
    model = OnnxModel(save(tmp_path / "m.onnx", nodes, [info("x", F, [None, 4])], [info("label", I64, [None, 1])]))
    assert model(np.eye(4)).tolist() == [0, 1, 2, 3]


def test_one_number_per_input_is_a_value(tmp_path):
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=1)]
    weights = [("axes", np.array([1]))]
    model = OnnxModel(save(tmp_path / "m.onnx", nodes, [info("x", F, [None, 4])], [info("sum", F, [None, 1])], weights))
    assert model.outputs == "values"
    assert model(np.eye(4)).tolist() == [[1.0]] * 4


def test_models_of_uint8_take_images_as_they_are(tmp_path):
    nodes = [
        helper.make_node("Cast", ["x"], ["float"], to=F),
        helper.make_node("Flatten", ["float"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["scores"]),
    ]
    inputs = [info("x", TensorProto.UINT8, [None, 2, 2, 3])]
    model = OnnxModel(save(tmp_path / "m.onnx", nodes, inputs, [info("scores", F, [None, 5])], [("w", WEIGHTS)]))
    np.testing.assert_allclose(model(IMAGES), IMAGES.reshape(7, 12) @ WEIGHTS, rtol=1e-5)


@pytest.mark.parametrize("batch", [None, 2])
def test_models_of_texts(tmp_path, batch):
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Shape", ["same"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
    ]
    inputs = [info("x", TensorProto.STRING, [batch, 1])]
    model = OnnxModel(save(tmp_path / "m.onnx", nodes, inputs, [info("zeros", F, [batch, 1])]))
    assert model(["a", "b", "c"]).tolist() == [[0.0]] * 3


def test_fingerprint_is_of_the_file(path, tmp_path):
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(path.read_bytes())
    assert OnnxModel(copy).fingerprint == OnnxModel(path).fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    other = linear(tmp_path / "other.onnx", score="scores")
    assert OnnxModel(other).fingerprint != OnnxModel(path).fingerprint
    (tmp_path / "copy.onnx.data").write_bytes(b"weights beside")
    assert OnnxModel(copy).fingerprint != OnnxModel(path).fingerprint


def test_goes_to_another_process(path):
    model = OnnxModel(path, scale="signed")
    assert np.array_equal(pickle.loads(pickle.dumps(model))(IMAGES), model(IMAGES))


def test_load_and_wrap(path):
    assert np.array_equal(models.load("onnx", path.name, folder=path.parent)(IMAGES), models.wrap(str(path))(IMAGES))
    with pytest.raises(InputError, match=r"unknown key 'model\.layuot' for onnx; did you mean 'layout'"):
        models.load("onnx", path, layuot="NCHW")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "logit"}, "no output 'logit'; did you mean 'logits'"),
        ({"features": "feature"}, "no output 'feature' for features; did you mean 'features'"),
        ({"layout": "CHW"}, "layout: 'CHW'"),
        ({"threads": 0}, "model: threads: must be a whole number, at least 1, got 0"),
    ],
)
def test_options_that_are_refused(path, options, message):
    with pytest.raises(InputError, match=message):
        OnnxModel(path, **options)


def test_inputs_that_do_not_fit(path):
    model = OnnxModel(path)
    with pytest.raises(InputError, match=r"shape \(N, 2, 2\) \(grey images\); the model takes \(N, 3, 2, 2\)"):
        model(IMAGES[..., 0])
    with pytest.raises(InputError, match="inputs are texts"):
        model(["a"])


def test_a_model_that_fails_while_running(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["scores"])]
    weights = [("shape", np.array([5, 5]))]
    model = OnnxModel(
        save(tmp_path / "m.onnx", nodes, [info("x", F, [None, 4])], [info("scores", F, [None, 5])], weights)
    )
    with pytest.raises(InputError, match=r"m\.onnx: the model failed on inputs \(3, 4\)") as caught:
        model(np.zeros((3, 4)))
    assert "\n" not in str(caught.value)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        OnnxModel(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="is not a file"):
        OnnxModel(tmp_path)
    for content in (b"", b"hello", linear(tmp_path / "m.onnx").read_bytes()[:100]):
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.onnx is not a usable ONNX model") as caught:
            OnnxModel(tmp_path / "bad.onnx")
        assert "\n" not in str(caught.value)


def test_graphs_that_are_no_use(tmp_path):
    two = [info("a", F, [None, 2]), info("b", F, [None, 2])]
    file = save(tmp_path / "two.onnx", [helper.make_node("Add", ["a", "b"], ["c"])], two, [info("c", F, [None, 2])])
    with pytest.raises(InputError, match=r"two\.onnx has 2 inputs \(a, b\)"):
        OnnxModel(file)
    boxes = [info("boxes", F, [None, 3, 4])]
    nodes = [helper.make_node("Identity", ["x"], ["boxes"])]
    file = save(tmp_path / "boxes.onnx", nodes, [info("x", F, [None, 3, 4])], boxes)
    with pytest.raises(InputError, match=r"no output \(N,\) or \(N, d\) of numbers \(its outputs: boxes"):
        OnnxModel(file)
    with pytest.raises(InputError, match="is not usable"):
        OnnxModel(file, output="boxes")


def test_traces_of_an_output_and_of_an_inner_tensor(tmp_path):
    nodes = [
        helper.make_node("Relu", ["images"], ["inner"]),
        helper.make_node("Flatten", ["inner"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["logits"]),
    ]
    inputs, outputs = [info("images", F, ["batch", 3, 2, 2])], [info("logits", F, ["batch", 5])]
    model = OnnxModel(save(tmp_path / "m.onnx", nodes, inputs, outputs, [("w", WEIGHTS)]))
    outputs, traces = model.traced(IMAGES, "flat")
    np.testing.assert_allclose(outputs, scores_by_hand(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(traces @ WEIGHTS, scores_by_hand(), rtol=1e-5, atol=1e-6)
    _, maps = model.traced(IMAGES, "inner")  # (N, 3, 2, 2): averaged over places
    np.testing.assert_allclose(maps, IMAGES.reshape(7, 4, 3).mean(axis=1) / 255, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="makes no tensor 'flt'; did you mean 'flat'"):
        model.traced(IMAGES, "flt")
    with pytest.raises(InputError, match=r"no features output.*logits"):
        model.traced(IMAGES)


def test_traces_default_to_the_features_and_fit_a_fixed_batch(tmp_path):
    model = OnnxModel(linear(tmp_path / "m.onnx", batch=3))
    for count in (0, 1, 3, 7):
        outputs, traces = model.traced(IMAGES[:count])
        assert traces.shape == (count, 12)
        np.testing.assert_allclose(traces @ WEIGHTS, outputs, rtol=1e-5, atol=1e-6)


def test_traces_of_a_model_with_weights_in_another_file(tmp_path):
    path = linear(tmp_path / "m.onnx")
    loaded = onnx.load(path)
    onnx.save(loaded, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    assert (tmp_path / "m.onnx.data").is_file()
    model = OnnxModel(path)
    outputs, labels = model.traced(IMAGES, "label")
    assert labels[:, 0].tolist() == outputs.argmax(axis=1).tolist()
