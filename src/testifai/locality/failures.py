"""The failing inputs behind an error summary, clean and perturbed, as one file to train on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from testifai import data as datasets
from testifai.engine.subject import ShownInputs
from testifai.errors import InputError
from testifai.locality.explain import matching_axes
from testifai.locality.local import Local, Sampled
from testifai.locality.summary import Explanation
from testifai.space import Space
from testifai.support.batches import concat
from testifai.support.files import write_npz
from testifai.support.types import Array


def export_failures(found: Explanation | Local, data: Any, properties: Any, path: str | os.PathLike[str]) -> int:
    """Write every failure as a row of an npz file, and return how many there are.

    `x` is the input as the model saw it, `clean` as it was, `y` its label, `predicted` the name of the answer, `index`
    the input's number in the data, `property` and `severity` what it was under, and `trend` the rank of the trend it
    belongs to, 0 for none. `data` and `properties` are what the table was measured on.

    Args:
        found: a table, or its explanation, which tells the trends
        data: what the table was measured on
        properties: the same
        path: of the npz file

    >>> import tempfile, testifai as ta
    >>> from testifai.locality import local
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = {"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])}
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> file = Path(tempfile.mkdtemp()) / "failures.npz"
    >>> export_failures(local(model, (rows, model(rows)), shift), (rows, model(rows)), shift, file)
    4
    >>> with np.load(file) as kept:
    ...     np.allclose(kept["x"], kept["clean"] + 0.1), kept["y"].tolist(), kept["predicted"].tolist()
    (True, [0, 0, 0, 0], ['1', '1', '1', '1'])
    """
    local = found if isinstance(found, Local) else found.local
    if Path(path).suffix != ".npz":
        raise InputError(f"failures: {Path(path).name!r} must end in .npz")
    if local.sampled is None or local.seed is None:
        raise InputError("failures: this table has counts alone; only one that local() measured knows its inputs")
    space = properties if isinstance(properties, Space) else Space(properties)
    matching_axes(local, space)
    subject = _inputs(datasets.wrap(data), space, local.sampled, local.seed)
    ranks = _ranks(found)
    groups = [
        _group(local, local.sampled, subject, ranks, which, level)
        for which, levels in enumerate(local.severities)
        for level in range(len(levels))
    ]
    kept = [group for group in groups if len(group["index"])]
    if not kept:
        raise InputError("failures: no input failed; there is nothing to write")
    arrays = {name: np.asarray(concat([group[name] for group in kept])) for name in kept[0]}
    write_npz(Path(path), arrays)
    return len(arrays["index"])


def _inputs(data: datasets.Data, space: Space, sampled: Sampled, seed: int) -> ShownInputs:
    """What turns an input's number into the input, clean or perturbed; no model is needed for that."""
    inputs = len(data.inputs)
    if data.labels is None or int(sampled.ids.max(initial=0)) >= inputs:
        raise InputError(f"data: {inputs} inputs do not fit the table; accepted: the data it was measured on, labelled")
    plain = Space({axis.name: (axis.perturbation, axis.severities) for axis in space.axes})
    return ShownInputs(data, plain, np.arange(inputs), seed)


def _ranks(found: Explanation | Local) -> Array:
    """(class, property, severity, output): the rank of the trend an answer belongs to."""
    local = found if isinstance(found, Local) else found.local
    ranks = np.zeros((*local.rate.shape, len(local.outputs)), np.int32)
    for rank, trend in enumerate(() if isinstance(found, Local) else found.trends, start=1):
        ranks[trend.mask] = rank
    return ranks


def _group(
    local: Local, sampled: Sampled, shown: ShownInputs, ranks: Array, which: int, level: int
) -> dict[str, Array | list[str]]:
    """The failures under one property at one severity."""
    answers = sampled.predicted[:, which, level]
    rows = np.flatnonzero((answers >= 0) & (answers != sampled.classes))
    ids, name, severity = sampled.ids[rows], local.properties[which], local.severities[which][level]
    sigma = tuple(severity if axis.name == name else 0 for axis in shown.space.axes)
    assert shown.data.labels is not None
    return {
        "x": shown.composite(sigma, ids) if len(ids) else [],
        "clean": shown.batch(ids) if len(ids) else [],
        "y": shown.data.labels[ids],
        "predicted": np.array(local.outputs)[answers[rows]],
        "index": ids,
        "property": np.full(len(ids), name),
        "severity": np.full(len(ids), severity),
        "trend": ranks[sampled.classes[rows], which, level, answers[rows]],
    }
