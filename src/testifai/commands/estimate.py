"""`testifai estimate`: what a few labels say of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, print_json, say


def estimate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Filled in; further rounds beside it are found.",
            metavar="FILE.csv",
            autocompletion=completion.files(".csv"),
        ),
    ],
    require: Annotated[
        float | None,
        typer.Option(help="The accuracy to reach: pass, fail or how many more labels; exit code 1 if not."),
    ] = None,
    selection: Annotated[
        Path | None, typer.Option(help="What select kept (.selection.npz), if it is not beside the file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The accuracy with its interval, the failures and what is confused, from the labels so far."""
    from testifai.operational.answer import answer, check_require
    from testifai.operational.rounds import collect

    if require is not None:
        check_require(require)
    found = answer(collect(files, selection), require)
    if as_json:
        print_json(found.as_dict())
    else:
        for line in found.lines(files[0]):
            say(line)
    if found.verdict is not None and not found.verdict.passed:
        raise typer.Exit(1)
