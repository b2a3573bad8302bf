"""A lock against a second writer of a file."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from testifai.errors import InputError

MOMENT = 0.5  # seconds for which `is_held` may take a shared lock


class Lock:
    """A lock that ends with its process; `what` and `instead` are parts of its error messages."""

    def __init__(self, path: Path, what: str = "run file", instead: str = "choose another place with --out") -> None:
        # A link and its file have one lock.
        self._file: int | None = None
        self.path = Path(os.path.realpath(path) + "-lock")
        patient = time.monotonic() + MOMENT
        while self._file is None:
            try:
                handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise InputError(f"{what}: cannot write in {path.parent} ({error.strerror}); {instead}") from error
            if not _try_lock(handle):
                os.close(handle)
                if time.monotonic() < patient:
                    time.sleep(MOMENT / 20)
                    continue
                raise InputError(f"{what}: {path} is being written by another testifai; wait for it to end")
            # The previous holder may have removed the name between `open` and `_try_lock`.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), self.path.stat()):
                    self._file = handle
            if self._file is None:
                os.close(handle)

    def __del__(self) -> None:
        # A Ctrl-C may come before the caller has the lock.
        self.release()

    def release(self) -> None:
        held, self._file = self._file, None
        if held is not None:
            self.path.unlink(missing_ok=True)
            os.close(held)


def is_held(path: Path) -> bool:
    """Return True if a process is writing a run file."""
    try:
        handle = os.open(os.path.realpath(path) + "-lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it exists, but belongs to another account
    try:
        return not _try_lock(handle, shared=True)
    finally:
        os.close(handle)


def _try_lock(handle: int, *, shared: bool = False) -> bool:
    with suppress(OSError):
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    return False
