"""Axes of a space, read from user input or from a description."""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.perturb import Perturbation, describe, resolve

LARGEST_TABLE = 100_000  # a damaged description must not fill the memory
RESERVED = frozenset({"order", "severity", "quality", "label", "off"})
LOGICAL = frozenset({"and", "or", "not", "in"})  # queries take these words in any case


@dataclass(frozen=True)
class Axis:
    """One perturbation in one space: the severities chosen for it, 0 first, and the names given to them."""

    name: str
    perturbation: Perturbation
    severities: tuple[int, ...]
    levels: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        return f"<Axis {self.name}: {self.perturbation.name} {list(self.severities)}>"


def is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def read_axis(name: object, given: object, names: Iterable[object]) -> Axis:
    field_name = f"space: axis {name!r}"
    taken = isinstance(name, str) and (name in RESERVED or keyword.iskeyword(name) or name.lower() in LOGICAL)
    if not isinstance(name, str) or not name.isidentifier() or taken:
        why = "is a reserved word" if taken else "is not an identifier"
        raise InputError(f"{field_name} {why}; accepted: letters, digits and _, but none of {reserved()}")
    chosen = None
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise InputError(f"{field_name}: {given!r}; accepted: a pair (perturbation, severities)")
        given, chosen = given
    if not isinstance(given, str | Perturbation):
        raise InputError(f"{field_name}: {given!r}; accepted: a perturbation, its name, or (perturbation, severities)")
    try:
        perturbation = resolve(given)
    except InputError as error:
        raise InputError(f"{field_name}: {error}") from None
    table = len(perturbation.severities)
    levels = _levels(field_name, chosen, names) if isinstance(chosen, Mapping) else {}
    severities = range(table) if chosen is None else chosen.values() if isinstance(chosen, Mapping) else chosen
    return Axis(name, perturbation, _severities(field_name, severities, table), levels)


def _severities(field_name: str, chosen: object, table: int) -> tuple[int, ...]:
    accepted = f"accepted: 0 to {table - 1}, each at most once"
    if isinstance(chosen, str | bytes) or not isinstance(chosen, Iterable):
        raise InputError(f"{field_name}: severities {chosen!r} are not a list; {accepted}")
    values = list(chosen)
    seen: set[int] = set()
    for value in values:
        if not is_whole(value) or not 0 <= value < table:
            raise InputError(f"{field_name}: severity {value!r} does not exist; {accepted}")
        if value in seen:
            raise InputError(f"{field_name}: severity {value!r} is given twice; {accepted}")
        seen.add(value)
    severities = tuple(sorted({0, *map(int, values)}))
    if len(severities) < 2:
        raise InputError(f"{field_name}: no severity other than 0 in {values}; {accepted}")
    return severities


def _levels(field_name: str, chosen: Mapping[Any, Any], names: Iterable[object]) -> dict[str, int]:
    """The user's names for severities, without `off`, which every axis has."""
    taken = {*names, *RESERVED}
    levels = {}
    for name, severity in chosen.items():
        if name == "off" and severity == 0 and is_whole(severity):
            continue
        readable = isinstance(name, str) and name.isprintable() and not re.search("[\"']", name) and name.strip()
        if not readable or name in taken or name.lower() in LOGICAL or keyword.iskeyword(name):
            accepted = f"text without quotes, but no axis name and none of {reserved()}"
            raise InputError(f"{field_name}: level name {name!r}; accepted: {accepted}")
        levels[name] = severity
    return levels


def reserved() -> str:
    return ", ".join(sorted(RESERVED | LOGICAL)) + " or a Python keyword"


def parameters_of(perturbation: Perturbation, severities: Sequence[int]) -> list[Any]:
    table = describe(perturbation)["severities"]
    return [table[severity] for severity in severities]


def described(name: str, severities: list[int], parameters: list[Any]) -> Perturbation:
    """Return the registered perturbation if it matches the description, else a placeholder with the same table."""
    try:
        perturbation = resolve(name)
        if max(severities) < len(perturbation.severities) and parameters_of(perturbation, severities) == parameters:
            return perturbation
    except InputError:
        pass
    if max(severities) > LARGEST_TABLE:
        raise InputError(f"space description: severity {max(severities)}; accepted: up to {LARGEST_TABLE}")
    table = dict(zip(severities, parameters, strict=True))
    stand_in = [table.get(severity) for severity in range(max(severities) + 1)]
    return Perturbation(name, functools.partial(_not_loaded, name), tuple(stand_in))


def _not_loaded(name: str, batch: object, parameter: object, rng: object) -> object:
    raise InputError(f"the code of {name!r} is not loaded; import the module that registers it")
