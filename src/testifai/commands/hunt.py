"""`testifai hunt`: failures of a run's model, found with as few inferences as can be."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, RunFile, print_json, say, say_code


def hunt(
    run_file: RunFile,
    budget: Annotated[int, typer.Option(help="Inferences to spend.")] = 1000,
    region: Annotated[str | None, typer.Option(help="Only tests of this query, such as: severity <= 3")] = None,
    once: Annotated[
        bool, typer.Option("--once", help="One failure for each input: which inputs fail at all in the region.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The failures as .csv; default: the run's name-failures.csv.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(help="The spec, if it was moved since or the run is not yours.")] = None,
    as_json: Json = False,
) -> None:
    """Run the trials that are likeliest to fail by what the run knows; its file and its estimates stay as they are."""
    from testifai.scans import hunting
    from testifai.scans.reopen import reopen
    from testifai.scans.spec import read
    from testifai.scans.stored import open_measured
    from testifai.support.progress import status

    tomogram = open_measured(run_file)
    if spec is not None:
        say_code(read(spec))
    session = reopen(tomogram, spec)
    with status():
        found = hunting.hunted(tomogram, hunting.running(session), budget, region, once=once)
    path = out or run_file.with_name(f"{run_file.stem}-failures.csv")
    rows = tomogram.space.matrix(found.tests)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        places = [f"{name}_place" for name in tomogram.space.names] if tomogram.space.order_sensitive else []
        table.writerow(["input", *tomogram.space.names, *places, "probability"])
        for number, severities, chance in zip(
            found.inputs.tolist(), rows.tolist(), found.probability.tolist(), strict=True
        ):
            table.writerow([number, *severities, f"{chance:.4f}"])
    failing = len(found.failing_inputs)
    if as_json:
        curve = [dict(zip(("inferences", "failures", "inputs"), point, strict=True)) for point in found.curve]
        print_json({"inferences": found.inferences, "failures": len(found.tests), "inputs": failing, "curve": curve,
                    "file": str(path)})  # fmt: skip
        return
    say(f"{len(found.tests):,} failures of {failing:,} inputs in {found.inferences:,} inferences; written to {path}")
    say("these inputs were chosen for failing: rates among them say nothing of others, and the run's stay as they are")
