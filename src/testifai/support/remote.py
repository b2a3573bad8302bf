"""Files elsewhere, at an address such as s3://bucket/file: fetched by fsspec, once, into a folder of this machine.

A copy is kept under its address and what the storage says of its version, so that a changed file is fetched anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testifai.errors import InputError
from testifai.support import optional_imports
from testifai.support.types import Record

ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
HERE = "file://"
# What a storage says of a file that says nothing of its version.
_TIMELESS = frozenset({"name", "Key", "size", "Size", "type", "mimetype", "url", "partial", "StorageClass"})

_fetched: dict[Path, str] = {}  # the addresses of copies, for other processes


class RemoteFolder:
    """A folder elsewhere; of its files, each is fetched when it is read."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = address.rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        return self.address

    def exists(self) -> bool:
        """It did when it was looked for."""
        return True

    def listed(self) -> dict[str, Record]:
        """What the storage says of all files below, by their names within the folder, parts joined by /; sorted."""
        system, path = _system(self.address)
        with _blamed(self.address):
            found = system.find(path, detail=True)
        start = len(str(path).rstrip("/")) + 1
        return {name[start:]: about for name, about in sorted(found.items())}

    def copy_of(self, name: str, version: str) -> Path:
        """Where a copy of one of the files is, or will be."""
        return _copy(self._at(name), version)

    def file(self, name: str, version: str, size: int | None) -> Path:
        """A copy of one of the files, as it was listed."""
        copy = self.copy_of(name, version)
        if not copy.exists():
            address = self._at(name)
            _fetch(address, copy)
            if size is not None and copy.stat().st_size != size:
                copy.unlink()
                raise InputError(f"{address} is not what it was when its folder was listed; do not change data in use")
        return copy

    def _at(self, name: str) -> str:
        return f"{self.address.rstrip('/')}/{name}"


@dataclass(frozen=True)
class Elsewhere:
    """A fetched file, as other processes are told of it: where it came from, and what is in it."""

    address: str
    digest: str


def is_address(named: object) -> bool:
    """Whether this names something elsewhere.

    >>> is_address("s3://bucket/x.npz"), is_address("C:/x.npz"), is_address("data/x.npz")
    (True, False, False)
    """
    return isinstance(named, str) and ADDRESS.match(named) is not None


def place(address: str, folder: str | Path = ".") -> Path | RemoteFolder:
    """Where what an address names can be read: a copy on this machine, or a folder elsewhere.

    >>> place("file://data/x.npz", "/home").as_posix()
    '/home/data/x.npz'
    """
    if address.startswith(HERE):
        return Path(folder, address.removeprefix(HERE))
    about = _about(address)
    if about["type"] == "directory":
        return RemoteFolder(address)
    copy = _copy(address, version_of(about))
    if not copy.exists() or (about.keys() <= _TIMELESS and copy not in _fetched):
        _fetch(address, copy)
    _fetched[copy] = address
    return copy


def portable(file: Path) -> Path | Elsewhere:
    """What to tell another process, perhaps on another machine, of a file here."""
    address = _fetched.get(file)
    return file if address is None else Elsewhere(address, _digest(file))


def opened(told: Path | Elsewhere) -> Path:
    """The file that another process told of."""
    if isinstance(told, Path):
        return told
    found = place(told.address)
    if not isinstance(found, Path) or _digest(found) != told.digest:
        raise InputError(f"{told.address} is not what it was when the run began; do not change files in use")
    return found


def version_of(about: Record) -> str:
    """What tells a file from an earlier one of the same name, by what the storage says of it."""
    return hashlib.sha256(repr(sorted((key, str(value)) for key, value in about.items())).encode()).hexdigest()


def cache_folder() -> Path:
    """Where copies are kept: $TESTIFAI_CACHE, else the user's folder for such files."""
    told = os.environ.get("TESTIFAI_CACHE")
    return Path(told) if told else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "testifai")


def _copy(address: str, version: str) -> Path:
    key = hashlib.sha256(f"{address}\n{version}".encode()).hexdigest()[:32]
    name = address.partition("::")[0].rstrip("/").rpartition("/")[2]
    return (cache_folder() / key / name).absolute()


def _fetch(address: str, copy: Path) -> None:
    """Bring a file here, whole or not at all."""
    system, path = _system(address)
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=copy.parent)
        os.close(handle)
    except OSError as error:
        raise InputError(f"{copy.parent} cannot be written ({error.strerror}); set TESTIFAI_CACHE") from None
    try:
        with _blamed(address):
            system.get_file(path, part)
        os.replace(part, copy)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _about(address: str) -> Record:
    system, path = _system(address)
    with _blamed(address):
        return dict(system.info(path))


def _system(address: str) -> tuple[Any, str]:
    core: Any = optional_imports.load("fsspec.core", extra="remote")
    with _blamed(address):
        system, path = core.url_to_fs(address)
        system.invalidate_cache()  # a listing of earlier would hide what changed since
    return system, path


@contextmanager
def _blamed(address: str) -> Iterator[None]:
    """Whatever stands between this machine and a file becomes one line."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{address} does not exist") from None
    except ImportError as error:
        raise InputError(f"{address} needs another library: {_line(error)}") from None
    except Exception as error:  # every storage has exceptions of its own
        raise InputError(f"{address} cannot be read ({type(error).__name__}: {_line(error)})") from None


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:300]


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()
