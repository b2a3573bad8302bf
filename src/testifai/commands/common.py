"""Arguments, options and output that several commands share."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from testifai.commands import completion
from testifai.errors import InputError, suggest
from testifai.support.formatting import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console
    from werkzeug.serving import BaseWSGIServer

    from testifai.session.session import Session
    from testifai.spec.parsing import Spec
    from testifai.tomogram import Tomogram

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunFile = Annotated[
    Path, typer.Argument(help="Run file written by testifai run.", metavar="RUN.db", autocompletion=completion.runs)
]
Score = Annotated[str | None, typer.Option(help="Score to average, such as f1 [default: pass rate].")]
InputsOption = Annotated[str | None, typer.Option(help="Inputs to include, such as: label in {3, 5} [default: all].")]
SpecFile = Annotated[
    Path,
    typer.Argument(help="Spec file; testifai init writes one.", metavar="SPEC.toml", autocompletion=completion.specs),
]
SpecOption = Annotated[
    Path | None,
    typer.Option("--spec", help="Spec to use instead of the one stored in the run.", autocompletion=completion.specs),
]
ArityOption = Annotated[
    int | None, typer.Option("--arity", min=1, help="Inputs of a system built on the model, such as an adder: 2.")
]
CombineOption = Annotated[
    str | None,
    typer.Option("--combine", help="MODULE:FUNCTION that combines the labels of such a system [default: sum]."),
]
WorkersOption = Annotated[
    str | None, typer.Option("--workers", help="Number of workers, or 'ray' [default: from spec].", metavar="WORKERS")
]
HostOption = Annotated[str, typer.Option("--host", help="Address to serve on; all but loopback need a token.")]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free port.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]


class Stopped(Exception):  # noqa: N818
    """A run ended by Ctrl-C; the message says what was kept."""


def _be_verbose(value: bool) -> None:
    if value:
        logging.getLogger().setLevel(logging.DEBUG)


def _verbose(
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Log details to stderr.", callback=_be_verbose, expose_value=False)
    ] = False,
) -> None: ...


def accept_verbose(command: Any, *, hidden: bool = True) -> None:
    """Add -v to a command and to its sub-commands, except where the name is taken."""
    if not {"-v", "--verbose"}.intersection(name for one in command.params for name in one.opts):
        holder = typer.Typer()
        holder.command()(_verbose)
        option: Any = typer.main.get_command(holder).params[0]  # as this version of typer builds it
        option.hidden = hidden
        command.params.append(option)
    for inner in getattr(command, "commands", {}).values():
        accept_verbose(inner)


class CommandGroup(TyperGroup):
    """Commands that are suggested by name if a name is unknown."""

    moved: ClassVar[Mapping[str, str]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            moved = name in self.moved
            meant = f"did you mean {self.moved[name]!r}?" if moved else suggest(name, self.list_commands(ctx))
            raise InputError(f"no command {name!r}; {meant}")
        return super().resolve_command(ctx, args)


def show_help(context: typer.Context) -> None:
    """Print the help of a group of commands if none of them is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def group(summary: str) -> typer.Typer:
    """Return a group of commands; without a command it prints its help."""
    return typer.Typer(
        cls=CommandGroup, help=summary, callback=show_help, invoke_without_command=True, rich_markup_mode=None,
        add_completion=False,
    )  # fmt: skip


def given(value: object) -> bool:
    """Return True if an option that is None, False or empty by default was set."""
    return value is not None and value is not False and value != []


def needs(mode: str, active: object, options: Mapping[str, object]) -> None:
    """Raise InputError if an option of a mode is given without it."""
    for option, value in options.items():
        if given(value) and not given(active):
            raise InputError(f"{option} needs {mode}")


def exclude(mode: str, active: object, options: Mapping[str, object]) -> None:
    """Raise InputError if an option is given with a mode that would ignore it."""
    for option, value in options.items():
        if given(value) and given(active):
            raise InputError(f"{option} cannot be combined with {mode}")


def say(*lines: str, err: bool = False) -> None:
    """Print lines for people on standard output or standard error, without control characters."""
    for line in lines:
        typer.echo(printable(line, lines=True), err=err)


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    typer.echo(printable_json(json.dumps(value, ensure_ascii=False, indent=1)))


def answer(as_json: bool, facts: object, *lines: str) -> None:
    """Print a result as JSON or in lines for people."""
    if as_json:
        print_json(facts)
    else:
        say(*lines)


@contextmanager
def composed() -> Iterator[Console]:
    """Yield a console whose text is printed once it is complete; until then a line says what is being done."""
    from testifai.present import terminal
    from testifai.support.progress import status

    console = terminal.console()
    with status(), console.capture() as text:
        yield console
    print(text.get(), end="")  # click would write UTF-8 to a stream that takes ASCII alone


def opened(run_file: Path, *, as_json: bool) -> Tomogram:
    """Open a stored run with outcomes; say first if it is not finished."""
    from testifai.session.stored_runs import open_measured
    from testifai.tomogram.run_state import unfinished

    tomogram = open_measured(run_file)
    if (line := unfinished(tomogram)) is not None:
        say(line, err=as_json)
    return tomogram


def duration(seconds: float) -> str:
    """Format seconds in the unit a person would use."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def read_spec(path: Path) -> Spec:
    """Read a spec and note the user code that it imports."""
    from testifai.spec.parsing import read

    spec = read(path)
    if entries := spec.runs_code():
        say(f"note: runs your own code, named by {', '.join(entries)}", err=True)
    return spec


def reopened(run: Path | Tomogram, spec: Path | None) -> Session:
    """Load the model and data of a stored run, or of a spec to use instead, whose user code is noted."""
    from testifai.session.stored_runs import reopen

    if spec is not None:
        read_spec(spec)
    return reopen(run, spec)


def with_workers(spec: Spec, workers: str | None) -> Spec:
    """Return the spec with other workers; the run file keeps the spec as it is written."""
    if workers is None:
        return spec
    from testifai.spec.options import ScanOptions

    scan = {**dict(spec.scan), "workers": int(workers) if workers.isdecimal() else workers}
    return spec.model_copy(update={"scan": ScanOptions.of(scan)})


def user_function(name: str | None, option: str) -> Callable[..., Any] | None:
    """Import a user-defined function given as MODULE:FUNCTION."""
    if name is None:
        return None
    from testifai.support.user_code import import_object

    say(f"note: runs your own code, named by {option}", err=True)
    function: Callable[..., Any] = import_object(name, folder=Path.cwd(), field=option)
    return function


def check_file(option: str, path: Path | None, *endings: str) -> None:
    """Raise InputError if a file cannot be written under this name."""
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{option}: {path.name!r} must end in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise InputError(f"{option}: the folder {path.parent} does not exist")


def address_of(host: str, port: int, token: str | None) -> str:
    """Return the URL of a page."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")


def serve(server: BaseWSGIServer, what: str, address: str, *, note: str | None = None, browser: bool = False) -> None:
    """Print where the page is, with a note if others can reach it, and serve it until Ctrl-C."""
    say(f"{what} at {address} (Ctrl-C ends it)")
    if note is not None:
        say(f"note: {note}", err=True)
    if browser:
        typer.launch(address)
    try:
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.server_close()
    say("Stopped.")
