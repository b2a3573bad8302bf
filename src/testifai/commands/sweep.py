"""`testifai sweep`: the share of a continuous level on which a model's accuracy holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testifai.commands import completion
from testifai.commands.common import (
    ArityOption,
    CombineOption,
    Json,
    PerturbationOption,
    SpecFile,
    Stopped,
    WorkersOption,
    own_function,
    print_json,
    say,
    say_code,
    with_workers,
)
from testifai.errors import InputError
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.session.assembly import LoadedParts


def sweep(
    spec: SpecFile,
    perturbation: PerturbationOption = None,
    threshold: Annotated[
        list[float] | None, typer.Option("--threshold", "-t", help="Accuracy to hold; may be given several times.")
    ] = None,
    drops: Annotated[
        list[float] | None, typer.Option(help="Instead: the levels at which accuracy has fallen by so much.")
    ] = None,
    levels: Annotated[str | None, typer.Option(help="FIRST,LAST: sweep only these levels of one perturbation.")] = None,
    curvature: Annotated[str, typer.Option(help='A number for levels from 0 to 1, or "auto".')] = "auto",
    narrowest: Annotated[
        float | None, typer.Option(help='Find every dip so wide, as a share of the span ("auto" only).')
    ] = None,
    points: Annotated[int, typer.Option(help="The span over this is the smallest distance of levels.")] = 1024,
    method: Annotated[
        str,
        typer.Option(
            help="asap, uniform, quad or random.", autocompletion=completion.among("asap", "uniform", "quad", "random")
        ),
    ] = "asap",
    arity: ArityOption = None,
    combine: CombineOption = None,
    plot: Annotated[Path | None, typer.Option(help="Draw each curve, .png or .jpg.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run file; default: the spec's name.db.")] = None,
    workers: WorkersOption = None,
    as_json: Json = False,
) -> None:
    """Sweep a perturbation's continuous level; the same command continues an interrupted sweep."""
    from testifai.runs.store import Store
    from testifai.session import assembly
    from testifai.spec.parsing import read

    if drops and threshold:
        raise InputError("--drops: severities are placed by drops, not by thresholds; leave out --threshold")
    if drops and (arity or combine):
        raise InputError("--drops: severities are placed for a model alone; leave out --arity and --combine")
    read_spec = with_workers(read(spec), workers)
    folder = spec.resolve().parent
    say_code(read_spec)
    chosen = _chosen(read_spec, folder, perturbation)
    ends = _ends(levels, len(chosen))
    options: Record = {
        "levels": ends,
        "curvature": _curvature(curvature),
        "points": points,
        "narrowest": narrowest,
    }
    if not drops:
        options |= {"threshold": threshold or [0.8], "method": method}
    subject = _Subject(assembly.load(read_spec, folder))
    if arity or combine:
        chosen = subject.compose(chosen, arity or 2, None if combine is None else own_function(combine, "--combine"))
    path = out or spec.with_suffix(".db")
    found: Record = {}
    with Store.create_or_open(path) as store:
        for axis, one in chosen.items():
            found[axis] = subject.swept(store, axis, one, options, drops)
    drawn = _draw(plot, found) if plot is not None else []
    if as_json:
        facts = {axis: _facts(result) for axis, result in found.items()}
        print_json({"run": str(path), "sweeps": facts, "plots": [str(one) for one in drawn]})
        return
    _show(found, path, drawn)


class _Subject:
    """A spec's model and data, loaded once for all sweeps."""

    def __init__(self, parts: LoadedParts) -> None:
        self.model, self.data = parts.model, parts.data
        names = ("oracle", "batch_size", "seed", "workers", "executor")
        self.options: Record = {name: getattr(parts.options, name) for name in names}
        self.population = parts.options.population

    def compose(self, chosen: Record, arity: int, combine: Any) -> Record:
        """Sweep a system of parts in place of the model: its perturbations for those chosen."""
        from testifai.locality.composite import composite

        system = composite(self.model, self.data, combine, arity, seed=self.options["seed"])
        self.model, self.data = system.model, system.data
        return {axis: system.under(one) for axis, one in chosen.items()}

    def swept(self, store: Any, axis: str, perturbation: Any, options: Record, drops: Any) -> Any:
        """The sweeps of one perturbation, or its table of severities."""
        from testifai.sweeps import calibrate, sweep_model
        from testifai.sweeps.storage import SweepRecord

        record = SweepRecord(store, perturbation.name, self._identity(perturbation))
        keywords = {**self.options, **options, "recorded": list(record.batches())}
        try:
            with record.saving(), _progress(axis) as step:

                def keep(measured: Any) -> None:
                    record.add(measured)
                    step(measured)

                if drops:
                    return calibrate(self.model, self.data, perturbation, drops, on_batch=keep, **keywords)
                found = sweep_model(
                    self.model, self.data, perturbation, population=self.population, on_batch=keep, **keywords
                )
        except KeyboardInterrupt:
            raise Stopped(f"stopped: what was measured is in {store.path}; the same command continues") from None
        record.finish(found)
        return found

    def _identity(self, perturbation: Any) -> Record:
        """All that decides the outcomes at a level."""
        from testifai.identity.input_hashes import CODE, own_code
        from testifai.session.compatibility import judged

        _, oracle = judged(self.model, self.data, self.options["oracle"])
        code = own_code({perturbation.name: perturbation}, oracle)
        return {
            **({CODE: code} if code else {}),
            "model": self.model.fingerprint,
            "preprocessing": self.model.preprocessing,
            "data": self.data.fingerprint,
            "oracle": oracle.describe(),
            "perturbation": perturbation.name,
            "seed": self.options["seed"],
        }


def _chosen(spec: Any, folder: Path, asked: list[str] | None) -> Record:
    """The perturbations to sweep, by the name of their axis or their own."""
    from testifai import perturb
    from testifai.session import assembly

    axes = {name: assembly.axis(name, part, folder) for name, part in spec.axes().items()}
    if asked:
        return {name: axes[name] if name in axes else perturb.get(name) for name in asked}
    chosen = {name: one for name, one in axes.items() if one.levels is not None}
    for name in axes.keys() - chosen.keys():
        say(f"note: {name} ({axes[name].name}) has no continuous level and is left out", err=True)
    if not chosen:
        raise InputError(
            "space: no axis has a continuous level; name a perturbation that has one with --perturbation, "
            "such as classic.gaussian_noise"
        )
    return chosen


def _ends(text: str | None, count: int) -> tuple[float, float] | None:
    if text is None:
        return None
    if count > 1:
        raise InputError(f"--levels: {text!r} for {count} perturbations; name one with --perturbation")
    try:
        first, last = (float(end) for end in text.split(","))
    except ValueError:
        raise InputError(f"--levels: expected FIRST,LAST such as 0,0.3, got {text!r}") from None
    return first, last


def _curvature(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise InputError(f'--curvature: expected a number or "auto", got {text!r}') from None


@contextmanager
def _progress(axis: str) -> Iterator[Callable[[Any], None]]:
    """How many levels and inferences so far: how many there will be is not known beforehand."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from testifai.support.formatting import printable

    levels, inferences, axis = set(), 0, printable(axis)
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{axis}: begins", total=None)

        def step(measured: Any) -> None:
            nonlocal inferences
            levels.add(measured.level)
            inferences += len(measured.passed) if measured.level is not None else len(measured.reference)
            progress.update(task, description=f"{axis}: {len(levels):,} levels, {inferences:,} inferences")

        yield step


def _draw(plot: Path, found: Record) -> list[Path]:
    """A picture for every sweep; more than one are told apart by their names."""
    sweeps = [(axis, one) for axis, result in found.items() for one in _sweeps(result)]
    drawn = []
    for axis, one in sweeps:
        path = plot if len(sweeps) == 1 else plot.with_stem(f"{plot.stem}-{axis}-{one.threshold:.3g}")
        one.plot(path)
        drawn.append(path)
    return drawn


def _sweeps(result: Any) -> Any:
    return result if isinstance(result, tuple) else result.sweeps


def _facts(result: Any) -> Any:
    return [one.as_dict() for one in result] if isinstance(result, tuple) else result.as_dict()


def _show(found: Record, path: Path, drawn: list[Path]) -> None:
    from testifai.present import terminal

    console = terminal.console()
    swept = {axis: result for axis, result in found.items() if isinstance(result, tuple)}
    if swept:
        console.print(terminal.sweeps(swept))
    for axis, result in found.items():
        if axis not in swept:
            console.print(terminal.calibrated(axis, result))
            levels = ", ".join(f"{float(level):.6g}" for level in result.severities[1:])
            # A name of a suite has a dot, which the name of an axis must not have.
            own = axis.rpartition(".")[2]
            line = f'{own} = {{ use = "{result.name}", levels = [{levels}] }}   # for [space]'
            console.print(line, markup=False, soft_wrap=True)
    for one in drawn:
        console.print(f"Wrote {one}", markup=False)
    console.print(f"Saved in {path}", markup=False, soft_wrap=True)
