"""`testifai query`: mean robustness over selected tests."""

from __future__ import annotations

from typing import Annotated

import typer

from testifai.commands.common import InputsOption, Json, RunFile, opened, print_json
from testifai.errors import InputError

PRECISION = "map"  # not a mean over inputs, and so not a score of an oracle


def query(
    run_file: RunFile,
    expression: Annotated[str, typer.Argument(help="Such as: zoom > 2 and blur <= 1")],
    inputs: InputsOption = None,
    score: Annotated[
        str | None,
        typer.Option(help="Score to average, such as f1, or map: COCO's average precision [default: pass rate]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report mean robustness over selected tests."""
    from testifai.present import terminal
    from testifai.support.progress import status
    from testifai.tomogram.regression_errors import distance
    from testifai.tomogram.run_state import run_state

    tomogram = opened(run_file, as_json=as_json)
    if score == PRECISION and PRECISION not in tomogram.scores:
        if inputs is not None:
            raise InputError("inputs: average precision is of all images of a test; leave it out")
        with status():
            precision = tomogram.average_precision(expression)
        if as_json:
            # Its interval is for images like these, whatever the run's population.
            print_json({**precision.as_dict(), **run_state(tomogram), "population": "future"})
        else:
            terminal.precision(terminal.console(), expression, precision)
        return
    with status():
        found = tomogram.query(expression, inputs, score=score)
        off = distance(tomogram, expression) if inputs is None and score is None else None
    if as_json:
        distances = {} if off is None else {"distance": off.as_dict()}
        print_json({**found.as_dict(), **distances, **run_state(tomogram)})
    else:
        terminal.answer(terminal.console(), tomogram.space, expression, found, score)
        if off is not None:
            terminal.console().print(f"{off}, mean of {off.tests:,} tests tried")
