"""Inspection of a table: its target, the columns for the model, and suitable perturbations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from testifai.data import Data
from testifai.data.table_columns import DISCRETE, NUMERIC, Kind, is_number
from testifai.data.tabular import NO_TARGET, guessed_target, read_columns
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models import Model
from testifai.perturb import get
from testifai.support.types import Record

Columns = tuple[Record, list[str]]  # options of a spec, and notes


def columns(model: Model, path: Path, target: str | None) -> Columns:
    """Return the target, by default guessed from names and the model's columns, and the columns for the model."""
    names = list(read_columns(path, 1))
    notes: list[str] = []
    if target is None:
        target, how = _target(names, getattr(model, "columns", None))
        notes += [f"Target: {target}, {how}." if target else "No target: the model takes all columns."]
    features = _features([name for name in names if name != target], model)
    told: Record = {"target": target}
    if features is None:
        return told, notes
    return {**told, "features": features}, [*notes, f"Columns for the model: {len(features)} of {len(names)}."]


def axes(model: Model, data: Data, places: Any) -> tuple[str, ...]:
    """Return perturbations of the suite tabular that have columns to change, and that the model supports."""
    assert data.table is not None
    kinds: set[Kind] = {column.kind for column in data.table.columns}
    wanted = [("noise", NUMERIC), ("swap", DISCRETE), ("outlier", NUMERIC), ("stale", (*NUMERIC, *DISCRETE))]
    fitting = [name for name, own in wanted if kinds & set(own)]
    missing = get("tabular.missing")
    batch = np.asarray(data.inputs[places[:8]], np.float64)
    try:
        holes = missing.apply(batch, len(missing.severities) - 1, table=data.table)
        call(model, holes, "to see whether it takes missing values")
    except InputError:
        return tuple(fitting[:3])
    return (*fitting[:1], "missing", *fitting[1:])[:3]


def _target(names: Sequence[str], own: Sequence[str] | None) -> tuple[str, str]:
    named = guessed_target(names)
    if named:
        return named, "by its name"
    # LightGBM writes _ for a space.
    known = {*(own or ()), *(name.replace("_", " ") for name in own or ())}
    left = [name for name in names if own is not None and name not in known and not is_number(name)]
    if own is not None and not left:
        return NO_TARGET, ""
    if len(left) == 1:
        return left[0], "the only column that the model does not take"
    return names[-1], 'the last column; change it with target = "…" or --target'


def _features(rest: Sequence[str], model: Model) -> list[str] | None:
    """Return the columns for the model; None if all are."""
    columns, width = getattr(model, "columns", None), getattr(model, "width", None)
    if columns is not None:
        known = {name: name for name in rest} | {name.replace(" ", "_"): name for name in rest}
        taken = [known[name] for name in columns if name in known]
        # If some are missing, all are passed on: the error of the model names the missing ones.
        return None if len(taken) < len(columns) or set(taken) == set(rest) else taken
    plain = [name for name in rest if not is_number(name)]
    return plain if len(plain) < len(rest) and len(plain) == width else None
