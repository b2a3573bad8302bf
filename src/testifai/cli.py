"""The command line: thin commands over the library. Exit code 0 done, 1 a gate did not hold, 2 bad input."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from testifai.commands.common import Json, RunFile, SpecFile, Stopped, duration, measured, print_json, say_code
from testifai.commands.errors import errors
from testifai.commands.explore import explore
from testifai.commands.operational import estimate, select
from testifai.commands.report import report
from testifai.commands.sweep import sweep
from testifai.commands.validity import validity
from testifai.errors import InputError

app = typer.Typer(
    name="testifai",
    help="How a trained model behaves under every combination of real-world conditions.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The base of typer's complaints about a command line. It is click's, or in newer versions that of typer's own copy of
# click; what typer exports under a stable name derives from it.
USAGE_PROBLEM: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED = 130  # what a shell reports of a command ended by Ctrl-C


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more, on standard error.")] = False,
) -> None:
    if version:
        from testifai import __version__

        typer.echo(f"testifai {__version__}")
        raise typer.Exit


@app.command()
def demo(as_json: Json = False) -> None:
    """Run the embedded example: a LeNet-5 on digits, the first paper's twelve queries."""
    from testifai.commands import demo as example
    from testifai.present import terminal
    from testifai.support.progress import bar

    with bar() as show:
        result = example.run(show)
    if as_json:
        print_json(result.as_dict())
        return
    out = terminal.console()
    terminal.demo(out, result)
    out.print("\nNext: testifai init MODEL.onnx DATA.npz   writes a spec for your own model and data.", markup=False)


@app.command()
def init(
    model: Annotated[str, typer.Argument(help="An .onnx file, a text model's folder, or package.module:name.")],
    data: Annotated[str, typer.Argument(help="An .npz, IDX, CIFAR .bin, .csv, .tsv or .jsonl file, or class folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the spec.")] = Path("testifai.toml"),
    as_json: Json = False,
) -> None:
    """Look at a model and a data set, check that they fit, and write a commented spec that runs."""
    from testifai.scans import init as initialise

    found = initialise.write_spec(model, data, out)
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        typer.echo(line)
    typer.echo(f"Wrote {out}. Next: testifai check {out}, then testifai run {out}")


@app.command()
def run(
    spec: SpecFile,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run file; default: the spec's name.db.")] = None,
    part: Annotated[str | None, typer.Option(help="I/N: run only the I-th of N parts; see testifai merge.")] = None,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Log parameters, metrics and run file in MLflow.")] = False,
    as_json: Json = False,
) -> None:
    """Run a spec; the same command continues an interrupted run. Exit code 1 if a gate does not hold."""
    from testifai.gates import verdicts as gates
    from testifai.present import terminal
    from testifai.scans import loading
    from testifai.scans.spec import read
    from testifai.support.progress import bar
    from testifai.tomogram import trust

    read_spec = read(spec)
    say_code(read_spec)
    session = loading.session(read_spec, spec.resolve().parent, part=_part(part))
    _check_gates(read_spec, session)
    path = out or spec.with_suffix(".db")
    extra = {
        "spec": read_spec.model_dump(mode="json", exclude_none=True),
        "gates": [gate.model_dump(mode="json") for gate in read_spec.gate],
        "folder": str(spec.resolve().parent),
    }
    try:
        with bar() as show:
            tomogram = session.run(path, show, extra)
    except KeyboardInterrupt:
        done, most = session.outcomes.total(), session.strategy.expected(session.progress())
        raise Stopped(
            f"stopped: {done:,} of at most {most:,} inferences are in {path}; the same command continues"
        ) from None
    if part is None:
        trust.keep(path, tomogram)
    verdicts = gates.judge(read_spec.gate, tomogram)
    if mlflow:
        from testifai.integrations import mlflow as tracking

        tracking.log(tomogram, name=spec.stem, verdicts=verdicts, run_file=path)
    if as_json:
        print_json({**_facts(tomogram), "run": str(path), "gates": [verdict.as_dict() for verdict in verdicts]})
    else:
        console = terminal.console()
        terminal.summary(console, tomogram)
        terminal.verdicts(console, verdicts)
        console.print(
            f'Saved in {path}. Next: testifai query {path} "{_example(tomogram)}"', markup=False, soft_wrap=True
        )
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


@app.command()
def query(
    run_file: RunFile,
    expression: Annotated[str, typer.Argument(help="Such as: zoom > 2 and blur <= 1")],
    inputs: Annotated[str | None, typer.Option(help="Only some inputs, such as: label in {3, 5}")] = None,
    as_json: Json = False,
) -> None:
    """The mean robustness over the tests that an expression selects."""
    from testifai.present import terminal
    from testifai.scans.session import open_run

    tomogram = measured(open_run(run_file), run_file)
    found = tomogram.query(expression, inputs)
    if as_json:
        print_json(found.as_dict())
    else:
        terminal.answer(terminal.console(), tomogram.space, expression, found)


@app.command()
def show(
    run_file: RunFile,
    by: Annotated[
        str | None, typer.Option(help="Only one table, by: order, axis, severity (their sum), class.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A run in a page: by order, by severity, by class, the worst tests."""
    from testifai.present import terminal
    from testifai.scans.session import open_run

    tomogram = open_run(run_file)
    if by is not None:
        _show_by(measured(tomogram, run_file), by, as_json)
        return
    if not as_json:
        terminal.summary(terminal.console(), tomogram)
        return
    print_json(
        {
            **_facts(tomogram),
            "by_order": _plain(tomogram.by_order()),
            "by_severity": _plain(tomogram.by_severity()),
            "by_class": _plain(tomogram.by_class()),
            "trust": terminal.trust(tomogram),
            "environment": tomogram.provenance["environment"],
        }
    )


def _show_by(tomogram: Any, by: str, as_json: bool) -> None:
    """One table of a run."""
    from testifai.present import terminal

    makers = {
        "order": (terminal.by_order, tomogram.by_order),
        "axis": (terminal.by_axis, tomogram.by_severity),
        "severity": (terminal.by_severity_sum, tomogram.by_severity_sum),
        "class": (terminal.by_class, tomogram.by_class),
    }
    if by not in makers:
        raise InputError(f"--by: must be one of {', '.join(makers)}, got {by!r}")
    draw, answers = makers[by]
    if not as_json:
        terminal.console().print(draw(tomogram))
        return
    print_json({f"by_{by}": _plain(answers())})


def _plain(found: Any) -> Any:
    """Answers in tables of tables as plain data."""
    if isinstance(found, dict):
        return {str(key): _plain(value) for key, value in found.items()}
    return found.as_dict()


@app.command()
def export(
    run_file: RunFile,
    out: Annotated[Path, typer.Option("-o", "--out", help="table.csv, .json, .parquet; .npz with --grid, --inputs.")],
    grid: Annotated[bool, typer.Option("--grid", help="Every outcome of a full run, as packed bits.")] = False,
    inputs: Annotated[
        str | None, typer.Option(help="SIGMA, such as 2,0,4: the inputs as that test shows them.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="With --inputs: only the first so many.")] = None,
    spec: Annotated[Path | None, typer.Option(help="With --inputs: the spec, if it was moved since.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run's table, its recorded grid, or the perturbed inputs of a configuration."""
    from testifai.present import export as files
    from testifai.scans.session import open_run

    if inputs is not None:
        from testifai.scans.reopen import reopen

        session = reopen(run_file, spec)
        count = files.write_inputs(session.subject, _sigma(inputs), out, limit)
        message = f"Wrote {count:,} inputs of configuration {inputs} to {out}"
    elif grid:
        files.write_grid(open_run(run_file), out)
        message = f"Wrote the grid to {out}"
    elif out.suffix == ".parquet":
        from testifai.present.dataframes import write_parquet

        write_parquet(measured(open_run(run_file), run_file), out)
        message = f"Wrote the table to {out}"
    else:
        files.write_table(measured(open_run(run_file), run_file), out)
        message = f"Wrote the table to {out}"
    if as_json:
        print_json({"out": str(out)})
    else:
        typer.echo(message)


@app.command()
def check(spec: SpecFile, as_json: Json = False) -> None:
    """The dry run: tests, inferences, time from one timed batch, file size."""
    from testifai.scans import loading
    from testifai.scans.check import estimate
    from testifai.scans.spec import read

    read_spec = read(spec)
    say_code(read_spec)
    session = loading.session(read_spec, spec.resolve().parent)
    _check_gates(read_spec, session)
    found = estimate(session)
    if as_json:
        print_json(found.as_dict())
        return
    accuracy = "" if found.clean_accuracy is None else f"; {found.clean_accuracy:.3f} of the timed batch pass clean"
    typer.echo(
        f"{found.run_tests:,} of {found.tests:,} tests on up to {found.inputs:,} inputs: at most {found.inferences:,} "
        f"inferences, about {duration(found.seconds)} with {found.workers} workers at {found.batch_size} a batch, "
        f"a run file of at most {found.file_bytes / 1e6:.1f} MB{accuracy}"
    )
    for note in found.notes():
        typer.echo(note)


@app.command()
def perturbations(
    suite: Annotated[str | None, typer.Argument(help="Only this suite, such as imagenet_c.")] = None,
    preview: Annotated[
        Path | None, typer.Option(help="Draw every perturbation at every severity, .png or .jpg.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="With --preview: show them on this image file.")] = None,
    sigma: Annotated[
        list[str] | None,
        typer.Option(help="With --preview: draw this composite instead, such as imagenet_c.fog=3,mnist_c.zoom=2."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the perturbations that can be used by name, or draw what they do."""
    from testifai import perturb
    from testifai.perturb import registry
    from testifai.present import contact_sheets as sheets

    for option, given in (("--image", image), ("--sigma", sigma)):
        if given and preview is None:
            raise InputError(f"{option}: name the picture to draw with --preview SHEET.png")
    if suite is not None and sigma:
        raise InputError(f"--sigma: a composite names its own perturbations; leave out the suite {suite!r}")
    composites = [sheets.parse_composite(text) for text in sigma or ()]
    if composites:
        used = {step.name for composite in composites for step, _ in composite}
        found = [perturb.get(name) for name in sorted(used)]
    else:
        found = [perturb.get(name) for name in perturb.names(suite)]
    if preview is not None:
        shown = None if image is None else sheets.read_image(image)
        if composites:
            sheets.draw_composites(composites, preview, shown)
        else:
            pictured = [one for one in found if registry.suite_of(one.name) != "text"]
            if not pictured:
                raise InputError(f"--preview: the suite {suite!r} changes texts, which cannot be drawn")
            sheets.draw(pictured, preview, shown)
    for problem in registry.suite_problems():
        typer.echo(f"note: {problem}", err=True)
    if as_json:
        print_json([_perturbation_facts(one) for one in found])
        return
    _list_perturbations(found)
    if preview is not None:
        typer.echo(f"Wrote {preview}")


@app.command()
def merge(
    run_files: Annotated[list[Path], typer.Argument(help="Partial runs of the same spec.", metavar="RUN.db …")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The merged run, a new file.")],
    as_json: Json = False,
) -> None:
    """Merge partial runs of the same spec made on different machines."""
    from testifai.runs.merge import merge as merge_runs
    from testifai.scans.session import open_run

    merge_runs(run_files, out)
    tomogram = open_run(out)
    if as_json:
        print_json({**_facts(tomogram), "run": str(out)})
    else:
        typer.echo(f"Merged {len(run_files)} runs into {out}: {tomogram.inferences:,} inferences")


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(help="The run to compare with.", metavar="A.db")],
    run_b: Annotated[Path, typer.Argument(help="A run of another model in the same space.", metavar="B.db")],
    queries: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="Also over these tests; may be given several times.")
    ] = None,
    inputs: Annotated[str | None, typer.Option(help="Only some inputs, such as: label in {3, 5}")] = None,
    as_json: Json = False,
) -> None:
    """Which of two models is more robust where: B against A, with intervals on the difference."""
    from testifai.scans.session import open_run
    from testifai.tomogram.comparison import compare as compare_runs

    a, b = (measured(open_run(path), path) for path in (run_a, run_b))
    found = compare_runs(a, b, queries or (), inputs)
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        typer.echo(line)


@app.command()
def independence(
    run_file: Annotated[
        Path, typer.Argument(help="A run with tests of one and of two perturbations.", metavar="RUN.db")
    ],
    seed: Annotated[int, typer.Option(help="Of the bootstrap over inputs.")] = 0,
    as_json: Json = False,
) -> None:
    """Whether perturbations act independently, pair by pair, and where products of rates would mislead."""
    from testifai.scans.session import open_run
    from testifai.statistics.independence import analyse, lines

    result = analyse(measured(open_run(run_file), run_file), seed=seed)
    if as_json:
        print_json(result.as_dict())
        return
    for line in lines(result):
        typer.echo(line)


for command in (report, explore, errors, validity, sweep, select, estimate):
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
    try:
        code = app(arguments, standalone_mode=False)
    except InputError as error:
        if verbose:
            logging.getLogger("testifai").debug("where it came from", exc_info=True)
        code = _fail(str(error), 2)
    except USAGE_PROBLEM as error:
        code = _fail(_usage(error), 2)
    except Stopped as stopped:
        print(f"\n{stopped}", file=sys.stderr)
        code = INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("stopped", INTERRUPTED)
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


def _usage(error: Any) -> str:
    return f"{error.format_message()} (see testifai --help)"


def _fail(message: str, code: int) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return code


def _facts(tomogram: Any) -> dict[str, Any]:
    base = tomogram.base
    return {
        "axes": {axis.name: list(axis.severities) for axis in tomogram.space.axes},
        "tests": tomogram.space.size,
        "measured": len(tomogram.outcomes),
        "inputs": tomogram.outcomes.inputs,
        "inferences": tomogram.inferences,
        "base": None if base != base else base,
    }


def _perturbation_facts(one: Any) -> dict[str, Any]:
    from testifai.perturb import describe, registry

    return {
        "suite": registry.suite_of(one.name),
        **describe(one),
        "summary": one.summary,
        "moves_boxes": one.boxes is not None,
        "levels": one.levels,
    }


def _list_perturbations(found: list[Any]) -> None:
    """A heading for each suite, a line for each of its perturbations."""
    from testifai.perturb import registry

    suites: dict[str, list[Any]] = {}
    for one in found:
        suites.setdefault(registry.suite_of(one.name), []).append(one)
    width = max(len(one.name) for one in found)
    for suite, members in sorted(suites.items()):
        title = f"{suite}: {registry.suite_summary(suite)}" if suite else "Without a suite"
        typer.echo(f"{title.rstrip(': ')} [{len(members)}]")
        for one in members:
            mark = " (moves boxes)" if one.boxes is not None else ""
            typer.echo(f"  {one.name:{width}}  0-{len(one.severities) - 1}  {one.summary}{mark}".rstrip())


def _sigma(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.strip("() ").split(","))
    except ValueError:
        raise InputError(f"inputs: a configuration is severities with commas, such as 2,0,4; got {text!r}") from None


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    own, slash, parts = text.partition("/")
    if not (slash and own.isdigit() and parts.isdigit()):
        raise InputError(f"part: expected I/N such as 1/3, got {text!r}")
    return int(own), int(parts)


def _check_gates(spec: Any, session: Any) -> None:
    """Refuse a gate that cannot be asked before anything is measured."""
    tomogram = session.tomogram()
    for number, gate in enumerate(spec.gate, start=1):
        try:
            tomogram.bound(gate.query, gate.inputs)
        except InputError as error:
            raise InputError(f"gate {gate.name or number}: {error}") from error


def _example(tomogram: Any) -> str:
    axis = tomogram.space.axes[0]
    return f"{axis.name} >= {axis.severities[len(axis.severities) // 2]}"
