"""`testifai validity`: how much of a run a limit on quality leaves in, and what inputs look like at each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, RunFile, SpecOption, print_json, say, say_code
from testifai.errors import InputError


def validity(
    run_file: RunFile,
    values: Annotated[
        str | None, typer.Option("--at", help="The quality values to look at, such as 0.02,0.06,0.1.")
    ] = None,
    examples: Annotated[
        bool, typer.Option("--examples", help="Also a sheet of inputs at these values, to choose a limit by.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The sheet: .png or .jpg, for texts .md or .txt.")
    ] = None,
    spec: SpecOption = None,
    as_json: Json = False,
) -> None:
    """Robustness among plausible inputs and among the others, for several limits on quality."""
    from testifai.present import terminal
    from testifai.present.contact_sheets import write_examples
    from testifai.session.stored_runs import open_measured
    from testifai.tomogram import limits

    if out is not None and not examples:
        raise InputError("--out: it names the sheet of inputs; add --examples")
    tomogram = open_measured(run_file)
    scores = limits.scores_of(tomogram)
    wanted = _values(values) if values is not None else limits.usual_values(scores)
    found = limits.limits(tomogram, wanted)
    sheet = None
    if examples:
        from testifai.session.stored_runs import reopen
        from testifai.spec.parsing import read

        if spec is not None:
            say_code(read(spec))
        subject = reopen(tomogram, spec).subject
        ending = ".md" if isinstance(subject.data.inputs, list) else ".png"
        sheet = out or run_file.with_name(f"{run_file.stem}-validity{ending}")
        write_examples(subject, scores, wanted, sheet)
    if as_json:
        listed = [{"limit": one.value, "inside": None if one.inside is None else one.inside.as_dict()} for one in found]
        print_json({"quality": scores.name, "limits": listed, "examples": None if sheet is None else str(sheet)})
        return
    terminal.validity(terminal.console(), scores, found)
    if sheet is not None:
        say(f"Wrote {sheet}")


def _values(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise InputError(f"--at: expected numbers with commas, such as 0.02,0.06; got {text!r}")
    return values
