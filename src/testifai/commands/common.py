"""What commands share: their usual arguments, JSON output, and how a stopped run is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testifai.commands import completion
from testifai.support.formatting import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console

    from testifai.spec.parsing import Spec

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
RunFile = Annotated[
    Path, typer.Argument(help="A run file made by testifai run.", metavar="RUN.db", autocompletion=completion.runs)
]
Score = Annotated[str | None, typer.Option(help="The mean of this score, such as f1, and not the pass rate.")]
SpecFile = Annotated[
    Path,
    typer.Argument(help="A spec file; testifai init writes one.", metavar="SPEC.toml", autocompletion=completion.specs),
]
SpecOption = Annotated[
    Path | None,
    typer.Option(
        "--spec",
        help="The spec, if it was moved since or the run is not yours.",
        autocompletion=completion.specs,
    ),
]
ArityOption = Annotated[
    int | None, typer.Option("--arity", min=1, help="Parts of a system built on the model, such as an adder of 2.")
]
CombineOption = Annotated[
    str | None,
    typer.Option("--combine", help="What a system makes of its parts' labels: MODULE:FUNCTION of yours; default: sum."),
]
PerturbationOption = Annotated[
    list[str] | None,
    typer.Option(
        "--perturbation",
        "-p",
        help="An axis of the spec or a name; default: all axes with a level.",
        autocompletion=completion.perturbations,
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option("--workers", help="How many, or 'ray' and the like; instead of the spec's own.", metavar="WORKERS"),
]


class Stopped(Exception):  # noqa: N818
    """A run ended by Ctrl-C, and where it stands."""


def say(text: str = "", *, err: bool = False) -> None:
    """Lines for people, on standard output or standard error; nothing in them is a terminal's command."""
    typer.echo(printable(text, lines=True), err=err)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(printable_json(json.dumps(value, ensure_ascii=False, indent=1)))


@contextmanager
def composed() -> Iterator[Console]:
    """A console whose text is printed once all of it is there; until then a line says what is being done."""
    from testifai.present import terminal
    from testifai.support.progress import status

    console = terminal.console()
    with status(), console.capture() as text:
        yield console
    print(text.get(), end="")  # click would write UTF-8 to a stream that takes ASCII alone


def say_code(spec: Any) -> None:
    """Tell the user when a spec imports code of their own."""
    entries = spec.runs_code()
    if entries:
        say(f"note: runs your own code, named by {', '.join(entries)}", err=True)


def own_function(name: str, option: str) -> Any:
    """A function of the user's own, named MODULE:FUNCTION by an option."""
    from testifai.support.user_code import import_object

    say(f"note: runs your own code, named by {option}", err=True)
    return import_object(name, folder=Path.cwd(), field=option)


def with_workers(spec: Spec, workers: str | None) -> Spec:
    """The spec with other workers; the run file keeps the spec as it is written."""
    if workers is None:
        return spec
    from testifai.spec.options import ScanOptions

    told = {**dict(spec.scan), "workers": int(workers) if workers.isdecimal() else workers}
    return spec.model_copy(update={"scan": ScanOptions.of(told)})


def duration(seconds: float) -> str:
    """In the unit a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
