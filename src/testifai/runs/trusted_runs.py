"""Which run files were made on this machine by this account: a small record in the user's state folder.

A run file names data, a model and perhaps code. Whether that may be followed without being asked for must not be the
file's own word, so it is written down here when a spec is stored: the file's random id with a digest of the spec and
its folder. A file with a copied id and another spec is a stranger's. Without a record all still works, with --spec.
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

MOST = 10_000  # run files remembered; beyond, those noted longest ago are forgotten
WAIT = 2.0  # seconds for another process that writes the record
TABLE = (
    "CREATE TABLE IF NOT EXISTS made "
    "(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (id, digest))"
)


def state_folder() -> Path | None:
    """Where this account keeps the record; None where it has no home."""
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
    """Note that this account stored the spec that an open run file now holds. Not being able to is no error."""
    run, spec = store.get(keys.ID), store.get(keys.SPEC)
    if spec is None:
        return
    if run is None:  # the first spec stored in this file
        run = new_id()
        store.put(**{keys.ID: run})
    with suppress(OSError, sqlite3.Error):
        _note(run, _digest(spec, store.get(keys.FOLDER)))


def made_here(run: object, spec: object, folder: object) -> bool:
    """Whether this account, on this machine, stored this spec with this folder in the file of this id."""
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


def new_id() -> str:
    """An id for a new run file; random, so that nobody can guess one."""
    return uuid4().hex


def _note(run: str, digest: str) -> None:
    place = state_folder()
    if place is None:
        return
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    record = place / "runs.db"
    os.close(os.open(record, os.O_RDWR | os.O_CREAT, 0o600))
    if not _mine_alone(record):
        return
    with closing(sqlite3.connect(record, isolation_level=None, timeout=WAIT)) as connection:
        # The record may be lost with the power; a run file may not, and is not waiting here.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(TABLE)
        connection.execute("INSERT OR REPLACE INTO made (id, digest) VALUES (?, ?)", (run, digest))
        connection.execute("DELETE FROM made WHERE number <= (SELECT max(number) FROM made) - ?", (MOST,))
        connection.execute("COMMIT")


def _mine_alone(record: Path) -> bool:
    """Whether nobody else could have written the record; only asked where files have owners."""
    if not hasattr(os, "geteuid"):
        return True
    return all(
        about.st_uid == os.geteuid() and not about.st_mode & 0o022 for about in (record.stat(), record.parent.stat())
    )


def _digest(spec: object, folder: object) -> str:
    text = json.dumps([spec, folder], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
