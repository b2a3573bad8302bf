"""`testifai benchmark`: the scores that papers report of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, RunFile, print_json


def benchmark(
    run_file: RunFile,
    suite: Annotated[
        str | None,
        typer.Option(help="Which suite, where the run has axes of several.", autocompletion=completion.suites),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A run of the model to divide errors by (ImageNet-C: AlexNet, published).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Mean accuracy over single perturbations, mCE, relative mCE and the worst perturbation, with intervals."""
    from testifai.present import terminal
    from testifai.session.stored_runs import open_measured
    from testifai.support.progress import status

    tomogram = open_measured(run_file)
    with status():
        found = tomogram.benchmark(suite, None if baseline is None else open_measured(baseline))
    if as_json:
        print_json(found.as_dict())
    else:
        terminal.benchmark(terminal.console(), found)
