"""`testifai export`: a run as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, SpecOption, answer, exclude, needs, read_spec, reopened
from testifai.errors import InputError

if TYPE_CHECKING:
    from testifai.session.session import Session


def export(
    source: Annotated[
        Path,
        typer.Argument(
            help="Run file; for --verifier also a spec.",
            metavar="RUN.db|SPEC.toml",
            autocompletion=completion.files(".db", ".toml"),
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="table.csv, .json, .parquet; .npz for --grid, --boxes, --inputs; folder for --verifier."
        ),
    ],
    grid: Annotated[bool, typer.Option("--grid", help="Every outcome of a full run, as packed bits.")] = False,
    boxes: Annotated[bool, typer.Option("--boxes", help="Every box that the run kept, found and expected.")] = False,
    inputs: Annotated[
        str | None, typer.Option(help="Inputs as perturbed by one configuration, such as 2,0,4.", metavar="SIGMA")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First N inputs only (needs --inputs).")] = None,
    verifier: Annotated[
        int | None, typer.Option(help="ONNX and VNN-LIB files for the input with this number, from 0.", metavar="INPUT")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Query that is a box, such as: zoom <= 3 and blur <= 2 (needs --verifier).")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(help="Range of an axis's parameter. Repeatable (needs --verifier).", metavar="AXIS=LOW:HIGH"),
    ] = None,
    rounded: Annotated[
        bool, typer.Option("--rounded", help="Round pixels as a run does; few verifiers support it (needs --verifier).")
    ] = False,
    spec: SpecOption = None,
    as_json: Json = False,
) -> None:
    """Write results, inputs or verifier files."""
    kinds = {"--grid": grid, "--boxes": boxes, "--inputs": inputs, "--verifier": verifier}
    for kind in kinds:
        exclude(kind, kinds[kind], {other: kinds[other] for other in kinds if other != kind})
    needs("--inputs", inputs, {"--limit": limit})
    needs("--verifier", verifier, {"--region": region, "--level": level, "--rounded": rounded})
    if spec is not None and inputs is None and verifier is None:
        raise InputError("--spec needs --inputs or --verifier")
    if verifier is not None:
        _verifier_files(_session(source, spec), verifier, out, region, _levels(level), rounded, as_json)
        return
    answer(as_json, {"out": str(out)}, _write(source, out, grid, boxes, inputs, limit, spec))


def _write(
    run_file: Path, out: Path, grid: bool, boxes: bool, inputs: str | None, limit: int | None, spec: Path | None
) -> str:
    from testifai.present import export as files
    from testifai.session.stored_runs import open_measured, open_run

    if inputs is not None:
        count = files.write_inputs(reopened(run_file, spec).subject, _sigma(inputs), out, limit)
        return f"Wrote {count:,} inputs of configuration {inputs} to {out}"
    if grid:
        files.write_grid(open_run(run_file), out)
        return f"Wrote the grid to {out}"
    if boxes:
        return f"Wrote {files.write_boxes(open_run(run_file), out):,} boxes to {out}"
    tomogram = open_measured(run_file)
    (files.write_parquet if out.suffix == ".parquet" else files.write_table)(tomogram, out)
    space, tried = tomogram.space, len(tomogram.estimator.measured_ids)
    some = "" if space.listed else f": the {tried:,} tests that were tried, of {space.size:,}"
    return f"Wrote the table to {out}{some}"


def _sigma(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.strip("() ").split(","))
    except ValueError:
        raise InputError(f"inputs: a configuration is severities with commas, such as 2,0,4; got {text!r}") from None


def _session(source: Path, spec: Path | None) -> Session:
    from testifai.session import assembly

    if source.suffix != ".toml":
        return reopened(source, spec)
    if spec is not None:
        raise InputError(f"--spec: {source} is a spec already; leave it out")
    return assembly.session(read_spec(source), source.resolve().parent)


def _verifier_files(
    session: Session, index: int, out: Path, region: str | None, levels: dict[str, tuple[float, float]],
    rounded: bool, as_json: bool,
) -> None:  # fmt: skip
    from testifai.verification.export import of_session

    found = of_session(session, index=index, region=region, levels=levels, rounded=rounded)
    written = found.write(out)
    answer(
        as_json,
        {**found.as_dict(), "files": [str(path) for path in written]},
        f"does the answer to input {found.index} stay class {found.label}, for",
        *(f"  {line}" for line in found.region.ranges),
        *found.notes(),
        f"written to {out}: {', '.join(path.name for path in written)}",
    )


def _levels(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    found = {}
    for one in texts or []:
        axis, _, limits = one.partition("=")
        low, _, high = limits.partition(":")
        try:
            found[axis.strip()] = (float(low), float(high))
        except ValueError:
            raise InputError(f"--level: {one!r} is not accepted; AXIS=LOW:HIGH is, such as brightness=0:35") from None
    return found
