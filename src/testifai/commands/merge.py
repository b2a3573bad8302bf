"""`testifai merge`: partial runs become one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, print_json, say


def merge(
    run_files: Annotated[
        list[Path],
        typer.Argument(help="Partial runs of the same spec.", metavar="RUN.db …", autocompletion=completion.runs),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The merged run, a new file.")],
    as_json: Json = False,
) -> None:
    """Merge partial runs of the same spec made on different machines."""
    from testifai.present.terminal import facts
    from testifai.runs.merge import merge as merge_runs
    from testifai.session.observers import notes
    from testifai.session.stored_runs import open_run

    merge_runs(run_files, out)
    tomogram = open_run(out)
    for line in notes(tomogram.provenance):
        say(f"note: {line}", err=True)
    if as_json:
        print_json({**facts(tomogram), "run": str(out)})
    else:
        say(f"Merged {len(run_files)} runs into {out}: {tomogram.inferences:,} inferences")
