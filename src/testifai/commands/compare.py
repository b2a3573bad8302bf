"""`testifai compare`: two models in the same space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, Score, print_json, say


def compare(
    run_a: Annotated[
        Path, typer.Argument(help="The run to compare with.", metavar="A.db", autocompletion=completion.runs)
    ],
    run_b: Annotated[
        Path,
        typer.Argument(
            help="A run of another model in the same space.", metavar="B.db", autocompletion=completion.runs
        ),
    ],
    queries: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Also over these tests; may be given several times.")
    ] = None,
    inputs: Annotated[str | None, typer.Option(help="Only some inputs, such as: label in {3, 5}")] = None,
    score: Score = None,
    as_json: Json = False,
) -> None:
    """Which of two models is more robust where: B against A, with intervals on the difference."""
    from testifai.session.stored_runs import open_measured
    from testifai.tomogram.comparison import compare as compare_runs

    a, b = (open_measured(path) for path in (run_a, run_b))
    found = compare_runs(a, b, queries or (), inputs, score=score)
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        say(line)
