"""One writer at a time for a file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from testifai.errors import InputError

MOMENT = 0.5  # seconds for which somebody may look whether a file is being written


class Lock:
    """Keeps two writers apart, and is gone with the process that held it, however it ended.

    `what` is how messages call the file, `instead` what to do where it cannot be written.
    """

    def __init__(self, path: Path, what: str = "run file", instead: str = "choose another place with --out") -> None:
        # A link to the file is the same file.
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
            if _is_named(handle, self.path):
                self._file = handle
            else:
                os.close(handle)

    def __del__(self) -> None:
        # A Ctrl-C may come before anybody holds the lock to release it.
        self.release()

    def release(self) -> None:
        """Let the next writer in."""
        held, self._file = self._file, None
        if held is not None:
            self.path.unlink(missing_ok=True)
            os.close(held)


def is_held(path: Path) -> bool:
    """Whether some process is writing a run file now."""
    try:
        handle = os.open(os.path.realpath(path) + "-lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it is there, and not for us to try
    try:
        return not _try_lock(handle, shared=True)
    finally:
        os.close(handle)


def _is_named(handle: int, path: Path) -> bool:
    """False when the holder before us removed the name between our open and our lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _try_lock(handle: int, *, shared: bool = False) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
