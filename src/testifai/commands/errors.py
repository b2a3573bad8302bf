"""`testifai errors`: why a model fails, as trends ranked by what fixing them would give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testifai.commands.common import Json, Stopped, print_json, say, say_code
from testifai.errors import InputError

if TYPE_CHECKING:
    from testifai.locality.local import Local
    from testifai.locality.summary import Explanation, Trend
    from testifai.space import Space

MOST_WORDS = 3  # trends that are also told in words


def errors(
    source: Annotated[
        Path,
        typer.Argument(help="A run file with predicted classes, or a spec to measure.", metavar="RUN.db|SPEC.toml"),
    ],
    arity: Annotated[
        int | None, typer.Option(min=1, help="Parts of a system built on the model, such as an adder of 2; default: 1.")
    ] = None,
    combine: Annotated[
        str | None, typer.Option(help="What a system makes of its parts' labels: MODULE:FUNCTION of yours.")
    ] = None,
    per_class: Annotated[
        int | None, typer.Option("--per-class", min=1, help="With a spec: inputs of each class (200).")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Trends to print.")] = 10,
    html: Annotated[Path | None, typer.Option(help="Also as a page with figures, one .html file.")] = None,
    failures: Annotated[
        Path | None, typer.Option(help="Also the failing inputs, clean and perturbed, as .npz to train on.")
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(help="With a run file and --failures: the spec, if it was moved or the run is not yours."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="With a spec: the run file; default: the spec's name.local.db.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rank why a model fails: which class, under what, from which severity, read as what, and what to train with.

    With a spec, inputs of each class that the model gets right are put under each axis by itself; the same command
    continues where it stopped. A run file of that, or of a scan with keep = ["predicted"], is read as it is.
    """
    from testifai.locality.explain import explain
    from testifai.locality.measure import from_run
    from testifai.scans.stored import open_run

    _check_name("--html", html, ".html", ".htm")
    _check_name("--failures", failures, ".npz")
    _check_options(source, {"--per-class": per_class, "--out": out}, {"--spec": spec})
    function = None if combine is None else _function(combine)
    measured = source.suffix == ".toml"
    run_file = (out or source.with_suffix(".local.db")) if measured else source
    local = _measure(source, run_file, per_class or 200) if measured else None
    run = open_run(run_file)
    parts = arity or (1 if function is None else 2)
    # The space is as the run file describes it: names and parameters, no code.
    found = explain(from_run(run) if local is None else local, function, parts, properties=run.space)
    written: dict[str, Any] = {"run": str(run_file)}
    if html is not None:
        from testifai.report.errors import render
        from testifai.support.files import write_bytes

        write_bytes(html, render(found, run_file.name).encode())
        written["html"] = str(html)
    if failures is not None:
        from testifai.locality.failures import export_failures
        from testifai.scans import reopen

        data, space = reopen.source(run, source if measured else spec).data()
        written |= {"failures": str(failures), "rows": export_failures(found, data, space, failures)}
    if as_json:
        print_json({**found.as_dict(), **written})
        return
    _show(found, top)
    if html is not None:
        say(f"Wrote {html}")
    if failures is not None:
        say(f"Wrote {written['rows']:,} failing inputs to {failures}")


def _measure(spec: Path, run_file: Path, per_class: int) -> Local:
    """The local robustness on the spec's axes, each by itself; what the run file holds already is not done again."""
    from testifai.locality.measure import local
    from testifai.runs import keys, own
    from testifai.runs.store import Store
    from testifai.scans import loading
    from testifai.scans.spec import read
    from testifai.support.progress import bar

    loaded = read(spec)
    say_code(loaded)
    folder = spec.resolve().parent
    space = _each_alone(loading.space(loaded, folder))
    model, data = loading.model(loaded.model, folder), loading.data(loaded.data, folder)
    try:
        with bar() as show:
            found = local(
                model, data, space, per_class, loaded.scan.seed, run_file,
                batch_size=loaded.scan.batch_size, workers=loaded.scan.workers, progress=show,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise Stopped(f"stopped: what was measured is in {run_file}; the same command continues") from None
    with Store.create_or_open(run_file) as store:
        # Gates are about all inputs, and these are only those that the model gets right.
        store.put(**{**loaded.about(folder), keys.GATES: []})
        own.remember(store)
    return found


def _each_alone(space: Space) -> Space:
    """The spec's axes where the order of application cannot count."""
    from testifai.space import Space

    return Space({axis.name: (axis.perturbation, axis.levels or axis.severities) for axis in space.axes})


def _function(name: str) -> Any:
    from testifai.support.own_code import import_object

    say("note: runs your own code, named by --combine", err=True)
    return import_object(name, folder=Path.cwd(), field="--combine")


def _check_options(source: Path, of_specs: dict[str, Any], of_runs: dict[str, Any]) -> None:
    """Refuse options that would be ignored."""
    measured = source.suffix == ".toml"
    for option, given in (of_runs if measured else of_specs).items():
        if given is not None:
            kind, other = ("spec", "run file") if measured else ("run file", "spec")
            raise InputError(f"{option}: is for a {other}, and {source} is a {kind}; leave it out")


def _check_name(option: str, path: Path | None, *endings: str) -> None:
    """Before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise InputError(f"{option}: {path.name!r} must end in {' or '.join(endings)}")
    if not path.parent.is_dir():
        raise InputError(f"{option}: the folder {path.parent} does not exist")


def _show(found: Explanation, top: int) -> None:
    """The ranked table, and in words what to try for the first few."""
    from testifai.locality import summary
    from testifai.present import terminal

    console = terminal.console()
    rates = {"local robustness": found.local.overall()}
    if found.composed is not None:
        rates["robustness of the composed system, predicted from it"] = found.composed.overall
    for name, one in rates.items():
        console.print(f"{name}: [bold]{terminal.rate(one.rate)}[/bold] ({terminal.interval(one.low, one.high)})")
    shown = found.trends[:top]
    console.print(_table(shown) if shown else summary.no_trend(found))
    for rank, trend in enumerate(shown[:MOST_WORDS], start=1):
        console.print(f"{rank}. {trend.text}. Try: {trend.advice}.", markup=False, soft_wrap=True)
    if len(found.trends) > len(shown):
        console.print(f"{len(found.trends) - len(shown)} more trends: --top {len(found.trends)} prints all")
    for line in summary.rest(found):
        console.print(line, markup=False)


def _table(trends: Sequence[Trend]) -> Any:
    """A row for every trend."""
    from rich.markup import escape
    from rich.table import Table

    from testifai.locality import summary, wording

    table = Table(
        title="trends, by what fixing them would give at most", title_justify="left", title_style="bold",
        pad_edge=False, box=None,
    )  # fmt: skip
    gains = ["local gain"] if trends[0].composed_gain is None else ["system gain", "local gain"]
    words = ["class", "under", "severity", "read as"]
    for column in ["", *words, "failures", "tries", *gains, "p"]:
        one_line = column not in ("class", "read as")
        table.add_column(column, justify="left" if column in words else "right", header_style="dim", no_wrap=one_line)
    for rank, one in enumerate(trends, start=1):
        rates = [one.composed_gain, one.local_gain]
        cells = [
            *(str(rank), ", ".join(one.classes), one.property, wording.span(one.severities), summary.read_as(one)),
            *(wording.count(one.failures), wording.count(one.trials)),
            *(wording.gain_text(gain) for gain in rates if gain is not None),
            wording.p_text(one.p_value),
        ]
        table.add_row(*map(escape, cells))
    return table
