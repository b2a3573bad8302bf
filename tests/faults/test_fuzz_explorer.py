"""Requests that no page of the explorer makes: never a server error or a traceback, and no file is touched."""

from __future__ import annotations

import json
import logging
import random
import shutil
from typing import Any

import numpy as np
import pytest

pytest.importorskip("dash")

from testifai.app.server import build
from testifai.app.state import Runs
from testifai.data.sample import demo_data, demo_model_path
from testifai.models.onnx import OnnxModel
from testifai.session.assembly import session_of
from testifai.space import Space

VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**70,
        1e400,
        0.5,
        "",
        "zoom >= 2",
        "x" * 5000,
        "../../etc/passwd",
        "__import__('os')",
    ),
    *([], {}, [[]], [None], [0, 1, 2], {"points": [{"customdata": 3}]}, {"points": 5}, {"view": "space", "run": 0}),
    *(
        "space",
        "pairs",
        "curves",
        "tests",
        "errors",
        "compare",
        "?query=zoom%3E1&run=9",
        "?" + "a=1&" * 60,
        "\x00\x1b[2J",
    ),
    *({"type": "figure", "name": "x"}, {"__proto__": {}}, "<script>alert(1)</script>", [{"name": 1}], "\ud800"),
]


QUERIES = ["zoom >= 2", "order == 0", "noise > 0 and blur < 4", "zoom > 9", "severity <= 3"]
WISH = {"view": "space", "run": 0, "against": 1, "query": "zoom >= 2", "axes": ["zoom", "blur"], "at": {"noise": 5}}
SEEN = [WISH, {**WISH, "axes": ["x", 3]}, {**WISH, "at": [1]}, {**WISH, "query": 5}]
AXES = {
    "zoom": ("mnist_c.zoom", [0, 2, 5]),
    "blur": ("mnist_c.motion_blur", [0, 4]),
    "brightness": ("mnist_c.brightness", [0, 3]),
    "noise": ("mnist_c.shot_noise", [0, 5]),
}
# What a page may send, by the name of the place.
MEANT: dict[str, list[Any]] = {
    **dict.fromkeys(("asked", "answered", "query", "standard", "recall"), QUERIES),
    "run": [0, 1],
    "against": [0, 1],
    "seen": SEEN,
    "drawn": SEEN,
    "view": ["space", "pairs", "curves", "tests", "errors", "compare"],
    "test": [0, 5, 23, 24],
    "url": ["?view=pairs&run=1&query=zoom%3E1", "?at=noise:5&test=3"],
    "axis": list(AXES),
    "slice": [-1, 0, 4, 5],
    "range": [[0, 1], [1, 0], [0, 99], [0], ["a", 1], [None, None]],
    "figure": [{"points": [{"customdata": 3}]}, {"points": [{"customdata": 99}]}],
    "saved": [[{"name": "a", "query": "zoom > 1", "at_least": 0.5}], [{"name": "a", "query": 1, "at_least": "x"}]],
    "name": ["mild", " ", "=1+1"],
    "at-least": [0.5, "0.5", -1],
    "dark": [[], ["dark"]],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Runs:
    """Two small runs that were measured in full."""
    folder = tmp_path_factory.mktemp("explored")
    shutil.copy(demo_model_path(), folder / "lenet5.onnx")
    data = demo_data()
    space = Space(AXES)
    for name, count in (("a", 40), ("b", 30)):
        pairs = (np.asarray(data.inputs)[:count], np.asarray(data.labels)[:count])
        session_of(OnnxModel(folder / "lenet5.onnx"), pairs, space, strategy="full", keep=("predicted",)).run(
            store=folder / f"{name}.db"
        )
    return Runs([folder / "a.db", folder / "b.db"])


def wishes(app: Any) -> list[dict[str, Any]]:
    """What a page would send to each callback that the server has, with no values yet."""
    return [
        {
            "output": output,
            "outputs": [_place(*part.rpartition(".")[::2]) for part in output.strip(".").split("...")],
            "inputs": [_place(one["id"], one["property"]) for one in about["inputs"]],
            "state": [_place(one["id"], one["property"]) for one in about["state"]],
        }
        for output, about in app.callback_map.items()
        if about.get("callback") is not None  # else it is the browser's own
    ]


def _place(identity: str, name: str) -> dict[str, Any]:
    return {"id": json.loads(identity) if identity.startswith("{") else identity, "property": name}


def payload(known: list[dict[str, Any]], dice: random.Random) -> Any:
    """A request with values of any kind, and now and then of another shape."""
    body = json.loads(json.dumps(dice.choice(known)))
    single = not body["output"].startswith("..")
    strange = dice.random() < 0.3
    for part in ("outputs", "inputs", "state"):
        body[part] = [_filled(place, dice, strange) for place in body[part]]
    if single:
        body["outputs"] = body["outputs"][0]
    places = [place for one in body["inputs"] for place in (one if isinstance(one, list) else [one])]
    changed = dice.sample(places, min(1, len(places)))
    body["changedPropIds"] = [f"{_written(one['id'])}.{one['property']}" for one in changed]
    return spoil(body, dice) if dice.random() < 0.4 else body


def _filled(place: dict[str, Any], dice: random.Random, strange: bool) -> Any:
    """A place with a value, often one that could be meant; a wildcard stands for a list of places."""
    identity = place["id"]
    if not isinstance(identity, dict):
        return {**place, "value": _value(identity, dice)}
    kind = identity["type"]
    key = next(name for name in identity if name != "type")
    names: list[Any] = {"place": [0, 1, 2], "axis": list(AXES)}.get(key, ["one"] if kind == "figure" else [])
    if strange:
        names = [dice.choice([*names, "x", None, 9]) for _ in range(dice.randint(0, 5))]
    return [{**place, "id": {**identity, key: name}, "value": _value(kind, dice)} for name in names]


def _value(name: str, dice: random.Random) -> Any:
    return dice.choice(MEANT[name] if name in MEANT and dice.random() < 0.7 else VALUES)


def _written(identity: Any) -> str:
    return identity if isinstance(identity, str) else json.dumps(identity, sort_keys=True, separators=(",", ":"))


def spoil(body: dict[str, Any], dice: random.Random) -> Any:
    """Lose a key, replace one, or send something else altogether."""
    kind, key = dice.random(), dice.choice(sorted(body))
    if kind < 0.35:
        del body[key]
    elif kind < 0.7:
        body[key] = dice.choice(VALUES)
    elif kind < 0.85 and body["inputs"]:
        body["inputs"][dice.randrange(len(body["inputs"]))] = dice.choice(VALUES)
    elif kind < 0.95:
        body["output"] = dice.choice(["nothing.children", "..a.b...c.d..", "x", "", "__class__", "answer.children"])
    else:
        return dice.choice(VALUES)
    return body


@pytest.mark.parametrize("cases", [100, pytest.param(5_000, marks=pytest.mark.simulation)])
def test_callbacks(cases, runs, tmp_path, monkeypatch, watch, report, caplog):
    app = build(runs)
    client = app.server.test_client()
    known = wishes(app)
    assert len(known) >= 8
    for run in (0, 1):
        runs.tomogram(run)
    client.get("/")
    address = "/_dash-update-component"
    answered = 0
    monkeypatch.chdir(tmp_path)
    dice = random.Random(19)
    caplog.set_level(logging.ERROR)  # a warning is one line, by its own test
    # Once unseen, so that what figures are made with is loaded.
    first = random.Random(0)
    for _ in range(min(cases, 200)):
        client.post(address, json=payload(known, first))
    for number in range(cases):
        text = json.dumps(payload(known, dice))
        if dice.random() < 0.03:
            text = text[: dice.randrange(len(text))]
        caplog.clear()
        reply, problems = watch.case(
            lambda text=text: client.post(address, data=text, content_type="application/json"), seconds=20
        )
        if reply is not None:
            answered += reply.status_code == 200
            if reply.status_code not in (200, 204, 400, 413):
                problems.append(f"status {reply.status_code}")
            if "Traceback" in reply.text + caplog.text:
                problems.append("a traceback")
        report.add(f"payload {number}: {text[:160]}", problems)
    report.check()
    assert answered > cases / 20, "some must come through to be answered"
    assert not list(tmp_path.iterdir())
