"""Code of the user: importing it by name.

Whatever it raises is a fault, `SystemExit` and other subclasses of BaseException included, except a Ctrl-C: the command
alone decides its exit code. So callers catch BaseException after KeyboardInterrupt.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testifai.errors import InputError


def import_object(path: str, *, folder: str | Path | None = None, field: str = "python") -> Any:
    """Import "pkg.module:name", from `folder` (that of a spec) or else from Python's path."""
    module_name, _, name = str(path).partition(":")
    if not name or not all(part.isidentifier() for part in (*module_name.split("."), *name.split("."))):
        raise InputError(f"{field}: {path!r} is not accepted; 'package.module:name' is")
    with _on_path(folder):
        try:
            found = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            where = folder or "the current folder"
            raise InputError(f"{field}: {path!r}: no module {error.name!r} in {where} or installed") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(f"{field}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"{field}: {path!r}: {module_name} has no {part!r}")
        found = getattr(found, part)
    return found


@contextlib.contextmanager
def _on_path(folder: str | Path | None) -> Iterator[None]:
    """Search the folder first; afterwards last, for imports within functions, so that it hides no library's module."""
    entry = str(Path(folder or ".").resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)
        if entry not in sys.path:
            sys.path.append(entry)
