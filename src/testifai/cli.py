"""Command line: thin commands over the library. Exit code 0: done, 1: a gate does not pass, 2: invalid input."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from testifai.commands import COMMANDS, PANELS, PLUGINS
from testifai.commands.common import CommandGroup, Stopped, accept_verbose, say
from testifai.errors import InputError
from testifai.support import streams
from testifai.support.formatting import printable

NAME = "testifai"
COMPLETE = "_TESTIFAI_COMPLETE"  # set by a shell that requests completions
COMPLETION = {"--install-completion", "--show-completion"}

# Base class of typer's usage errors: click's, or in newer versions typer's own copy of it.
USAGE_PROBLEM: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

FULL = "standard output cannot be written (no space left on device); what the command made is as far as it got"
LONGEST_NAME = 200
LONGEST_SUMMARY = 60  # characters of a plug-in's help on the help screen
INTERRUPTED = 130  # exit code that shells report for a command ended by Ctrl-C

# Where commands of earlier plans are now.
MOVED = {
    "merge": "run --merge",
    "independence": "show --independence",
    "validity": "show --validity",
    "benchmark": "show --benchmark",
    "verify": "export --verifier",
    "calibrate": "sweep --calibrate",
    "select": "label select",
    "estimate": "label estimate",
    "hunt": "errors --hunt",
    "perturbations": "list perturbations",
    "plugins": "list plugins",
    "spec": "list spec",
}


class Program(CommandGroup):
    """Commands in panels, our own and those of other packages; each is imported when it is needed."""

    moved = MOVED

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        accept_verbose(self, hidden=False)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and cmd_name in COMMANDS:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a panel of commands after the other."""
        problems = {entry.name: entry.problem for entry in COMMANDS.entries() if entry.problem}
        ours = {name for names in PANELS.values() for name in names}
        for title, names in {**PANELS, PLUGINS: tuple(sorted(COMMANDS.keys() - ours))}.items():
            rows = []
            for name in names:
                try:
                    command = self.get_command(ctx, name)
                    rows.append((name, command.get_short_help_str(LONGEST_SUMMARY)))
                except InputError as error:
                    problems.setdefault(name, str(error))
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        for problem in problems.values():
            say(f"warning: command {problem.removeprefix('command: ')}", err=True)


def _load(name: str) -> Any:
    """Return a command; raise InputError if another package's cannot be used."""
    found = COMMANDS[name]
    try:
        if not isinstance(found, typer.Typer):
            function, found = found, typer.Typer(rich_markup_mode=None, add_completion=False)
            found.command(name)(function)
        command = typer.main.get_command(found)
    except Exception as error:
        raise InputError(
            f"command: {name!r} is not a typer app or a function that typer accepts ({type(error).__name__}: {error})"
        ) from error
    accept_verbose(command)
    return command


app = typer.Typer(
    name=NAME,
    cls=Program,
    help="Measure how robust a trained model is under combinations of conditions.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        from testifai.support.version import VERSION

        typer.echo(f"testifai {VERSION}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point: invalid input is one line on standard error and exit code 2."""
    arguments = sys.argv[1:]
    if os.environ.get(COMPLETE) or COMPLETION.intersection(arguments[:1]):
        app(arguments, prog_name=NAME)  # typer answers the shell and exits
    streams.prepare()
    logging.basicConfig(format="%(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger().setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Printable("%(levelname)s: %(message)s"))
    before = set(threading.enumerate())
    try:
        code = _run(arguments)
        if not streams.flush():
            code = _fail(FULL, 2)
    except KeyboardInterrupt:  # while the last lines were printed
        code = INTERRUPTED
    if code == INTERRUPTED:
        # A second Ctrl-C has nothing left to stop, and would only end the process with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if any(thread.daemon and thread.name.startswith("testifai-") for thread in threading.enumerate()):
            # A batch is still in flight: Python would free the model while it is in use.
            streams.flush()
            os._exit(code)
    if any(not thread.daemon for thread in set(threading.enumerate()) - before):
        # Python would wait for a thread of the user's code, perhaps forever.
        atexit._run_exitfuncs()
        streams.flush()
        os._exit(code)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Return the exit code; only a gate that does not pass gives 1."""
    try:
        code = app(arguments, standalone_mode=False)
    except InputError as error:
        _log_traceback()
        return _fail(str(error), 2)
    except USAGE_PROBLEM as error:
        usage: Any = error
        return _fail(f"{usage.format_message()} (see testifai --help)", 2)
    except Stopped as stopped:
        print(f"\n{printable(stopped)}", file=sys.stderr)
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", INTERRUPTED)
    except SystemExit as error:  # raised by code that a command called; commands return their exit codes
        return _fail(f"code of yours ended the command (SystemExit: {error.code}); nothing was decided", 2)
    except MemoryError:
        return _fail("out of memory: choose a smaller batch_size, fewer workers or fewer severities", 2)
    except BaseException as error:
        _log_traceback()
        return _fail(_unexpected(error), 2)
    if code == INTERRUPTED:  # how typer reports a Ctrl-C anywhere else
        return _fail("stopped", code)
    return code if isinstance(code, int) else 0


def _unexpected(error: BaseException) -> str:
    """Describe an unforeseen error: the operating system's message, or an internal error."""
    if isinstance(error, OSError) and not streams.flush():
        return FULL
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{str(error.filename)[:LONGEST_NAME]}: "
        return f"{named}{error.strerror}"
    what = f"{type(error).__name__}: {error}"[:300]
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f", {Path(frame.filename).name} line {frame.lineno}" for frame in place)
    return f"internal error: {what}{where} (run with -v for details; please report it)"


def _log_traceback() -> None:
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        logging.getLogger("testifai").debug("where it came from", exc_info=True)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), lines=True)


def _fail(message: str, code: int) -> int:
    with suppress(OSError):
        print("error: " + printable(" ".join(message.split())), file=sys.stderr)
    return code
