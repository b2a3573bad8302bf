"""A run in MLflow: what it was made of, what it found, the run file and the report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from testifai.errors import InputError
from testifai.gates.verdicts import Verdict
from testifai.support.optional_imports import load
from testifai.tomogram import Answer, Tomogram

LONGEST = 500  # characters of a parameter, by MLflow's own limit on older servers


def log(
    tomogram: Tomogram,
    *,
    name: str | None = None,
    experiment: str | None = None,
    verdicts: Iterable[Verdict] = (),
    files: Iterable[Path] = (),
    run_file: Path | None = None,
) -> str:
    """Log a tomogram as one MLflow run, with files, or a run file and its report, and return that run's id.

    MLflow's own settings determine the destination: MLFLOW_TRACKING_URI, or `mlflow.set_tracking_uri`. Inside an active
    run everything is added to that one.
    """
    mlflow = load("mlflow", extra="mlflow")
    listed = [Path(file) for file in (*files, *([] if run_file is None else [run_file]))]
    for file in listed:
        if not file.is_file():
            raise InputError(f"mlflow: {file} does not exist and cannot be logged")
    with TemporaryDirectory(prefix="testifai-mlflow-") as folder:
        if run_file is not None:
            from testifai.report.contents import gather
            from testifai.report.page import render
            from testifai.support.files import write_bytes

            page = Path(folder) / f"{Path(run_file).stem}.html"
            write_bytes(page, render(gather(Path(run_file))).encode())
            listed.append(page)
        try:
            if experiment is not None:
                mlflow.set_experiment(experiment)
            active = mlflow.active_run()
            with mlflow.start_run(run_name=name) if active is None else nullcontext(active) as run:
                mlflow.log_params(parameters(tomogram))
                mlflow.log_metrics(metrics(tomogram, verdicts))
                for file in listed:
                    mlflow.log_artifact(str(file))
                return str(run.info.run_id)
        except (mlflow.exceptions.MlflowException, OSError) as error:
            raise InputError(f"mlflow: {' '.join(str(error).split())}") from error


def parameters(tomogram: Tomogram) -> dict[str, str]:
    """The settings of the run, as short texts."""
    identity = tomogram.provenance.get("identity") or {}
    kept = ("model", "data", "strategy", "surrogate", "stopping", "oracle", "population", "seed")
    found = {}
    for key in kept:
        if (value := identity.get(key)) is not None:
            found[key] = (value if isinstance(value, str) else json.dumps(value, sort_keys=True))[:LONGEST]
    environment = tomogram.provenance.get("environment") or {}
    versions = {"testifai": str(environment["testifai"])} if "testifai" in environment else {}
    return {
        "axes": ", ".join(tomogram.space.names)[:LONGEST],
        "tests": str(tomogram.space.size),
        "inputs": str(tomogram.outcomes.inputs),
        **found,
        **({} if tomogram.quality is None else {"quality": tomogram.quality.name}),
        **versions,
    }


def metrics(tomogram: Tomogram, verdicts: Iterable[Verdict] = ()) -> dict[str, float]:
    """The results of the run: overall, by order, and by gate; unknown numbers are omitted."""
    found = {"clean_accuracy": tomogram.base, "inferences": float(tomogram.inferences)}
    found |= _answer("robustness", tomogram.query("order >= 0"))
    for order, answer in tomogram.by_order().items():
        found |= _answer(f"robustness_order_{order}", answer)
    for number, verdict in enumerate(verdicts, start=1):
        gate = f"gate_{re.sub(r'[^A-Za-z0-9]+', '_', verdict.gate.name).strip('_') if verdict.gate.name else number}"
        gate = gate if f"{gate}_holds" not in found else f"{gate}_{number}"
        found |= {**_answer(gate, verdict.answer), f"{gate}_holds": float(verdict.holds)}
        found[f"{gate}_at_least"] = verdict.gate.at_least
    return {key: value for key, value in found.items() if value == value}


def _answer(name: str, answer: Answer) -> dict[str, float]:
    return {name: answer.robustness, f"{name}_low": answer.low, f"{name}_high": answer.high}
