"""`testifai init`: a spec for a model and a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, answer
from testifai.errors import InputError


def init(
    model: Annotated[
        str,
        typer.Argument(
            help="An .onnx, .skops, XGBoost .json or LightGBM .txt file, a transformers folder, or package.module:name."
        ),
    ],
    data: Annotated[
        str, typer.Argument(help="An .npz, IDX, CIFAR .bin, .csv, .tsv, .parquet or .jsonl file, or class folders.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Spec file to write.")] = Path("testifai.toml"),
    target: Annotated[str | None, typer.Option(help="Column of a table that the model predicts.")] = None,
    trusted: Annotated[list[str] | None, typer.Option(help="Type to trust in a .skops file. Repeatable.")] = None,
    size: Annotated[str | None, typer.Option(help="HEIGHTxWIDTH of the images of a folder, in pixels.")] = None,
    classes: Annotated[str | None, typer.Option(help="Names of the model's outputs: plane,car,…")] = None,
    task: Annotated[str | None, typer.Option(help="classification, regression, detection [default: detected].")] = None,
    as_json: Json = False,
) -> None:
    """Inspect a model and data set and write a spec."""
    from testifai.wizard.init import UserHints, write_spec

    names = tuple(one.strip() for one in classes.split(",")) if classes else ()
    told = UserHints(target, tuple(trusted or ()), None if size is None else _size(size), names, task)
    found = write_spec(model, data, out, told)
    next_step = f"Wrote {out}. Next: testifai check {out}, then testifai run {out}"
    answer(as_json, found.as_dict(), *found.lines(), next_step)


def _size(text: str) -> tuple[int, int]:
    height, sign, width = text.lower().replace("×", "x").partition("x")
    if not (sign and height.strip().isdigit() and width.strip().isdigit() and int(height) and int(width)):
        raise InputError(f"--size: {text!r}; accepted: height and width in pixels, such as 32x32")
    return int(height), int(width)
