"""ONNX graphs that label pixels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import testifai as ta
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.testing import check_model

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 16, 3)).astype(np.uint8)


def graph(path, *outputs):
    """Scores of two classes, dark and light, by the mean of a pixel's colours; the labels they make, if asked for."""
    kernel = np.stack([np.full((3, 1, 1), -1 / 3), np.full((3, 1, 1), 1 / 3)]).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["images", "kernel", "bias"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["labels"], axis=1, keepdims=0),
        helper.make_node("Identity", ["scores"], ["aux"]),
    ]
    known = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2, "h", "w"]) for name in ("scores", "aux")
    }
    known["labels"] = helper.make_tensor_value_info("labels", TensorProto.INT64, ["n", "h", "w"])
    weights = {"kernel": kernel, "bias": np.array([0.5, -0.5], np.float32)}
    made = helper.make_graph(
        nodes,
        "pixels",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [known[name] for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.mark.parametrize("outputs", [["scores"], ["labels"], ["scores", "aux"]])
def test_graphs_that_label_pixels_are_run_and_judged(tmp_path, outputs):
    model = OnnxModel(graph(tmp_path / "pixels.onnx", *outputs))
    assert model.outputs == "maps"
    found = model(IMAGES)
    labels = found if found.ndim == 3 else found.argmax(axis=1)
    assert np.array_equal(labels, (IMAGES.mean(axis=3) > 127.5).astype(int))
    space = ta.Space({"dark": ("classic.brightness", [0, 4])})
    run = ta.scan(model, (IMAGES, labels), space, oracle="segmentation", strategy="full", surrogate="none")
    assert run.estimate.tolist() == [1, 0]


def test_they_keep_the_contract(tmp_path):
    check_model(OnnxModel(graph(tmp_path / "pixels.onnx", "scores")), IMAGES)


def test_of_several_outputs_one_may_be_named(tmp_path):
    path = graph(tmp_path / "pixels.onnx", "scores", "labels")
    assert OnnxModel(path, output="labels")(IMAGES).shape == (5, 12, 16)
    with pytest.raises(InputError, match="no output 'label'"):
        OnnxModel(path, output="label")
