"""`testifai label`: accuracy from a few labelled inputs: choose them, label them, estimate."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import common, completion
from testifai.errors import InputError
from testifai.support.optional_imports import load
from testifai.support.progress import note, status

if TYPE_CHECKING:
    from testifai.data import Data

PORT = 8051

SelectionOption = Annotated[
    Path | None, typer.Option(help="File .selection.npz that select wrote [default: next to the table].")
]

app = common.group("Estimate accuracy from a few labelled inputs.")


@app.command()
def select(
    spec: common.SpecFile,
    tests: Annotated[int, typer.Option("--tests", "-n", help="Number of labels in total.")] = 200,
    technique: Annotated[
        str,
        typer.Option(
            help="balanced, srs, css, ces, confidence, dsa, lsa or combined.", autocompletion=completion.techniques
        ),
    ] = "balanced",
    out: Annotated[Path, typer.Option("-o", "--out", help="Table to write; never overwritten.")] = Path("to_label.csv"),
    balance: Annotated[
        float | None, typer.Option(help="From 0, the best estimate, to 1, the most failures (balanced only).")
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="Smallest risk that counts; q0.9: the riskiest tenth (confidence, dsa, lsa, combined)."),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(help="Share of draws made by risk, or auto [default: 0.8] (confidence, dsa, lsa, combined)."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Inputs the model was trained on (needed by dsa, lsa, combined).")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer to take traces from [default: the features].")] = None,
    classes: Annotated[
        str | None, typer.Option(help="Names of the classes: with commas, or a file with one per line.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="Table labelled before: its labels are reused where they fit.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed [default: from spec].")] = None,
    workers: common.WorkersOption = None,
    as_json: common.Json = False,
) -> None:
    """Choose inputs to label.

    Writes a table with an empty label column, and a sheet of the images; the data need no labels. If the technique
    needs labels before it requests more, the same command writes the next round once the first is filled in.
    """
    from testifai.data import load as load_data
    from testifai.data import recognise
    from testifai.operational import rounds, selection
    from testifai.session import assembly

    rounds.check_out(out)
    options = {"balance": balance, "threshold": _number_or_word(threshold), "share": _number_or_word(share)}
    described = {"use": technique, **{name: value for name, value in options.items() if value is not None}}
    selection.make_technique(described)
    names = None if classes is None else _names(classes)
    loaded, folder = common.with_workers(common.read_spec(spec), workers), spec.resolve().parent
    seed = loaded.scan.seed if seed is None else seed
    parts = assembly.load(loaded, folder)
    model, data = parts.model, parts.data
    labels = {} if known is None else _known(known, data)
    if out.exists():
        collected = rounds.continued(out, described, tests, seed, model, data)
        written = rounds.write_next(collected, data, out, labels)
        chosen = collected.selection
    else:
        with status():
            chosen = selection.choose(
                model, data, technique=described, tests=tests, seed=seed, classes=names,
                training=None if train is None else load_data(recognise(train), train), layer=layer,
                progress=lambda done, total: note(f"{done:,} of {total:,} inputs"),
                workers=loaded.scan.workers, executor=loaded.scan.executor,
            )  # fmt: skip
        written = rounds.write_first(chosen, data, out, labels)
    of_all = f", round {written.number}" if written.examples < chosen.tests or written.number > 1 else ""
    shown = [] if written.sheet is None else [f"All of them on a sheet, with what the model says: {written.sheet}"]
    common.answer(
        as_json,
        {
            "out": str(written.path),
            "sheet": None if written.sheet is None else str(written.sheet),
            "round": written.number,
            "rows": written.examples,
            "technique": chosen.technique.name,
            "tests": chosen.tests,
            "size": chosen.frame.size,
            "seed": chosen.seed,
            "selection": chosen.tag,
        },
        f"Wrote {written.examples} of {chosen.frame.size:,} examples to {written.path} "
        f"({chosen.technique.name}, {chosen.tests} labels in all{of_all})",
        *shown,
        f"Next: testifai label page {written.path} (or fill in its column label from the top), "
        f"then testifai label estimate {out}",
    )


def _number_or_word(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _known(path: Path, data: Data) -> dict[int, int]:
    from testifai.operational.rounds import collect
    from testifai.operational.selection import data_fingerprint

    earlier = collect([path])
    if earlier.selection.data != data_fingerprint(data):
        raise InputError(f"known: {path} was selected from other data; labels fit only the data they were given for")
    return earlier.labels


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


@app.command()
def page(
    file: Annotated[
        Path,
        typer.Argument(
            help="Table written by testifai label select.", metavar="FILE.csv", autocompletion=completion.files(".csv")
        ),
    ],
    show_prediction: Annotated[
        bool, typer.Option("--show-prediction", help="Show the model's prediction; people tend to agree with it.")
    ] = False,
    show_path: Annotated[
        bool, typer.Option("--show-path", help="Show an input's path; a folder's name is often the answer.")
    ] = False,
    host: common.HostOption = "127.0.0.1",
    port: common.PortOption = PORT,
    browser: common.OpenOption = False,
    selection: SelectionOption = None,
) -> None:
    """Label the chosen inputs in the browser.

    One input after the other, by keys. Every answer is in the file immediately. Ctrl-C ends it.
    """
    if find_spec("flask") is None:
        load("flask", extra="app")  # its error says how to install it
    from testifai.operational.input_previews import KeptInputs
    from testifai.operational.label_file import Filling
    from testifai.operational.rounds import selection_for
    from testifai.runs.lock import Lock

    chosen = selection_for(file, selection)
    lock = Lock(file, "file", "copy the file to a folder of yours")
    try:
        from testifai.app.labelling import Labelling, build
        from testifai.app.server import is_loopback, listen, new_token

        labelling = Labelling(
            Filling(file, chosen.classes), KeptInputs(file, chosen.tag),
            show_prediction=show_prediction, show_path=show_path,
        )  # fmt: skip
        token = new_token()
        server = listen(build(labelling, token), host, port)
        note = None if is_loopback(host) else "other machines can reach this; whoever has the address can label"
        common.serve(
            server, f"Labelling {file} ({labelling.labelled} of {labelling.rows} done)",
            common.address_of(host, server.port, token), note=note, browser=browser,
        )  # fmt: skip
    finally:
        lock.release()
    following = "estimate" if labelling.labelled == labelling.rows else "page"
    common.say(f"{labelling.labelled} of {labelling.rows} labelled. Next: testifai label {following} {file}")


@app.command()
def estimate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Tables filled in; further rounds next to them are found.",
            metavar="FILE.csv",
            autocompletion=completion.files(".csv"),
        ),
    ],
    require: Annotated[
        float | None, typer.Option(help="Accuracy to reach: pass, fail or how many more labels; exit code 1 if not.")
    ] = None,
    selection: SelectionOption = None,
    as_json: common.Json = False,
) -> None:
    """Estimate accuracy from the labels so far.

    With its interval, the failures and the classes that are confused.
    """
    from testifai.operational.answer import answer as estimated
    from testifai.operational.answer import check_require
    from testifai.operational.rounds import collect

    if require is not None:
        check_require(require)
    found = estimated(collect(files, selection), require)
    common.answer(as_json, found.as_dict(), *found.lines(files[0]))
    if found.verdict is not None and not found.verdict.passed:
        raise typer.Exit(1)
