"""A run is continued only with the model, data and code it was made with, and says what it was made with."""

from __future__ import annotations

import json
import os
import sys
import types

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import testifai as ta
from testifai.data import load
from testifai.errors import InputError
from testifai.identity import run_identity
from testifai.models import PythonModel, onnx_session
from testifai.models.onnx import OnnxModel
from testifai.models.onnx_graph import external_files
from testifai.runs.store import Store
from testifai.session import observers
from testifai.session.assembly import session_of
from testifai.support import user_code

RNG = np.random.default_rng(0)
ROWS = RNG.random((60, 3)).astype(np.float32)
WEIGHTS = RNG.normal(size=(3, 2)).astype(np.float32)
SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + np.float32(by), [0.0, 0.1, 0.3])


# -- ONNX -------------------------------------------------------------------------------------------------------------


def _external(path, location="weights.bin"):
    """A linear model whose weights are in a file of that name."""
    info = helper.make_tensor_value_info
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    (path.parent / location).write_bytes(WEIGHTS.tobytes())
    onnx.external_data_helper.set_external_data(tensor, location, offset=0, length=WEIGHTS.nbytes)
    tensor.ClearField("raw_data")
    node = helper.make_node("MatMul", ["x", "w"], ["scores"])
    ends = [info("x", TensorProto.FLOAT, [None, 3])], [info("scores", TensorProto.FLOAT, [None, 2])]
    graph = helper.make_graph([node], "test", *ends, [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_other_weights_beside_a_model_are_another_model(tmp_path):
    path = _external(tmp_path / "model.onnx")
    before = OnnxModel(path)
    labels = before(ROWS).argmax(axis=1)
    ta.scan(before, (ROWS, labels), ta.Space({"shift": SHIFT}), strategy="full", store=tmp_path / "run.db")
    (tmp_path / "weights.bin").write_bytes((-WEIGHTS).tobytes())
    after = OnnxModel(path)
    assert after.fingerprint != before.fingerprint
    with pytest.raises(InputError, match="belongs to another run: model was"):
        ta.scan(after, (ROWS, labels), ta.Space({"shift": SHIFT}), strategy="full", store=tmp_path / "run.db")


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "sub/../../outside.bin", "C:\\x", "link.bin"])
def test_weights_outside_the_folder_are_refused(tmp_path, location):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(WEIGHTS.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    path = _external(folder / "model.onnx", "inside.bin")
    content = onnx.load(path, load_external_data=False)
    entry = next(one for one in content.graph.initializer[0].external_data if one.key == "location")
    entry.value = location
    path.write_bytes(content.SerializeToString())
    with pytest.raises(InputError, match="names weights outside its own folder") as caught:
        OnnxModel(path)
    assert "\n" not in str(caught.value)


def test_a_cache_of_links_is_one_folder(tmp_path):
    """As downloads are kept: the model and its weights are links to files that lie together elsewhere."""
    blobs, shown = tmp_path / "blobs", tmp_path / "shown"
    blobs.mkdir()
    shown.mkdir()
    _external(blobs / "model.onnx")
    for name in ("model.onnx", "weights.bin"):
        (shown / name).symlink_to(blobs / name)
    assert list(onnx_session.external_files(shown / "model.onnx")) == ["weights.bin"]


def _outside(name):
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=f"{name}.bin")
    return tensor


def test_files_are_found_wherever_a_model_may_name_them():
    branch = helper.make_graph([helper.make_node("Constant", [], ["c"], value=_outside("branch"))], "b", [], [])
    sparse = onnx.SparseTensorProto(values=_outside("values"), indices=_outside("indices"), dims=[1])
    node = helper.make_node("If", ["x"], ["y"], then_branch=branch)
    node.attribute.append(helper.make_attribute("several", [_outside("one"), _outside("two")]))
    node.attribute.append(helper.make_attribute("sparse", sparse))
    graph = helper.make_graph([node], "g", [], [], [_outside("initializer")], sparse_initializer=[sparse])
    inner = helper.make_node("Constant", [], ["y"], value=_outside("function"))
    function = helper.make_function("own", "F", [], ["y"], [inner], [helper.make_opsetid("", 13)])
    model = helper.make_model(graph, functions=[function])
    names = ("branch", "values", "indices", "one", "two", "initializer", "function")
    assert external_files(model.SerializeToString()) == sorted(f"{name}.bin" for name in names)


# -- image folders ----------------------------------------------------------------------------------------------------


@pytest.fixture
def images(tmp_path):
    for name, value in (("dark", 10), ("light", 200)):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True)
        for number in range(3):
            cv2.imwrite(str(folder / f"{number}.bmp"), np.full((4, 4, 3), value + number, np.uint8))
            os.utime(folder / f"{number}.bmp", ns=(10**18, 10**18))
    return tmp_path / "images"


def _swap(images):
    """Other content under the same names, sizes and times."""
    one, two = images / "dark" / "0.bmp", images / "light" / "0.bmp"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    for file in (one, two):
        os.utime(file, ns=(10**18, 10**18))


def test_images_of_the_same_size_are_told_apart(images):
    before = load("folder", images)
    known = before.fingerprint
    _swap(images)
    assert load("folder", images).fingerprint != known


def _light(batch):
    return (batch.mean(axis=(1, 2, 3)) > 100).astype(int)


FADE = ta.Perturbation("fade", lambda x, by, rng: (x * by).astype(np.uint8), [1.0, 0.9])


def _scan(images, store):
    data = load("folder", images)
    ta.scan(_light, data, ta.Space({"fade": FADE}), strategy="full", store=store)
    return data


def test_other_images_do_not_continue_a_run_and_unchanged_ones_are_not_read_again(images, tmp_path, monkeypatch):
    monkeypatch.setattr("testifai.support.fingerprints._SETTLED", 0)
    store = tmp_path / "run.db"
    assert _scan(images, store).inputs._hashes.read == 6
    assert _scan(images, store).inputs._hashes.read == 0
    _swap(images)
    with pytest.raises(InputError, match="belongs to another run: data was"):
        _scan(images, store)


def test_a_file_changed_just_now_is_read_again(images, tmp_path):
    # File systems' clocks are coarse: another change might not show.
    assert _scan(images, tmp_path / "run.db").inputs._hashes.read == 6
    assert _scan(images, tmp_path / "run.db").inputs._hashes.read == 6


# -- code of the user's -----------------------------------------------------------------------------------------------

MODULES = {
    "a global array": ("import numpy as np\nW = np.array([{}])\ndef model(b): return b @ W\n"),
    "a global number": ("T = {}\ndef model(b): return b[:, 0] > T\n"),
    "a list of lists": ("W = [[{}], [1.0]]\ndef model(b): return W\n"),
    "a helper": ("def helper(b):\n    return b * {}\ndef model(b): return helper(b)\n"),
    "an attribute": (
        "import numpy as np\nclass Net:\n    def __init__(self): self.deep = {{'a': [[[[[np.array([{}])]]]]]}}\n"
        "    def __call__(self, b): return b\nmodel = Net()\n"
    ),
    "a slot": (
        "class Net:\n    __slots__ = ('w',)\n    def __init__(self, w): self.w = w\n"
        "    def __call__(self, b): return b\nmodel = Net({})\n"
    ),
    "what a method names": (
        "W = [{}]\nclass Net:\n    def __call__(self, b): return self.go(b)\n    def go(self, b): return b * W[0]\n"
        "model = Net()\n"
    ),
    "a bound method": ("class Net:\n    def __init__(self, w): self.w = w\n    def go(self, b): return b\n"
                       "model = Net({}).go\n"),
    "a closure": ("import numpy as np\ndef make(w):\n    return lambda b: b @ w\nmodel = make({{np.float32({})}})\n"),
    "a partial": ("import functools\ndef go(b, w): return b\nmodel = functools.partial(go, w={{1: {{{}}}}})\n"),
    "an estimator": (
        "from sklearn.tree import DecisionTreeClassifier\ntree = DecisionTreeClassifier(max_depth=1)\n"
        "tree.fit([[0.0], [{}]], [0, 1])\ndef model(b): return tree.predict(b[:, :1])\n"
    ),
}  # fmt: skip


def _told(code, *values):
    module = types.ModuleType("told_apart")
    exec(compile(code.format(*values), "told_apart.py", "exec"), module.__dict__)
    return PythonModel(module.model)


@pytest.mark.parametrize("kind", MODULES)
def test_what_a_model_computes_with_tells_it_apart(kind):
    # Compiled, not read from a file: the source of a class is not to be seen here, so values alone make the difference.
    models = [_told(MODULES[kind], value) for value in (0.25, 0.25, 0.75)]
    one, same, other = (model.fingerprint for model in models)
    assert one == same != other
    assert models[0].unidentified_reason is None


def test_where_the_code_lies_and_how_often_it_was_called_do_not_count(tmp_path, monkeypatch):
    code = (
        "import itertools, os\nfrom pathlib import Path\nCALLS, LOG = itertools.count(), []\n"
        "HERE, TEXT = Path(__file__).parent / 'w', os.path.dirname(__file__)\n"
        "def model(b):\n    next(CALLS)\n    LOG.append(1)\n    return HERE, TEXT, __file__\n"
    )
    found = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "lies_somewhere.py").write_text(code)
        monkeypatch.delitem(sys.modules, "lies_somewhere", raising=False)
        function = user_code.import_object("lies_somewhere:model", folder=tmp_path / folder)
        for _ in range(2):
            found.append(PythonModel(function).fingerprint)
            function(None)
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sqlite3\nheld = sqlite3.connect(':memory:')\n"
         "def model(b): return (b[:, 0, 0] > 127).astype(int) if held else b\n", "held, a sqlite3.Connection"),
        ("net = None\ndef model(b):\n    global net\n    net = 1\n    return (b[:, 0, 0] > 127).astype(int)\n",
         "net, which its code changes"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_told_is_named_and_version_tells_it(own, command, code, said):
    spec = own(code)
    code_, _, err = command("run", spec)
    assert code_ == 0
    lines = [line for line in err.splitlines() if "cannot fingerprint this model" in line]
    assert len(lines) == 1
    assert said in lines[0]
    assert 'version = "…" under [model]' in lines[0]
    spec = own(code, model='version = "1"')
    command("run", spec, "--out", spec.with_name("one.db"))
    assert "cannot fingerprint this model" not in command("run", spec, "--out", spec.with_name("one.db"))[2]
    spec = own(code, model='version = "2"')
    code_, _, err = command("run", spec, "--out", spec.with_name("one.db"))
    assert code_ == 2
    assert "model was" in err


def test_cycles_and_depth_end(capsys):
    loop: list = []
    loop.append(loop)
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    assert PythonModel(lambda batch, held=loop: held).unidentified_reason is None
    assert "too much" in PythonModel(lambda batch, held=deep: held).unidentified_reason


@pytest.mark.parametrize("kind", ["oracle", "perturbation"])
def test_other_code_of_the_users_is_another_run(tmp_path, kind):
    def model(rows):
        return rows

    def strict(outputs, expected, clean):
        return (np.abs(outputs - clean) < 0.1).all(axis=1)

    def lenient(outputs, expected, clean):
        return (np.abs(outputs - clean) < 0.9).all(axis=1)

    other = ta.Perturbation("shift", lambda x, by, rng: x - np.float32(by), [0.0, 0.1, 0.3])
    changed = {"oracle": (SHIFT, lenient), "perturbation": (other, strict)}
    for shift, oracle, refused in ((SHIFT, strict, False), (SHIFT, strict, False), (*changed[kind], True)):
        session = session_of(model, ROWS, ta.Space({"shift": shift}), oracle=oracle, strategy="full")
        if refused:
            with pytest.raises(InputError, match="belongs to another run: code was"):
                session.run(tmp_path / "run.db")
        else:
            session.run(tmp_path / "run.db")


def test_parts_of_this_package_are_identified_by_their_names(tmp_path):
    space = ta.Space({"noise": "classic.gaussian_noise"})
    assert "code" not in session_of(lambda rows: rows, ROWS, space, oracle="consistency").identity()


# -- environments -----------------------------------------------------------------------------------------------------


def _versions(monkeypatch, **versions):
    now = {"testifai": "0.1.0", "python": "3.12.1", "platform": "Linux", "numpy": "2.1.0", **versions}
    for place in (run_identity, observers):
        monkeypatch.setattr(place, "environment", lambda: now)


CODE = "def model(b): return (b[:, 0, 0] > 127).astype(int)\n"


def test_every_contributing_environment_is_recorded_and_said(own, command, monkeypatch, tmp_path):
    spec = own(CODE, scan="budget = 200")
    _versions(monkeypatch)
    command("run", spec)
    _versions(monkeypatch, numpy="2.2.0", platform="Other")
    assert "different library versions" not in command("run", spec)[2]  # nothing left to do: nothing contributed
    spec = own(CODE, scan="budget = 300")
    code, out, err = command("run", spec)
    assert code == 0
    assert "resumed with different library versions than it was started with: numpy 2.1.0 and 2.2.0" in err
    assert "made with different versions: numpy 2.1.0 and 2.2.0" in out
    run = spec.with_suffix(".db")
    assert "made with different versions" in command("show", run)[1]
    shown = json.loads(command("show", run, "--json")[1])
    assert (shown["environment"]["numpy"], [one["numpy"] for one in shown["environments"]]) == (
        "2.1.0",
        ["2.1.0", "2.2.0"],
    )
    page = tmp_path / "report.html"
    command("report", run, "-o", page, "--md", tmp_path / "report.md", "--examples", "0")
    for written in (page, tmp_path / "report.md"):
        assert "Made with different versions: numpy 2.1.0 and 2.2.0" in written.read_text()


def test_a_merge_says_what_its_parts_were_made_with(own, command, monkeypatch, tmp_path):
    spec = own(CODE)
    for part, version in ((1, "2.1.0"), (2, "2.2.0")):
        _versions(monkeypatch, numpy=version)
        assert command("run", spec, "--part", f"{part}/2", "--out", tmp_path / f"{part}.db")[0] == 0
    code, _, err = command("run", spec, "--merge", tmp_path / "1.db", tmp_path / "2.db", "-o", tmp_path / "all.db")
    assert code == 0
    assert "made with different versions: numpy 2.1.0 and 2.2.0" in err
    with Store.open(tmp_path / "all.db") as store:
        assert [one["numpy"] for one in store.get("environments")] == ["2.1.0", "2.2.0"]
        assert store.get("environment")["numpy"] == "2.1.0"
