"""`testifai hunt`: failures of a run's model, found with as few inferences as can be."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands.common import Json, RunFile, SpecOption, print_json, say, say_code
from testifai.errors import InputError

if TYPE_CHECKING:
    from testifai.session.hunting import Hunt
    from testifai.space import Space


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
    spec: SpecOption = None,
    as_json: Json = False,
) -> None:
    """Run the trials that are likeliest to fail by what the run knows; its file and its estimates stay as they are."""
    from testifai.session import hunting
    from testifai.session.stored_runs import open_measured, reopen
    from testifai.spec.parsing import read
    from testifai.support.files import write_bytes
    from testifai.support.progress import status

    path = out or run_file.with_name(f"{run_file.stem}-failures.csv")
    if path.suffix.lower() != ".csv" or not path.parent.is_dir():
        raise InputError(f"--out: {path} is not accepted; a .csv in a folder that exists is")
    tomogram = open_measured(run_file)
    if spec is not None:
        say_code(read(spec))
    session = reopen(tomogram, spec)
    with status():
        found = hunting.hunted(tomogram, hunting.running(session), budget, region, once=once)
    write_bytes(path, _table(tomogram.space, found).encode())
    failing = len(found.failing_inputs)
    if as_json:
        curve = [dict(zip(("inferences", "failures", "inputs"), point, strict=True)) for point in found.curve]
        print_json({"inferences": found.inferences, "failures": len(found.tests), "inputs": failing, "curve": curve,
                    "file": str(path)})  # fmt: skip
        return
    say(f"{len(found.tests):,} failures of {failing:,} inputs in {found.inferences:,} inferences; written to {path}")
    say("these inputs were chosen for failing: rates among them say nothing of others, and the run's stay as they are")


def _table(space: Space, found: Hunt) -> str:
    """The failures as .csv, in the order they were found."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    places = [f"{name}_place" for name in space.names] if space.order_sensitive else []
    writer.writerow(["input", *space.names, *places, "probability"])
    rows = space.matrix(found.tests).tolist()
    for number, severities, chance in zip(found.inputs.tolist(), rows, found.probability.tolist(), strict=True):
        writer.writerow([number, *severities, f"{chance:.4f}"])
    return buffer.getvalue()
