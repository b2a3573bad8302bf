"""`testifai show --validity` and the quality of a run in other commands."""

import json

import cv2
import numpy as np
import pytest

QUALITY = '{ use = "ssim", sample = 30, extra = 0 }'
SPEC = """
[space]
blur = { use = "mnist_c.motion_blur", severities = [0, 1, 3, 5] }
zoom = { use = "mnist_c.zoom", severities = [0, 2, 5] }
brightness = { use = "mnist_c.brightness", severities = [0, 2, 5] }
[scan]
strategy = "ordered"
surrogate = "independence"
quality = { use = "ssim", sample = 30, extra = 0 }
[[gate]]
query = "quality >= 0.5"
at_least = 0.7
basis = "estimate"
"""


@pytest.fixture(scope="module")
def ready(digits):
    folder = digits(60, spec=SPEC)
    from testifai.session import assembly
    from testifai.spec import parsing

    session = assembly.session(parsing.read(folder / "spec.toml"), folder)
    about = {
        "spec": parsing.read(folder / "spec.toml").model_dump(mode="json", exclude_none=True),
        "folder": str(folder),
    }
    session.run(folder / "spec.db", extra=about)
    return folder


def test_limits_are_listed_with_robustness_inside_and_outside(command):
    code, out, _ = command("show", "spec.db", "--validity", "--at", "0.3,0.6,2")
    assert code == 0
    assert "ssim of 36 tests, 24 measured and the others predicted; higher is better" in out
    assert [line.split()[3] for line in out.splitlines() if line.startswith("quality >=")][-1] == "0"
    code, out, _ = command("show", "spec.db", "--validity", "--at", "0.3,0.6", "--json")
    found = json.loads(out)
    tests = [(one["inside"]["tests"], one["inside"]["excluded"]["tests"]) for one in found["limits"]]
    assert all(inside + outside == 36 for inside, outside in tests)
    assert tests[0][0] > tests[1][0]


def test_without_values_the_usual_ones_divide_the_range(command):
    code, out, _ = command("show", "spec.db", "--validity", "--json")
    limits = [one["limit"] for one in json.loads(out)["limits"]]
    assert code == 0
    assert limits == sorted(limits, reverse=True)
    assert len(limits) >= 4


def test_examples_are_a_sheet_of_the_originals_and_rows_for_each_value(command, folder):
    code, out, _ = command("show", "spec.db", "--validity", "--at", "0.4,0.8", "--examples", "sheet.png")
    assert code == 0
    assert "Wrote sheet.png" in out
    sheet = cv2.imread(str(folder / "sheet.png"))
    assert sheet.shape[0] > 3 * 96
    assert sheet.std() > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "much"], "--at: expected numbers with commas, such as 0.02,0.06; got 'much'"),
        (["--at", "0.1,nan"], "--at: expected numbers with commas, such as 0.02,0.06; got '0.1,nan'"),
        (["--spec", "spec.toml"], "--spec needs --examples"),
        (["--examples", "sheet.md"], "'sheet.md' is not a picture"),
        (["--by", "order"], "--by cannot be combined with --validity"),
        (["--benchmark"], "--benchmark cannot be combined with --validity"),
        (["--suite", "mnist_c"], "--suite needs --benchmark"),
    ],
)
def test_mistakes_are_one_line(command, arguments, message):
    code, _, err = command("show", "spec.db", "--validity", *arguments)
    assert code == 2
    assert message in err


def test_a_run_without_quality_says_how_to_measure_it(command, folder, spec_text):
    (folder / "spec.toml").write_text(spec_text.replace(f"quality = {QUALITY}", "").split("[[gate]]")[0])
    assert command("run", "spec.toml", "-o", "plain.db")[0] == 0
    code, _, err = command("show", "plain.db", "--validity")
    assert code == 2
    assert "this run did not measure any" in err
    code, _, err = command("query", "plain.db", "quality >= 0.5")
    assert code == 2
    assert "asks for quality, which this run did not measure" in err


def test_a_query_says_what_was_excluded(command):
    code, out, _ = command("query", "spec.db", "blur >= 1 and quality >= 0.5")
    assert code == 0
    assert "tests excluded as implausible" in out
    code, out, _ = command("query", "spec.db", "blur >= 1 and quality >= 0.5", "--json")
    assert json.loads(out)["excluded"]["tests"] > 0


def test_show_by_severity_has_quality_and_drop_against_the_sum(command):
    code, out, _ = command("show", "spec.db", "--by", "severity")
    assert code == 0
    rows = [line.split() for line in out.splitlines()[2:] if line.strip()]
    assert [int(row[0]) for row in rows] == sorted(
        {a + b + c for a in (0, 1, 3, 5) for b in (0, 2, 5) for c in (0, 2, 5)}
    )
    assert sum(int(row[1]) for row in rows) == 36
    code, out, _ = command("show", "spec.db", "--by", "order", "--json")
    assert list(json.loads(out)["by_order"]) == ["0", "1", "2", "3"]
    code, _, err = command("show", "spec.db", "--by", "luck")
    assert code == 2
    assert "--by: must be one of order, axis, severity, class, got 'luck'" in err


def test_a_gate_may_limit_quality(command):
    code, out, _ = command("run", "spec.toml", "-o", "again.db")
    assert "quality >= 0.5 >= 0.7" in out
    assert code in (0, 1)


def test_the_exported_table_has_the_scores(command, folder):
    assert command("export", "spec.db", "-o", "table.csv")[0] == 0
    table = np.genfromtxt(folder / "table.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert table["quality"][0] == pytest.approx(1)
    assert (table["quality_source"] == "measured").sum() == 24


def test_a_function_of_the_users_own_is_a_measure(command, folder, spec_text):
    (folder / "own.py").write_text("def still(clean, perturbed):\n    return (clean == perturbed).mean(axis=(1, 2))\n")
    own = '{ python = "own:still", sample = 50, extra = 0, predictor = "forest" }'
    text = spec_text.replace(QUALITY, own)
    (folder / "spec.toml").write_text(text.split("[[gate]]")[0])
    code, _, err = command("run", "spec.toml", "-o", "own.db")
    assert code == 0
    assert "scan.quality" in err
    code, out, _ = command("show", "own.db", "--validity", "--json")
    assert json.loads(out)["quality"].endswith("still")
