"""`testifai errors`: why a model fails, as trends ranked by what fixing them would give."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from testifai.commands import completion
from testifai.commands.common import ArityOption, CombineOption, Json, Stopped, own_function, print_json, say, say_code
from testifai.errors import InputError
from testifai.support.types import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from testifai.locality.local import Local
    from testifai.locality.pairs import Agreement
    from testifai.locality.summary import Explanation
    from testifai.space import Space

Measured = TypeVar("Measured")
NO_SYSTEM = "--measured: there is no system to measure; give --arity or --combine"


def errors(
    source: Annotated[
        Path,
        typer.Argument(
            help="A run file with predicted classes, or a spec to measure.",
            metavar="RUN.db|SPEC.toml",
            autocompletion=completion.files(".db", ".toml"),
        ),
    ],
    arity: ArityOption = None,
    combine: CombineOption = None,
    given: Annotated[
        list[str] | None,
        typer.Option(help="Instead: what follows from this by the Bayesian network, such as class=5,property=noise."),
    ] = None,
    measured: Annotated[
        int | None,
        typer.Option(min=1, help="With a spec: also measure the system, on so many combinations of fresh inputs."),
    ] = None,
    confidence: Annotated[bool, typer.Option(help="Also how sure the model is, by class.")] = False,
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
    from testifai.present import errors_text
    from testifai.session.stored_runs import open_run

    _check_name("--html", html, ".html", ".htm")
    _check_name("--failures", failures, ".npz")
    _check_options(source, {"--per-class": per_class, "--out": out, "--measured": measured}, {"--spec": spec})
    asked = _read_given(given)
    if asked:
        others = {"--html": html, "--failures": failures, "--measured": measured, "--confidence": confidence or None}
        _check_unused("--given", others)
    if measured is not None and (arity or 1) == 1 and combine is None:
        raise InputError(NO_SYSTEM)
    function = None if combine is None else own_function(combine, "--combine")
    from_spec = source.suffix == ".toml"
    run_file = (out or source.with_suffix(".local.db")) if from_spec else source
    subject = _Subject.of(source) if from_spec else None
    local = None if subject is None else subject.local(run_file, per_class or 200)
    run = open_run(run_file)
    local = from_run(run) if local is None else local
    parts = arity or (1 if function is None else 2)
    written: Record = {"run": str(run_file)}
    if asked:
        _answer(local, asked, {"combine": function, "arity": arity}, written, as_json=as_json)
        return
    # The space is as the run file describes it: names and parameters, no code.
    found = explain(local, function, parts, properties=run.space)
    agreement = None
    if measured is not None:
        assert subject is not None
        agreement = subject.agreement(found, function, measured, run_file)
        written["measured"] = agreement.as_dict()
    if html is not None:
        from testifai.report.error_page import render
        from testifai.support.files import write_bytes

        write_bytes(html, render(found, run_file.name).encode())
        written["html"] = str(html)
    if failures is not None:
        from testifai.locality.explain import export_failures
        from testifai.session import stored_runs

        data, space = stored_runs.source(run, source if from_spec else spec).data()
        written |= {"failures": str(failures), "rows": export_failures(found, data, space, failures)}
    if as_json:
        print_json({**found.as_dict(), **written})
        return
    errors_text.show(found, top, agreement, by_class=confidence)
    if html is not None:
        say(f"Wrote {html}")
    if failures is not None:
        say(f"Wrote {written['rows']:,} failing inputs to {failures}")


@dataclass(frozen=True)
class _Subject:
    """What a spec says is to be tested, loaded once; what a run file holds already is not measured again."""

    model: Any
    data: Any
    space: Space
    seed: int
    options: Record
    about: Record

    @classmethod
    def of(cls, spec: Path) -> _Subject:
        from testifai.session import assembly
        from testifai.session.provenance import about
        from testifai.spec.parsing import read

        loaded = read(spec)
        say_code(loaded)
        folder = spec.resolve().parent
        parts = assembly.load(loaded, folder)
        return cls(
            parts.model,
            parts.data,
            _each_alone(assembly.space(loaded, folder)),
            loaded.scan.seed,
            {"batch_size": loaded.scan.batch_size, "workers": loaded.scan.workers},
            about(loaded, folder, parts.data),
        )

    def local(self, run_file: Path, per_class: int) -> Local:
        """The local robustness on the spec's axes, each by itself."""
        from testifai.locality.measure import local

        def measure(show: Any) -> Local:
            return local(
                self.model, self.data, self.space, per_class, self.seed, run_file, progress=show, **self.options
            )

        return self._kept(measure, run_file)

    def agreement(self, found: Explanation, combine: Any, pairs: int, run_file: Path) -> Agreement:
        """The system's robustness on inputs that the prediction does not rest on, beside it."""
        from testifai.locality.pairs import agreement, composed

        predicted = found.composed
        if predicted is None or found.local.sampled is None:
            raise InputError(NO_SYSTEM)
        arity, fresh, ids = predicted.setting.system.arity, _beside(run_file), found.local.sampled.ids

        def measure(show: Any) -> Agreement:
            seen = composed(
                self.model, self.data, self.space, combine, arity, pairs=pairs, exclude=ids, seed=self.seed,
                store=fresh, progress=show, **self.options,
            )  # fmt: skip
            return agreement(predicted, seen)

        return self._kept(measure, fresh)

    def _kept(self, measure: Callable[[Any], Measured], run_file: Path) -> Measured:
        """Measure into a run file that says where it comes from; an interrupt loses nothing."""
        from testifai.runs import keys, trusted_runs
        from testifai.runs.store import Store
        from testifai.support.progress import bar

        try:
            with bar() as show:
                found = measure(show)
        except KeyboardInterrupt:
            raise Stopped(f"stopped: what was measured is in {run_file}; the same command continues") from None
        with Store.create_or_open(run_file) as store:
            # Gates are about all inputs, and these are only those that the model gets right.
            store.put(**{**self.about, keys.GATES: []})
            trusted_runs.remember(store)
        return found


def _beside(run_file: Path) -> Path:
    """The run file of fresh inputs, whose answers are combined."""
    return run_file.with_name(f"{run_file.name.removesuffix('.db').removesuffix('.local')}.composed.db")


def _answer(local: Local, given: dict[str, str], system: Record, written: Record, *, as_json: bool) -> None:
    """What the network makes of what is given."""
    from testifai.locality.network import Network
    from testifai.present import errors_text

    network = Network.of(local, **system)
    beliefs = network.beliefs(given=given)
    if as_json:
        print_json({"given": given, "beliefs": [one.as_dict() for one in beliefs], "notes": network.notes, **written})
        return
    errors_text.show_beliefs(given, beliefs, network.notes)


def _read_given(texts: list[str] | None) -> dict[str, str]:
    """Variables and their states from NAME=STATE,NAME=STATE; a comma within a state is one that no name follows."""
    given: dict[str, str] = {}
    for part in (part for text in texts or () for part in re.split(r",(?=\s*\w+\s*=)", text)):
        name, equals, state = (word.strip() for word in part.partition("="))
        if not (name and equals and state):
            raise InputError(f"--given: {part!r} is not accepted; NAME=STATE is, such as class=5,property=noise")
        if given.setdefault(name, state) != state:
            raise InputError(f"--given: {name} is both {given[name]} and {state}; give it once")
    return given


def _check_unused(option: str, others: Record) -> None:
    """Refuse options that would be ignored beside another."""
    for other, value in others.items():
        if value is not None:
            raise InputError(
                f"{other}: does not go with {option}, which prints the network's answer alone; leave it out"
            )


def _each_alone(space: Space) -> Space:
    """The spec's axes where the order of application cannot count."""
    from testifai.space import Space

    return Space({axis.name: (axis.perturbation, axis.levels or axis.severities) for axis in space.axes})


def _check_options(source: Path, of_specs: Record, of_runs: Record) -> None:
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
