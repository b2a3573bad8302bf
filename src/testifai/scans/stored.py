"""Stored runs, opened again as tomograms; nothing of what they were measured on is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testifai.engine.stopping import by_width_alone
from testifai.errors import InputError
from testifai.quality.assessment import stored_scores
from testifai.runs import keys
from testifai.runs.growing import Loaded
from testifai.runs.outcomes import visiting_order
from testifai.runs.store import Store, damaged
from testifai.space import Space
from testifai.tomogram import Tomogram

# What a run file says of its run besides the outcomes, for whoever has the tomogram alone.
PROVENANCE = (
    keys.ID, keys.IDENTITY, keys.ENVIRONMENT, keys.ENVIRONMENTS, keys.ASKED_TWICE, keys.SPEC, keys.FOLDER, keys.GATES,
    keys.TRUST, keys.FIT, keys.LOCALITY, keys.FINISHED, keys.ENDED, keys.HASHES, keys.RAN, keys.PARTLY,
)  # fmt: skip


def open_run(path: str | os.PathLike[str], before: Loaded | None = None) -> Tomogram:
    """Reopen a stored run as a tomogram.

    Args:
        path: a run file
        before: what was loaded of it before, which is not read again; None: nothing
    """
    with Store.open(path) as store:
        return read_run(store, before)


def read_run(store: Store, before: Loaded | None = None) -> Tomogram:
    """The tomogram of an open run file, its provenance whatever else the file says of the run."""
    identity = store.get(keys.IDENTITY)
    if identity is None:
        raise InputError(f"run file: {store.path} holds no run yet; start it with: testifai run SPEC.toml")
    inputs, classes, labels = store.get(keys.INPUTS), store.get(keys.CLASSES), store.get_array(keys.LABELS)
    if inputs is None or (labels is not None and len(labels) != inputs):
        raise damaged(store.path, "the number of its inputs is missing, or not that of its labels")
    with reading(store.path, "space"):
        space = Space.from_description(identity["space"])
    with reading(store.path, "quality"):
        quality = stored_scores(store, space, identity["seed"])
    with reading(store.path, "stopping"):
        ended_by_width = by_width_alone(identity.get("stopping"))
    provenance = {"path": str(store.path), **{key: store.get(key) for key in PROVENANCE}}
    with reading(store.path, "gates"):
        _check_gates(provenance[keys.GATES])
    return Tomogram(
        space,
        store.load(inputs, space.size, before),
        visiting_order(inputs, identity["seed"]),
        labels=labels,
        classes=None if classes is None else tuple(classes),
        population=identity["population"],
        stopped_early=bool(store.get(keys.STOPPED_EARLY)),
        surrogate=identity.get("surrogate"),
        seed=identity["seed"],
        provenance=provenance,
        quality=quality,
        ended_by_width=ended_by_width,
    )


def _check_gates(gates: list[dict[str, Any]] | None) -> None:
    """Refuse what is no gate. Only a run of a spec has any, and pydantic is only needed for those."""
    if gates:
        from testifai.scans.spec import Gate

        for gate in gates:
            Gate(**gate)


@contextmanager
def reading(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """What a file says and cannot be, as the one line of a damaged file."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith("run file:") else damaged(path, f"{what}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise damaged(path, f"{what}: {type(error).__name__}: {error}") from None


def open_measured(path: str | os.PathLike[str], before: Loaded | None = None) -> Tomogram:
    """Reopen a stored run, or refuse where nothing was measured yet."""
    return measured(open_run(path, before))


def measured(tomogram: Tomogram) -> Tomogram:
    """The tomogram of a run file, refused where nothing was measured yet."""
    if not len(tomogram.outcomes):
        path = tomogram.provenance["path"]
        raise InputError(f"run file: {path} holds no outcome yet; continue it with: testifai run SPEC.toml")
    return tomogram
