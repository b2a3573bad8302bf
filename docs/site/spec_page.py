"""The reference of the spec, made from its schema, and the schema itself as a file for editors."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from testifai.spec.json_schema import PARTS, Field, Table, schema, tables
from testifai.spec.parsing import Spec
from testifai.support.registry import Registry

FILE = "testifai.schema.json"
TITLES = {
    "model": "[model]",
    "data": "[data]",
    "space": "[space]",
    "scan": "[scan]",
    "gate": "[[gate]]",
}
HEAD = """\
# The spec

A spec is a TOML file that says which model is tested on which data, under which conditions, how, and what must hold.
`testifai init MODEL DATA` writes one; `testifai check SPEC.toml` tells what following it would take. Unknown keys are
refused, with what may have been meant. Relative paths start at the spec's folder. `testifai list spec`
prints what is below.

## In an editor

Editors that know JSON Schema complete and check a spec while it is written. Save the schema once:

```bash
testifai list spec --schema > testifai.schema.json
```

and name it in the first line of the spec, which is a comment to everybody else:

```toml
#:schema testifai.schema.json
```

[Even Better TOML](https://marketplace.visualstudio.com/items?itemName=tamasfe.even-better-toml) (Visual Studio Code)
and other editors with [Taplo](https://taplo.tamasfe.dev) read that line; the path starts at the spec's folder.
`taplo lint SPEC.toml` checks the same on a command line. The schema names the perturbations, strategies and other parts
that are installed where it was printed. That of testifai alone is [here](testifai.schema.json).
"""
# Given by what makes the part, never by a spec.
NOT_TOLD = {"levels", "seed", "population", "folder", "side", "subject", "interrupted", "workers", "batch_size"}


def schema_text() -> str:
    """The schema as a file."""
    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


def page() -> str:
    """The page, as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    meanings, all_tables = Spec.meanings(), tables()
    for part, title in TITLES.items():
        yield f"## `{title}` {{ #{part} }}\n"
        yield f"{meanings[part]}\n"
        found = [table for table in all_tables if table.name.partition(".")[0] == part]
        if part in ("model", "data"):
            listed = ", ".join(f"[`{_last(one)}`](#{_anchor(one)})" for one in found)
            yield f"Kinds: {listed}.\n"
        for table in found:
            yield from _table(table, part)
    yield from _parts()


def _table(table: Table, part: str) -> Iterator[str]:
    if table.name != part:
        yield f"### `{table.heading}` {{ #{_anchor(table)} }}\n"
        yield f"{table.meaning}\n"
    yield "| field | takes | default | what it means |\n|---|---|---|---|"
    for field in table.fields:
        yield f"| `{field.name}` | {_cell(field.takes)} | {_default(field)} | {_cell(field.meaning)} |"
    yield ""


def _parts() -> Iterator[str]:
    """What can be named in [scan], with the options that a table with `use` may set."""
    yield "## Parts by name { #parts }\n"
    yield 'What `[scan]` names. With options, a part is a table: `strategy = { use = "ordered", max_order = 3 }`.\n'
    for field, registry in PARTS.items():
        yield f"### `{field}` {{ #part-{field} }}\n"
        yield "| name | options | what it is |\n|---|---|---|"
        for name in registry:
            yield f"| `{name}` | {_options(registry, name)} | {_cell(_summary(registry, name))} |"
        yield ""


def _made(registry: Registry, name: str) -> Any:
    """What a name stands for; None where a library that it needs is not installed."""
    try:
        return registry[name]
    except ImportError:
        return None


def _summary(registry: Registry, name: str) -> str:
    return inspect.cleandoc(getattr(_made(registry, name), "__doc__", None) or "").partition("\n\n")[0]


def _options(registry: Registry, name: str) -> str:
    maker = _made(registry, name)
    parameters = {} if maker is None else inspect.signature(maker).parameters
    told = [one for one in parameters.values() if one.name not in NOT_TOLD]
    return ", ".join(f"`{one.name}`{_preset(one.default)}" for one in told)


def _preset(default: Any) -> str:
    if default is inspect.Parameter.empty:
        return " (needed)"
    return "" if default is None or default == () else f" = {default}"


def _default(field: Field) -> str:
    if field.needed:
        return "needed"
    return "" if field.default in (None, []) else f"`{json.dumps(field.default)}`"


def _anchor(table: Table) -> str:
    return table.name.replace(".", "-")


def _last(table: Table) -> str:
    return table.name.rpartition(".")[2]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
