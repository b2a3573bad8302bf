"""`testifai run`: a spec becomes a run file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from testifai.commands.common import (
    Json,
    SpecFile,
    Stopped,
    WorkersOption,
    composed,
    print_json,
    say_code,
    with_workers,
)
from testifai.commands.explore import need_dash, page_beside
from testifai.errors import InputError


def run(
    spec: SpecFile,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run file; default: the spec's name.db.")] = None,
    part: Annotated[str | None, typer.Option(help="I/N: run only the I-th of N parts; see testifai merge.")] = None,
    workers: WorkersOption = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Watch it in the browser as it grows; the page stays until Ctrl-C.")
    ] = False,
    run_by: Annotated[
        str | None, typer.Option(help="Who runs it: with the times of start and end in the run file and its report.")
    ] = None,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Log parameters, metrics and run file in MLflow.")] = False,
    as_json: Json = False,
) -> None:
    """Run a spec; the same command continues an interrupted run. Exit code 1 if a gate does not hold."""
    from testifai.gates.verdicts import check_gates, judge
    from testifai.identity.input_hashes import recall_files
    from testifai.present import terminal
    from testifai.present.terminal import facts
    from testifai.session import assembly
    from testifai.session.provenance import about, noted
    from testifai.spec.parsing import read
    from testifai.support.progress import bar, status
    from testifai.tomogram import trust

    if explore:
        need_dash()
    read_spec = read(spec)
    say_code(read_spec)
    session = assembly.session(with_workers(read_spec, workers), spec.resolve().parent, part=_part(part))
    path = out or spec.with_suffix(".db")
    recall_files(session.data, path)
    check_gates(read_spec.gate, session.tomogram())
    extra = about(read_spec, spec.resolve().parent, session.data)
    with page_beside(path) if explore else nullcontext() as page:
        try:
            with noted(run_by, session, path), bar() as show:
                tomogram = session.run(path, show if page is None else page.shown_with(show), extra)
        except KeyboardInterrupt:
            done, most = session.outcomes.total(), session.strategy.expected(session.progress())
            raise Stopped(
                f"stopped: {done:,} of at most {most:,} inferences are in {path}; the same command continues"
            ) from None
        with status():
            if part is None:
                trust.keep(path, tomogram)
            verdicts = judge(read_spec.gate, tomogram)
        hold = all(verdict.holds for verdict in verdicts)
        if mlflow:
            from testifai.integrations.mlflow import log

            log(tomogram, name=spec.stem, verdicts=verdicts, run_file=path)
        if as_json:
            print_json({**facts(tomogram), "run": str(path), "gates": [verdict.as_dict() for verdict in verdicts]})
        else:
            with composed() as console:
                terminal.summary(console, tomogram)
                terminal.verdicts(console, verdicts)
                console.print(f"Saved in {path}. Next: {_next(path, tomogram, hold)}", markup=False, soft_wrap=True)
        if page is not None:
            page.stay()
    if not hold:
        raise typer.Exit(1)


def _part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    own, slash, parts = text.partition("/")
    if not (slash and own.isdigit() and parts.isdigit()):
        raise InputError(f"part: expected I/N such as 1/3, got {text!r}")
    return int(own), int(parts)


def _next(path: Path, tomogram: Any, hold: bool) -> str:
    """The command to go on with: a question, or the report that shows why a gate does not hold."""
    if not hold:
        return f"testifai report {path} --open"
    axis = tomogram.space.axes[0]
    return f'testifai query {path} "{axis.name} >= {axis.severities[len(axis.severities) // 2]}"'
