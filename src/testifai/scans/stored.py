"""Stored runs, opened again as tomograms; nothing of what they were measured on is loaded."""

from __future__ import annotations

import os
from pathlib import Path

from testifai.errors import InputError
from testifai.quality.assessment import stored_scores
from testifai.runs import keys
from testifai.runs.outcomes import visiting_order
from testifai.runs.store import Store
from testifai.space import Space
from testifai.tomogram import Tomogram


def open_run(path: str | os.PathLike[str]) -> Tomogram:
    """Reopen a stored run as a tomogram."""
    with Store.open(path) as store:
        identity = store.get(keys.IDENTITY)
        if identity is None:
            raise InputError(f"run file: {path} holds no run yet; start it with: testifai run SPEC.toml")
        inputs, classes = store.get(keys.INPUTS), store.get(keys.CLASSES)
        space = Space.from_description(identity["space"])
        return Tomogram(
            space,
            store.load(inputs),
            visiting_order(inputs, identity["seed"]),
            labels=store.get_array(keys.LABELS),
            classes=None if classes is None else tuple(classes),
            population=identity["population"],
            stopped_early=bool(store.get(keys.STOPPED_EARLY)),
            surrogate=identity["surrogate"],
            seed=identity["seed"],
            provenance={
                "identity": identity,
                "environment": store.get(keys.ENVIRONMENT),
                "spec": store.get(keys.SPEC),
                "gates": store.get(keys.GATES),
                "path": str(Path(path)),
            },
            quality=stored_scores(store, space, identity["seed"]),
        )


def open_measured(path: str | os.PathLike[str]) -> Tomogram:
    """Reopen a stored run, or refuse where nothing was measured yet."""
    tomogram = open_run(path)
    if not len(tomogram.outcomes):
        raise InputError(f"run file: {path} holds no outcome yet; continue it with: testifai run SPEC.toml")
    return tomogram
