"""`init`: what it sees in a model and data, and that the spec it writes runs."""

import sys
import tomllib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import testifai as ta
from testifai import models
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.session import assembly
from testifai.spec.parsing import parse, read
from testifai.wizard.init import write_spec

RNG = np.random.default_rng(4)
IMAGES = np.concatenate([RNG.integers(0, 100, (60, 8, 8)), RNG.integers(150, 256, (60, 8, 8))]).astype(np.uint8)
LABELS = np.repeat([0, 1], 60)


def brightness_model(path, threshold: float, shape=(1, 8, 8)):
    """Class 1 where the mean input is above the threshold: says which scale it wants to be fed."""
    columns = int(np.prod(shape))
    weights = np.stack([np.zeros(columns), np.full(columns, 1 / columns)], axis=1).astype(np.float32)
    bias = np.array([0, -threshold], np.float32)
    nodes = [
        helper.make_node("Flatten", ["images"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["logits"]),
    ]
    values = [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", *shape])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 2])]
    weights_named = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "brightness", values, outputs, weights_named)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return str(path)


def npz(path, **arrays) -> str:
    np.savez(path, **arrays)
    return str(path)


@pytest.fixture
def own_modules(tmp_path):
    """A spec's own modules are imported by name; leave none of them behind for the next test."""
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def run(out) -> ta.Tomogram:
    return assembly.session(read(out), out.parent).run()


@pytest.mark.parametrize(("scale", "threshold"), [("unit", 0.49), ("raw", 125.0), ("signed", -0.02)])
def test_the_scale_a_model_wants_is_recognised(tmp_path, scale, threshold):
    model = brightness_model(tmp_path / "m.onnx", threshold)
    found = write_spec(model, npz(tmp_path / "d.npz", x=IMAGES, y=LABELS), tmp_path / "s.toml")
    assert found.model == {"onnx": "m.onnx", "scale": scale}
    assert (found.accuracy, found.tried, found.classes, found.kind) == (1.0, 120, 2, "images")
    assert found.shape == (8, 8)
    assert any(f"took {scale}" in note for note in found.notes)
    tomogram = run(tmp_path / "s.toml")
    assert tomogram.base == 1.0
    assert tomogram.space.shape == (6, 4, 3)


@pytest.mark.parametrize(("side", "suite"), [(16, "cifar_c"), (72, "imagenet_c")])
def test_photographs_get_the_suite_of_their_size(tmp_path, side, suite):
    images = np.broadcast_to(IMAGES[:, :1, :1, None], (120, side, side, 3))
    model = brightness_model(tmp_path / "m.onnx", 0.49, (3, side, side))
    write_spec(model, npz(tmp_path / "d.npz", x=images, y=LABELS), tmp_path / "s.toml")
    assert [axis.split(".")[0] for axis in read_axes(tmp_path / "s.toml")] == [suite] * 3


def read_axes(spec):
    return [axis.perturbation.name for axis in assembly.session(read(spec), spec.parent).space.axes]


def test_the_written_spec_of_the_demo_runs_and_sets_no_gate(tmp_path):
    data = demo_data()
    digits = npz(tmp_path / "digits.npz", x=data.inputs[:150], y=data.labels[:150])
    found = write_spec(str(demo_model_path()), digits, tmp_path / "s.toml")
    assert found.model["scale"] == "unit"
    assert found.accuracy > 0.9
    words = found.lines()
    assert words[0].startswith("Data: 150 images of 28 x 28, 10 classes.")
    assert f"Clean accuracy on 150 inputs: {found.accuracy:.3f} (95 % interval 0." in words[1]
    spec = read(tmp_path / "s.toml")
    assert spec.gate == []
    run(tmp_path / "s.toml")
    assert set(found.as_dict()) >= {"inputs", "kind", "shape", "classes", "oracle", "accuracy", "model", "data", "spec"}


def test_paths_are_relative_to_the_spec(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "specs").mkdir()
    model = brightness_model(tmp_path / "models" / "m.onnx", 125.0)
    found = write_spec(model, npz(tmp_path / "d.npz", x=IMAGES, y=LABELS), tmp_path / "specs" / "s.toml")
    assert found.model["onnx"] == "../models/m.onnx"
    assert found.data == {"npz": "../d.npz"}
    assert run(tmp_path / "specs" / "s.toml").base == 1.0


def test_a_model_may_be_at_an_address(tmp_path):
    pytest.importorskip("fsspec")
    brightness_model(tmp_path / "m.onnx", 125.0)
    address = (tmp_path / "m.onnx").as_uri()
    found = write_spec(address, npz(tmp_path / "d.npz", x=IMAGES, y=LABELS), tmp_path / "s.toml")
    assert found.model["onnx"] == address
    assert run(tmp_path / "s.toml").base == 1.0


def test_data_without_labels_are_judged_by_consistency(tmp_path):
    model = brightness_model(tmp_path / "m.onnx", 0.49)
    found = write_spec(model, npz(tmp_path / "d.npz", x=IMAGES), tmp_path / "s.toml")
    assert (found.oracle, found.accuracy) == ("consistency", None)
    assert any("no labels" in note for note in found.notes)
    assert read(tmp_path / "s.toml").scan.oracle == "consistency"
    tomogram = run(tmp_path / "s.toml")
    assert tomogram.base == 1.0
    assert tomogram.labels is None


def test_a_table_without_names_gets_the_suite_for_tables(tmp_path):
    rows = RNG.normal(size=(80, 3)).astype(np.float32)
    labels = (rows.mean(axis=1) > 0.0).astype(int)
    model = brightness_model(tmp_path / "m.onnx", 0.0, shape=(3,))
    found = write_spec(model, npz(tmp_path / "d.npz", x=rows, y=labels), tmp_path / "s.toml")
    assert (found.kind, found.shape, found.accuracy) == ("table", (3,), 1.0)
    assert read(tmp_path / "s.toml").runs_code() == []
    tomogram = run(tmp_path / "s.toml")
    assert tomogram.base == 1.0
    assert tomogram.space.names == ("noise", "outlier", "stale")
    assert tomogram.estimate[5, 0, 0] < tomogram.estimate[1, 0, 0] < 1.0


def test_a_python_callable_is_a_model(own_modules):
    code = "def bright(batch):\n    return (batch.mean(axis=(1, 2)) > 125).astype(int)\n"
    (own_modules / "my_bright_model.py").write_text(code)
    data = npz(own_modules / "d.npz", x=IMAGES, y=LABELS)
    found = write_spec("my_bright_model:bright", data, own_modules / "s.toml")
    assert found.model == {"python": "my_bright_model:bright"}
    assert found.accuracy == 1.0
    assert run(own_modules / "s.toml").base == 1.0
    assert "layout" not in (own_modules / "s.toml").read_text(encoding="utf-8")  # an option of ONNX files


def test_an_accuracy_near_chance_is_warned_about(tmp_path):
    labels = np.random.default_rng(0).permutation(LABELS)
    found = write_spec(
        brightness_model(tmp_path / "m.onnx", 125.0), npz(tmp_path / "d.npz", x=IMAGES, y=labels), tmp_path / "s.toml"
    )
    assert any("not clearly above chance" in note for note in found.notes)


def test_what_is_there_is_left_alone(tmp_path):
    out = tmp_path / "s.toml"
    out.write_text("# mine")
    model, data = brightness_model(tmp_path / "m.onnx", 125.0), npz(tmp_path / "d.npz", x=IMAGES, y=LABELS)
    with pytest.raises(InputError, match=r"s\.toml exists; choose another name"):
        write_spec(model, data, out)
    assert out.read_text() == "# mine"


def test_mistakes_are_one_line(tmp_path):
    model, data = brightness_model(tmp_path / "m.onnx", 125.0), npz(tmp_path / "d.npz", x=IMAGES, y=LABELS)
    (tmp_path / "m.pt").write_bytes(b"")
    cases = [
        (model, data, tmp_path / "no" / "s.toml", "folder"),
        (model, str(tmp_path / "nothing.npz"), tmp_path / "s.toml", "nothing.npz"),
        (str(tmp_path / "nothing.onnx"), data, tmp_path / "s.toml", "nothing.onnx"),
        (str(tmp_path / "no_folder"), data, tmp_path / "s.toml", "no_folder does not exist"),
        (str(tmp_path / "m.pt"), data, tmp_path / "s.toml", "neither an .onnx file nor package.module:name"),
        (model, npz(tmp_path / "f.npz", x=IMAGES / 255, y=LABELS), tmp_path / "s.toml", "images must be uint8"),
        (model, npz(tmp_path / "w.npz", x=IMAGES[:, :4], y=LABELS), tmp_path / "s.toml", "shape"),
        (model, npz(tmp_path / "l.npz", x=IMAGES, y=LABELS + 5), tmp_path / "s.toml", "labels: 5"),
        ("no_such_module_here:model", data, tmp_path / "s.toml", "no module"),
    ]
    for *arguments, words in cases:
        with pytest.raises(InputError) as caught:
            write_spec(*arguments)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "s.toml").exists()


def test_every_line_that_is_commented_out_would_be_accepted(tmp_path):
    """The comments of the spec offer options: they must exist."""
    write_spec(
        brightness_model(tmp_path / "m.onnx", 125.0), npz(tmp_path / "d.npz", x=IMAGES, y=LABELS), tmp_path / "s.toml"
    )
    text = (tmp_path / "s.toml").read_text(encoding="utf-8")
    for option in ("target = 0.02", "budget = 100000", 'oracle = "consistency"'):
        assert f"# {option}" in text
        text = text.replace(f"# {option}", option)
    spec = parse(tomllib.loads(text))
    assert (spec.scan.target, spec.scan.budget, spec.scan.oracle) == (0.02, 100_000, "consistency")


QUESTIONS = ["Is this the best way to ask?", "What do people think of the new car?", "Thank you, it is a good idea."]


def table(path, rows, header="text,label") -> str:
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return str(path)


def python_model(folder, body: str) -> str:
    """A module of its own name: modules stay known after a test."""
    name = f"text_model_in_{folder.name}"
    (folder / f"{name}.py").write_text(f"import numpy as np\n\n\ndef model(batch):\n    {body}\n")
    return f"{name}:model"


def test_a_table_of_texts_gets_axes_of_edits(own_modules):
    model = python_model(own_modules, "return np.array(['thank' in text.lower() for text in batch]).astype(int)")
    rows = [f'"{text}",{"yes" if "Thank" in text else "no"}' for text in QUESTIONS * 20]
    found = write_spec(model, table(own_modules / "d.csv", rows), own_modules / "s.toml")
    assert (found.kind, found.shape, found.accuracy, found.classes) == ("texts", (), 1.0, 2)
    assert found.data == {"csv": "d.csv", "text": "text", "label": "label"}
    assert found.lines()[0] == "Data: 60 texts, 2 classes. Model: returns one number or label per input."
    assert not (own_modules / "perturbations.py").exists()
    assert read(own_modules / "s.toml").runs_code() == ["model.python"]
    tomogram = run(own_modules / "s.toml")
    assert tomogram.base == 1.0
    assert tomogram.space.names == ("typo", "synonym", "punctuation")
    assert tomogram.space.shape == (6, 4, 3)
    gate = [line for line in (own_modules / "s.toml").read_text().splitlines() if line.startswith("# query")]
    assert tomogram.query(gate[0].split('"')[1]).tests > 1


@pytest.mark.parametrize(
    ("texts", "axes", "warned"),
    [
        (["שלום עולם מה שלומך", "מה קורה איתך היום"], ("typo", "punctuation", "whitespace"), False),
        (["one", "two"], ("typo", "punctuation", "case"), False),
        (["", ""], ("typo",), True),
    ],
)
def test_axes_are_those_that_the_texts_have_places_for(own_modules, texts, axes, warned):
    model = python_model(own_modules, "return np.array([len(text) for text in batch])")
    rows = [f'"{text}"' for text in texts]
    found = write_spec(model, table(own_modules / "d.csv", rows, "text"), own_modules / "s.toml")
    assert found.axes == axes
    assert any("no place for an edit" in note for note in found.notes) == warned
    assert run(own_modules / "s.toml").space.names == axes


def test_a_model_that_raises_is_one_line(own_modules):
    model = python_model(own_modules, "return np.array([text.lower() for text in batch])")
    data = table(own_modules / "d.csv", ["a,b,0"], "text1,text2,label")
    with pytest.raises(InputError) as caught:
        write_spec(model, data, own_modules / "s.toml")
    reason = "'tuple' object has no attribute 'lower'"
    assert str(caught.value) == f"model: raised AttributeError: {reason} (batch of 1 inputs, pairs of texts)"


class Constant(models.Model):
    """Stands for a model of texts: every one of them is of the first class."""

    fingerprint, outputs = "constant", "scores"

    def __call__(self, batch):
        return np.tile([0.9, 0.1], (len(batch), 1))


@pytest.mark.parametrize(
    ("model", "files", "entry"),
    [
        ("net", ["net/config.json"], {"transformers": "../net"}),
        ("net", ["net/config.json", "net/modules.json", "head.npz"], {"encoder": "../net", "head": "../head.npz"}),
        ("net", ["net/modules.json", "net/head.npz", "head.npz"], {"encoder": "../net", "head": "../net/head.npz"}),
        ("net/m.onnx", ["net/m.onnx", "net/tokenizer.json"],
         {"onnx": "../net/m.onnx", "tokenizer": "../net/tokenizer.json"}),
    ],
)  # fmt: skip
def test_models_of_texts_are_known_by_their_files(tmp_path, monkeypatch, model, files, entry):
    asked = []
    monkeypatch.setattr(models, "load", lambda *told, **options: asked.append((told, options)) or Constant())
    for name in ("net", "specs"):
        (tmp_path / name).mkdir()
    for name in files:
        (tmp_path / name).touch()
    data = table(tmp_path / "d.csv", ["a text,0", "another,0"])
    found = write_spec(str(tmp_path / model), data, tmp_path / "specs" / "s.toml")
    assert found.model == entry
    (kind, source), *others = entry.items()
    assert asked == [((kind, source), {"folder": tmp_path / "specs", **dict(others)})]
    spec = read(tmp_path / "specs" / "s.toml")
    assert spec.model.model_dump(exclude_none=True) == entry
    assert spec.data.model_dump(exclude_none=True) == {"csv": "../d.csv", "text": "text", "label": "label"}


@pytest.mark.parametrize(
    ("model", "files", "words"),
    [
        ("net", ["net/modules.json"], "is a sentence encoder; put its head next to it as head.npz"),
        ("net/m.onnx", ["net/m.onnx"], "needs a tokenizer for texts; put its tokenizer.json next to it"),
        ("net", [], "nor a folder of transformers (config.json)"),
    ],
)
def test_models_of_texts_that_lack_a_file(tmp_path, model, files, words):
    (tmp_path / "net").mkdir()
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(InputError) as caught:
        write_spec(str(tmp_path / model), table(tmp_path / "d.csv", ["a text,0"]), tmp_path / "s.toml")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
