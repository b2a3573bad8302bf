from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from testifai.data.sample import demo_model_path
from testifai.models.onnx_graph import tensor_names, with_output


def test_names_are_those_that_the_onnx_package_reads():
    content = demo_model_path().read_bytes()
    expected = [name for node in onnx.load(demo_model_path()).graph.node for name in node.output if name]
    assert tensor_names(content) == expected


def test_the_added_output_is_one_more_output():
    content = demo_model_path().read_bytes()
    before = onnx.load_model_from_string(content)
    added = tensor_names(content)[0]
    after = onnx.load_model_from_string(with_output(content, added))
    assert [one.name for one in after.graph.output] == [*(one.name for one in before.graph.output), added]
    assert after.graph.node == before.graph.node


@pytest.mark.parametrize("length", [1, 127, 128, 300])
def test_names_of_any_length(length):
    name = "n" * length
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Relu", ["x"], [name]), helper.make_node("Neg", [name], ["y"])]
    inputs, outputs = [value("x", TensorProto.FLOAT, [None, 2])], [value("y", TensorProto.FLOAT, [None, 2])]
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    content = model.SerializeToString()
    assert tensor_names(content) == [name, "y"]
    session = onnxruntime.InferenceSession(with_output(content, name), providers=["CPUExecutionProvider"])
    y, inner = session.run(["y", name], {"x": np.array([[-1, 2]], np.float32)})
    assert (y.tolist(), inner.tolist()) == ([[0, -2]], [[0, 2]])


def test_what_is_no_protocol_buffer():
    for content in (b"\xff" * 9, b"hello, this is a text"):
        with pytest.raises(ValueError, match="not a protocol buffer"):
            tensor_names(content)
