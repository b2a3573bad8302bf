"""`testifai compare`: two models on the same tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import InputsOption, Json, Score, answer, opened


def compare(
    run_a: Annotated[Path, typer.Argument(help="Run to compare with.", metavar="A.db", autocompletion=completion.runs)],
    run_b: Annotated[
        Path,
        typer.Argument(help="Run of another model in the same space.", metavar="B.db", autocompletion=completion.runs),
    ],
    queries: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Tests to compare separately. Repeatable.")
    ] = None,
    inputs: InputsOption = None,
    score: Score = None,
    as_json: Json = False,
) -> None:
    """Compare two models on the same tests.

    Differences are B - A, with intervals.
    """
    from testifai.tomogram.comparison import compare as compare_runs
    from testifai.tomogram.run_state import run_state

    a, b = (opened(path, as_json=as_json) for path in (run_a, run_b))
    found = compare_runs(a, b, queries or (), inputs, score=score)
    states = {"a": run_state(a), "b": run_state(b)}
    answer(as_json, {**found.as_dict(), "runs": states}, *found.lines())
