"""`testifai run`: measure what a spec describes, or merge partial runs of it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import common, completion
from testifai.commands.explore import live_page, require_dash
from testifai.errors import InputError


def run(
    spec: common.SpecFile,
    parts: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Partial runs (needs --merge).", metavar="PART.db", autocompletion=completion.runs, show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run file [default: SPEC.db].")] = None,
    part: Annotated[str | None, typer.Option(help="Run one of N parts.", metavar="I/N")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Merge partial runs of the same spec.")] = False,
    workers: common.WorkersOption = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Show the run in the browser as it grows, until Ctrl-C.")
    ] = False,
    run_by: Annotated[
        str | None, typer.Option(help="Name to record in the run file, with start and end times.", metavar="NAME")
    ] = None,
    mlflow: Annotated[bool, typer.Option("--mlflow", help="Log parameters, metrics and run file in MLflow.")] = False,
    as_json: common.Json = False,
) -> None:
    """Run a spec, or resume an interrupted run.

    Exit code 1 if a gate does not hold.
    """
    path = out or spec.with_suffix(".db")
    if merge:
        others = {"--part": part, "--workers": workers, "--explore": explore, "--run-by": run_by, "--mlflow": mlflow}
        common.exclude("--merge", True, others)
        _merge(spec, parts or [], path, as_json)
        return
    if parts:
        raise InputError(f"{parts[0]}: a run has one spec; add --merge to merge partial runs")
    from testifai.gates.strategy import with_gates_first
    from testifai.gates.verdicts import check_gates, judge
    from testifai.identity.run_identity import recall_files
    from testifai.present import terminal
    from testifai.session import assembly
    from testifai.session.stored_runs import about, noted
    from testifai.support.progress import bar, status
    from testifai.tomogram import trust

    own_part = _part(part)
    if explore:
        require_dash()
    loaded, folder = common.read_spec(spec), spec.resolve().parent
    planned = common.with_workers(loaded, workers)
    planned = planned if own_part else with_gates_first(planned)
    session = assembly.session(planned, folder, part=own_part)
    recall_files(session.data, path)
    check_gates(loaded.gate, session.tomogram())
    with live_page(path) if explore else nullcontext() as page:
        try:
            with noted(run_by, session, path), bar() as show:
                tomogram = session.run(
                    path, show if page is None else page.shown_with(show), about(loaded, folder, session.data)
                )
        except KeyboardInterrupt:
            done, most = session.outcomes.total(), session.strategy.expected(session.progress())
            raise common.Stopped(
                f"stopped: {done:,} of at most {most:,} inferences are in {path}; the same command continues"
            ) from None
        with status():
            if own_part is None:
                trust.keep(path, tomogram)
            verdicts = judge(loaded.gate, tomogram)
        hold = all(verdict.holds for verdict in verdicts)
        if mlflow:
            from testifai.integrations.mlflow import log

            log(tomogram, name=spec.stem, verdicts=verdicts, run_file=path)
        if as_json:
            gates = [verdict.as_dict() for verdict in verdicts]
            common.print_json({**terminal.facts(tomogram), "run": str(path), "gates": gates})
        else:
            with common.composed() as console:
                terminal.summary(console, tomogram)
                terminal.verdicts(console, verdicts)
                axis = tomogram.space.axes[0]
                middle = axis.severities[len(axis.severities) // 2]
                query = f'testifai query {path} "{axis.name} >= {middle}"'
                following = query if hold else f"testifai report {path} --open"
                console.print(f"Saved in {path}. Next: {following}", markup=False, soft_wrap=True)
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


def _merge(spec: Path, parts: list[Path], out: Path, as_json: bool) -> None:
    from testifai.present.terminal import facts
    from testifai.runs import keys
    from testifai.runs.merge import merge
    from testifai.runs.store import Store
    from testifai.session.observers import notes
    from testifai.session.stored_runs import open_run
    from testifai.spec.parsing import parse, read

    space = read(spec).space
    for path in parts:  # which are compared with each other when they are merged
        with Store.open(path) as store:
            stored = store.get(keys.SPEC)
        if stored is not None and parse(stored).space != space:
            raise InputError(f"--merge: {path} is not a part of {spec}: [space] differs")
    merge(parts, out)
    tomogram = open_run(out)
    common.say(*(f"note: {line}" for line in notes(tomogram.provenance)), err=True)
    line = f"Merged {len(parts)} runs into {out}: {tomogram.inferences:,} inferences"
    common.answer(as_json, {**facts(tomogram), "run": str(out)}, line)
