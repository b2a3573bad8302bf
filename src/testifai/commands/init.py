"""`testifai init`: a spec for one's own model and data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json, say
from testifai.errors import InputError


def init(
    model: Annotated[
        str,
        typer.Argument(
            help="An .onnx, .skops, XGBoost .json or LightGBM .txt file, a transformers folder, or package.module:name."
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(help="An .npz, IDX, CIFAR .bin, .csv, .tsv, .parquet or .jsonl file, or class folders."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the spec.")] = Path("testifai.toml"),
    target: Annotated[str | None, typer.Option(help="Of a table: the column that the model is to predict.")] = None,
    trusted: Annotated[list[str] | None, typer.Option(help="Of a .skops file: a type to trust; repeatable.")] = None,
    size: Annotated[str | None, typer.Option(help="Of a folder: bring all images to HEIGHTxWIDTH.")] = None,
    classes: Annotated[str | None, typer.Option(help="What the model's outputs are called: plane,car,…")] = None,
    task: Annotated[str | None, typer.Option(help="classification, regression or detection; by default seen.")] = None,
    as_json: Json = False,
) -> None:
    """Look at a model and a data set, check that they fit, and write a commented spec that runs."""
    from testifai.wizard.init import UserHints, write_spec

    names = tuple(one.strip() for one in classes.split(",")) if classes else ()
    told = UserHints(target, tuple(trusted or ()), None if size is None else _size(size), names, task)
    found = write_spec(model, data, out, told)
    if as_json:
        print_json(found.as_dict())
        return
    for line in found.lines():
        say(line)
    say(f"Wrote {out}. Next: testifai check {out}, then testifai run {out}")


def _size(text: str) -> tuple[int, int]:
    height, sign, width = text.lower().replace("×", "x").partition("x")
    if not (sign and height.strip().isdigit() and width.strip().isdigit() and int(height) and int(width)):
        raise InputError(f"--size: {text!r}; accepted: height and width in pixels, such as 32x32")
    return int(height), int(width)
