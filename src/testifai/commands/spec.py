"""`testifai spec`: what a spec may say, for people and for editors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json, say


def spec(
    table: Annotated[
        str | None, typer.Argument(help="Only this table, such as model, data.npz or scan.", metavar="[TABLE]")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema, with which editors complete and check specs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What a spec may say: every table and field, what it takes and what it means."""
    from testifai.errors import InputError
    from testifai.spec import json_schema as schemas
    from testifai.spec.json_schema import tables

    if schema:
        if table is not None:
            raise InputError(f"--schema: is of the whole spec; leave out {table!r}")
        print_json(schemas.schema())
        return
    found = tables(table)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    width = max(len(field.name) for one in found for field in one.fields)
    for number, one in enumerate(found):
        say(("\n" if number else "") + f"{one.heading}: {one.meaning.splitlines()[0]}")
        for field in one.fields:
            told = "needed" if field.needed else "" if field.default in (None, []) else f"default {field.default!r}"
            details = "; ".join(filter(None, [field.takes, told]))
            say(f"  {field.name:{width}}  {field.meaning} ({details})")
