"""Remote files, at an address such as s3://bucket/file, copied by fsspec into a cache.

A copy is identified by its address and by the version that the storage reports.
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
from testifai.support.files import sha256
from testifai.support.types import Record

ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
HERE = "file://"
# fields of a storage's description that do not identify a version
_TIMELESS = frozenset({"name", "Key", "size", "Size", "type", "mimetype", "url", "partial", "StorageClass"})

_fetched: dict[Path, str] = {}  # the addresses of copies, for other processes


class RemoteFolder:
    """A remote folder; a file is fetched when it is read."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.name = address.rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        return self.address

    def exists(self) -> bool:
        return True  # `place` checked it

    def listed(self) -> dict[str, Record]:
        """Return the storage's descriptions of all files, by path within the folder, sorted."""
        system, path = _system(self.address)
        with _blamed(self.address):
            found = system.find(path, detail=True)
        start = len(str(path).rstrip("/")) + 1
        return {name[start:]: about for name, about in sorted(found.items())}

    def copy_of(self, name: str, version: str) -> Path:
        """Return the path of a file's copy, which may not exist yet."""
        return _copy(f"{self.address.rstrip('/')}/{name}", version)

    def file(self, name: str, version: str, size: int | None) -> Path:
        """Return a copy of a file, in the version that was listed."""
        copy = self.copy_of(name, version)
        if not copy.exists():
            address = f"{self.address.rstrip('/')}/{name}"
            _fetch(address, copy)
            if size is not None and copy.stat().st_size != size:
                copy.unlink()
                raise InputError(f"{address} is not what it was when its folder was listed; do not change data in use")
        return copy


@dataclass(frozen=True)
class Elsewhere:
    """A remote file for another process: its address and a hash of its content."""

    address: str
    digest: str


def is_address(named: object) -> bool:
    """Return True for an address of a remote file or folder, not for a path.

    >>> is_address("s3://bucket/x.npz"), is_address("C:/x.npz"), is_address("data/x.npz")
    (True, False, False)
    """
    return isinstance(named, str) and ADDRESS.match(named) is not None


def place(address: str, folder: str | Path = ".") -> Path | RemoteFolder:
    """Return a local copy of the file at an address, or the remote folder."""
    if address.startswith(HERE):
        return Path(folder, address.removeprefix(HERE))
    system, path = _system(address)
    with _blamed(address):
        about = dict(system.info(path))
    if about["type"] == "directory":
        return RemoteFolder(address)
    copy = _copy(address, version_of(about))
    if not copy.exists() or (about.keys() <= _TIMELESS and copy not in _fetched):
        _fetch(address, copy)
    _fetched[copy] = address
    return copy


def portable(file: Path) -> Path | Elsewhere:
    """Return what another process, possibly on another machine, needs to open a file."""
    address = _fetched.get(file)
    return file if address is None else Elsewhere(address, sha256(file))


def opened(told: Path | Elsewhere) -> Path:
    """Return the path of a file that `portable` described."""
    if isinstance(told, Path):
        return told
    found = place(told.address)
    if not isinstance(found, Path) or sha256(found) != told.digest:
        raise InputError(f"{told.address} is not what it was when the run began; do not change files in use")
    return found


def version_of(about: Record) -> str:
    """Return a hash of a storage's description of a file, which changes with its content."""
    return hashlib.sha256(repr(sorted((key, str(value)) for key, value in about.items())).encode()).hexdigest()


def _copy(address: str, version: str) -> Path:
    key = hashlib.sha256(f"{address}\n{version}".encode()).hexdigest()[:32]
    name = address.partition("::")[0].rstrip("/").rpartition("/")[2]
    told = os.environ.get("TESTIFAI_CACHE")
    cache = Path(told) if told else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "testifai")
    return (cache / key / name).absolute()


def _fetch(address: str, copy: Path) -> None:
    """Copy a remote file, completely or not at all."""
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


def _system(address: str) -> tuple[Any, str]:
    core: Any = optional_imports.load("fsspec.core", extra="remote")
    with _blamed(address):
        system, path = core.url_to_fs(address)
        system.invalidate_cache()  # an old listing would hide changes
    return system, path


@contextmanager
def _blamed(address: str) -> Iterator[None]:
    """Turn any error of a storage into an InputError."""
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
