"""The command line: thin commands over the library. Exit code 0 done, 1 a gate did not hold, 2 bad input."""

from __future__ import annotations

import logging
import signal
import sys
from typing import Annotated, Any

import typer

from testifai.commands.check import check
from testifai.commands.common import Stopped
from testifai.commands.compare import compare
from testifai.commands.demo import demo
from testifai.commands.errors import errors
from testifai.commands.estimate import estimate
from testifai.commands.explore import explore
from testifai.commands.export import export
from testifai.commands.independence import independence
from testifai.commands.init import init
from testifai.commands.merge import merge
from testifai.commands.perturbations import perturbations
from testifai.commands.plugins import plugins
from testifai.commands.query import query
from testifai.commands.report import report
from testifai.commands.run import run
from testifai.commands.select import select
from testifai.commands.show import show
from testifai.commands.sweep import sweep
from testifai.commands.validity import validity
from testifai.errors import InputError
from testifai.support.printable import printable

app = typer.Typer(
    name="testifai",
    help="How a trained model behaves under every combination of real-world conditions.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The base of typer's complaints about a command line: click's, or in newer versions that of typer's own copy of click.
USAGE_PROBLEM: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

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
    demo, init, run, query, show, export, check, perturbations, plugins, merge, compare, independence, report, explore,
    errors, validity, sweep, select, estimate,
):  # fmt: skip
    app.command()(command)


def main() -> None:
    """Entry point: a user's mistake is one line on standard error and exit code 2."""
    arguments = sys.argv[1:]
    verbose = any(flag in arguments for flag in ("-v", "--verbose"))
    # -v is welcome anywhere on the line, not only before the command.
    arguments = [flag for flag in arguments if flag not in {"-v", "--verbose"}] or ["--help"]
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, format="%(levelname)s: %(message)s", stream=sys.stderr
    )
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Printable("%(levelname)s: %(message)s"))
    try:
        code = app(arguments, standalone_mode=False)
    except InputError as error:
        if verbose:
            logging.getLogger("testifai").debug("where it came from", exc_info=True)
        code = _fail(str(error), 2)
    except USAGE_PROBLEM as error:
        code = _fail(_usage(error), 2)
    except Stopped as stopped:
        print(f"\n{printable(stopped)}", file=sys.stderr)
        code = INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("stopped", INTERRUPTED)
    except SystemExit as error:  # of code that a command called; what a command itself decides is returned
        code = _fail(f"code of yours ended the command (SystemExit: {error.code}); nothing was decided", 2)
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except MemoryError:
        code = _fail("out of memory: choose a smaller batch_size, fewer workers or fewer severities", 2)
    else:
        if code == INTERRUPTED:  # typer's silent word for a Ctrl-C anywhere else
            _fail("stopped", code)
    if code == INTERRUPTED:
        # A second Ctrl-C has nothing left to stop, and would only end the process with a traceback.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code if isinstance(code, int) else 0)


class _Printable(logging.Formatter):
    """What is logged may hold what a model or a file said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), lines=True)


def _usage(error: Any) -> str:
    return f"{error.format_message()} (see testifai --help)"


def _fail(message: str, code: int) -> int:
    print("error: " + printable(" ".join(message.split())), file=sys.stderr)
    return code
