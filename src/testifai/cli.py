"""The command line: thin commands over the library. Exit code 0 done, 1 a gate did not hold, 2 bad input."""

from __future__ import annotations

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

from testifai.commands.benchmark import benchmark
from testifai.commands.calibrate import calibrate
from testifai.commands.check import check
from testifai.commands.common import Stopped
from testifai.commands.compare import compare
from testifai.commands.demo import demo
from testifai.commands.errors import errors
from testifai.commands.estimate import estimate
from testifai.commands.explore import explore
from testifai.commands.export import export
from testifai.commands.hunt import hunt
from testifai.commands.independence import independence
from testifai.commands.init import init
from testifai.commands.label import label
from testifai.commands.merge import merge
from testifai.commands.perturbations import perturbations
from testifai.commands.plugins import plugins
from testifai.commands.query import query
from testifai.commands.report import report
from testifai.commands.run import run
from testifai.commands.select import select
from testifai.commands.show import show
from testifai.commands.spec import spec
from testifai.commands.sweep import sweep
from testifai.commands.validity import validity
from testifai.commands.verify import verify
from testifai.errors import InputError
from testifai.support import streams
from testifai.support.formatting import printable

NAME = "testifai"
COMPLETE = "_TESTIFAI_COMPLETE"  # set by a shell that asks what may come next
COMPLETION = {"--install-completion", "--show-completion"}

app = typer.Typer(
    name=NAME,
    help="How a trained model behaves under every combination of real-world conditions.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The base of typer's complaints about a command line: click's, or in newer versions that of typer's own copy of click.
USAGE_PROBLEM: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

FULL = "standard output cannot be written (no space left on device); what the command made is as far as it got"
LONGEST_NAME = 200
INTERRUPTED = 130  # what a shell reports of a command ended by Ctrl-C


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more, on standard error.")] = False,
) -> None:
    if version:
        from testifai.support.version import VERSION

        typer.echo(f"testifai {VERSION}")
        raise typer.Exit


# In the order that --help lists them.
for command in (
    demo, init, spec, run, query, show, export, check, perturbations, plugins, merge, compare, independence, benchmark,
    report, explore, errors, validity, sweep, calibrate, select, label, estimate,
    hunt, verify,
):  # fmt: skip
    app.command()(command)


def main() -> None:
    """Entry point: a user's mistake is one line on standard error and exit code 2."""
    arguments = sys.argv[1:]
    verbose = any(flag in arguments for flag in ("-v", "--verbose"))
    # -v is welcome anywhere on the line, not only before the command.
    arguments = [flag for flag in arguments if flag not in {"-v", "--verbose"}] or ["--help"]
    if os.environ.get(COMPLETE) or COMPLETION.intersection(arguments[:1]):
        app(arguments, prog_name=NAME)  # typer answers the shell, and ends
    streams.degrade()
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr
    )
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Printable("%(levelname)s: %(message)s"))
    try:
        code = _run(arguments, verbose)
        if not streams.flush():
            code = _fail(FULL, 2)
    except KeyboardInterrupt:  # while the end was told
        code = INTERRUPTED
    if code == INTERRUPTED:
        # A second Ctrl-C has nothing left to stop, and would only end the process with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave_batches(code)
    sys.exit(code)


def _run(arguments: list[str], verbose: bool) -> int:
    """The exit code; only a gate that does not hold gives 1."""
    try:
        code = app(arguments, standalone_mode=False)
    except InputError as error:
        _debug(verbose)
        return _fail(str(error), 2)
    except USAGE_PROBLEM as error:
        return _fail(_usage(error), 2)
    except Stopped as stopped:
        print(f"\n{printable(stopped)}", file=sys.stderr)
        return INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", INTERRUPTED)
    except SystemExit as error:  # of code that a command called; what a command itself decides is returned
        if isinstance(error.__context__, BrokenPipeError):  # but for click's word for a reader who wants no more
            streams.discard(sys.stdout)
            return 0
        return _fail(f"code of yours ended the command (SystemExit: {error.code}); nothing was decided", 2)
    except BrokenPipeError:
        streams.discard(sys.stdout)
        return 0
    except MemoryError:
        return _fail("out of memory: choose a smaller batch_size, fewer workers or fewer severities", 2)
    except Exception as error:
        _debug(verbose)
        return _fail(_unexpected(error), 2)
    if code == INTERRUPTED:  # typer's silent word for a Ctrl-C anywhere else
        return _fail("stopped", code)
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> str:
    """What went wrong outside of what was thought of: the system's own word for it, or a fault of ours."""
    if isinstance(error, OSError) and not streams.flush():
        return FULL
    if isinstance(error, OSError) and error.strerror:
        named = "" if error.filename is None else f"{str(error.filename)[:LONGEST_NAME]}: "
        return f"{named}{error.strerror}"
    what = f"{type(error).__name__}: {error}"[:300]
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f", {Path(frame.filename).name} line {frame.lineno}" for frame in place)
    return f"internal error: {what}{where} (run with -v for details; please report it)"


def _debug(verbose: bool) -> None:
    if verbose:
        logging.getLogger("testifai").debug("where it came from", exc_info=True)


def _leave_batches(code: int) -> None:
    """End now where a batch is still in flight: Python would take the model away from under it."""
    if any(thread.daemon and thread.name.startswith("testifai-") for thread in threading.enumerate()):
        streams.flush()
        os._exit(code)


class _Printable(logging.Formatter):
    """What is logged may hold what a model or a file said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), lines=True)


def _usage(error: Any) -> str:
    return f"{error.format_message()} (see testifai --help)"


def _fail(message: str, code: int) -> int:
    with suppress(OSError):
        print("error: " + printable(" ".join(message.split())), file=sys.stderr)
    return code
