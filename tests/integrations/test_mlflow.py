"""What is logged to MLflow, read back through MLflow's own client."""

import math
from pathlib import Path

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.gates.verdicts import judge
from testifai.integrations import mlflow as tracking
from testifai.spec.parsing import Gate

GATES = [
    Gate(name="mild & short", query="shift <= 1", at_least=0.2),
    Gate(query="shift == 2", at_least=0.99),
    Gate(name="mild: short", query="shift <= 1", at_least=0.2),
]


def scan(**options):
    inputs = np.random.default_rng(0).normal(size=(60, 1))
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.3, 0.6])
    return ta.scan(
        lambda x: (x[:, 0] > 1).astype(int),
        (inputs, np.arange(60) // 59),
        ta.Space({"shift": shift}),
        strategy="full",
        population="data",
        **options,
    )


@pytest.fixture(scope="module")
def run():
    return scan()


def test_metrics_are_the_answers(run):
    found = tracking.metrics(run, judge(GATES, run))
    whole = run.query("order >= 0")
    assert (found["robustness"], found["robustness_low"], found["robustness_high"]) == (
        pytest.approx(whole.robustness),
        pytest.approx(whole.low),
        pytest.approx(whole.high),
    )
    assert found["robustness_order_1"] == pytest.approx(run.estimate[1:].mean())
    assert found["inferences"] == 180
    assert found["clean_accuracy"] == run.base
    gates = {key for key in found if key.endswith("_holds")}
    assert gates == {"gate_mild_short_holds", "gate_2_holds", "gate_mild_short_3_holds"}
    assert (found["gate_mild_short_holds"], found["gate_2_holds"]) == (1, 0)


def test_numbers_that_do_not_exist_are_left_out(run):
    inputs = np.random.default_rng(0).normal(size=(60, 1))
    axes = {name: ta.Perturbation(name, lambda x, by, rng: x + by, [0, 0.3]) for name in ("a", "b")}
    ordered = {"use": "ordered", "max_order": 1}
    partial = ta.scan(
        lambda x: (x[:, 0] > 1).astype(int), (inputs, np.zeros(60, int)), ta.Space(axes), strategy=ordered
    )
    found = tracking.metrics(partial)
    assert "robustness" in found
    assert "robustness_low" not in found
    assert all(math.isfinite(value) for value in found.values())


def test_parameters_are_short_texts(run):
    found = tracking.parameters(run)
    assert {"axes", "tests", "inputs", "model", "data", "strategy", "oracle", "seed", "testifai"} <= set(found)
    assert all(isinstance(value, str) and len(value) <= 500 for value in found.values())
    assert (found["axes"], found["tests"], found["inputs"], found["seed"]) == ("shift", "3", "60", "0")


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_experiment("tests")
    yield mlflow
    mlflow.set_tracking_uri(before)


def test_a_run_is_logged_with_its_files(run, mlflow, tmp_path):
    (tmp_path / "report.html").write_text("<p>hello</p>")
    verdicts = judge(GATES, run)
    identity = tracking.log(run, name="digits", experiment="gates", verdicts=verdicts, files=[tmp_path / "report.html"])
    client = mlflow.MlflowClient()
    logged = client.get_run(identity)
    assert logged.info.status == "FINISHED"
    assert logged.info.run_name == "digits"
    assert logged.data.metrics == pytest.approx(tracking.metrics(run, verdicts))
    assert logged.data.params == tracking.parameters(run)
    assert [file.path for file in client.list_artifacts(identity)] == ["report.html"]
    assert client.get_experiment(logged.info.experiment_id).name == "gates"


def test_a_run_file_is_logged_with_its_report(mlflow, tmp_path):
    run = scan(store=tmp_path / "digits.db")
    identity = tracking.log(run, run_file=tmp_path / "digits.db")
    client = mlflow.MlflowClient()
    assert sorted(file.path for file in client.list_artifacts(identity)) == ["digits.db", "digits.html"]
    page = mlflow.artifacts.download_artifacts(run_id=identity, artifact_path="digits.html")
    assert "Robustness of digits.db" in Path(page).read_text(encoding="utf-8")


def test_inside_a_run_everything_is_added_to_that_one(run, mlflow):
    with mlflow.start_run() as outer:
        assert tracking.log(run) == outer.info.run_id
        mlflow.log_metric("after", 1)
    assert {"after", "robustness"} <= set(mlflow.MlflowClient().get_run(outer.info.run_id).data.metrics)


def test_a_file_that_is_not_there_is_one_line_and_logs_nothing(run, mlflow, tmp_path):
    with pytest.raises(InputError, match=r"mlflow: .*no\.html does not exist"):
        tracking.log(run, files=[tmp_path / "no.html"])
    assert mlflow.MlflowClient().search_runs([mlflow.get_experiment_by_name("tests").experiment_id]) == []


def test_a_server_that_cannot_be_used_is_one_line(run, mlflow):
    mlflow.set_tracking_uri("nowhere://at/all")
    with pytest.raises(InputError, match=r"^mlflow: .*nowhere") as caught:
        tracking.log(run)
    assert "\n" not in str(caught.value)


def test_without_mlflow_the_line_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(InputError, match=r"^mlflow is not installed; .*testifai\[mlflow\]'$"):
        tracking.log(run)
