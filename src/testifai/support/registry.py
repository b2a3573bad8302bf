"""Components by name: built-in ones, and those that other packages announce by an entry point."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from testifai.errors import InputError, suggest
from testifai.support.types import RecordLike
from testifai.support.version import VERSION

OURS = "testifai"


@dataclass(frozen=True)
class Entry:
    """A component that can be named, its origin, and why it cannot be used, if so."""

    kind: str
    name: str
    place: str  # "package.module:name", or a module
    package: str
    version: str
    problem: str | None = None


class Registry(RecordLike):
    """The components of one kind, imported on first use.

    `own` maps the names of built-in ones to "package.module:name"; other packages announce theirs under the entry-point
    group. Those that cannot be imported, or have a built-in name, are reported and do no harm.

    >>> shapes = Registry("shape", "doc.shapes", {"fraction": "fractions:Fraction"})
    >>> shapes["fraction"](1, 2)
    Fraction(1, 2)
    >>> shapes["fractoin"]
    Traceback (most recent call last):
    testifai.errors.InputError: shape: 'fractoin' is not known; did you mean 'fraction'? (known: fraction)
    """

    def __init__(self, kind: str, group: str, own: Mapping[str, str]) -> None:
        self.kind, self.group, self._own = kind, group, dict(own)
        self._failures: dict[str, str | None] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others

    def __len__(self) -> int:
        return len(self._own) + len(self._others)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others

    def __getitem__(self, name: str) -> Any:
        if isinstance(name, str) and name in self._own:
            module, _, attribute = self._own[name].partition(":")
            found = importlib.import_module(module)
            return getattr(found, attribute) if attribute else found
        if not isinstance(name, str) or name not in self._others:
            raise InputError(f"{self.kind}: {name!r} is not known; {suggest(name, self)}")
        if (problem := self.problem(name)) is not None:
            raise InputError(f"{self.kind}: {problem}")
        return self._others[name].load()

    def make(self, given: str | RecordLike, **context: object) -> Any:
        """Make a component from its name or its options, as `make` does."""
        return make(self.kind, given, self, **context)

    def entries(self) -> list[Entry]:
        """Return all components, also those that cannot be used."""
        found = [Entry(self.kind, name, place, OURS, VERSION) for name, place in sorted(self._own.items())]
        for point in self._announced:
            used = self._others.get(point.name)
            if used is point:
                problem = self.problem(point.name)
            else:
                owner = f"a built-in {self.kind}" if used is None else f"package {_package(used)}"
                problem = f"{_origin(point)} is not used: the name belongs to {owner}"
            version = point.dist.version if point.dist else ""
            found.append(Entry(self.kind, point.name, point.value, _package(point), version, problem))
        return found

    def problem(self, name: str) -> str | None:
        """Return why a component of another package cannot be imported; None if it can."""
        if name not in self._others:
            return None
        if name not in self._failures:
            point = self._others[name]
            try:
                point.load()
                self._failures[name] = None
            except (Exception, SystemExit) as error:
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                self._failures[name] = f"{_origin(point)} could not be imported: {reason}"
        return self._failures[name]

    @cached_property
    def _announced(self) -> tuple[EntryPoint, ...]:
        from importlib.metadata import entry_points

        return tuple(entry_points(group=self.group))

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        """Components of other packages by name; of two with one name, the first on the path."""
        return {point.name: point for point in reversed(self._announced) if point.name not in self._own}


def _origin(point: EntryPoint) -> str:
    return f"'{point.name}' (package {_package(point)})"


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


Made = TypeVar("Made")


def make(field: str, given: str | RecordLike, table: Mapping[str, Callable[..., Made]], **context: object) -> Made:
    """Make a component from its name, or from a mapping with `use` and options; errors name the field.

    It also gets those options of the context that it has and that are not given.

    >>> make("shape", {"use": "range", "stop": 3}, {"range": lambda stop: list(range(stop))}, step=2)
    [0, 1, 2]
    """
    options = {"use": given} if isinstance(given, str) else {str(key): value for key, value in given.items()}
    if "use" not in options:
        raise InputError(f"{field}: {options!r} has no 'use'; {suggest('', table)}")
    name = options.pop("use")
    if not isinstance(name, str) or name not in table:
        raise InputError(f"{field}: {name!r} is not known; {suggest(name, table)}")
    maker = table[name]
    parameters = inspect.signature(maker).parameters
    for option in options:
        if option not in parameters:
            hint = suggest(option, parameters) if parameters else "it takes none"
            raise InputError(f"{field}: {name} has no option {option!r}; {hint}")
    options = {option: value for option, value in context.items() if option in parameters} | options
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise InputError(f"{field}: {name} needs {parameter.name} = …")
    return maker(**options)


def borrow(given: object, adapter: object, *, keep: Collection[str] = ()) -> None:
    """Set the public attributes that an adapter's class defines to those of the adapted object, if it has them."""
    for name in dir(type(adapter)):
        if not name.startswith("_") and name not in keep and hasattr(given, name):
            setattr(adapter, name, getattr(given, name))
