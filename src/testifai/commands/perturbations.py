"""`testifai perturbations`: what can be used by name, listed or drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from testifai.commands import completion
from testifai.commands.common import Json, print_json, say
from testifai.errors import InputError
from testifai.support.types import Record


def perturbations(
    suite: Annotated[
        str | None, typer.Argument(help="Only this suite, such as imagenet_c.", autocompletion=completion.suites)
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="Draw every perturbation at every severity, .png or .jpg.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="With --preview: show them on this image file.")] = None,
    sigma: Annotated[
        list[str] | None,
        typer.Option(help="With --preview: draw this composite instead, such as imagenet_c.fog=3,mnist_c.zoom=2."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the perturbations that can be used by name, or draw what they do."""
    from testifai import perturb
    from testifai.data.image_io import read_image
    from testifai.perturb import registry
    from testifai.present import contact_sheets as sheets

    for option, given in (("--image", image), ("--sigma", sigma)):
        if given and preview is None:
            raise InputError(f"{option}: name the picture to draw with --preview SHEET.png")
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
    for problem in registry.suite_problems():
        say(f"note: {problem}", err=True)
    if as_json:
        print_json([_perturbation_facts(one) for one in found])
        return
    _list_perturbations(found)
    if preview is not None:
        say(f"Wrote {preview}")


def _perturbation_facts(one: Any) -> Record:
    from testifai.perturb import describe, registry

    return {
        "suite": registry.suite_of(one.name),
        **describe(one),
        "summary": one.summary,
        "moves_boxes": one.moves,
        "levels": one.levels,
    }


def _list_perturbations(found: list[Any]) -> None:
    """A heading for each suite, a line for each of its perturbations."""
    from testifai.perturb import registry

    suites: dict[str, list[Any]] = {}
    for one in found:
        suites.setdefault(registry.suite_of(one.name), []).append(one)
    width = max(len(one.name) for one in found)
    for suite, members in sorted(suites.items()):
        title = f"{suite}: {registry.suite_summary(suite)}" if suite else "Without a suite"
        say(f"{title.rstrip(': ')} [{len(members)}]")
        for one in members:
            mark = " (moves boxes)" if one.moves else ""
            say(f"  {one.name:{width}}  0-{len(one.severities) - 1}  {one.summary}{mark}".rstrip())
