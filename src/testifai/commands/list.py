"""`testifai list`: perturbations, components and spec fields that can be named."""

from __future__ import annotations

import importlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import Json, answer, group, needs, print_json, say
from testifai.errors import InputError

if TYPE_CHECKING:
    from testifai.perturb import Perturbation

# The registries of all kinds of components, by title.
REGISTRIES = {
    "perturbation suites": "testifai.perturb.registry:SUITES",
    "models": "testifai.models:ADAPTERS",
    "data": "testifai.data:LOADERS",
    "oracles": "testifai.oracles:ORACLES",
    "surrogates": "testifai.surrogates:SURROGATES",
    "strategies": "testifai.strategies:STRATEGIES",
    "stopping rules": "testifai.engine.stopping:RULES",
    "quality measures": "testifai.quality:MEASURES",
    "operational techniques": "testifai.operational:TECHNIQUES",
    "executors": "testifai.engine:EXECUTORS",
    "commands": "testifai.commands:COMMANDS",
}

app = group("List perturbations, plugins or spec fields.")


@app.command()
def perturbations(
    suite: Annotated[
        str | None, typer.Argument(help="Suite, such as imagenet_c [default: all].", autocompletion=completion.suites)
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="Draw every perturbation at every severity, .png or .jpg.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="Image to show (needs --preview).")] = None,
    sigma: Annotated[
        list[str] | None,
        typer.Option(
            help="Composite to draw instead, such as imagenet_c.fog=3,mnist_c.zoom=2. Repeatable (needs --preview)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List perturbations, or draw a preview."""
    from testifai import perturb
    from testifai.data.image_io import read_image
    from testifai.perturb import registry
    from testifai.present import contact_sheets as sheets

    needs("--preview SHEET.png", preview, {"--image": image, "--sigma": sigma})
    if suite is not None and sigma:
        raise InputError(f"--sigma: a composite names its own perturbations; leave out the suite {suite!r}")
    composites = [sheets.parse_composite(text) for text in sigma or ()]
    if composites:
        used = {step.name for composite in composites for step, _ in composite}
        found = [perturb.get(name) for name in sorted(used)]
    else:
        found = [perturb.get(name) for name in perturb.names(suite)]
    if preview is not None:
        shown = None if image is None else read_image(image)
        if composites:
            sheets.draw_composites(composites, preview, shown)
        else:
            pictured = [one for one in found if registry.suite_of(one.name) != "text"]
            if not pictured:
                raise InputError(f"--preview: the suite {suite!r} changes texts, which cannot be drawn")
            sheets.draw(pictured, preview, shown)
    say(*(f"note: {problem}" for problem in registry.suite_problems()), err=True)
    suites: dict[str, list[Perturbation]] = {}
    for one in found:
        suites.setdefault(registry.suite_of(one.name), []).append(one)
    width = max(len(one.name) for one in found)
    lines = []
    for name, members in sorted(suites.items()):
        title = f"{name}: {registry.suite_summary(name)}" if name else "Without a suite"
        lines.append(f"{title.rstrip(': ')} [{len(members)}]")
        for one in members:
            mark = " (moves boxes)" if one.moves else ""
            lines.append(f"  {one.name:{width}}  0-{len(one.severities) - 1}  {one.summary}{mark}".rstrip())
    lines += [] if preview is None else [f"Wrote {preview}"]
    facts = [
        {
            "suite": registry.suite_of(one.name),
            **perturb.describe(one),
            "summary": one.summary,
            "moves_boxes": one.moves,
            "levels": one.levels,
        }
        for one in found
    ]
    answer(as_json, facts, *lines)


@app.command()
def plugins(as_json: Json = False) -> None:
    """List components and their packages."""
    listed = {}
    for title, place in REGISTRIES.items():
        module, name = place.split(":")
        listed[title] = getattr(importlib.import_module(module), name).entries()
    if as_json:
        print_json([asdict(entry) for entries in listed.values() for entry in entries])
        return
    width = max(len(entry.name) for entries in listed.values() for entry in entries)
    for title, entries in listed.items():
        say(f"{title} [{len(entries)}]")
        for entry in entries:
            problem = f"  NOT USABLE: {entry.problem}" if entry.problem else ""
            say(f"  {entry.name:{width}}  {entry.package} {entry.version}{problem}".rstrip())


@app.command()
def spec(
    table: Annotated[
        str | None, typer.Argument(help="Table, such as model, data.npz or scan [default: all].", metavar="[TABLE]")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema, with which editors complete and check specs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List spec fields, or print the JSON schema."""
    from testifai.spec import json_schema

    if schema:
        if table is not None:
            raise InputError(f"--schema cannot be combined with a table; leave out {table!r}")
        print_json(json_schema.schema())
        return
    found = json_schema.tables(table)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    width = max(len(field.name) for one in found for field in one.fields)
    for number, one in enumerate(found):
        say(("\n" if number else "") + f"{one.heading}: {one.meaning.splitlines()[0]}")
        for field in one.fields:
            needed = "needed" if field.needed else "" if field.default in (None, []) else f"default {field.default!r}"
            details = "; ".join(filter(None, [field.takes, needed]))
            say(f"  {field.name:{width}}  {field.meaning} ({details})")
