"""Every mistake in a spec is one line: which field, which value, what is accepted."""

import json
import tomllib

import pytest

from testifai.errors import InputError
from testifai.spec.options import ScanOptions
from testifai.spec.parsing import AxisPart, Gate, Spec, parse, read

LEAST = {"model": {"onnx": "m.onnx"}, "data": {"npz": "d.npz"}, "space": {"zoom": "mnist_c.zoom"}}
FULL = """
[model]
onnx = "lenet5.onnx"
layout = "NCHW"
scale = 0.5
mean = [0.1, 0.2]
std = 0.3
threads = 2
[data]
npz = "digits.npz"
x = "images"
[space]
brightness = "mnist_c.brightness"
zoom = { use = "mnist_c.zoom", severities = [0, 1, 3, 5] }
blur = { use = "mnist_c.motion_blur", severities = { low = 1, high = 4 } }
mine = { python = "perturbations:mine" }
order_sensitive = true
[scan]
strategy = { use = "ordered", max_order = 3 }
stopping = { use = "window", batch = 50 }
budget = 20000
target = 0.05
population = "future"
oracle = "consistency"
batch_size = 64
seed = 7
workers = 2
keep = ["value", "predicted"]
[[gate]]
query = "zoom <= 3"
at_least = 0.9
[[gate]]
name = "twos"
query = "zoom <= 1"
at_least = 1
basis = "estimate"
inputs = "label == 2"
"""


def test_a_spec_is_read_as_written():
    spec = parse(tomllib.loads(FULL))
    assert (spec.model.onnx, spec.model.scale, spec.model.mean, spec.model.std) == ("lenet5.onnx", 0.5, [0.1, 0.2], 0.3)
    assert (spec.data.npz, spec.data.x) == ("digits.npz", "images")
    assert spec.axes() == {
        "brightness": AxisPart(use="mnist_c.brightness"),
        "zoom": AxisPart(use="mnist_c.zoom", severities=[0, 1, 3, 5]),
        "blur": AxisPart(use="mnist_c.motion_blur", severities={"low": 1, "high": 4}),
        "mine": AxisPart(python="perturbations:mine"),
    }
    assert list(spec.axes()) == ["brightness", "zoom", "blur", "mine"]
    assert spec.space["order_sensitive"] is True
    assert spec.scan.strategy == {"use": "ordered", "max_order": 3}
    assert (spec.scan.budget, spec.scan.seed, spec.scan.keep) == (20000, 7, ("value", "predicted"))
    assert [gate.at_least for gate in spec.gate] == [0.9, 1]
    assert (spec.gate[0].basis, spec.gate[1].basis) == ("bound", "estimate")


def test_a_spec_survives_being_stored_as_json():
    for table in (tomllib.loads(FULL), LEAST):
        spec = parse(table)
        stored = json.loads(json.dumps(spec.model_dump(mode="json", exclude_none=True)))
        assert parse(stored) == spec


def test_what_is_not_written_has_the_defaults_of_scan():
    import inspect

    import testifai as ta

    spec = parse(LEAST)
    assert spec.gate == []
    parameters = inspect.signature(ta.scan).parameters
    for name, field in ScanOptions.model_fields.items():
        assert field.default == parameters[name].default, name
    missing = set(parameters) - set(ScanOptions.model_fields) - {"model", "data", "space", "store", "progress"}
    assert not missing, "[scan] takes every keyword of ta.scan"


def test_entries_that_run_the_users_code_are_named():
    assert parse(LEAST).runs_code() == []
    own = {
        "model": {"python": "a:b"},
        "data": {"python": "a:c"},
        "space": {"x": {"python": "a:d"}, "y": "mnist_c.zoom"},
    }
    assert parse(own).runs_code() == ["model.python", "data.python", "space.x"]
    assert parse({**LEAST, "model": {"torch": "a:b"}}).runs_code() == ["model.torch"]


def test_all_code_that_a_spec_imports_is_named_in_one_place():
    quality = {"use": "kid", "python": "a:e", "extractor": {"torch": "a:f", "weights": "w.pt"}}
    spec = parse({**LEAST, "scan": {"quality": quality}})
    assert spec.own_code() == {"scan.quality": "a:e", "scan.quality.extractor.torch": "a:f"}
    assert parse({**LEAST, "scan": {"quality": {"use": "kid", "extractor": {"onnx": "x.onnx"}}}}).own_code() == {}
    assert parse({**LEAST, "scan": {"oracle": {"python": "a:h"}}}).own_code() == {"scan.oracle": "a:h"}
    # Whatever else is wrong with an extractor, what it would import counts.
    wrong = {"use": "kid", "extractor": {"python": "a:g", "nonsense": 1}}
    assert parse({**LEAST, "scan": {"quality": wrong}}).own_code() == {"scan.quality.extractor.python": "a:g"}


def test_specs_of_the_first_version_are_stored_as_they_were():
    """Run files hold what `model_dump` gave, and it is compared with what it gives now."""
    tables = [
        (
            {"onnx": "m.onnx", "tokenizer": "t.json", "max_length": 9},
            {"jsonl": "d", "text": ["a", "b"], "side": "first"},
        ),
        ({"transformers": "net", "threads": 2}, {"csv": "d.csv", "text": "t", "label": "l"}),
        ({"encoder": "net", "head": "h.npz"}, {"cifar": ["a.bin", "b.bin"]}),
        (
            {"torch": "a:b", "weights": "w.pt", "mean": [0.5, 0.25], "outputs": "scores"},
            {"folder": "f", "size": [3, 4]},
        ),
        ({"python": "a:b", "outputs": "values", "classes": 3}, {"python": "a:c"}),
    ]
    scan = {"population": "data", "oracle": "label", "seed": 0}  # which was the default then
    for model, data in tables:
        spec = parse({**LEAST, "model": model, "data": data, "scan": {"population": "data"}})
        stored = spec.model_dump(mode="json", exclude_none=True)
        assert stored == {"model": model, "data": data, "space": LEAST["space"], "scan": scan, "gate": []}
        assert parse(stored) == spec


def axis(**part):
    return {"space": {"zoom": part}}


MISTAKES = [
    # unknown keys, with what was probably meant
    ({"spce": {}}, "unknown key 'spce'; did you mean 'space'?"),
    ({"model": {"onx": "m"}}, "unknown key 'model.onx'; did you mean 'onnx'?"),
    ({"data": {"npz": "d", "ex": "images"}}, "unknown key 'data.ex' for npz; did you mean 'x'?"),
    ({"data": {"csv": "d", "x": "images"}}, "unknown key 'data.x' for csv (npz takes it); known: label, side, text"),
    ({"model": {"onnx": "m", "weights": "w"}}, "unknown key 'model.weights' for onnx (torch takes it); known: batch"),
    ({"model": {"onnx": "m", "max_length": 8}}, "model: onnx takes max_length with a tokenizer only"),
    ({"model": {"onnx": "m", "tokenizer": "t", "scale": 1}}, "model: onnx takes scale without a tokenizer only"),
    ({"model": 3}, "model: should be a table, got 3"),
    ({"scan": {"stoping": "window"}}, "unknown key 'scan.stoping'; did you mean 'stopping'?"),
    ({"scan": {"qqqq": 1}}, "unknown key 'scan.qqqq'; known: batch_size, budget"),
    ({"gate": [{"query": "zoom > 1", "at_last": 0.9}]}, "unknown key 'gate.0.at_last'; did you mean 'at_least'?"),
    (axis(us="a"), "unknown key 'space.zoom.us'; did you mean 'use'?"),
    (axis(use="a", severity=[0, 1]), "unknown key 'space.zoom.severity'; did you mean 'severities'?"),
    # missing
    ({"data": None}, "data"),
    ({"gate": [{"query": "zoom > 1"}]}, "gate.0.at_least is missing"),
    ({"gate": [{"at_least": 0.5}]}, "gate.0.query is missing"),
    # exactly one of
    (
        {"model": {}},
        "python, torch, skops, xgboost, lightgbm, got none of them",
    ),
    (
        {"model": {"onnx": "a", "torch": "b"}},
        "python, torch, skops, xgboost, lightgbm, got onnx and torch",
    ),
    (
        {"data": {"x": "images"}},
        "exactly one of npz, coco, yolo, folder, masks, cifar, idx, table, csv, tsv, jsonl, python, got none of them",
    ),
    ({"data": {"npz": "a", "idx": "b"}}, "got npz and idx"),
    (axis(severities=[0, 1]), "space.zoom: needs exactly one of use, python, got none of them"),
    (axis(use="a", python="b:c"), "space.zoom: needs exactly one of use, python, got use and python"),
    # wrong types
    ({"model": {"onnx": 3}}, "model.onnx: should be a valid string, got 3"),
    ({"model": {"onnx": "m", "threads": 0}}, "model.threads: must be a whole number, at least 1, got 0"),
    ({"model": {"onnx": "m", "layout": "NHCW"}}, "model.layout: should be 'NCHW', 'NHWC' or 'flat', got 'NHCW'"),
    ({"data": {"cifar": "d", "coarse": "maybe"}}, "data.coarse: should be a valid boolean, got 'maybe'"),
    ({"data": {"csv": "d", "side": "left"}}, "data.side: should be 'first', 'second' or 'both', got 'left'"),
    ({"data": {"csv": "d", "text": 3}}, "data.text: should be a valid string, or a valid list, got 3"),
    ({"data": {"folder": "d", "size": [28, "x"]}}, "data.size.1: should be a valid integer, got 'x'"),
    ({"scan": {"budget": 0}}, "scan.budget: must be a whole number, at least 2, got 0"),
    ({"scan": {"budget": 1.5}}, "scan.budget: must be a whole number, at least 2, got 1.5"),
    ({"scan": {"seed": True}}, "scan.seed: must be a whole number, at least 0, got True"),
    ({"scan": {"target": 2}}, "scan.target: must be a number, above 0 and below 1, got 2"),
    ({"scan": {"population": "all"}}, "scan.population: must be one of data, future, got 'all'"),
    ({"scan": {"keep": ["values"]}}, "scan.keep: must be one of value, predicted, detections, got 'values'"),
    ({"scan": []}, "scan: should be a table, got []"),
    ({"space": 3}, "space: should be a table, got 3"),
    ({"gate": {"query": "zoom > 1", "at_least": 0.9}}, "gate: should be a valid list, got {"),
    ({"gate": [{"query": "zoom > 1", "at_least": 90}]}, "gate.0.at_least: should be less than or equal to 1, got 90"),
    ({"gate": [{"query": "z", "at_least": 0.9, "basis": "low"}]}, "gate.0.basis: should be 'bound' or 'estimate'"),
    # one of several types
    ({"model": {"onnx": "m", "scale": "units"}}, "model.scale: should be a valid number, or 'unit', 'raw' or 'signed'"),
    ({"model": {"onnx": "m", "mean": "x"}}, "model.mean: should be a valid number, or a valid list, got 'x'"),
    ({"model": {"onnx": "m", "mean": [1, "x"]}}, "model.mean.1: should be a valid number, got 'x'"),
    ({"data": {"cifar": 3}}, "data.cifar: should be a valid string, or a valid list, got 3"),
    ({"scan": {"strategy": 3}}, "scan.strategy: must be a name or a table with 'use', got 3"),
    ({"space": {"zoom": 3}}, "[space] zoom: expected a perturbation, got 3"),
    ({"space": {"zoom": 1.5}}, "space.zoom: should be a valid string, or a table"),
    (axis(use="a", severities=3), "space.zoom.severities: should be a valid list, or a table, got 3"),
    (axis(use="a", severities=[0, "x"]), "space.zoom.severities.1: should be a valid integer, got 'x'"),
    (axis(use="a", severities=[0, -1]), "space.zoom.severities.1: should be greater than or equal to 0, got -1"),
    (axis(use="a", severities=[0, True]), "space.zoom.severities.1: should be a valid integer, got True"),
    (axis(use="a", severities={"low": "x"}), "space.zoom.severities.low: should be a valid integer, got 'x'"),
    # the space as a whole
    ({"space": {}}, "[space] names no axis"),
    ({"space": {"order_sensitive": True}}, "[space] names no axis"),
    ({"space": {"zoom": True}}, "[space] zoom: expected a perturbation, got true"),
    ({"space": {"zoom": "a", "order_sensitive": "yes"}}, "[space] order_sensitive: expected true or false"),
    ({"space": {"zoom": "a", "max_order": "2"}}, "[space] max_order: expected a whole number"),
    ({"space": {"zoom": "a", "max_order": True}}, "[space] max_order: expected a whole number"),
    ({"space": {"zoom": "a", "extra": True}}, "[space] extra: is about a whole suite"),
    ({"space": "imagenet_d"}, "[space] suite: 'imagenet_d' is not known; did you mean 'imagenet_c'?"),
]


@pytest.mark.parametrize(("changes", "words"), MISTAKES)
def test_mistakes_are_one_line(changes, words):
    table = {key: value for key, value in {**LEAST, **changes}.items() if value is not None}
    with pytest.raises(InputError) as caught:
        parse(table, "spec.toml")
    message = str(caught.value)
    assert message.startswith("spec.toml: ")
    assert words in message
    assert "\n" not in message


def test_a_suite_by_its_name_is_each_of_its_published_perturbations_by_itself():
    spec = parse({**LEAST, "space": "cifar_c"})
    assert (len(spec.axes()), spec.max_order) == (15, 1)
    assert spec.axes()["fog"] == AxisPart(use="cifar_c.fog")
    more = parse({**LEAST, "space": {"suite": "cifar_c", "extra": True, "max_order": 2, "mine": "mnist_c.zoom"}})
    assert (len(more.axes()), more.max_order) == (20, 2)
    assert parse({**LEAST, "space": {"suite": "mnist_c.zoom"}}).axes() == {"suite": AxisPart(use="mnist_c.zoom")}
    assert parse({**LEAST, "space": {"zoom": "mnist_c.zoom"}}).max_order is None


def test_a_spec_cannot_be_changed():
    spec = parse(LEAST)
    with pytest.raises(ValueError, match="frozen"):
        spec.scan.seed = 3
    assert isinstance(spec, Spec)
    assert Gate(query="zoom > 1", at_least=0.5) == Gate(query="zoom > 1", at_least=0.5, basis="bound")


def write(tmp_path, content: bytes):
    path = tmp_path / "spec.toml"
    path.write_bytes(content)
    return path


def test_a_file_is_read_or_the_reason_is_named(tmp_path):
    assert read(write(tmp_path, FULL.encode())) == parse(tomllib.loads(FULL))
    for content, words in [
        (b"[model\n", "spec.toml: not valid TOML: "),
        (b"[space]\nzoom = 'a'\nzoom = 'b'\n", "is an axis or key written twice?"),
        (b"[space]\nzoom = 'a'\n[space]\nblur = 'b'\n", "is an axis or key written twice?"),
        (b"\xff\xfe", "cannot read"),
    ]:
        with pytest.raises(InputError) as caught:
            read(write(tmp_path, content))
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"nothing.toml does not exist; write one with: testifai init"):
        read(tmp_path / "nothing.toml")
    with pytest.raises(InputError, match="is a folder, not a spec; write one with: testifai init"):
        read(tmp_path)
