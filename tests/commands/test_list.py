"""What can be named is listed with the package it comes from; what cannot be used, with the reason."""

import json

import pytest

from testifai import models
from testifai.support.registry import Entry
from testifai.support.version import VERSION


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


def test_every_part_is_listed_with_its_package(command):
    code, out, _ = command("list", "plugins")
    assert code == 0
    lines = out.splitlines()
    assert "models [8]" in lines
    assert any(line.split() == ["onnx", "testifai", VERSION] for line in lines)


def test_for_machines(command):
    code, out, _ = command("list", "plugins", "--json")
    assert code == 0
    found = {(one["kind"], one["name"]): one for one in json.loads(out)}
    assert found["model", "onnx"] == {
        "kind": "model",
        "name": "onnx",
        "place": "testifai.models.onnx:OnnxPart",
        "package": "testifai",
        "version": VERSION,
        "problem": None,
    }
    assert ("suite", "mnist_c") in found
    assert ("data", "npz") in found


def test_what_cannot_be_used_says_why(command, monkeypatch):
    broken = Entry("model", "odd", "odd:Part", "acme", "1.2", "'odd' (package acme) could not be imported: E: e")
    monkeypatch.setattr(type(models.ADAPTERS), "entries", lambda self: [broken])
    code, out, _ = command("list", "plugins")
    assert code == 0
    assert "acme 1.2  NOT USABLE: 'odd' (package acme) could not be imported: E: e" in out
