"""`testifai independence`: which perturbations interact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json, say


def independence(
    run_file: Annotated[
        Path, typer.Argument(help="A run with tests of one and of two perturbations.", metavar="RUN.db")
    ],
    seed: Annotated[int, typer.Option(help="Of the bootstrap over inputs.")] = 0,
    as_json: Json = False,
) -> None:
    """Whether perturbations act independently, pair by pair, and where products of rates would mislead."""
    from testifai.session.stored_runs import open_measured
    from testifai.tomogram.interactions import analyse, lines

    result = analyse(open_measured(run_file), seed=seed)
    if as_json:
        print_json(result.as_dict())
        return
    for line in lines(result):
        say(line)
