"""`testifai init`: a spec for one's own model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json, say


def init(
    model: Annotated[
        str,
        typer.Argument(
            help="An .onnx, .skops, XGBoost .json or LightGBM .txt file, a text model's folder, or package.module:name."
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(help="An .npz, IDX, CIFAR .bin, .csv, .tsv, .parquet or .jsonl file, or class folders."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the spec.")] = Path("testifai.toml"),
    target: Annotated[str | None, typer.Option(help="Of a table: the column that the model is to predict.")] = None,
    trusted: Annotated[list[str] | None, typer.Option(help="Of a .skops file: a type to trust; repeatable.")] = None,
    as_json: Json = False,
) -> None:
    """Look at a model and a data set, check that they fit, and write a commented spec that runs."""
    from testifai.scans.init import write_spec

    found = write_spec(model, data, out, target, tuple(trusted or ()))
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        say(line)
    say(f"Wrote {out}. Next: testifai check {out}, then testifai run {out}")
