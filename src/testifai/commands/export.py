"""`testifai export`: a run as files for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from testifai.commands.common import Json, RunFile, print_json, say
from testifai.errors import InputError


def export(
    run_file: RunFile,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="table.csv, .json, .parquet; .npz with --grid, --boxes, --inputs.")
    ],
    grid: Annotated[bool, typer.Option("--grid", help="Every outcome of a full run, as packed bits.")] = False,
    boxes: Annotated[bool, typer.Option("--boxes", help="Every box that the run kept, found and expected.")] = False,
    inputs: Annotated[
        str | None, typer.Option(help="SIGMA, such as 2,0,4: the inputs as that test shows them.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="With --inputs: only the first so many.")] = None,
    spec: Annotated[
        Path | None, typer.Option(help="With --inputs: the spec, if it was moved since or the run is not yours.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run's table, its recorded grid, its boxes, or the perturbed inputs of a configuration."""
    from testifai.present import export as files
    from testifai.session.stored_runs import open_measured, open_run

    if inputs is not None:
        from testifai.session.stored_runs import reopen

        session = reopen(run_file, spec)
        count = files.write_inputs(session.subject, _sigma(inputs), out, limit)
        message = f"Wrote {count:,} inputs of configuration {inputs} to {out}"
    elif grid:
        files.write_grid(open_run(run_file), out)
        message = f"Wrote the grid to {out}"
    elif boxes:
        count = files.write_boxes(open_run(run_file), out)
        message = f"Wrote {count:,} boxes to {out}"
    elif out.suffix == ".parquet":
        from testifai.present.export import write_parquet

        tomogram = open_measured(run_file)
        write_parquet(tomogram, out)
        message = f"Wrote the table to {out}{_left_out(tomogram)}"
    else:
        tomogram = open_measured(run_file)
        files.write_table(tomogram, out)
        message = f"Wrote the table to {out}{_left_out(tomogram)}"
    if as_json:
        print_json({"out": str(out)})
    else:
        say(message)


def _left_out(tomogram: Any) -> str:
    """That a table has not all tests in it, where there are too many."""
    space, tried = tomogram.space, len(tomogram.estimator.measured_ids)
    return "" if space.listed else f": the {tried:,} tests that were tried, of {space.size:,}"


def _sigma(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.strip("() ").split(","))
    except ValueError:
        raise InputError(f"inputs: a configuration is severities with commas, such as 2,0,4; got {text!r}") from None
