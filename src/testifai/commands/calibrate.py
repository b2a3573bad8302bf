"""`testifai calibrate`: severities where a model's accuracy falls, as a line for its spec."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, PerturbationOption, SpecFile, WorkersOption
from testifai.commands.sweep import sweep


def calibrate(
    spec: SpecFile,
    perturbation: PerturbationOption = None,
    drops: Annotated[
        list[float] | None,
        typer.Option(help="By how much accuracy has fallen at each severity; default: 0.01, 0.05, 0.1, 0.2, 0.4."),
    ] = None,
    levels: Annotated[str | None, typer.Option(help="FIRST,LAST: only these levels of one perturbation.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw each curve, .png or .jpg.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run file; default: the spec's name.db.")] = None,
    workers: WorkersOption = None,
    as_json: Json = False,
) -> None:
    """Place a perturbation's severities where accuracy falls by given amounts; prints a line for the spec."""
    from testifai.sweeps.calibrate import DROPS

    sweep(
        spec, perturbation, drops=drops or list(DROPS), levels=levels, plot=plot, out=out, workers=workers,
        as_json=as_json,
    )  # fmt: skip
