"""A stored run's model and data, loaded again from the spec that its file holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.store import Store, identity_changes
from testifai.scans import loading
from testifai.scans.session import Session
from testifai.scans.spec import parse, read


def reopen(run_file: Path, spec: Path | None = None) -> Session:
    """A session for a stored run, its model and data loaded and known to be those it was made with.

    A spec that runs code is followed only where it is still in its folder or the user names it: a run file may come
    from someone else.
    """
    with Store.open(run_file) as store:
        stored, folder, identity = store.get(keys.SPEC), store.get(keys.FOLDER), store.get(keys.IDENTITY)
    if spec is None and stored is None:
        raise InputError(f"run file: {run_file.name} was not made from a spec; name one with --spec")
    loaded = parse(stored) if spec is None else read(spec)
    place = Path(folder or ".") if spec is None else spec.resolve().parent
    if spec is None and loaded.runs_code() and not _still_there(stored, place):
        raise InputError(
            f"run file: the spec in {run_file.name} runs your own code ({', '.join(loaded.runs_code())}); "
            "to allow that, name it with --spec"
        )
    session = loading.session(loaded, place)
    now = session.identity()
    kept = ("model", "preprocessing", "data", "space", "oracle", "seed")
    changes = identity_changes(*({key: whole.get(key) for key in kept} for whole in (identity, now)))
    if changes:
        raise InputError(f"run file: this is not what {run_file.name} was measured on: {changes[0]}")
    return session


def _still_there(stored: dict[str, Any], folder: Path) -> bool:
    """Whether the folder has a spec file that says the same as the one in the run."""
    for path in sorted(folder.glob("*.toml")):
        with suppress(InputError):
            if read(path).model_dump(mode="json", exclude_none=True) == stored:
                return True
    return False
