"""Merging partial runs of one spec, made on different machines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from testifai.errors import InputError
from testifai.runs import keys, trusted_runs
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store, identity_changes
from testifai.support.types import Record


def merge(paths: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Merge partial runs of the same spec into a new run file.

    Args:
        paths: run files of the parts
        out: the run file to write, which must not exist
    """
    sources = [Path(path) for path in paths]
    target = Path(out)
    if target.exists():
        raise InputError(f"merge: {target} exists; give a new file")
    if not sources:
        raise InputError("merge: give at least one run")
    with Store.open(sources[0]) as first:
        identity, inputs = _identity(first), first.get(keys.INPUTS)
        for path in sources[1:]:
            with Store.open(path) as other:
                changes = identity_changes(identity, _identity(other))
                if changes:
                    raise InputError(f"merge: {path} is not a part of the same run as {sources[0]}: {changes[0]}")
        temporary = target.with_name(f"{target.name}.{os.getpid()}.merging")
        try:
            with Store.create_or_open(temporary) as merged:
                merged.put(**{key: first.get(key) for key in keys.SHARED})
                labels = first.get_array(keys.LABELS)
                if labels is not None:
                    merged.put_array(keys.LABELS, labels)
                outcomes = Outcomes(inputs)
                for path in sources:
                    with Store.open(path) as source:
                        merged.import_run(source, outcomes)
                        _import_scores(merged, source)
                merged.put(**_about_parts(sources))
                # The spec is that of the first part.
                if trusted_runs.made_here(*(first.get(key) for key in (keys.ID, keys.SPEC, keys.FOLDER))):
                    trusted_runs.remember(merged)
            temporary.replace(target)
        finally:
            for ending in ("", "-wal", "-shm"):
                temporary.with_name(temporary.name + ending).unlink(missing_ok=True)


def _about_parts(sources: Sequence[Path]) -> Record:
    """Return all library versions, the worst result of showing inputs twice, and who ran the parts.

    If a part is not finished, the merged run has what was planned, and so is not finished either.
    """
    environments: list[Any] = []
    asked: list[dict[str, int]] = []
    ran: list[Any] = []
    planned: list[int] = []
    for path in sources:
        with Store.open(path) as source:
            environments += source.get(keys.ENVIRONMENTS) or [source.get(keys.ENVIRONMENT)]
            asked += filter(None, [source.get(keys.ASKED_TWICE)])
            ran += source.get(keys.RAN) or []
            if source.get(keys.FINISHED) is None and source.get(keys.PLANNED) is not None:
                planned.append(source.get(keys.PLANNED))
    distinct = [one for place, one in enumerate(environments) if one not in environments[:place]]
    about: Record = {keys.ENVIRONMENTS: distinct} if len(distinct) > 1 else {}
    if asked:
        about[keys.ASKED_TWICE] = max(asked, key=lambda one: one.get("differ", 0) + one.get("batch_differ", 0))
    if planned:
        about[keys.PLANNED] = max(planned)
    if ran:
        about[keys.RAN] = ran
    return about


def _import_scores(merged: Store, source: Store) -> None:
    """Import quality scores and add their cost; if parts have different measures, the last one counts."""
    about = source.get(keys.QUALITY)
    if about is None:
        return
    blocks = list(source.get_blocks(keys.SCORES))
    costs = {name: source.get(name) or 0 for name in dict.fromkeys(name for name, _, _ in blocks)}
    merged.put_blocks(blocks)
    merged.put(**{keys.QUALITY: about, **{name: cost + (merged.get(name) or 0) for name, cost in costs.items()}})


def _identity(store: Store) -> Record:
    found: Record | None = store.get(keys.IDENTITY)
    if found is None:
        raise InputError(f"merge: {store.path} holds no run yet; start it with: testifai run SPEC.toml")
    return found
