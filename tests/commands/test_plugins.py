"""What can be named is listed with the package it comes from; what cannot be used, with the reason."""

import json

from testifai import models
from testifai.support.registry import Entry


def test_every_part_is_listed_with_its_package(command):
    code, out, _ = command("plugins")
    assert code == 0
    lines = out.splitlines()
    assert "models [5]" in lines
    assert any(line.split() == ["onnx", "testifai", models_version()] for line in lines)


def models_version() -> str:
    from testifai.support.version import VERSION

    return VERSION


def test_for_machines(command):
    code, out, _ = command("plugins", "--json")
    assert code == 0
    found = {(one["kind"], one["name"]): one for one in json.loads(out)}
    assert found["model", "onnx"] == {
        "kind": "model",
        "name": "onnx",
        "place": "testifai.models.onnx:OnnxPart",
        "package": "testifai",
        "version": models_version(),
        "problem": None,
    }
    assert ("suite", "mnist_c") in found
    assert ("data", "npz") in found


def test_what_cannot_be_used_says_why(command, monkeypatch):
    broken = Entry("model", "odd", "odd:Part", "acme", "1.2", "'odd' (package acme) could not be imported: E: e")
    monkeypatch.setattr(type(models.ADAPTERS), "entries", lambda self: [broken])
    code, out, _ = command("plugins")
    assert code == 0
    assert "acme 1.2  NOT USABLE: 'odd' (package acme) could not be imported: E: e" in out
