"""Things chosen by name in a call or a spec: "window", or {use = "window", batch = 50}."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from testifai.errors import InputError, suggest

Made = TypeVar("Made")


def make(field: str, given: str | Mapping[str, Any], table: Mapping[str, Callable[..., Made]]) -> Made:
    """What a name, or a mapping with `use` and options, stands for; a mistake names the field and what is known.

    >>> make("shape", {"use": "range", "stop": 3}, {"range": lambda stop: list(range(stop))})
    [0, 1, 2]
    """
    options = {"use": given} if isinstance(given, str) else {str(key): value for key, value in given.items()}
    if "use" not in options:
        raise InputError(f"{field}: {options!r} has no 'use'; {suggest('', table)}")
    name = options.pop("use")
    if not isinstance(name, str) or name not in table:
        raise InputError(f"{field}: {name!r} is not known; {suggest(name, table)}")
    parameters = inspect.signature(table[name]).parameters
    for option in options:
        if option not in parameters:
            hint = suggest(option, parameters) if parameters else "it takes none"
            raise InputError(f"{field}: {name} has no option {option!r}; {hint}")
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise InputError(f"{field}: {name} needs {parameter.name} = …")
    return table[name](**options)
