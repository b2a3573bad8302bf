"""The JSON Schema of a spec, for editors, and its tables in words; generated from the models that validate a spec."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testifai import data as datasets
from testifai import models, oracles, perturb, quality, strategies, surrogates
from testifai.engine import EXECUTORS, stopping
from testifai.engine.backend import PRECISIONS
from testifai.errors import InputError, suggest
from testifai.spec.options import KEEP, LEAST, MOST, POPULATIONS, ScanOptions
from testifai.spec.parsing import SETTINGS, AxisPart, Gate, Spec
from testifai.support.options_base import Fields
from testifai.support.registry import Registry
from testifai.support.types import Record

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ADDRESS = "urn:testifai:spec"

# components of [scan]; DISPENSABLE ones may be "none", OF_YOURS may be {python = "package.module:name"}
PARTS: dict[str, Registry] = {
    "strategy": strategies.STRATEGIES,
    "surrogate": surrogates.SURROGATES,
    "stopping": stopping.RULES,
    "oracle": oracles.ORACLES,
    "quality": quality.MEASURES,
    "executor": EXECUTORS,
}
DISPENSABLE = ("surrogate", "stopping")
OF_YOURS = ("oracle", "quality")

SETTINGS_MEAN = {
    "suite": "A whole suite, each of its perturbations an axis: `imagenet_c` and others.",
    "order_sensitive": "Whether the order in which conditions are applied counts; default: false.",
    "max_order": "How many axes are on at once at most; default: all, of a whole suite one.",
    "extra": "Whether a whole suite includes what its paper holds back for tuning; default: false.",
}

Schema = Record
PERTURBATION: Schema = {"$ref": "#/$defs/perturbation"}
AXIS: Schema = {"$ref": "#/$defs/axis"}


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a spec, with the kinds and names of installed packages.

    >>> schema()["required"]
    ['model', 'data', 'space']
    """
    tables = {
        "model": _one_of_kinds(models.ADAPTERS),
        "data": _one_of_kinds(datasets.LOADERS),
        "space": _space(),
        "scan": _scan(),
        "gate": {"type": "array", "items": _table(Gate)},
    }
    meanings = Spec.meanings()
    required = [name for name, field in Spec.model_fields.items() if field.is_required()]
    return {
        "$schema": DRAFT,
        "$id": ADDRESS,
        "title": "A spec of testifai",
        "description": "Which model is tested on which data, under which conditions, how, and what must hold.",
        "type": "object",
        "properties": {name: made | {"description": meanings[name]} for name, made in tables.items()},
        "required": required,
        "additionalProperties": False,
        "$defs": {
            "perturbation": {
                "description": "A registered perturbation.",
                "enum": [*perturb.names(), *perturb.registry.ALIASES],
            },
            "axis": _table(AxisPart, {"use": PERTURBATION})
            | {"oneOf": [{"required": ["use"]}, {"required": ["python"]}]},
        },
    }


def kinds(registry: Registry) -> dict[str, type[Fields]]:
    """Return the kinds of a component that can be used, and their tables."""
    return {name: registry[name] for name in registry if registry.problem(name) is None}


def _one_of_kinds(registry: Registry) -> Schema:
    return {"type": "object", "anyOf": [_table(kind) for kind in kinds(registry).values()]}


def _space() -> Schema:
    suites = {"enum": list(perturb.registry.SUITES)}
    types: dict[type, Schema] = {bool: {"type": "boolean"}, int: {"type": "integer", "minimum": 1}}
    settings = {name: types[kind] for name, kind in SETTINGS.items()}
    settings["suite"] = {"anyOf": [suites, PERTURBATION, AXIS]}  # an axis may be called so, too
    table = {
        "type": "object",
        "properties": {name: made | {"description": SETTINGS_MEAN[name]} for name, made in settings.items()},
        "additionalProperties": {"anyOf": [PERTURBATION, AXIS]},
        "minProperties": 1,
    }
    return {"anyOf": [table, suites]}


def _scan() -> Schema:
    limits: dict[str, Schema] = {name: {"minimum": least} for name, least in LEAST.items()}
    for name, most in MOST.items():
        limits[name] |= {"maximum": most}
    workers = [{"type": "integer", **limits.pop("workers")}]
    return _table(
        ScanOptions,
        {
            **limits,
            **{name: _part(name, registry) for name, registry in PARTS.items()},
            "workers": {"anyOf": [*workers, {"type": "string", "pattern": "^ray(:.*)?$"}]},
            "target": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "population": {"enum": list(POPULATIONS)},
            "precision": {"enum": list(PRECISIONS)},
            "keep": {"items": {"enum": list(KEEP)}},
        },
    )


def _part(field: str, registry: Registry) -> Schema:
    """Return the schema of a name, or of a table with the name and options, or with user code."""
    names = {"enum": [*registry, *(["none"] if field in DISPENSABLE else [])]}
    table: Schema = {"type": "object", "properties": {"use": names}, "required": ["use"]}
    own = {"type": "object", "properties": {"python": {"type": "string"}}, "required": ["python"]}
    return {"anyOf": [names, table, *([own] if field in OF_YOURS else [])]}


def _table(model: type[Fields], more: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of one table without null, which TOML lacks, with the descriptions of its fields."""
    made = model.model_json_schema()
    meanings = model.meanings()
    properties = {}
    for name, found in made["properties"].items():
        # Titles repeat the name, and TOML has no null.
        plain = {key: value for key, value in found.items() if key not in ("title", "anyOf")}
        if plain.get("default", "") is None:
            del plain["default"]
        choices = [choice for choice in found.get("anyOf", []) if choice != {"type": "null"}]
        plain |= choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {}
        meaning = {"description": meanings[name]} if name in meanings else {}
        properties[name] = meaning | plain | dict((more or {}).get(name, {}))
    return {
        "type": "object",
        "description": inspect.cleandoc(model.__doc__ or ""),
        "properties": properties,
        "required": list(made.get("required", [])),
        "additionalProperties": False,
    }


# names of types, singular and plural
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
LARGE = 10**6  # limits from here on are not shown


@dataclass(frozen=True)
class Field:
    """A field in words."""

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
    """Return the tables of a spec, or those of one part: "model", "data.npz", "scan".

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
    for part, registry in (("model", models.ADAPTERS), ("data", datasets.LOADERS)):
        for (kind, model), found in zip(kinds(registry).items(), parts[part]["anyOf"], strict=True):
            # The path comes first, as in specs.
            found = found | {"properties": {kind: found["properties"][kind], **found["properties"]}}
            files = getattr(model, "FILES", ())
            yield _table_in_words(f"{part}.{kind}", f"[{part}] {kind}", found["description"], found, files)
    space, scan, gate = (parts[name] for name in ("space", "scan", "gate"))
    yield _table_in_words("space", "[space]", space["description"], space["anyOf"][0])
    yield _table_in_words("space.axis", "[space] AXIS = { … }", axis["description"], axis)
    yield _table_in_words("scan", "[scan]", scan["description"], scan)
    yield _table_in_words("gate", "[[gate]]", gate["description"], gate["items"])


def _table_in_words(name: str, heading: str, meaning: str, found: Schema, files: tuple[str, ...] = ()) -> Table:
    fields = []
    for field, one in found["properties"].items():
        takes = in_words(one, PATHS if field in files else TYPES)
        needed = field in found.get("required", [])
        fields.append(Field(field, takes, needed, one.get("default"), one.get("description", "")))
    return Table(name, heading, meaning, tuple(fields))


def in_words(found: Schema, types: Mapping[str, tuple[str, str]] = TYPES, *, several: bool = False) -> str:
    """Return the type of a field in words.

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
