"""Small ONNX classifiers of images, in every layout, with noise in place of training."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 4


def classifier(path, wanted, *, batch="N", dtype=np.float32, opset=17, ir=8):
    """A file whose graph flattens its input of this shape, then two layers; with an output beside the scores."""
    random = np.random.default_rng(3)
    size, hidden = int(np.prod(wanted)), 12
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {
        "first": random.normal(size=(size, hidden)) / np.sqrt(size),
        "second": random.normal(size=(hidden, CLASSES)),
        "shift": random.normal(size=CLASSES),
    }
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("MatMul", ["flat", "first"], ["mixed"]),
        helper.make_node("Relu", ["mixed"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "second", "shift"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1),  # which no verifier reads, and the scores do not need
    ]
    outputs = [
        helper.make_tensor_value_info("scores", element, [batch, CLASSES]),
        helper.make_tensor_value_info("best", TensorProto.INT64, [batch, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("images", element, [batch, *wanted])],
        outputs,
        [numpy_helper.from_array(values.astype(dtype), name) for name, values in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    onnx.save(model, path)
    return path
