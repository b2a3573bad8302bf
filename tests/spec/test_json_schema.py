"""The schema of a spec for editors: it takes what the product takes, refuses misspelt keys, explains every field."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from pathlib import Path

import pytest

from testifai.cli import app
from testifai.errors import InputError
from testifai.spec import parsing
from testifai.spec.json_schema import schema, tables

ROOT = Path(__file__).parents[2]
WRITTEN = [*sorted(ROOT.glob("examples/**/*.toml")), ROOT / "tests/data/v0_1_0/spec.toml"]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
SMALL = {"model": {"onnx": "m.onnx"}, "data": {"npz": "d.npz"}, "space": {"zoom": "mnist_c.zoom"}}
ALL = {
    "model": {"onnx": "m.onnx", "scale": "unit", "mean": [0.5, 0.5, 0.5], "batch_size": 8},
    "data": {"folder": "photos", "size": "own", "classes": {"cat": 0, "dog": 1}},
    "space": {
        "zoom": {"use": "mnist_c.zoom", "severities": [0, 2]},
        "drift": {"python": "mine:drift", "severities": {"mild": 1}},
        "noise": {"use": "classic.noise", "levels": [0.1, 0.2]},
        "order_sensitive": False,
        "max_order": 2,
    },
    "scan": {
        "strategy": {"use": "ordered", "max_order": 2},
        "surrogate": "none",
        "stopping": {"use": "window", "batch": 50},
        "budget": 1000,
        "target": 0.02,
        "oracle": {"use": "tolerance", "eps": 0.1},
        "quality": {"python": "mine:plausible", "orders": 2},
        "workers": "ray:auto",
        "keep": ["value"],
    },
    "gate": [{"query": "zoom <= 1", "at_least": 0.9, "basis": "estimate", "inputs": "label in {3}"}],
}


@pytest.fixture(scope="module")
def validator():
    jsonschema = pytest.importorskip("jsonschema")
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def accepted_by_product(table) -> bool:
    try:
        parsing.parse(table)
    except InputError:
        return False
    return True


def specs_in_docs():
    """The blocks of the pages that are whole specs."""
    for page in PAGES:
        for block in re.findall(r"```toml[^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            if all(f"[{table}]" in block for table in ("model", "data", "space")):
                yield page.name, tomllib.loads(block)


@pytest.mark.parametrize("table", [SMALL, {**SMALL, "space": "imagenet_c"}, ALL], ids=["small", "suite", "all"])
def test_a_spec_is_valid(validator, table):
    assert accepted_by_product(table)
    assert not list(validator.iter_errors(table))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_written_specs_are_valid(validator, path):
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if "model" not in table:
        pytest.skip("not a spec")
    assert not list(validator.iter_errors(table))


def test_specs_in_the_docs_are_valid(validator):
    found = list(specs_in_docs())
    assert found
    for page, table in found:
        assert not [error.message for error in validator.iter_errors(table)], page


def changed(path, value, *, drop=None):
    """The large spec with one value put somewhere else."""
    table = copy.deepcopy(ALL)
    place = table
    for key in path[:-1]:
        place = place[key]
    if drop is not None:
        del place[drop]
    place[path[-1]] = value
    return table


@pytest.mark.parametrize(
    "table",
    [
        changed(["scann"], {}),
        changed(["model", "sclae"], "unit"),
        changed(["model", "onxn"], "m.onnx", drop="onnx"),
        changed(["data", "npz"], "d.npz"),
        changed(["data", "colour"], "grey"),
        changed(["space", "zoom", "severity"], [1]),
        changed(["space", "zoom", "python"], "mine:zoom"),
        changed(["space", "max_order"], "two"),
        changed(["scan", "budjet"], 10),
        changed(["scan", "budget"], 1),
        changed(["scan", "population"], "past"),
        changed(["scan", "workers"], "rai"),
        changed(["gate", 0, "at_leats"], 0.9),
        changed(["gate", 0, "at_least"], 1.5),
        changed(["gate", 0, "querry"], "zoom > 1", drop="query"),
    ],
    ids=lambda table: None,
)
def test_what_the_product_refuses_so_does_the_schema(validator, table):
    assert not accepted_by_product(table)
    assert list(validator.iter_errors(table))


@pytest.mark.parametrize(
    "table", [changed(["space", "zoom"], "mnist_c.zomo"), changed(["scan", "strategy"], "adaptative")]
)
def test_names_that_are_not_known_are_refused(validator, table):
    assert list(validator.iter_errors(table))


def test_every_field_says_what_it_takes_and_means():
    found = tables()
    assert {table.name for table in found} >= {"model.onnx", "data.npz", "space", "space.axis", "scan", "gate"}
    silent = [f"{table.name}.{one.name}" for table in found for one in table.fields if not (one.takes and one.meaning)]
    assert not silent


def test_the_tables_of_the_schema_are_those_of_a_spec():
    made = schema()
    assert set(made["properties"]) == set(parsing.Spec.model_fields)
    assert made["$schema"].endswith("2020-12/schema")
    assert {"$id", "title", "description"} <= set(made)


def run(capsys, *arguments):
    app(list(arguments), standalone_mode=False)
    return capsys.readouterr().out


def test_the_command_prints_the_schema(capsys):
    assert json.loads(run(capsys, "spec", "--schema")) == json.loads(json.dumps(schema()))


def test_the_command_lists_the_fields_for_people(capsys):
    printed = run(capsys, "spec")
    assert "[model] onnx" in printed
    assert "[[gate]]" in printed
    assert "budget" not in run(capsys, "spec", "gate")
    assert [table["name"] for table in json.loads(run(capsys, "spec", "data.npz", "--json"))] == ["data.npz"]


@pytest.mark.parametrize(("arguments", "words"), [(["scam"], "did you mean 'scan'"), (["scan", "--schema"], "leave")])
def test_mistakes_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        app(["spec", *arguments], standalone_mode=False)
