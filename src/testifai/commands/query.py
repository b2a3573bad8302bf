"""`testifai query`: one question to a run."""

from __future__ import annotations

from typing import Annotated

import typer

from testifai.commands.common import Json, RunFile, Score, print_json


def query(
    run_file: RunFile,
    expression: Annotated[str, typer.Argument(help="Such as: zoom > 2 and blur <= 1")],
    inputs: Annotated[str | None, typer.Option(help="Only some inputs, such as: label in {3, 5}")] = None,
    score: Score = None,
    as_json: Json = False,
) -> None:
    """The mean robustness over the tests that an expression selects."""
    from testifai.present import terminal
    from testifai.scans.stored import open_measured
    from testifai.support.progress import status

    tomogram = open_measured(run_file)
    with status():
        found = tomogram.query(expression, inputs, score=score)
    if as_json:
        print_json(found.as_dict())
    else:
        terminal.answer(terminal.console(), tomogram.space, expression, found, score)
