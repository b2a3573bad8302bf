"""`testifai run --workers`: other workers than the spec's, for this time."""

from testifai.runs import keys
from testifai.scans.stored import open_run

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


def test_what_no_workers_are_is_one_line(call, digits):
    folder = digits(20, spec=SPEC)
    code, _, err = call("run", folder / "spec.toml", "--workers", "dask")
    assert code == 2
    assert "workers: must be a number, 'ray', 'ray:auto', 'ray:HOST:6379' or 'ray://HOST:10001', got 'dask'" in err
    assert (
        "workers: must be a whole number, at least 1, got 0" in call("run", folder / "spec.toml", "--workers", "0")[2]
    )
