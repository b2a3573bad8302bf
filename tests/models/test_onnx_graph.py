from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from testifai.data.sample import demo_model_path
from testifai.errors import InputError
from testifai.models.onnx_graph import Value, read_graph, tensor_names, with_output


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


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_, np.int8])
@pytest.mark.parametrize("raw", [True, False])
def test_constants_of_every_kind_are_read(tmp_path, dtype, raw):
    array = (3 * np.random.default_rng(0).normal(size=(2, 3))).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    content = array.tobytes() if raw else array.ravel().tolist()
    tensor = helper.make_tensor("c", kind, array.shape, content, raw=raw)
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.5),
        helper.make_node("Split", ["x"], ["y"], axis=1, strings=["a"], inner=tensor, domain="mine"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [2, "n"])],
                              [value("y", TensorProto.INT64, [2, None])], [tensor])  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    onnx.save(helper.make_model(graph), tmp_path / "e.onnx", save_as_external_data=True, location="w", size_threshold=0)
    for path, weights in ((tmp_path / "m.onnx", {}), (tmp_path / "e.onnx", {"w": tmp_path / "w"})):
        found = read_graph(path, weights)
        assert found.constants["c"].dtype == array.dtype
        assert np.array_equal(found.constants["c"], array)
        assert (found.constants["two"].dtype, found.constants["two"].item()) == (np.float32, 2.5)
        (node,) = found.nodes
        assert (node.operator, node.inputs, node.outputs) == ("mine.Split", ("x",), ("y",))
        assert np.array_equal(node.attributes.pop("inner"), array)
        assert node.attributes == {"axis": 1, "strings": ["a"]}
        assert found.inputs == [Value("x", "tensor(float)", (2, "n"))]
        assert found.outputs == [Value("y", "tensor(int64)", (2, None))]
        assert found.opset == onnx.defs.onnx_opset_version()
    if raw:
        with pytest.raises(InputError, match="weights 'w' do not exist"):
            read_graph(tmp_path / "e.onnx", {})


@pytest.mark.parametrize("content", [b"", b"hello, this is a text"])
def test_a_file_without_a_graph_is_refused(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(InputError, match="is not a usable ONNX model"):
        read_graph(tmp_path / "m.onnx", {})
