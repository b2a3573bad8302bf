"""Base classes of the tables of a spec: pydantic models, and components identified by their kind."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo, WithJsonSchema

from testifai.errors import InputError, suggest
from testifai.support import remote, validation
from testifai.support.registry import Registry
from testifai.support.types import Record, RecordLike

PartType = TypeVar("PartType", bound="Part")


def _count(value: Any, info: ValidationInfo) -> int:
    return validation.whole(info.field_name or "", value, least=1)


def _megabytes(value: Any, info: ValidationInfo) -> float:
    return validation.number(info.field_name or "", value, least=0)


def _as_words(value: Any) -> Any:
    return [str(one) for one in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # characters

# Types of fields; from Python, paths and arrays are accepted too.
File = Annotated[str, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)]
Numbers = Annotated[
    float | list[float],
    BeforeValidator(lambda value: value.tolist() if isinstance(value, np.generic | np.ndarray) else value),
]
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1})]
Megabytes = Annotated[float, BeforeValidator(_megabytes), WithJsonSchema({"type": "number", "minimum": 0})]
Words = Annotated[
    list[str], BeforeValidator(_as_words), WithJsonSchema({"type": "array", "items": {"type": ["string", "number"]}})
]


class UnknownKeyError(InputError):
    """A key that a component of this kind does not have; the message includes the table."""


class Fields(BaseModel):
    """A table of a spec."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return the description of each field: the string below it in the source."""
        return {name: field.description for name, field in cls.model_fields.items() if field.description is not None}


class Part(Fields):
    """A table of a component with several kinds, such as [model]: a field named like the kind, and options.

    An option that is not given is None; the component has its default.
    """

    FILES: ClassVar[tuple[str, ...]] = ()  # fields with files or folders, relative to the folder of the spec
    FOLDERS: ClassVar[tuple[str, ...]] = ()  # those of them that may be a remote folder
    CODE: ClassVar[tuple[str, ...]] = ()  # fields with code of the user, "package.module:name"

    def own_code(self) -> dict[str, str]:
        """Return the code of the user that loading the component imports, by field."""
        return {name: str(path) for name in self.CODE if (path := getattr(self, name, None)) is not None}

    def told(self, folder: Path | None = None) -> Record:
        """Return the given fields; with a folder, files as paths from there, and remote files as local copies."""
        told = self.model_dump(exclude_none=True)
        if folder is not None:
            found = {name: _within(name, folder, told[name]) for name in self.FILES if name in told}
            for name, place in found.items():
                if isinstance(place, remote.RemoteFolder) and name not in self.FOLDERS:
                    raise InputError(f"{name}: {place} is a folder; of folders elsewhere those of images are read")
            told |= found
        return told

    def missing_files(self, folder: Path) -> list[Path]:
        return [file for file in _values(self.told(folder), self.FILES) if not file.exists()]

    def files(self, folder: Path) -> list[Path | remote.RemoteFolder]:
        """Return the files and folders that it is loaded from."""
        return _values(self.told(folder), self.FILES)

    def named(self) -> list[str]:
        """Return its code, files and folders, as given."""
        return _values(self.told(), (*self.CODE, *self.FILES))


def _values(told: RecordLike, names: Iterable[str]) -> list[Any]:
    found = [told[name] for name in names if name in told]
    return [one for value in found for one in (value if isinstance(value, list) else [value])]


def _within(field: str, folder: Path, named: str | list[str]) -> Any:
    if isinstance(named, list):
        return [_within(field, folder, one) for one in named]
    if remote.is_address(named):
        return remote.place(named, folder)
    if len(named) > _LONGEST_PATH or max(map(len, named.split("/"))) > _LONGEST_NAME:
        raise InputError(
            f"{field}: expected the name of a file or folder, got {named[:60]!r} …, which is too long "
            f"({len(named):,} characters); a path has at most {_LONGEST_PATH:,}, a part {_LONGEST_NAME}"
        )
    return Path(folder, named)


def read_part(kinds: Registry, table: RecordLike) -> Any:
    """Validate the table of a component by its kind; raise a ValueError, or that of pydantic."""
    told = {str(key): value for key, value in table.items() if value is not None}
    kind = _kind(kinds, told)
    part = kinds[kind]
    for name in told:
        if name not in part.model_fields:
            others = [other for other in kinds if kinds.problem(other) is None and name in kinds[other].model_fields]
            fields = [field for field in part.model_fields if field != kind]
            listed = " and ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
            elsewhere = f" ({listed} {'takes' if len(others) == 1 else 'take'} it)" if others else ""
            raise UnknownKeyError(f"unknown key '{kinds.kind}.{name}' for {kind}{elsewhere}; {suggest(name, fields)}")
    return part.model_validate(told)


def make_part(kinds: Registry, kind: str, source: Any, options: RecordLike) -> Any:
    """Return the table of a kind, from arguments of Python; raise InputError."""
    _ = kinds[kind]  # an unknown one raises an error
    try:
        return read_part(kinds, {**options, kind: source})
    except ValidationError as error:
        raise InputError(first_problem(error, within=kinds.kind)) from None
    except UnknownKeyError:
        raise
    except ValueError as error:
        raise InputError(f"{kinds.kind}: {error}") from None


def validator(kinds: Registry, base: type[PartType]) -> Callable[[Any], PartType]:
    """Return the validator of a field of a spec that contains a component."""

    def read(given: Any) -> PartType:
        if isinstance(given, base):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"should be a table, got {given!r}")
        return cast(PartType, read_part(kinds, given))

    return read


def _kind(kinds: Registry, told: RecordLike) -> str:
    given = [kind for kind in kinds if kind in told]
    # The kind of another package may have the name of a built-in option; it then is that option.
    if len(given) > 1 and all(name in kinds[given[0]].model_fields for name in given[1:]):
        given = given[:1]
    if len(given) == 1:
        return given[0]
    near = [name for name in told if not given and difflib.get_close_matches(name, list(kinds), n=1, cutoff=0.6)]
    if near:
        raise UnknownKeyError(f"unknown key '{kinds.kind}.{near[0]}'; {suggest(near[0], kinds)}")
    found = " and ".join(given) or "none of them"
    raise ValueError(f"needs exactly one of {', '.join(kinds)}, got {found}")


def first_problem(
    error: ValidationError, known: Callable[[list[str]], Iterable[str]] = lambda place: (), within: str | None = None
) -> str:
    """Return pydantic's most specific error in one line: the field, its value and what is accepted.

    `known` returns the keys of a place in the spec, to suggest one; `within` is the table that was validated.
    """
    # A value that fits none of several types is reported once per type.
    # Pydantic adds the member of a union to the location.
    tags = {"str", "bool", "int", "float", "AxisPart", "constrained-int"}
    problems = [
        (one, [part for part in map(str, one["loc"]) if part not in tags and "[" not in part]) for one in error.errors()
    ]
    problem, location = max(
        problems, key=lambda p: (p[0]["type"] == "extra_forbidden", len(p[0]["loc"]), p[0]["type"] == "value_error")
    )
    field = ".".join(location if within is None else [within, *location])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {field!r}; {suggest(location[-1], known(location[:-1]))}"
    if problem["type"] == "missing":
        return f"{field} is missing"
    if problem["type"] == "value_error":
        # Checks of arguments name the argument too; the place in the spec is more specific.
        message = problem["msg"].removeprefix("Value error, ").removeprefix(f"{location[-1]}: " if location else "")
        says_all = not field or isinstance(problem["ctx"]["error"], UnknownKeyError)
        return message if says_all else f"{field}: {message}"
    accepted = dict.fromkeys(_accepted(other["msg"]) for other, place in problems if place == location)
    return f"{field or 'everything'}: should be {', or '.join(accepted)}, got {problem['input']!r}"


def _accepted(message: str) -> str:
    """Return what pydantic expects, without its classes and explanations."""
    wanted = message.removeprefix("Input should be ").partition(", unable")[0]
    return wanted.partition(" or instance of")[0].replace("a valid dictionary", "a table")
