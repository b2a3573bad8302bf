"""The hand-over to a verifier: the graph is our perturbed inference, and what it cannot say is refused in one line."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.verification.graphs import CLASSES, classifier

import testifai as ta
from testifai.models.onnx import OnnxModel
from testifai.perturb import get, names
from testifai.testing import example_photographs
from testifai.verification import hand_over
from testifai.verification.export import perturbed_scores

GREY, COLOUR = (9, 8), (9, 8, 3)
BOX = "contrast <= 2 and brightness <= 3"
AXES = {"contrast": "deeptest.contrast", "brightness": "deeptest.brightness"}


@pytest.fixture
def made(tmp_path):
    """Hands over a region for a small model; shape of the data, and of one input of the model."""

    def make(form=GREY, wanted=(1, 9, 8), axes=None, region=BOX, model=None, inputs=None, **options):
        path = classifier(tmp_path / "small.onnx", wanted) if model is None else model
        data = example_photographs(5, form) if inputs is None else inputs
        space = ta.Space(axes or AXES)
        return hand_over(path, (data, np.arange(5) % CLASSES), space, index=3, region=region, **options)

    return make


def test_a_hundred_points_of_the_graph_are_our_perturbed_inference(made, tmp_path):
    exact, smooth = made(rounded=True), made()
    assert exact.agreement.same == exact.agreement.points == smooth.agreement.points == 100
    assert exact.agreement.difference < 1e-5
    assert 1e-5 < smooth.agreement.difference < 0.05  # rounding of pixels

    # The same, told by the file itself.
    points = smooth.region.points(100, seed=5)
    session = onnxruntime.InferenceSession(exact.graph)
    theirs = np.concatenate([session.run(None, {"parameters": point[None]})[0] for point in points])
    batch = example_photographs(5, GREY)[[3]]
    ours = perturbed_scores(OnnxModel(tmp_path / "small.onnx"), batch, exact.region, points)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_perturbed_scores_are_those_of_a_run_at_the_ends(made, tmp_path):
    found = made()
    batch = example_photographs(5, GREY)[[3]]
    model = OnnxModel(tmp_path / "small.onnx")
    scores = perturbed_scores(model, batch, found.region, np.array([[1.6, 60.0], [1.0, 0.0]]))
    hard = ta.apply({"deeptest.contrast": 2, "deeptest.brightness": 3}, batch)
    np.testing.assert_allclose(scores, np.concatenate([model(hard), model(batch)]), atol=1e-6)


@pytest.mark.parametrize(
    ("form", "wanted", "options"),
    [
        (GREY, (1, 9, 8), {}),
        (GREY, (9, 8), {}),
        (GREY, (72,), {"scale": "signed"}),
        (COLOUR, (3, 9, 8), {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]}),
        (COLOUR, (9, 8, 3), {"scale": "raw", "std": 64.0}),
        (COLOUR, (216,), {"mean": [0.4, 0.5, 0.6]}),
    ],
)
@pytest.mark.parametrize("floats", [False, True])
def test_preprocessing_and_layout_are_in_the_graph(made, tmp_path, form, wanted, options, floats):
    model = OnnxModel(classifier(tmp_path / "m.onnx", wanted), **options)
    data = example_photographs(5, form)
    found = made(model=model, rounded=True, inputs=data / np.float32(255) if floats else data)
    assert found.agreement.same == 100
    assert found.agreement.difference < 1e-4 * (64 if "std" in options else 1)


@pytest.mark.parametrize("name", [name for name in names() if get(name).smooth is not None])
def test_every_perturbation_that_says_so_has_its_graph(made, name):
    grey = name.endswith("_c.brightness")
    form, wanted = (GREY, (1, 9, 8)) if grey else (COLOUR, (3, 9, 8))
    found = made(form, wanted, {"one": name, "two": "deeptest.brightness"}, "two <= 2", rounded=True)
    assert found.agreement.same == 100
    after = made(form, wanted, {"two": "deeptest.brightness", "one": name}, "two <= 2", rounded=True)
    assert after.agreement.same >= 99  # a level that falls on a half may be rounded the other way in single precision
    assert found.agreement.difference < 0.01 > after.agreement.difference


def test_products_of_two_that_vary_are_told(made):
    turned = {name: AXES[name] for name in reversed(AXES)}
    assert not made().bilinear
    found = made(axes=turned)
    assert found.bilinear
    assert any("multiplies two" in note for note in found.notes())
    fixed = made(axes=turned, region="contrast == 2 and brightness <= 3", rounded=True)
    assert not fixed.bilinear
    assert fixed.agreement.difference < 1e-5
    assert [one.axis for one in fixed.region.free] == ["brightness"]


def test_a_first_step_that_is_fixed_is_rounded_as_in_a_run(made):
    found = made(region="contrast == 2 and brightness <= 0", levels={"brightness": (20, 20.001)})
    assert found.agreement.difference < 1e-4


def test_only_operators_of_image_classifiers_are_used_and_only_nodes_that_the_scores_need(made):
    graph = onnx.load_model_from_string(made().graph).graph
    assert {node.op_type for node in graph.node} <= {
        "Gemm", "Reshape", "Conv", "Add", "Relu", "Identity", "Flatten", "MatMul",
    }  # fmt: skip
    [given], [answer] = graph.input, graph.output
    assert [one.dim_value for one in given.type.tensor_type.shape.dim] == [1, 2]
    assert [one.dim_value for one in answer.type.tensor_type.shape.dim] == [1, CLASSES]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats_and_weights_in_the_inputs(made, tmp_path, dtype):
    path = classifier(tmp_path / "other.onnx", (1, 9, 8), dtype=dtype, opset=8 if dtype is np.float64 else 13, ir=4)
    model = onnx.load(path)
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("first", model.graph.input[0].type.tensor_type.elem_type, [72, 12])
    )
    onnx.save(model, path)
    assert made(model=path, rounded=True).agreement.same >= 98


def test_the_answer_is_the_label_or_the_clean_answer(made):
    labelled, consistent = made(), made(oracle="consistency")
    assert labelled.label == 3
    assert consistent.label == consistent.clean == labelled.clean
    told = any("counterexample" in note for note in labelled.notes())
    assert told == (labelled.clean != 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"region": "contrast <= 2 or brightness <= 3"}, "is no box"),
        ({"region": "contrast in {1, 3} and brightness <= 3"}, "is no box"),
        ({"region": "contrast < 0"}, "selects no test"),
        ({"region": "contrast == 2 and brightness == 0"}, "a single test"),
        ({"region": None}, "give a query"),
        ({"region": None, "levels": {"contast": (1, 2)}}, "did you mean 'contrast'"),
        ({"region": None, "levels": {"contrast": (2, 1)}}, "no range"),
        ({"region": None, "levels": {"contrast": (1, 9)}}, "contrast"),
        ({"axes": {"zoom": "mnist_c.zoom"}, "region": "zoom <= 2"}, "keep it off.*deeptest.brightness"),
        ({"form": COLOUR, "wanted": (3, 9, 8), "axes": {"b": "cifar_c.brightness"}, "region": "b <= 2"}, "grey images"),
        ({"model": lambda batch: np.zeros(len(batch), int)}, "no ONNX file that scores"),
    ],
)
def test_what_cannot_be_handed_over_is_one_line(made, options, words):
    with pytest.raises(ta.InputError, match=words):
        made(**options)


def test_models_that_cannot_be_handed_over_are_one_line(made, tmp_path):
    with pytest.raises(ta.InputError, match="5 inputs at a time"):
        made(model=classifier(tmp_path / "five.onnx", (1, 9, 8), batch=5))
    space = ta.Space(AXES, order_sensitive=True)
    with pytest.raises(ta.InputError, match="order_sensitive"):
        hand_over(tmp_path / "five.onnx", (example_photographs(5, GREY), np.zeros(5, int)), space, index=0, region=BOX)


def test_without_onnx_a_line_says_what_to_install(made, monkeypatch, tmp_path):
    path = classifier(tmp_path / "m.onnx", (1, 9, 8))
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ta.InputError, match=r"testifai\[verify\]"):
        made(model=path)
