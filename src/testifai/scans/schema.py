"""The JSON Schema of a spec, for editors; its fields and what they mean are those that a spec is checked by."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from testifai import data as datasets
from testifai import models, oracles, perturb, quality, strategies, surrogates
from testifai.engine import EXECUTORS, stopping
from testifai.engine.backend import PRECISIONS
from testifai.scans.options import KEEP, LEAST, MOST, POPULATIONS, ScanOptions
from testifai.scans.spec import SETTINGS, AxisPart, Gate, Spec
from testifai.support.fields import Fields
from testifai.support.registry import Registry

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ADDRESS = "urn:testifai:spec"

# The parts that [scan] names; those that "none" stands for the lack of.
PARTS: dict[str, Registry] = {
    "strategy": strategies.STRATEGIES,
    "surrogate": surrogates.SURROGATES,
    "stopping": stopping.RULES,
    "oracle": oracles.ORACLES,
    "quality": quality.MEASURES,
    "executor": EXECUTORS,
}
DISPENSABLE = ("surrogate", "stopping")
OF_YOURS = ("oracle", "quality")  # may be code of the user's, {python = "package.module:name"}

SETTINGS_MEAN = {
    "suite": "A whole suite, each of its perturbations an axis: `imagenet_c` and others.",
    "order_sensitive": "Whether the order in which conditions are applied counts; default: false.",
    "max_order": "How many axes are on at once at most; default: all, of a whole suite one.",
    "extra": "Whether a whole suite includes what its paper holds back for tuning; default: false.",
}

Schema = dict[str, Any]
PERTURBATION: Schema = {"$ref": "#/$defs/perturbation"}
AXIS: Schema = {"$ref": "#/$defs/axis"}


def schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a spec, with every kind and name that is known on this machine.

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
        "$defs": {"perturbation": _perturbation(), "axis": _axis()},
    }


def kinds(registry: Registry) -> dict[str, type[Fields]]:
    """The kinds of a part that can be used, and their tables."""
    return {name: registry[name] for name in registry if registry.problem(name) is None}


def _one_of_kinds(registry: Registry) -> Schema:
    return {"type": "object", "anyOf": [_table(kind) for kind in kinds(registry).values()]}


def _perturbation() -> Schema:
    return {"description": "A registered perturbation.", "enum": [*perturb.names(), *perturb.registry.ALIASES]}


def _axis() -> Schema:
    return _table(AxisPart, {"use": PERTURBATION}) | {"oneOf": [{"required": ["use"]}, {"required": ["python"]}]}


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
    limits: dict[str, Schema] = {name: {"minimum": least} for name, least in LEAST.items() if name != "workers"}
    for name, most in MOST.items():
        if name in limits:
            limits[name] = limits[name] | {"maximum": most}
    workers = [{"type": "integer", "minimum": LEAST["workers"], "maximum": MOST["workers"]}]
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
    """A name, or a table with it and options of its own, or with code of the user's."""
    names = {"enum": [*registry, *(["none"] if field in DISPENSABLE else [])]}
    table: Schema = {"type": "object", "properties": {"use": names}, "required": ["use"]}
    own = {"type": "object", "properties": {"python": {"type": "string"}}, "required": ["python"]}
    return {"anyOf": [names, table, *([own] if field in OF_YOURS else [])]}


def _table(model: type[Fields], more: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of one table, as TOML can say it: no null, every field with what it means."""
    made = model.model_json_schema()
    meanings = model.meanings()
    properties = {}
    for name, found in made["properties"].items():
        meaning = {"description": meanings[name]} if name in meanings else {}
        properties[name] = meaning | _plain(found) | dict((more or {}).get(name, {}))
    return {
        "type": "object",
        "description": inspect.cleandoc(model.__doc__ or ""),
        "properties": properties,
        "required": list(made.get("required", [])),
        "additionalProperties": False,
    }


def _plain(found: Schema) -> Schema:
    """A field's schema without what TOML has no word for, and without titles that only repeat its name."""
    rest = {key: value for key, value in found.items() if key not in ("title", "anyOf")}
    if rest.get("default", "") is None:
        del rest["default"]
    choices = _not_null(found.get("anyOf", []))
    return rest | (choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})


def _not_null(choices: Iterable[Schema]) -> list[Schema]:
    return [choice for choice in choices if choice != {"type": "null"}]
