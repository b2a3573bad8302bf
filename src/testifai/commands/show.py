"""`testifai show`: a summary of a run, or one analysis of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import common, completion
from testifai.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from testifai.tomogram import Tomogram


def show(
    run_file: common.RunFile,
    by: Annotated[
        str | None,
        typer.Option(
            help="Print one table only, by: order, axis, severity (their sum), class.",
            autocompletion=completion.among("order", "axis", "severity", "class"),
        ),
    ] = None,
    score: common.Score = None,
    independence: Annotated[bool, typer.Option("--independence", help="Test which perturbations interact.")] = False,
    validity: Annotated[
        bool, typer.Option("--validity", help="Show robustness at several limits on input quality.")
    ] = False,
    values: Annotated[
        str | None, typer.Option("--at", help="Quality limits, such as 0.02,0.06,0.1 (needs --validity).")
    ] = None,
    examples: Annotated[
        Path | None,
        typer.Option(help="Draw inputs at these limits: .png or .jpg, for texts .md or .txt (needs --validity)."),
    ] = None,
    spec: common.SpecOption = None,
    benchmark: Annotated[bool, typer.Option("--benchmark", help="Show mean accuracy and mCE of a suite.")] = False,
    suite: Annotated[
        str | None,
        typer.Option(help="Suite, if the run has several (needs --benchmark).", autocompletion=completion.suites),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Run of the model to divide errors by; ImageNet-C: AlexNet (needs --benchmark).")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Print a summary of a run."""
    from testifai.session.stored_runs import open_measured, open_run
    from testifai.tomogram.run_state import run_state, unfinished

    modes = {"--independence": independence, "--validity": validity, "--benchmark": benchmark}
    chosen = next((mode for mode, active in modes.items() if active), None)
    if chosen is not None:
        common.exclude(
            chosen, True, {"--by": by, "--score": score, **{one: modes[one] for one in modes if one != chosen}}
        )
    common.needs("--validity", validity, {"--at": values, "--examples": examples})
    common.needs("--examples", examples, {"--spec": spec})
    common.needs("--benchmark", benchmark, {"--suite": suite, "--baseline": baseline})
    if chosen is None and by is None:
        tomogram = open_run(run_file).scored(score)
        if (line := unfinished(tomogram)) is not None:
            common.say(line, err=as_json)
        _summary(tomogram, as_json)
        return
    tomogram = common.opened(run_file, as_json=as_json)
    if independence:
        from testifai.tomogram.interactions import analyse, lines

        result = analyse(tomogram)
        common.answer(as_json, {**result.as_dict(), **run_state(tomogram)}, *lines(result))
    elif validity:
        _validity(tomogram, None if values is None else _numbers(values), examples, spec, as_json)
    elif benchmark:
        _benchmark(tomogram, suite, None if baseline is None else open_measured(baseline), as_json)
    else:
        _table(tomogram.scored(score), str(by), as_json)


def _summary(tomogram: Tomogram, as_json: bool) -> None:
    from testifai.identity.run_identity import recorded
    from testifai.present import terminal
    from testifai.session.observers import notes
    from testifai.support.serialization import plain
    from testifai.tomogram.interactions import precedences

    if not as_json:
        with common.composed() as console:
            terminal.summary(console, tomogram)
        return
    found = precedences(tomogram)
    common.print_json(
        {
            **terminal.facts(tomogram),
            **({} if found is None else {"precedences": [one.as_dict() for one in found]}),
            "by_order": plain(tomogram.by_order()),
            "by_severity": plain(tomogram.by_severity()),
            "by_class": plain(tomogram.by_class()),
            "trust": terminal.trust(tomogram),
            "environment": tomogram.provenance["environment"],
            "environments": recorded(tomogram.provenance),
            "notes": notes(tomogram.provenance),
        }
    )


def _table(tomogram: Tomogram, by: str, as_json: bool) -> None:
    from testifai.present import terminal
    from testifai.support.serialization import plain
    from testifai.tomogram.run_state import run_state

    makers: dict[str, tuple[Callable[[Tomogram], Table], Callable[[], object]]] = {
        "order": (terminal.by_order, tomogram.by_order),
        "axis": (terminal.by_axis, tomogram.by_severity),
        "severity": (terminal.by_severity_sum, lambda: tomogram.query_engine.by("severity")),
        "class": (terminal.by_class, tomogram.by_class),
    }
    if by not in makers:
        raise InputError(f"--by: must be one of {', '.join(makers)}, got {by!r}")
    draw, answers = makers[by]
    if not as_json:
        with common.composed() as console:
            console.print(*terminal.folded(console, draw(tomogram)))
        return
    common.print_json({f"by_{by}": plain(answers()), **run_state(tomogram)})


def _validity(
    tomogram: Tomogram, values: list[float] | None, examples: Path | None, spec: Path | None, as_json: bool
) -> None:
    from testifai.present import terminal
    from testifai.present.contact_sheets import write_examples
    from testifai.tomogram import limits
    from testifai.tomogram.run_state import run_state

    scores = limits.scores_of(tomogram)
    wanted = limits.usual_values(scores) if values is None else values
    found = limits.limits(tomogram, wanted)
    if examples is not None:
        write_examples(common.reopened(tomogram, spec).subject, scores, wanted, examples)
    if as_json:
        listed = [{"limit": one.value, "inside": None if one.inside is None else one.inside.as_dict()} for one in found]
        common.print_json(
            {
                "quality": scores.name,
                "limits": listed,
                "examples": None if examples is None else str(examples),
                **run_state(tomogram),
            }
        )
        return
    terminal.validity(terminal.console(), scores, found)
    if examples is not None:
        common.say(f"Wrote {examples}")


def _numbers(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise InputError(f"--at: expected numbers with commas, such as 0.02,0.06; got {text!r}")
    return values


def _benchmark(tomogram: Tomogram, suite: str | None, baseline: Tomogram | None, as_json: bool) -> None:
    from testifai.present import terminal
    from testifai.support.progress import status
    from testifai.tomogram.run_state import run_state

    with status():
        found = tomogram.benchmark(suite, baseline)
    if as_json:
        common.print_json({**found.as_dict(), **run_state(tomogram)})
    else:
        terminal.benchmark(terminal.console(), found)
