"""How a run file is opened by those who only look at it, also where they may not write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from testifai.errors import InputError
from testifai.runs import guard


def size(path: Path) -> int:
    """The bytes of a run file, those in its log included."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection through which nothing is written."""

    def connect(options: str) -> sqlite3.Connection:
        uri = f"{path.resolve().as_uri()}?{options}"
        connection = sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None, check_same_thread=False)
        try:
            guard.distrust(connection)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.execute("PRAGMA query_only = ON")
        except Exception:
            connection.close()
            raise
        return connection

    try:
        # Not mode=ro: only who may write tidies the log away behind the last reader.
        return connect("mode=rw")
    except sqlite3.OperationalError as error:
        # In a folder we may not write to, SQLite cannot make the files it reads a write-ahead log through.
        if "unable to open" not in str(error) and "readonly" not in str(error):
            raise
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            raise InputError(
                f"run file: the last outcomes of {path} are in {log.name}, which can only be read where testifai may "
                "write; copy both files to another folder"
            ) from error
        return connect("mode=ro&immutable=1")
