"""`testifai show`: a run in a page."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from testifai.commands import completion
from testifai.commands.common import Json, RunFile, Score, composed, print_json
from testifai.errors import InputError


def show(
    run_file: RunFile,
    by: Annotated[
        str | None,
        typer.Option(
            help="Only one table, by: order, axis, severity (their sum), class.",
            autocompletion=completion.among("order", "axis", "severity", "class"),
        ),
    ] = None,
    score: Score = None,
    as_json: Json = False,
) -> None:
    """A run in a page: by order, by severity, by class, the worst tests."""
    from testifai.identity.environment import recorded
    from testifai.present import terminal
    from testifai.present.terminal import facts
    from testifai.session.observers import notes
    from testifai.session.stored_runs import open_measured, open_run
    from testifai.support.serialization import plain
    from testifai.tomogram.interactions import precedences

    if by is not None:
        _show_by(open_measured(run_file).scored(score), by, as_json)
        return
    tomogram = open_run(run_file).scored(score)
    if not as_json:
        with composed() as console:
            terminal.summary(console, tomogram)
        return
    found = precedences(tomogram)
    print_json(
        {
            **facts(tomogram),
            **({} if found is None else {"precedences": [one.as_dict() for one in found]}),
            "by_order": plain(tomogram.by_order()),
            "by_severity": plain(tomogram.by_severity()),
            "by_class": plain(tomogram.by_class()),
            "trust": terminal.trust(tomogram),
            "environment": tomogram.provenance["environment"],
            "environments": recorded(tomogram.provenance),
            "notes": notes(tomogram.provenance),
        }
    )


def _show_by(tomogram: Any, by: str, as_json: bool) -> None:
    """One table of a run."""
    from testifai.present import terminal
    from testifai.present.terminal import folded
    from testifai.support.serialization import plain

    makers = {
        "order": (terminal.by_order, tomogram.by_order),
        "axis": (terminal.by_axis, tomogram.by_severity),
        "severity": (terminal.by_severity_sum, lambda: tomogram.query_engine.by("severity")),
        "class": (terminal.by_class, tomogram.by_class),
    }
    if by not in makers:
        raise InputError(f"--by: must be one of {', '.join(makers)}, got {by!r}")
    draw, answers = makers[by]
    if not as_json:
        with composed() as console:
            console.print(*folded(console, draw(tomogram)))
        return
    print_json({f"by_{by}": plain(answers())})
