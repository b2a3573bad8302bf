"""The fields of a spec in words, for people: read off the JSON Schema that editors get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testifai import data as datasets
from testifai import models
from testifai.errors import InputError, suggest
from testifai.scans.schema import Schema, kinds, schema
from testifai.support.registry import Registry

# What a type is called, one of it and several.
TYPES = {
    "string": ("text", "texts"),
    "integer": ("a whole number", "whole numbers"),
    "number": ("a number", "numbers"),
    "boolean": ("true or false", "truths"),
    "array": ("a list", "lists"),
    "object": ("a table", "tables"),
    "#/$defs/perturbation": ("a perturbation's name", "perturbations' names"),
    "#/$defs/axis": ("a table", "tables"),
}
PATHS = {**TYPES, "string": ("a path", "paths")}
LIMITS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "exclusiveMaximum": "below"}
LARGE = 10**6  # a limit that nobody needs to be told


@dataclass(frozen=True)
class Field:
    """One field: what it takes, what it is where it is not told, and what it means."""

    name: str
    takes: str
    needed: bool
    default: Any
    meaning: str


@dataclass(frozen=True)
class Table:
    """The fields of one table, such as `model.onnx`: [model] of the kind onnx."""

    name: str
    heading: str
    meaning: str
    fields: tuple[Field, ...]


def tables(within: str | None = None) -> list[Table]:
    """The tables of a spec, or those within one: "model", "data.npz", "scan".

    >>> [table.name for table in tables("gate")]
    ['gate']
    """
    whole = schema()
    found = list(_tables(whole["properties"], whole["$defs"]["axis"]))
    if within is None:
        return found
    chosen = [table for table in found if table.name == within or table.name.startswith(f"{within}.")]
    if not chosen:
        names = dict.fromkeys(part for table in found for part in (table.name.partition(".")[0], table.name))
        raise InputError(f"spec: no table {within!r}; {suggest(within, names)}")
    return chosen


def _tables(parts: Schema, axis: Schema) -> Iterator[Table]:
    yield from _of_kinds("model", parts["model"], models.ADAPTERS)
    yield from _of_kinds("data", parts["data"], datasets.LOADERS)
    space, _ = parts["space"]["anyOf"]
    yield _table("space", "[space]", parts["space"]["description"], space)
    yield _table("space.axis", "[space] AXIS = { … }", axis["description"], axis)
    yield _table("scan", "[scan]", parts["scan"]["description"], parts["scan"])
    yield _table("gate", "[[gate]]", parts["gate"]["description"], parts["gate"]["items"])


def _of_kinds(part: str, found: Schema, registry: Registry) -> Iterator[Table]:
    for (kind, model), described in zip(kinds(registry).items(), found["anyOf"], strict=True):
        files = getattr(model, "FILES", ())
        # What says where it is comes first, as people write it.
        ordered = {kind: described["properties"][kind], **described["properties"]}
        yield _table(
            f"{part}.{kind}", f"[{part}] {kind}", described["description"], described | {"properties": ordered}, files
        )


def _table(name: str, heading: str, meaning: str, found: Schema, files: tuple[str, ...] = ()) -> Table:
    needed = found.get("required", [])
    fields = (
        Field(
            field,
            in_words(one, PATHS if field in files else TYPES),
            field in needed,
            one.get("default"),
            one.get("description", ""),
        )
        for field, one in found["properties"].items()
    )
    return Table(name, heading, meaning, tuple(fields))


def in_words(found: Schema, types: Mapping[str, tuple[str, str]] = TYPES, *, several: bool = False) -> str:
    """What a field takes.

    >>> in_words({"anyOf": [{"enum": ["own"]}, {"type": "array", "items": {"type": "integer", "minimum": 0}}]})
    "'own', or a list of whole numbers, at least 0"
    """
    if "enum" in found or "const" in found:
        return _either(map(repr, found.get("enum", [found.get("const")])))
    if "anyOf" in found:
        return ", or ".join(dict.fromkeys(in_words(one, types, several=several) for one in found["anyOf"]))
    kind = found.get("$ref") or found["type"]
    if kind == "array" and "items" in found:
        return f"a list of {in_words(found['items'], types, several=True)}"
    words = _either(types[one][several] for one in (kind if isinstance(kind, list) else [kind]))
    limits = {key: found[key] for key in LIMITS if key in found and found[key] < LARGE}
    return words + "".join(f", {LIMITS[key]} {limit}" for key, limit in limits.items())


def _either(choices: Iterable[str]) -> str:
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last
