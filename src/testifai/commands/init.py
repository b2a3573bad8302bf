"""`testifai init`: a spec for one's own model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json, say


def init(
    model: Annotated[str, typer.Argument(help="An .onnx file, a text model's folder, or package.module:name.")],
    data: Annotated[str, typer.Argument(help="An .npz, IDX, CIFAR .bin, .csv, .tsv or .jsonl file, or class folders.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the spec.")] = Path("testifai.toml"),
    as_json: Json = False,
) -> None:
    """Look at a model and a data set, check that they fit, and write a commented spec that runs."""
    from testifai.scans.init import write_spec

    found = write_spec(model, data, out)
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        say(line)
    say(f"Wrote {out}. Next: testifai check {out}, then testifai run {out}")
