"""`--workers` of commands that run a model: other workers than the spec's, for this time."""

import pytest

from testifai.runs import keys
from testifai.session.stored_runs import open_run

SPEC = """
[space]
brightness = { use = "mnist_c.brightness", severities = [0, 3] }
[scan]
strategy = "full"
workers = 1
"""


def test_workers_are_other_ones_for_once(call, digits):
    folder = digits(20, spec=SPEC)
    assert call("run", folder / "spec.toml", "--workers", "2")[0] == 0
    assert open_run(folder / "spec.db").provenance[keys.SPEC]["scan"]["workers"] == 1


@pytest.mark.parametrize("command", [["run"], ["sweep"], ["label", "select"]], ids=" ".join)
def test_what_no_workers_are_is_one_line(call, digits, command):
    folder = digits(20, spec=SPEC)
    code, _, err = call(*command, folder / "spec.toml", "--workers", "dask")
    assert code == 2
    assert "workers: must be a number, 'ray', 'ray:auto', 'ray:HOST:6379' or 'ray://HOST:10001', got 'dask'" in err
    assert (
        "workers: must be a whole number, at least 1, got 0"
        in call(*command, folder / "spec.toml", "--workers", "0")[2]
    )


@pytest.mark.parametrize("command", [["sweep"], ["label", "select"]], ids=" ".join)
def test_workers_of_other_commands_are_those_of_the_executor(call, digits, command, tmp_path, monkeypatch):
    """A cluster at an address where nobody is: who is asked is known by who is missed."""
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    folder = digits(20, spec=SPEC.replace("mnist_c.brightness", "classic.gaussian_noise"))
    options = ["--tests", "5"] if "select" in command else []
    code, _, err = call(*command, folder / "spec.toml", "--workers", "ray:127.0.0.1:1", *options)
    assert code == 2
    assert "workers: no Ray cluster at 127.0.0.1:1" in err
