"""Code of the user's: found by its name, and told apart from what it was before."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from testifai.errors import InputError

# What code of the user's may raise instead of an answer. A SystemExit of theirs must not end the command, which alone
# decides its exit code; a Ctrl-C is the user's own.
ANY_FAULT: tuple[type[BaseException], ...] = (Exception, SystemExit, GeneratorExit)


def import_object(path: str, *, folder: str | Path | None = None, field: str = "python") -> Any:
    """What "pkg.module:name" names, looking in `folder` (a spec's own) first and then where Python looks."""
    module_name, _, name = str(path).partition(":")
    if not name or not all(part.isidentifier() for part in (*module_name.split("."), *name.split("."))):
        raise InputError(f"{field}: {path!r} is not accepted; 'package.module:name' is")
    with _first_on_path(folder):
        try:
            found = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            where = folder or "the current folder"
            raise InputError(f"{field}: {path!r}: no module {error.name!r} in {where} or installed") from None
        except ANY_FAULT as error:
            raise InputError(f"{field}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"{field}: {path!r}: {module_name} has no {part!r}")
        found = getattr(found, part)
    return found


@contextlib.contextmanager
def _first_on_path(folder: str | Path | None) -> Iterator[None]:
    entry = str(Path(folder or ".").resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)


def fingerprint(value: Any) -> str:
    """Name and source of a callable, with the values it was built with, in short; the same on every machine."""
    digest = hashlib.sha256()
    for part in _describe(value):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def _describe(value: Any, depth: int = 0) -> Iterator[str]:
    """Texts that together tell one callable, and what it holds, from another."""
    if depth > 4:
        return
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield f"{value.dtype.str}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).data).hexdigest()}"
    elif isinstance(value, bool | int | float | complex | str | bytes | type(None)):
        yield repr(value)
    elif isinstance(value, list | tuple):
        yield type(value).__name__
        for item in value:
            yield from _describe(item, depth + 1)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield str(key)
            yield from _describe(value[key], depth + 1)
    elif isinstance(value, functools.partial):
        yield "partial"
        for part in (value.func, value.args, value.keywords):
            yield from _describe(part, depth + 1)
    elif inspect.ismethod(value):
        yield from _describe(value.__func__, depth + 1)
        yield from _describe(value.__self__, depth + 1)
    elif inspect.isfunction(value):
        yield f"{value.__module__}:{value.__qualname__}"
        yield source_of(value)
        yield from _describe((value.__defaults__, value.__kwdefaults__), depth + 1)
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell not yet filled
                yield from _describe(cell.cell_contents, depth + 1)
    elif inspect.ismodule(value):
        yield value.__name__
    elif inspect.isclass(value) or inspect.isbuiltin(value):
        yield f"{value.__module__}:{value.__qualname__}"
        yield source_of(value)
    else:
        yield from _describe(type(value), depth + 1)
        yield from _describe(getattr(value, "__dict__", None), depth + 1)


def source_of(value: Any) -> str:
    """The source of a function or class or, where there is no file of it, what its code is made of."""
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return "\n".join(_code_texts(code)) if code is not None else ""


def _code_texts(code: CodeType) -> Iterator[str]:
    """What tells apart functions without a source file (typed at a prompt); differs between Pythons."""
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_texts(constant)
        else:
            yield repr(constant)
