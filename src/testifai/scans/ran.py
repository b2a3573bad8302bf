"""Who ran a run when: written into its file where somebody asked for it, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.store import Store
from testifai.scans.session import Session

LONGEST = 200  # characters of a name


@contextmanager
def noted(by: str | None, session: Session, path: Path) -> Iterator[None]:
    """While this lasts the session runs; then its file says who ran it, from when to when, and how far.

    An interrupted run says so too; one that failed does not. Without a name, nothing is written.
    """
    if by is None:
        yield
        return
    name, started = _checked(by), _now()
    try:
        yield
    except KeyboardInterrupt:
        _note(path, name, started, session.outcomes.total())
        raise
    _note(path, name, started, session.outcomes.total())


def _note(path: Path, name: str, started: str, inferences: int) -> None:
    entry = {"by": name, "started": started, "ended": _now(), "inferences": inferences}
    with Store.create_or_open(path) as store:
        store.put(**{keys.RAN: [*(store.get(keys.RAN) or []), entry]})


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def _checked(by: str) -> str:
    name = by.strip()
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InputError(f"--run-by: expected one line of up to {LONGEST} characters, got {by!r}")
    return name
