"""One population for every number: new inputs like these, unless a run asks for exactly these, and then says so."""

import inspect
import json

import numpy as np
import pytest

import testifai as ta
from testifai.gates.verdicts import judge
from testifai.report.contents import gather
from testifai.report.markdown import markdown
from testifai.spec.options import ScanOptions
from testifai.spec.parsing import Gate
from testifai.sweeps.curve import sweep_model

ONLY = "for these 80 inputs only"
SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1, 0.2])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One model and 80 inputs, for both populations, on all tests and inputs."""
    rows, folder = np.linspace(0, 1, 80)[:, None], tmp_path_factory.mktemp("runs")
    model = lambda x: (x[:, 0] > 0.5).astype(int)  # noqa: E731
    data, space = (rows, model(rows)), ta.Space({"up": SHIFT})
    paths = {name: folder / f"{name}.db" for name in ("future", "data")}
    ta.scan(model, data, space, strategy="full", store=paths["future"])
    ta.scan(model, data, space, strategy="full", population="data", store=paths["data"])
    return paths


def test_the_default_is_new_inputs():
    assert ScanOptions().population == "future"
    assert inspect.signature(sweep_model).parameters["population"].default == "future"


def test_a_gate_that_only_holds_for_these_inputs_says_so(runs):
    future, data = (ta.open(runs[name]) for name in ("future", "data"))
    rate = data.query("up > 0").robustness
    found, only = (judge([Gate(query="up > 0", at_least=rate)], run)[0] for run in (future, data))
    assert (found.status, only.status) == ("undecided", "holds")
    assert ONLY in only.reason
    assert "only" not in found.reason
    assert (found.as_dict()["population"], only.as_dict()["population"]) == ("future", "data")


def test_every_output_says_which(runs, call):
    for name, path in runs.items():
        for arguments in (["show", path], ["query", path, "up > 0"]):
            assert (ONLY in call(*map(str, arguments))[1]) == (name == "data")
            assert json.loads(call(*map(str, arguments), "--json")[1])["population"] == name
        assert ("for these inputs only" in call("compare", str(path), str(path))[1]) == (name == "data")
        contents = gather(path, examples=0)
        assert (ONLY in markdown(contents)) == (name == "data")
        assert contents.as_dict()["population"] == name
        assert repr(ta.open(path).query("up > 0")).endswith(f", {ONLY}>" if name == "data" else "predicted>")
