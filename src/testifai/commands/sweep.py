"""`testifai sweep`: the share of a continuous level at which a model's accuracy is high enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import common, completion
from testifai.errors import InputError
from testifai.support.progress import note, status
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.data import Data
    from testifai.models import Model
    from testifai.perturb import Perturbation
    from testifai.runs.store import Store
    from testifai.spec.parsing import Spec
    from testifai.sweeps.calibrate import Calibrated
    from testifai.sweeps.probe import SweepBatch
    from testifai.sweeps.result import Sweep

    Result = tuple[Sweep, ...] | Calibrated


def sweep(
    spec: common.SpecFile,
    perturbation: Annotated[
        list[str] | None,
        typer.Option(
            "--perturbation",
            "-p",
            help="Axis of the spec, or a perturbation's name. Repeatable [default: all axes with a level].",
            autocompletion=completion.perturbations,
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option("--threshold", "-t", help="Accuracy to reach. Repeatable [default: 0.8].")
    ] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Place severities at given accuracy drops.")] = False,
    drops: Annotated[
        list[float] | None,
        typer.Option(help="Accuracy drop. Repeatable [default: 0.01 0.05 0.1 0.2 0.4] (needs --calibrate)."),
    ] = None,
    levels: Annotated[
        str | None, typer.Option(help="Range of one perturbation to sweep [default: all].", metavar="FIRST,LAST")
    ] = None,
    curvature: Annotated[str, typer.Option(help='Number for levels from 0 to 1, or "auto".')] = "auto",
    narrowest: Annotated[
        float | None, typer.Option(help='Width of the narrowest dip to find, as a share of the span ("auto" only).')
    ] = None,
    points: Annotated[int, typer.Option(help="Number of the smallest steps between levels in the span.")] = 1024,
    method: Annotated[
        str | None,
        typer.Option(
            help="asap, uniform, quad or random [default: asap].",
            autocompletion=completion.among("asap", "uniform", "quad", "random"),
        ),
    ] = None,
    arity: common.ArityOption = None,
    combine: common.CombineOption = None,
    plot: Annotated[Path | None, typer.Option(help="Draw each curve, .png or .jpg.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run file [default: SPEC.db].")] = None,
    workers: common.WorkersOption = None,
    as_json: common.Json = False,
) -> None:
    """Find the range of a level a model tolerates.

    The same command resumes an interrupted sweep. With --calibrate it prints a line for the spec.
    """
    from testifai import sweeps
    from testifai.runs.store import Store
    from testifai.session import assembly
    from testifai.sweeps.calibrate import DROPS

    common.needs("--calibrate", calibrate, {"--drops": drops})
    of_sweeps = {"--threshold": threshold, "--method": method, "--arity": arity, "--combine": combine}
    common.exclude("--calibrate", calibrate, of_sweeps)
    loaded, folder = common.with_workers(common.read_spec(spec), workers), spec.resolve().parent
    chosen = _chosen(loaded, folder, perturbation)
    ends = _ends(levels, len(chosen))
    try:
        curve = curvature if curvature == "auto" else float(curvature)
    except ValueError:
        raise InputError(f'--curvature: expected a number or "auto", got {curvature!r}') from None
    options: Record = {"levels": ends, "curvature": curve, "points": points, "narrowest": narrowest}
    if calibrate:
        options["drops"] = drops or DROPS
    else:
        options |= {"threshold": threshold or [0.8], "method": method or "asap", "population": loaded.scan.population}
    parts = assembly.load(loaded, folder)
    model, data = parts.model, parts.data
    settings = {name: getattr(parts.options, name) for name in ("oracle", "batch_size", "seed", "workers", "executor")}
    if arity or combine:
        from testifai.locality.composite import composite

        function = common.user_function(combine, "--combine")
        system = composite(model, data, function, arity or 2, seed=settings["seed"])
        model, data = system.model, system.data
        chosen = {axis: system.under(one) for axis, one in chosen.items()}
    measure: Callable[..., Result] = sweeps.calibrate if calibrate else sweeps.sweep_model
    path = out or spec.with_suffix(".db")
    with Store.create_or_open(path) as store:
        found = {
            axis: _recorded(
                store, axis, one.name, _identity(model, data, one, settings),
                partial(measure, model, data, one, **settings, **options),
            )
            for axis, one in chosen.items()
        }  # fmt: skip
    drawn = [] if plot is None else _draw(plot, found)
    if as_json:
        facts = {
            axis: [one.as_dict() for one in result] if isinstance(result, tuple) else result.as_dict()
            for axis, result in found.items()
        }
        common.print_json({"run": str(path), "sweeps": facts, "plots": [str(one) for one in drawn]})
    else:
        _show(found, path, drawn)


def _recorded(store: Store, axis: str, name: str, identity: Record, measure: Callable[..., Result]) -> Result:
    """Measure and save every batch, with a line that counts levels and inferences; their total is unknown."""
    from testifai.sweeps.storage import SweepRecord

    record = SweepRecord(store, name, identity)
    levels, trials = set[float | None](), 0

    def keep(measured: SweepBatch) -> None:
        nonlocal trials
        record.add(measured)
        outcomes = measured.reference if measured.level is None else measured.passed
        levels.add(measured.level)
        trials += 0 if outcomes is None else len(outcomes)
        note(f"{axis}: {len(levels):,} levels, {trials:,} inferences")

    try:
        with record.saving(), status():
            note(f"{axis}: begins")
            found = measure(on_batch=keep, recorded=list(record.batches()))
    except KeyboardInterrupt:
        raise common.Stopped(f"stopped: what was measured is in {store.path}; the same command continues") from None
    if isinstance(found, tuple):
        record.finish(list(found))
    return found


def _identity(model: Model, data: Data, perturbation: Perturbation, settings: Record) -> Record:
    from testifai.identity.run_identity import CODE, own_code
    from testifai.session.compatibility import judged

    _, oracle = judged(model, data, settings["oracle"])
    code = own_code({perturbation.name: perturbation}, oracle)
    return {
        **({CODE: code} if code else {}),
        "model": model.fingerprint,
        "preprocessing": model.preprocessing,
        "data": data.fingerprint,
        "oracle": oracle.describe(),
        "perturbation": perturbation.name,
        "seed": settings["seed"],
    }


def _chosen(spec: Spec, folder: Path, asked: list[str] | None) -> dict[str, Perturbation]:
    """Return the perturbations to sweep, by the name of their axis or their own."""
    from testifai import perturb
    from testifai.session import assembly

    axes = {name: assembly.axis(name, part, folder) for name, part in spec.axes().items()}
    if asked:
        return {name: axes[name] if name in axes else perturb.get(name) for name in asked}
    chosen = {name: one for name, one in axes.items() if one.levels is not None}
    for name in axes.keys() - chosen.keys():
        common.say(f"note: {name} ({axes[name].name}) has no continuous level and is left out", err=True)
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


def _draw(plot: Path, found: dict[str, Result]) -> list[Path]:
    """Draw a figure for every sweep; several get the axis and the threshold in their names."""
    listed = {axis: result if isinstance(result, tuple) else result.sweeps for axis, result in found.items()}
    sweeps = [(axis, one) for axis, result in listed.items() for one in result]
    drawn = []
    for axis, one in sweeps:
        path = plot if len(sweeps) == 1 else plot.with_stem(f"{plot.stem}-{axis}-{one.threshold:.3g}")
        one.plot(path)
        drawn.append(path)
    return drawn


def _show(found: dict[str, Result], path: Path, drawn: list[Path]) -> None:
    from testifai.present import terminal

    console = terminal.console()
    swept = {axis: result for axis, result in found.items() if isinstance(result, tuple)}
    if swept:
        console.print(terminal.sweeps(swept))
    for axis, result in found.items():
        if not isinstance(result, tuple):
            console.print(terminal.calibrated(axis, result))
            levels = ", ".join(f"{float(level):.6g}" for level in result.severities[1:])
            # The name of a suite's perturbation contains a dot, which the name of an axis must not.
            own = axis.rpartition(".")[2]
            line = f'{own} = {{ use = "{result.name}", levels = [{levels}] }}   # for [space]'
            console.print(line, markup=False, soft_wrap=True)
    for one in drawn:
        console.print(f"Wrote {one}", markup=False)
    console.print(f"Saved in {path}", markup=False, soft_wrap=True)
