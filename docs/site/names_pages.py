"""The reference of the public names: which page each is on; mkdocstrings writes them from the docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testifai


@dataclass(frozen=True)
class Group:
    """What one page shows: names as `testifai` has them, all of a module, and what those return."""

    title: str
    names: tuple[str, ...] = ()
    module: str | None = None
    returned: tuple[str, ...] = ()


GROUPS = {
    "scan": Group(
        "Scan a model",
        ("scan", "Space", "hunt", "merge", "open", "InputError"),
        returned=("testifai.session.hunting.Hunt",),
    ),
    "results": Group(
        "Results and questions",
        ("Tomogram", "Answer", "compare", "prioritised"),
        returned=("testifai.tomogram.comparison.Comparison", "testifai.tomogram.priorities.Priorities"),
    ),
    "perturb": Group("Perturbations", ("perturbation", "Perturbation", "apply"), "perturb"),
    "models": Group("Models", module="models"),
    "data": Group("Data", module="data"),
    "oracles": Group("Oracles", module="oracles"),
    "stopping": Group("Stopping rules", module="stopping"),
    "quality": Group("Quality of inputs", module="quality"),
    "sweeps": Group("Sweeps", ("sweep", "sweep_model", "calibrate"), "sweeps"),
    "operational": Group("Few labels", module="operational"),
    "locality": Group("Local robustness and systems", module="locality"),
    "verification": Group("Verification", module="verification"),
    "testing": Group("Contract tests", module="testing"),
}
IMPORTED = re.compile(r"^from (testifai\.[\w.]+) import ([\w, ]+)$", re.MULTILINE)


def pages(folder: Path) -> dict[str, str]:
    """The pages by their names, as Markdown; `folder` holds the pages that use the names."""
    made = {name: "\n".join(_page(group)) for name, group in GROUPS.items()}
    more = "\n".join(_more(_elsewhere(folder)))
    return {"index": "\n".join(_index()), **made, "more": more}


def titles() -> dict[str, str]:
    """The pages of names in their order, with what they are called."""
    return {**{name: group.title for name, group in GROUPS.items()}, "more": "Other names"}


def shown() -> set[str]:
    """The public names that have a place on some page."""
    return {name for group in GROUPS.values() for name in (*group.names, group.module) if name is not None}


def members(module: str) -> list[str]:
    """The names that a module offers, without what another page or its own group shows."""
    found = _public(module)
    offered = getattr(found, "__all__", None) or _own(found)
    taken = {name for group in GROUPS.values() for name in group.names}
    return [name for name in offered if name not in taken]


def _public(name: str) -> Any:
    """What `testifai` calls so; sweeps is a module whose names are `testifai`'s own."""
    return getattr(testifai, name) if name in testifai.__all__ else importlib.import_module(f"testifai.{name}")


def _own(module: Any) -> list[str]:
    """What a module defines, in its order."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _page(group: Group) -> Iterator[str]:
    yield f"# {group.title}\n"
    if group.module is not None:
        yield f"{inspect.cleandoc(_public(group.module).__doc__ or '')}\n"
    for name in group.names:
        yield _directive(f"testifai.{name}")
    if group.module is not None:
        module = _public(group.module).__name__
        for name in members(group.module):
            yield _directive(f"{module}.{name}")
    for path in group.returned:
        yield _directive(path)


def _directive(path: str) -> str:
    return f"::: {path}\n"


def _index() -> Iterator[str]:
    yield "# Reference\n"
    yield "Made from the sources when the site is built: the names below from their docstrings, the"
    yield "[command line](cli.md) from the commands, the [spec](spec.md) from the schema that specs are checked by.\n"
    yield "All names are used as `ta.NAME` after `import testifai as ta`.\n"
    yield "| name | what it is |\n|---|---|"
    for page, group in GROUPS.items():
        for name in (*group.names, *([group.module] if group.module in testifai.__all__ else [])):
            value = getattr(testifai, name)
            anchor = "" if inspect.ismodule(value) else f"#testifai.{name}"
            yield f"| [`{name}`]({page}.md{anchor}) | {_summary(value)} |"


def _summary(value: Any) -> str:
    told = value.__doc__ if inspect.ismodule(value) or callable(value) else type(value).__doc__
    return " ".join(inspect.cleandoc(told or "").partition("\n\n")[0].split()).replace("|", "\\|")


def _elsewhere(folder: Path) -> list[str]:
    """Names that the pages import from inside of the package and that no other page of the reference shows."""
    found: dict[str, None] = {}
    for page in sorted(folder.rglob("*.md")):
        for module, names in IMPORTED.findall(page.read_text(encoding="utf-8")):
            found |= dict.fromkeys(f"{module}.{name.strip()}" for name in names.split(","))
    modules = {group.module: _public(group.module).__name__ for group in GROUPS.values() if group.module}
    listed = {f"{place}.{name}" for module, place in modules.items() for name in members(module)}
    taken = {name for group in GROUPS.values() for name in group.names}
    return [path for path in found if path not in listed and path.rpartition(".")[2] not in taken]


def _more(paths: list[str]) -> Iterator[str]:
    yield "# Other names\n"
    yield "Names from inside of the package that pages of this site use.\n"
    for path in paths:
        yield _directive(path)
