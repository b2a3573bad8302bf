"""What is written as TOML is read back as it was."""

from __future__ import annotations

import tomllib

from testifai.support.serialization import to_toml


def test_a_spec_comes_back_as_it_was():
    spec = {
        "title": 'odd "one" \\ \x7f \n zwei ü',
        "model": {"onnx": "a/b.onnx", "mean": [0.5, 0.25], "bgr": False},
        "space": {
            "fog": "cifar_c.fog",
            "two words": {"use": "cifar_c.contrast", "severities": [0, 1, 3]},
            "order_sensitive": True,
            "named": {"use": "x.y", "severities": {"low": 1}},
        },
        "scan": {"quality": {"use": "mmd", "extractor": {"onnx": "c.onnx"}}, "empty": {}, "none": []},
        "gate": [{"query": "fog > 1", "at_least": 1e-05}, {"query": "order == 0", "at_least": 0.9}],
    }
    assert tomllib.loads(to_toml(spec)) == spec


def test_what_is_none_is_left_out():
    assert tomllib.loads(to_toml({"scan": {"seed": 0, "target": None}, "name": "x"})) == {
        "name": "x", "scan": {"seed": 0},
    }  # fmt: skip
