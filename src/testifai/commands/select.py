"""`testifai select`: which inputs to label, where only few can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from testifai.commands import completion
from testifai.commands.common import Json, SpecFile, WorkersOption, print_json, say, say_code, with_workers
from testifai.errors import InputError
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.operational.rounds import Written
    from testifai.operational.selection import LabelSelection


def select(
    spec: SpecFile,
    tests: Annotated[int, typer.Option("--tests", "-n", help="How many labels can be paid for.")] = 200,
    technique: Annotated[
        str,
        typer.Option(
            help="balanced, srs, css, ces, confidence, dsa, lsa or combined.", autocompletion=completion.techniques
        ),
    ] = "balanced",
    out: Annotated[Path, typer.Option("-o", "--out", help="The file to fill in; never overwritten.")] = Path(
        "to_label.csv"
    ),
    balance: Annotated[
        float | None, typer.Option(help="With balanced: from 0, the best estimate, to 1, the most failures.")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="With confidence, dsa, lsa, combined: risk counts above this; q0.9: of the riskiest tenth."),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="With the same four: the share of draws made by risk, or auto; default 0.8."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="With dsa, lsa, combined: the inputs the model was trained on.")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="The layer to take traces from; default: the features.")] = None,
    classes: Annotated[
        str | None, typer.Option(help="Names of the classes: with commas, or a file with one a line.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="A file filled in before: its labels are kept where they fit.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Default: the spec's.")] = None,
    workers: WorkersOption = None,
    as_json: Json = False,
) -> None:
    """Choose which inputs to label: a table with an empty label column, and a sheet of the images.

    The data need no labels. Where the technique wants to see labels before it asks for more, the same command writes
    the next round once the first is filled in.
    """
    from testifai.operational import rounds, selection
    from testifai.session import assembly
    from testifai.spec.parsing import read

    rounds.check_out(out)
    options = {"balance": balance, "threshold": _number_or_word(threshold), "share": _number_or_word(share)}
    described = {"use": technique, **{name: value for name, value in options.items() if value is not None}}
    selection.make_technique(described)
    names = None if classes is None else _names(classes)
    loaded = with_workers(read(spec), workers)
    say_code(loaded)
    folder = spec.resolve().parent
    seed = loaded.scan.seed if seed is None else seed
    parts = assembly.load(loaded, folder)
    model, data = parts.model, parts.data
    labels = {} if known is None else _known(known, data)
    if out.exists():
        collected = rounds.continued(out, described, tests, seed, model, data)
        written = rounds.write_next(collected, data, out, labels)
        chosen = collected.selection
    else:
        with _bar() as show:
            chosen = selection.choose(
                model, data, technique=described, tests=tests, seed=seed, classes=names,
                training=None if train is None else _training(train), layer=layer, progress=show,
                workers=loaded.scan.workers, executor=loaded.scan.executor,
            )  # fmt: skip
        written = rounds.write_first(chosen, data, out, labels)
    if as_json:
        print_json(_facts(written, chosen))
    else:
        _say(written, chosen, out)


def _number_or_word(text: str | None) -> float | str | None:
    """A number where the text is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _known(path: Path, data: Any) -> dict[int, int]:
    from testifai.operational.rounds import collect
    from testifai.operational.selection import data_fingerprint

    earlier = collect([path])
    if earlier.selection.data != data_fingerprint(data):
        raise InputError(f"known: {path} was selected from other data; labels fit only the data they were given for")
    return earlier.labels


def _training(path: Path) -> Any:
    from testifai import data

    return data.load(data.recognise(path), path)


def _names(text: str) -> tuple[str, ...]:
    path = Path(text)
    try:
        listed = path.read_text("utf-8-sig").splitlines() if path.is_file() else text.split(",")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"classes: cannot read {path} ({error})") from None
    names = tuple(name.strip() for name in listed if name.strip())
    if len(names) < 2:
        raise InputError(f"classes: {text!r} is neither a file nor names with commas, such as cat,dog")
    return names


def _facts(written: Written, chosen: LabelSelection) -> Record:
    return {
        "out": str(written.path),
        "sheet": None if written.sheet is None else str(written.sheet),
        "round": written.number,
        "rows": written.examples,
        "technique": chosen.technique.name,
        "tests": chosen.tests,
        "size": chosen.frame.size,
        "seed": chosen.seed,
        "selection": chosen.tag,
    }


def _say(written: Written, chosen: LabelSelection, out: Path) -> None:
    of_all = f", round {written.number}" if written.examples < chosen.tests or written.number > 1 else ""
    say(
        f"Wrote {written.examples} of {chosen.frame.size:,} examples to {written.path} "
        f"({chosen.technique.name}, {chosen.tests} labels in all{of_all})"
    )
    if written.sheet is not None:
        say(f"All of them on a sheet, with what the model says: {written.sheet}")
    say(f"Next: testifai label {written.path} (or fill in its column label from the top), then testifai estimate {out}")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error for people; what it yields takes inputs done and inputs in all."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f} inputs"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("select", total=1)
        yield lambda done, total: progress.update(task, completed=done, total=total)
