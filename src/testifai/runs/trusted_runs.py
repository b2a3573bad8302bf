"""Record of the run files made by this account on this machine, in the user's state folder.

Only the spec of such a file is loaded without --spec, as it names data, a model and perhaps code. A record consists of
the random id of the file and a digest of its spec and folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from uuid import uuid4

from testifai.runs import keys
from testifai.runs.store import Store

MOST = 10_000  # recorded run files; the oldest ones are forgotten
WAIT = 2.0  # seconds for another process to finish writing
TABLE = (
    "CREATE TABLE IF NOT EXISTS made "
    "(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (id, digest))"
)


def state_folder() -> Path | None:
    """Return the folder of the record; None without a home folder."""
    if chosen := os.environ.get("TESTIFAI_STATE"):
        return Path(chosen)
    name = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME"
    base = Path(os.environ.get(name) or "")
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            return None
    return base / "testifai"


def remember(store: Store) -> None:
    """Record that this account stored the spec of an open run file; ignore errors."""
    run, spec = store.get(keys.ID), store.get(keys.SPEC)
    if spec is None:
        return
    if run is None:  # the first spec stored in this file
        run = uuid4().hex
        store.put(**{keys.ID: run})
    place = state_folder()
    if place is None:
        return
    with suppress(OSError, sqlite3.Error):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = place / "runs.db"
        os.close(os.open(record, os.O_RDWR | os.O_CREAT, 0o600))
        if not _mine_alone(record):
            return
        with closing(sqlite3.connect(record, isolation_level=None, timeout=WAIT)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # losing the record in a power failure does no harm
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(TABLE)
            values = (run, _digest(spec, store.get(keys.FOLDER)))
            connection.execute("INSERT OR REPLACE INTO made (id, digest) VALUES (?, ?)", values)
            connection.execute("DELETE FROM made WHERE number <= (SELECT max(number) FROM made) - ?", (MOST,))
            connection.execute("COMMIT")


def made_here(run: object, spec: object, folder: object) -> bool:
    """Return True if this account stored this spec with this folder in the file of this id."""
    place = state_folder()
    if place is None or not isinstance(run, str):
        return False
    record = place / "runs.db"
    try:
        if not record.is_file() or not _mine_alone(record):
            return False
        with closing(sqlite3.connect(f"{record.resolve().as_uri()}?mode=ro", uri=True, timeout=WAIT)) as connection:
            asked = (run, _digest(spec, folder))
            return connection.execute("SELECT 1 FROM made WHERE id = ? AND digest = ?", asked).fetchone() is not None
    except (OSError, sqlite3.Error):
        return False


def _mine_alone(record: Path) -> bool:
    """Return True if only this account can write the record, as far as files have owners."""
    if not hasattr(os, "geteuid"):
        return True
    return all(
        about.st_uid == os.geteuid() and not about.st_mode & 0o022 for about in (record.stat(), record.parent.stat())
    )


def _digest(spec: object, folder: object) -> str:
    text = json.dumps([spec, folder], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
