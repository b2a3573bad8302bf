"""ONNX graphs run by torch give what onnxruntime gives."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from testifai import models
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel

torch = pytest.importorskip("torch")

from testifai.models.onnx_torch import onnx_as_torch  # noqa: E402

SHARED = Path(os.environ.get("TESTIFAI_DATA", "../shared"))
NAMES = ["mnist_lenet5", "cifar10_resnet20", "cifar10_resnet56", "gtsrb_cnn_se", "yolox_nano_coco"]
RNG = np.random.default_rng(0)
F, I64 = TensorProto.FLOAT, TensorProto.INT64


def whole(*numbers):
    return np.array(numbers, dtype=np.int64)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, shape, constants=(), *, opset=20, kind=F, outputs=("y",), rank=2):
    """A file with the input x and float outputs of some rank."""
    initializers = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    made = [value(name, kind, [None] * rank) for name in outputs]
    graph = helper.make_graph(nodes, "test", [value("x", F, shape)], made, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), path)
    return path


def by_onnxruntime(path, inputs, output="y"):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run([output], {session.get_inputs()[0].name: inputs})[0]


def by_torch(path, inputs, output=None):
    with torch.inference_mode():
        return onnx_as_torch(path, output)(torch.from_numpy(inputs)).numpy()


def assert_equal(path, inputs, output):
    expected, found = by_onnxruntime(path, inputs, output), by_torch(path, inputs, output)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert np.array_equal(found.argmax(-1), expected.argmax(-1))


IMAGE, TABLE = (2, 6, 9, 8), (3, 6)
CONV = {"w": floats(4, 6, 3, 3), "b": floats(4)}
# An operator, the constants after its input, its attributes, the shape of its input, the operator set.
OPERATORS = {
    "Conv": ("Conv", CONV, {}, IMAGE),
    "Conv without bias": ("Conv", {"w": CONV["w"]}, {"pads": [1, 1, 1, 1], "strides": [2, 1]}, IMAGE),
    "Conv with uneven padding": ("Conv", CONV, {"pads": [0, 1, 2, 1], "dilations": [2, 1]}, IMAGE),
    "Conv SAME_UPPER": ("Conv", CONV, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, IMAGE),
    "Conv SAME_LOWER": ("Conv", CONV, {"auto_pad": "SAME_LOWER", "strides": [2, 3]}, IMAGE),
    "Conv VALID": ("Conv", CONV, {"auto_pad": "VALID"}, IMAGE),
    "Conv in groups": ("Conv", {"w": floats(6, 2, 3, 3), "b": floats(6)}, {"group": 3}, IMAGE),
    "Conv along a line": ("Conv", {"w": floats(4, 6, 3)}, {"pads": [2, 2]}, (2, 6, 11)),
    "MaxPool": ("MaxPool", {}, {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}, IMAGE),
    "MaxPool padded": ("MaxPool", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, IMAGE),
    "MaxPool unevenly padded": ("MaxPool", {}, {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}, IMAGE),
    "AveragePool": ("AveragePool", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, IMAGE),
    "AveragePool with its padding": (
        "AveragePool", {}, {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}, IMAGE,
    ),
    "GlobalAveragePool": ("GlobalAveragePool", {}, {}, IMAGE),
    "GlobalMaxPool": ("GlobalMaxPool", {}, {}, IMAGE),
    "BatchNormalization": (
        "BatchNormalization",
        {"scale": floats(6), "bias": floats(6), "mean": floats(6), "variance": floats(6) ** 2 + 0.1},
        {"epsilon": 0.01},
        IMAGE,
    ),
    "Gemm": ("Gemm", {"b": floats(6, 5), "c": floats(5)}, {}, TABLE),
    "Gemm scaled": ("Gemm", {"b": floats(5, 6), "c": floats(1, 5)}, {"alpha": 0.5, "beta": 2.0, "transB": 1}, TABLE),
    "Gemm transposed": ("Gemm", {"b": floats(3, 5)}, {"transA": 1}, TABLE),
    "MatMul": ("MatMul", {"b": floats(8, 5)}, {}, IMAGE),
    "Add": ("Add", {"b": floats(6, 1, 1)}, {}, IMAGE),
    "Sub": ("Sub", {"b": floats(8)}, {}, IMAGE),
    "Mul": ("Mul", {"b": floats(1)}, {}, IMAGE),
    "Div": ("Div", {"b": floats(6) + 3}, {}, TABLE),
    "Pow": ("Pow", {"b": np.float32(2)}, {}, TABLE),
    "Relu": ("Relu", {}, {}, TABLE),
    "LeakyRelu": ("LeakyRelu", {}, {"alpha": 0.2}, TABLE),
    "PRelu": ("PRelu", {"slope": floats(6)}, {}, TABLE),
    "Elu": ("Elu", {}, {"alpha": 0.7}, TABLE),
    "Gelu": ("Gelu", {}, {"approximate": "tanh"}, TABLE),
    "Sigmoid": ("Sigmoid", {}, {}, TABLE),
    "HardSigmoid": ("HardSigmoid", {}, {"alpha": 0.3}, TABLE),
    "HardSwish": ("HardSwish", {}, {}, TABLE),
    "Tanh": ("Tanh", {}, {}, TABLE),
    "Abs": ("Abs", {}, {}, TABLE),
    "Neg": ("Neg", {}, {}, TABLE),
    "Exp": ("Exp", {}, {}, TABLE),
    "Erf": ("Erf", {}, {}, TABLE),
    "Softmax": ("Softmax", {}, {}, IMAGE),
    "Softmax of old": ("Softmax", {}, {}, IMAGE, 11),
    "LogSoftmax": ("LogSoftmax", {}, {"axis": 1}, IMAGE),
    "LogSoftmax of old": ("LogSoftmax", {}, {"axis": 2}, IMAGE, 11),
    "Clip": ("Clip", {"low": np.float32(-0.5), "high": np.float32(0.5)}, {}, TABLE),
    "Clip of old": ("Clip", {}, {"min": -0.5, "max": 0.5}, TABLE, 9),
    "ReduceMean": ("ReduceMean", {"axes": whole(-1, -2)}, {"keepdims": 0}, IMAGE),
    "ReduceMean of old": ("ReduceMean", {}, {"axes": [2, 3]}, IMAGE, 13),
    "ReduceSum": ("ReduceSum", {}, {}, IMAGE),
    "ReduceMax": ("ReduceMax", {"axes": whole(1)}, {}, IMAGE),
    "ReduceMin": ("ReduceMin", {"axes": whole(2)}, {"keepdims": 0}, IMAGE),
    "Flatten": ("Flatten", {}, {}, IMAGE),
    "Flatten later": ("Flatten", {}, {"axis": 2}, IMAGE),
    "Reshape": ("Reshape", {"shape": whole(0, -1, 4)}, {}, IMAGE),
    "Transpose": ("Transpose", {}, {"perm": [0, 2, 3, 1]}, IMAGE),
    "Squeeze": ("Squeeze", {"axes": whole(-1)}, {}, (2, 6, 1)),
    "Squeeze of old": ("Squeeze", {}, {"axes": [1]}, (2, 1, 6), 11),
    "Unsqueeze": ("Unsqueeze", {"axes": whole(-1, 1)}, {}, TABLE),
    "Unsqueeze of old": ("Unsqueeze", {}, {"axes": [2, 3]}, TABLE, 11),
    "Slice": ("Slice", {"s": whole(1, -1), "e": whole(5, -(2**40)), "a": whole(2, 1), "t": whole(2, -2)}, {}, IMAGE),
    "Slice of old": ("Slice", {}, {"starts": [0, 1], "ends": [2**31 - 1, -1], "axes": [0, 2]}, IMAGE, 9),
    "Pad": ("Pad", {"p": whole(0, 1, 0, 2, 0, 0, 1, 0), "v": np.float32(3)}, {}, IMAGE),
    "Pad some axes": ("Pad", {"p": whole(1, 2), "v": np.float32(0), "a": whole(-1)}, {}, IMAGE),
    "Pad mirrored": ("Pad", {"p": whole(0, 0, 2, 1, 0, 0, 1, 2)}, {"mode": "reflect"}, IMAGE),
    "Pad by the edge": ("Pad", {}, {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "edge"}, IMAGE, 9),
    "Gather": ("Gather", {"i": whole(1, -1).reshape(1, 2)}, {"axis": 1}, IMAGE),
    "Resize": (
        "Resize",
        {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 3], np.float32)},
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        IMAGE,
    ),
    "Resize by halves of pixels": (
        "Resize", {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 3, 2], np.float32)}, {}, IMAGE,
    ),
    "Dropout": ("Dropout", {}, {}, TABLE),
    "Identity": ("Identity", {}, {}, TABLE),
}  # fmt: skip


@pytest.mark.parametrize("case", OPERATORS)
def test_an_operator_does_what_onnxruntime_does(case, tmp_path):
    operator, constants, attributes, shape, *opset = OPERATORS[case]
    inputs = floats(*shape)
    node = helper.make_node(operator, ["x", *constants], ["y"], **attributes)
    path = save(tmp_path / "m.onnx", [node], shape, constants, opset=opset[0] if opset else 20, rank=len(shape))
    assert_equal(path, inputs, "y")


def test_positive_numbers_of_operators_that_need_them(tmp_path):
    for operator in ("Sqrt", "Log"):
        path = save(tmp_path / "m.onnx", [helper.make_node(operator, ["x"], ["y"])], TABLE)
        assert_equal(path, np.abs(floats(*TABLE)) + 0.1, "y")


def test_shapes_worked_out_by_the_graph(tmp_path):
    """What exporters write for x.view(x.size(0), -1)."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Constant", [], ["first"], value=numpy_helper.from_array(whole(0))),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Gather", ["shape", "first"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    assert_equal(save(tmp_path / "m.onnx", nodes, ["n", 3, 4]), floats(5, 3, 4), "y")


@pytest.mark.parametrize("sizes", [None, whole(1, 4, 1)])
def test_parts_and_numbers_of_another_type(tmp_path, sizes):
    constants = {} if sizes is None else {"sizes": sizes}
    told = {"num_outputs": 3} if sizes is None else {}
    nodes = [
        helper.make_node("Split", ["x", *constants], ["a", "b", "c"], axis=1, **told),
        helper.make_node("Cast", ["b"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Concat", ["c", "a"], ["ca"], axis=1),
        helper.make_node("ReduceSum", ["whole"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["s"], to=F),
        helper.make_node("Mul", ["ca", "s"], ["y"]),
    ]
    assert_equal(save(tmp_path / "m.onnx", nodes, [4, 6], constants), 3 * floats(4, 6), "y")


def test_only_what_the_output_needs_is_needed(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Hardmax", ["x"], ["z"])]
    path = save(tmp_path / "m.onnx", nodes, TABLE, outputs=("y", "z"))
    assert_equal(path, floats(*TABLE), "y")
    with pytest.raises(InputError, match=r"not known to run on torch \(Hardmax\); run it without a device"):
        onnx_as_torch(path, "z")
    with pytest.raises(InputError, match="has no output 'logits'"):
        onnx_as_torch(path, "logits")


def test_an_operator_in_a_form_that_is_not_known(tmp_path):
    attributes = {"mode": "linear"}
    constants = {"roi": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    path = save(
        tmp_path / "m.onnx", [helper.make_node("Resize", ["x", *constants], ["y"], **attributes)], IMAGE, constants
    )
    with pytest.raises(InputError, match=r"Resize: .'linear'.* does not run on torch"):
        by_torch(path, floats(*IMAGE))
    nodes = [helper.make_node("Gemm", ["x", "b"], ["y"], alpha=2.0, wings=3)]
    path = save(tmp_path / "n.onnx", nodes, TABLE, {"b": floats(6, 2)})
    with pytest.raises(InputError, match=r"Gemm as it stands does not run on torch.*wings"):
        onnx_as_torch(path)


def test_a_file_that_is_none(tmp_path):
    path = tmp_path / "m.onnx"
    with pytest.raises(InputError, match="does not exist"):
        onnx_as_torch(path)
    path.write_bytes(b"hello, this is a text")
    with pytest.raises(InputError, match="is not a usable ONNX model"):
        onnx_as_torch(path)


def test_a_batch_of_a_fixed_size(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, [3, 2, 2], {"shape": whole(3, 4)})
    inputs = floats(7, 2, 2)
    assert np.array_equal(by_torch(path, inputs), inputs.reshape(7, 4))


def test_weights_beside_the_file(tmp_path):
    path = save(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], TABLE, {"w": floats(6, 500)})
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=10)
    assert_equal(path, floats(*TABLE), "y")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(InputError, match=r"weights .weights.bin. do not exist"):
        onnx_as_torch(path)


@pytest.mark.parametrize("output", ["logits", "features"])
def test_the_demo_model(output):
    images = (np.asarray(demo_data().inputs[np.arange(200)])[:, None] / np.float32(255)).astype(np.float32)
    assert_equal(demo_model_path(), images, output)


@pytest.mark.parametrize("name", NAMES)
def test_shared_models(name):
    path = SHARED / "models" / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"no {path} (set TESTIFAI_DATA)")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    shape = [32 if isinstance(size, str) else size for size in session.get_inputs()[0].shape]
    inputs = np.random.default_rng(1).random(shape, dtype=np.float32)
    for output in session.get_outputs():
        assert_equal(path, inputs, output.name)


def test_a_module_like_any_other():
    module = models.onnx_as_torch(demo_model_path())
    assert isinstance(module, torch.nn.Module)
    assert not module.training
    half = models.onnx_as_torch(demo_model_path()).to(torch.bfloat16)
    inputs = torch.rand(8, 1, 28, 28)
    with torch.inference_mode():
        logits, rough = module(inputs), half(inputs.bfloat16())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = module(inputs)
        copied = pickle.loads(pickle.dumps(module))(inputs)
    assert rough.dtype == mixed.dtype == torch.bfloat16
    assert (logits - mixed.float()).abs().max() < 0.05 * logits.abs().max()
    assert torch.equal(copied, logits)
    model = models.wrap(module)
    assert model.fingerprint == models.wrap(models.onnx_as_torch(demo_model_path())).fingerprint
    assert model.fingerprint != models.wrap(models.onnx_as_torch(demo_model_path(), "features")).fingerprint
    assert model.unidentified_reason is None


def test_an_onnx_models_twin_is_the_same_model():
    images = np.asarray(demo_data().inputs[np.arange(100)])
    for told in ({}, {"scale": "signed", "mean": 0.1, "std": 0.3}):
        model = OnnxModel(demo_model_path(), **told)
        twin = model.placed("cpu")
        np.testing.assert_allclose(twin(images), model(images), rtol=1e-4, atol=1e-4)
        assert np.array_equal(twin(images).argmax(1), model(images).argmax(1))
        for name in ("name", "fingerprint", "outputs", "classes", "repeatable", "preprocessing"):
            assert getattr(twin, name) == getattr(model, name), name
        assert (twin.unidentified_reason, twin.device.type) == (None, "cpu")


def test_a_twin_on_tensors():
    images = np.asarray(demo_data().inputs[np.arange(100)])
    twin = OnnxModel(demo_model_path(), scale="signed", mean=0.1, std=0.3).placed("cpu")
    with twin.answering():
        np.testing.assert_allclose(twin.on_tensors(torch.from_numpy(images)), twin(images), rtol=1e-4, atol=1e-4)


def test_a_twin_of_a_model_of_labels(tmp_path):
    nodes = [helper.make_node("ArgMax", ["x"], ["label"], axis=1)]
    path = save(tmp_path / "m.onnx", nodes, [None, 4], kind=I64, outputs=("label",))
    table = floats(6, 4)
    assert OnnxModel(path).placed("cpu")(table).tolist() == table.argmax(1).tolist()


def test_a_device_that_is_not_there():
    with pytest.raises(InputError, match="device 'cuda:99' cannot be used"):
        OnnxModel(demo_model_path()).placed("cuda:99")


def test_onnxruntime_is_not_needed():
    script = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "import testifai as ta, torch; from testifai.data.sample import demo_model_path\n"
        "print(tuple(ta.models.onnx_as_torch(demo_model_path())(torch.zeros(3, 1, 28, 28)).shape))"
    )
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert made.stdout.strip() == "(3, 10)", made.stderr
