"""What a run says of its model and data: the files of its spec, or what is known without one."""

from __future__ import annotations

import numpy as np

import testifai as ta
from testifai.session.provenance import sources

ROWS = np.arange(6.0)[:, None]
IDENTITY = {"model": "ab" * 32, "data": "cd" * 16}


def test_files_and_code_of_the_spec():
    spec = {
        "model": {"torch": "net:make", "weights": "best.pt"},
        "data": {"cifar": ["a.bin", "b.bin", "c.bin", "d.bin", "e.bin"]},
        "space": {"noise": "classic.gaussian_noise"},
    }
    found = sources({"identity": IDENTITY, "spec": spec})
    assert {part: str(made) for part, made in found.items()} == {
        "model": "net:make, best.pt (abababababab)",
        "data": "a.bin, b.bin, c.bin and 2 more (cdcdcdcdcdcd)",
    }


def test_what_is_known_without_a_spec(tmp_path):
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 1.0])
    run = ta.scan(lambda x: (x[:, 0] > 2).astype(int), (ROWS, np.arange(6) > 2), ta.Space({"shift": shift}),
                  strategy="full", store=tmp_path / "run.db")  # fmt: skip
    identity = run.provenance["identity"]
    found = sources(ta.open(tmp_path / "run.db").provenance)
    for part in ("model", "data"):
        assert str(found[part]) == f"handed over in Python ({identity[part][:12]})"
    assert sources({}) == {}
    assert list(sources({"identity": {"model": "recorded grid"}})) == ["model"]


def test_a_spec_that_cannot_be_read_costs_only_the_names():
    for spec in ({"model": {"unheard": "of"}}, [1], "text"):
        found = sources({"identity": IDENTITY, "spec": spec})
        assert str(found["model"]) == "of a spec that cannot be read here (abababababab)"
