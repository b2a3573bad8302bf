"""`testifai errors`: why a model fails, as trends ranked by what fixing them would give."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testifai.commands import common, completion
from testifai.errors import InputError
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.locality.local import Local
    from testifai.locality.pairs import Agreement
    from testifai.locality.summary import Explanation
    from testifai.session.hunting import Hunt
    from testifai.space import Space
    from testifai.support.progress import Step

NO_SYSTEM = "--measured: there is no system to measure; give --arity or --combine"


def errors(
    source: Annotated[
        Path,
        typer.Argument(
            help="Run file with predicted classes, or spec to measure.",
            metavar="RUN.db|SPEC.toml",
            autocompletion=completion.files(".db", ".toml"),
        ),
    ],
    arity: common.ArityOption = None,
    combine: common.CombineOption = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="Print instead what follows from this by the Bayesian network, such as class=5,property=noise. "
            "Repeatable."
        ),
    ] = None,
    measured: Annotated[
        int | None,
        typer.Option(min=1, help="Also test such a system on N combinations of fresh inputs (needs a spec)."),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Print how confident the model is, by class.")
    ] = False,
    per_class: Annotated[
        int | None, typer.Option("--per-class", min=1, help="Inputs of each class [default: 200] (needs a spec).")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of trends to print.")] = 10,
    html: Annotated[Path | None, typer.Option(help="Write a page with figures, .html.")] = None,
    failures: Annotated[
        Path | None,
        typer.Option(help="Write the failing inputs, .npz to train on; for --hunt a .csv [default: RUN-failures.csv]."),
    ] = None,
    hunt: Annotated[
        int | None, typer.Option(help="Search for failing inputs with N inferences (needs a run file).")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Tests to search, such as: severity <= 3 [default: all] (needs --hunt).")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Find one failure per input (needs --hunt).")] = False,
    spec: common.SpecOption = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Run file [default: SPEC.local.db] (needs a spec).")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Explain failures and suggest training data.

    Ranks which class fails, under what, from which severity, and read as what. With a spec, inputs of each class that
    the model gets right are tested under each axis alone; the same command resumes. A run file of that, or of a run
    with keep = ["predicted"], is read without testing anything.
    """
    from_spec = source.suffix == ".toml"
    common.needs("--hunt", hunt, {"--region": region, "--once": once})
    common.needs("a spec", from_spec, {"--per-class": per_class, "--out": out, "--measured": measured})
    common.needs("a run file", not from_spec, {"--spec": spec, "--hunt": hunt})
    prints = {"--html": html, "--measured": measured, "--confidence": confidence}
    common.exclude("--hunt", hunt, {**prints, "--arity": arity, "--combine": combine, "--given": given})
    common.exclude("--given", given, {**prints, "--failures": failures})
    common.check_file("--html", html, ".html", ".htm")
    common.check_file("--failures", failures, ".npz" if hunt is None else ".csv")
    if hunt is not None:
        _hunt(source, failures or source.with_name(f"{source.stem}-failures.csv"), hunt, region, once, spec, as_json)
        return
    known = _read_given(given)
    if measured is not None and (arity or 1) == 1 and combine is None:
        raise InputError(NO_SYSTEM)
    function = common.user_function(combine, "--combine")
    run_file = (out or source.with_suffix(".local.db")) if from_spec else source
    from testifai.locality.measure import from_run
    from testifai.present import errors_text

    measurement = _LocalMeasurement(source) if from_spec else None
    local = from_run(run_file) if measurement is None else measurement.local(run_file, per_class or 200)
    if known:
        from testifai.locality.network import Network

        network = Network.of(local, combine=function, arity=arity)
        beliefs = network.beliefs(given=known)
        if as_json:
            states = [one.as_dict() for one in beliefs]
            common.print_json({"given": known, "beliefs": states, "notes": network.notes, "run": str(run_file)})
        else:
            errors_text.show_beliefs(known, beliefs, network.notes)
        return
    from testifai.locality.explain import explain
    from testifai.session import stored_runs

    run = stored_runs.open_run(run_file)
    # The space is as the run file describes it: names and parameters, no code.
    found = explain(local, function, arity or (1 if function is None else 2), properties=run.space)
    written: Record = {"run": str(run_file)}
    agreement = None
    if measured is not None and measurement is not None:
        agreement = measurement.agreement(found, function, measured, run_file)
        written["measured"] = agreement.as_dict()
    if html is not None:
        from testifai.report.page import render_errors
        from testifai.support.files import write_bytes

        write_bytes(html, render_errors(found, run_file.name).encode())
        written["html"] = str(html)
    if failures is not None:
        from testifai.locality.explain import export_failures

        data, space = stored_runs.source(run, source if from_spec else spec).data()
        written |= {"failures": str(failures), "rows": export_failures(found, data, space, failures)}
    if not as_json:
        errors_text.show(found, top, agreement, by_class=confidence)
    lines = [] if html is None else [f"Wrote {html}"]
    lines += [] if failures is None else [f"Wrote {written['rows']:,} failing inputs to {failures}"]
    common.answer(as_json, {**found.as_dict(), **written}, *lines)


class _LocalMeasurement:
    """The model and data of a spec, loaded once; what a run file contains already is not measured again."""

    def __init__(self, path: Path) -> None:
        from testifai.session import assembly
        from testifai.session.stored_runs import about
        from testifai.space import Space

        spec, folder = common.read_spec(path), path.resolve().parent
        parts, space = assembly.load(spec, folder), assembly.space(spec, folder)
        self.model, self.data = parts.model, parts.data
        # Each axis is tested alone, so the order of application does not matter.
        self.space = Space({axis.name: (axis.perturbation, axis.levels or axis.severities) for axis in space.axes})
        self.options: Record = {name: getattr(spec.scan, name) for name in ("seed", "batch_size", "workers")}
        self.about = about(spec, folder, parts.data)

    def local(self, run_file: Path, per_class: int) -> Local:
        from testifai.locality.measure import local

        with self._recorded(run_file) as show:
            return local(self.model, self.data, self.space, per_class, store=run_file, progress=show, **self.options)

    def agreement(
        self, found: Explanation, combine: Callable[..., Any] | None, pairs: int, run_file: Path
    ) -> Agreement:
        """Measure the system on fresh inputs and compare it with the prediction."""
        from testifai.locality.pairs import agreement, composed

        predicted = found.composed
        if predicted is None or found.local.sampled is None:
            raise InputError(NO_SYSTEM)
        arity, ids = predicted.setting.system.arity, found.local.sampled.ids
        fresh = run_file.with_name(f"{run_file.name.removesuffix('.db').removesuffix('.local')}.composed.db")
        with self._recorded(fresh) as show:
            seen = composed(
                self.model, self.data, self.space, combine, arity, pairs=pairs, exclude=ids, store=fresh,
                progress=show, **self.options,
            )  # fmt: skip
            return agreement(predicted, seen)

    @contextmanager
    def _recorded(self, run_file: Path) -> Iterator[Callable[[Step], None]]:
        """Show the progress of a measurement, then record its origin in the run file; an interrupt loses nothing."""
        from testifai.runs import keys, trusted_runs
        from testifai.runs.store import Store
        from testifai.support.progress import bar

        try:
            with bar() as show:
                yield show
        except KeyboardInterrupt:
            raise common.Stopped(f"stopped: what was measured is in {run_file}; the same command continues") from None
        with Store.create_or_open(run_file) as store:
            # Gates are about all inputs, and these are only those that the model gets right.
            store.put(**{**self.about, keys.GATES: []})
            trusted_runs.remember(store)


def _read_given(texts: list[str] | None) -> dict[str, str]:
    """Parse NAME=STATE,NAME=STATE; a comma that no name follows belongs to the state."""
    given: dict[str, str] = {}
    for part in (part for text in texts or () for part in re.split(r",(?=\s*\w+\s*=)", text)):
        name, equals, state = (word.strip() for word in part.partition("="))
        if not (name and equals and state):
            raise InputError(f"--given: {part!r} is not accepted; NAME=STATE is, such as class=5,property=noise")
        if given.setdefault(name, state) != state:
            raise InputError(f"--given: {name} is both {given[name]} and {state}; give it once")
    return given


def _hunt(
    run_file: Path, out: Path, budget: int, region: str | None, once: bool, spec: Path | None, as_json: bool
) -> None:
    """Run the trials that are most likely to fail; the run file and its estimates are unchanged."""
    from testifai.session import hunting
    from testifai.session.stored_runs import open_measured
    from testifai.support.files import write_bytes
    from testifai.support.progress import status

    tomogram = open_measured(run_file)
    session = common.reopened(tomogram, spec)
    with status():
        found = hunting.hunted(tomogram, hunting.running(session), budget, region, once=once)
    write_bytes(out, _failures_table(tomogram.space, found).encode())
    failures, failing, spent = len(found.tests), len(found.failing_inputs), found.inferences
    curve = [dict(zip(("inferences", "failures", "inputs"), point, strict=True)) for point in found.curve]
    common.answer(
        as_json,
        {"inferences": spent, "failures": failures, "inputs": failing, "curve": curve, "file": str(out)},
        f"{failures:,} failures of {failing:,} inputs in {spent:,} inferences; written to {out}",
        "these inputs were chosen for failing: rates among them say nothing of others, and the run's stay as they are",
    )


def _failures_table(space: Space, found: Hunt) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    places = [f"{name}_place" for name in space.names] if space.order_sensitive else []
    writer.writerow(["input", *space.names, *places, "probability"])
    rows = space.matrix(found.tests).tolist()
    for number, severities, chance in zip(found.inputs.tolist(), rows, found.probability.tolist(), strict=True):
        writer.writerow([number, *severities, f"{chance:.4f}"])
    return buffer.getvalue()
