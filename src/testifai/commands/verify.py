"""`testifai verify`: a region of parameters around one input, handed over to a formal verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, SpecFile, print_json, say, say_code
from testifai.errors import InputError


def verify(
    spec: SpecFile,
    index: Annotated[int, typer.Option("--input", help="The input's number in the data, from 0.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")],
    region: Annotated[
        str | None, typer.Option(help="A query that is a box, such as: brightness <= 3 and contrast <= 2")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(help="AXIS=LOW:HIGH, the range of an axis's parameter; may be given several times."),
    ] = None,
    rounded: Annotated[
        bool, typer.Option("--rounded", help="Round pixels in the graph, as a run does; few verifiers take that.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write what a formal verifier takes: perturbations of one input and the model as ONNX, the property as VNN-LIB."""
    from testifai.session import assembly
    from testifai.spec.parsing import read
    from testifai.verification.export import of_session

    read_spec = read(spec)
    say_code(read_spec)
    session = assembly.session(read_spec, spec.resolve().parent)
    found = of_session(session, index=index, region=region, levels=_levels(level), rounded=rounded)
    written = found.write(out)
    if as_json:
        print_json({**found.as_dict(), "files": [str(path) for path in written]})
        return
    say(f"does the answer to input {found.index} stay class {found.label}, for")
    for line in found.region.ranges:
        say(f"  {line}")
    for note in found.notes():
        say(note)
    say(f"written to {out}: {', '.join(path.name for path in written)}")


def _levels(given: list[str] | None) -> dict[str, tuple[float, float]]:
    found = {}
    for one in given or []:
        axis, _, limits = one.partition("=")
        low, _, high = limits.partition(":")
        try:
            found[axis.strip()] = (float(low), float(high))
        except ValueError:
            raise InputError(f"--level: {one!r} is not accepted; AXIS=LOW:HIGH is, such as brightness=0:35") from None
    return found
